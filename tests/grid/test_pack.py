"""Several runs in one process."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.grids import BASE
from jioc.config import values as settings
from jioc.errors import Failed, Refused
from jioc.events import Callback, Epoch, Event
from jioc.grid.pack import pack
from jioc.resolve.derive import resolve
from jioc.results import Result


def test_runs_of_unlike_arithmetic_do_not_meet_in_one_process() -> None:
    seen = []

    def watch(i: int) -> Callback:
        def tell(event: Event) -> None:
            if isinstance(event, Epoch):
                seen.append((i, torch.backends.cudnn.deterministic, torch.backends.cuda.matmul.allow_tf32))

        return tell

    changes: tuple[dict[str, Any], ...] = (
        {"deterministic": True},
        {"precision": "tf32"},
        {"deterministic": True},
    )
    with torch_as_it_was():
        found = pack([resolve(settings.make(**BASE | change)) for change in changes], 3, callback=watch)
    assert all(isinstance(result, Result) for result in found)
    assert {*seen} == {(0, True, False), (1, False, True), (2, True, False)}


def test_a_packed_run_whose_folder_is_taken_is_refused_before_images_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("by another")
    monkeypatch.setattr("jioc.grid.pack.load_dataset", lambda *args: pytest.fail("images were read first"))
    (found,) = pack([resolve(settings.make(**BASE))], 1, outs=[tmp_path])
    assert isinstance(found, Refused) and "holds other files" in str(found)


def test_a_run_that_failed_lets_go_of_its_tensors_while_its_error_is_kept() -> None:
    held: list[weakref.ref[torch.Tensor]] = []

    def fail(event: Event) -> None:
        held_here = torch.zeros(1)
        held.append(weakref.ref(held_here))
        raise Failed("on purpose")

    (found,) = pack([resolve(settings.make(**BASE))], 1, callback=lambda i: fail)
    assert isinstance(found, Failed) and found.__traceback__ is not None
    assert held and all(tensor() is None for tensor in held)


@contextmanager
def torch_as_it_was() -> Iterator[None]:
    b, algorithms = torch.backends, torch.are_deterministic_algorithms_enabled()
    before = b.cudnn.deterministic, b.cudnn.benchmark, b.cudnn.allow_tf32, b.cuda.matmul.allow_tf32
    yield
    b.cudnn.deterministic, b.cudnn.benchmark, b.cudnn.allow_tf32, b.cuda.matmul.allow_tf32 = before
    torch.use_deterministic_algorithms(algorithms)
