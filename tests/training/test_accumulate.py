"""A batch that is worked through in parts: which images a part has, and what would mean something else there."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from jioc.config import values as settings
from jioc.errors import Refused
from jioc.methods.ssil import SSIL
from jioc.resolve.derive import resolve
from jioc.training.execution import how
from jioc.training.run import run
from jioc.types import Batch

SHORT: dict[str, Any] = {"first": {"epochs": 1}, "later": {"epochs": 1}}


@pytest.mark.parametrize("parts", [2, 5])
def test_every_part_of_a_step_of_ssil_has_its_share_of_exemplars(
    parts: int, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    real = SSIL.loss

    def loss(self: SSIL, batch: Batch, *others: Any) -> Any:
        seen.append((len(batch.y), int(batch.old.sum())))
        return real(self, batch, *others)

    small |= {"task_sizes": (5, 5), "batch_size": 64, **SHORT}
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(SSIL, "loss", loss)
    run(method="ssil", accumulate=parts, **small, callback=lambda kind, what: lines.append(what))
    later = seen[next(i for i, (_, old) in enumerate(seen) if old) :]
    images = [line["images"] for line in lines if "terms" in line]
    assert sum(n for n, _ in seen) == sum(images) and sum(n for n, _ in later) == images[-1]
    for first in range(0, len(later), parts):
        of_step = later[first : first + parts]
        assert all(max(of) - min(of) <= 1 for of in zip(*of_step, strict=True)), of_step


def test_a_batch_of_fewer_images_than_parts_is_trained_on(small: dict[str, Any]) -> None:
    lines: list[dict[str, Any]] = []
    small |= {"task_sizes": (5, 5), "long_tail": 20, "batch_size": 125, **SHORT}
    run(method="replay", accumulate=3, **small, callback=lambda kind, what: lines.append(what))
    trained = [line["images"] for line in lines if "terms" in line]
    assert trained[0] % 125 == 2  # in three parts


def test_every_part_of_a_full_batch_is_compiled(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: set[frozenset[int]] = set()
    monkeypatch.setattr(
        "jioc.training.engine.compiling", lambda *sizes: compiled.add(frozenset(sizes)) or nullcontext()
    )
    run(method="replay", accumulate=3, compile=True, **small | {"batch_size": 64, **SHORT})
    assert compiled == {frozenset({21, 22})}


@pytest.mark.parametrize(
    ("readings", "told"),
    [
        ({"coordinate": "jioc", "delta_scale": "mean1"}, "--delta-scale mean1"),
        ({"coordinate": "ic", "delta_scale": "per-class"}, "--delta-scale per-class"),
        ({"coordinate": "oc", "suppress_scale": "batch"}, "--suppress-scale batch"),
        ({"coordinate": "jioc", "suppress_scale": "old-mean"}, "--suppress-scale old-mean"),
    ],
)
def test_what_looks_at_a_whole_batch_is_refused(
    readings: dict[str, str], told: str, small: dict[str, Any], tmp_path: Path
) -> None:
    words = f"^{told} looks at a whole batch, of which --accumulate works through a part at a time$"
    with pytest.raises(Refused, match=words):
        run(method="icarl", accumulate=2, coordination=readings, out=tmp_path / "run", **small)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("coordinate", ["none", "ic"])
def test_a_reading_that_has_no_part_in_the_loss_is_not_refused(coordinate: str) -> None:
    readings = {"coordinate": coordinate, "suppress_scale": "old-mean"}
    config = resolve(settings.make(method="icarl", accumulate=2, coordination=readings))
    assert how(config, torch.device("cpu"), True).parts == 2
