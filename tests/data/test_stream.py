"""Images that stay on disk train as those on the device do."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from helpers.runs import same
from helpers.trees import picture
from jioc.config import values as settings
from jioc.data.augment.basic import Augment
from jioc.data.load import load_dataset
from jioc.data.loader import Images
from jioc.data.stream import AHEAD, Streamed
from jioc.resolve.derive import resolve
from jioc.training.execution import GraphSteps
from jioc.training.preflight import preflight
from jioc.training.run import run
from jioc.training.runner import Run


def both(device: str = "cpu", half: bool = False) -> tuple[Images, Streamed]:
    pixels = np.random.RandomState(0).randint(0, 256, (50, 3, 8, 8)).astype(np.uint8)
    parts = (pixels, np.arange(50), (0.5,) * 3, (0.25,) * 3, torch.device(device), 6, half)
    return Images(*parts), Streamed(*parts)


def drawn(n: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    return [torch.randperm(50, generator=generator)[:7] for _ in range(n)]


def agree(resident: Images, streamed: Streamed, batches: list[torch.Tensor]) -> None:
    augment = Augment(pad=2, flip=True, brightness=0.2)
    one, two = (torch.Generator(resident.device).manual_seed(3) for _ in range(2))
    for index in batches:
        assert torch.equal(resident.augmented(index, augment, one), streamed.augmented(index, augment, two))
        assert torch.equal(resident.plain(index), streamed.plain(index))


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_batches_are_the_same(device: str, half: bool) -> None:
    resident, streamed = both(device, half)
    assert resident.resident and not streamed.resident
    for announced in (0, 1, 3 * AHEAD):
        batches = [index.to(device) for index in drawn(3 * AHEAD)]
        streamed.prefetch(batches[:announced])
        agree(resident, streamed, batches)


@pytest.mark.parametrize("kind", [Images, Streamed])
def test_an_array_that_may_not_be_written_is_read(kind: type[Images]) -> None:
    """As numpy.asarray of a picture is. Torch warns of sharing it, once a process."""
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 1, 2, 2)
    pixels.flags.writeable = False
    images = kind(pixels, np.arange(3), (0.0,), (1 / 255,), torch.device("cpu"))
    assert images.plain(torch.tensor([2])).flatten().tolist() == [8, 9, 10, 11]
    assert not np.shares_memory(images.pixels.numpy(), pixels)


def test_other_batches_than_prefetched_are_right_too() -> None:
    resident, streamed = both()
    batches = drawn(8)
    streamed.prefetch(batches)
    agree(resident, streamed, [batches[5], batches[0], torch.tensor([1, 1]), *batches[1:3]])
    streamed.prefetch(batches[:2])
    agree(resident, streamed, batches[:2])


@pytest.mark.parametrize("parts", [1, 3])
def test_every_part_of_a_batch_was_prefetched(
    parts: int, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Images, "_prefetched", lambda self, index: pytest.fail("gathered only when it was asked for")
    )
    small |= {"later": {"epochs": 1}, "first": {"epochs": 2}}
    assert run(method="ssil", stream="yes", accumulate=parts, **small)["complete"]


@pytest.mark.parametrize("data", ["digits", "folder"])
def test_weights_and_results_are_the_same_bit_for_bit(
    data: str, small: dict[str, Any], tmp_path: Path
) -> None:
    if data == "folder":  # memory-mapped, and cropped from a larger canvas
        for i in range(60):
            picture(tmp_path / "pictures" / "abcdef"[i % 6] / f"{i}.png", i, (12, 14))
        small |= {"data": str(tmp_path / "pictures"), "image_size": 8, "canvas": 10, "task_sizes": (3, 3)}
    small |= {"later": {"epochs": 2}, "first": {"epochs": 2}, "batch_size": 16, "memory": 20}
    words = {"coordination": {"coordinate": "jioc"}}
    results = {s: run(method="icarl", out=tmp_path / s, stream=s, **small, **words) for s in ("yes", "no")}
    yes, no = (load_file(tmp_path / s / "model.safetensors") for s in ("yes", "no"))
    assert yes.keys() == no.keys() and all(torch.equal(yes[k], no[k]) for k in yes)
    assert [row["cnn"] for row in results["yes"]["tasks"]] == [row["cnn"] for row in results["no"]["tasks"]]


# --- a step that is replayed, and sees only memory that stays where it is ---


class Replayed(GraphSteps):
    """Graphs as a CPU can have them: the step is run again on the order, the place and what was fed."""

    def _capture(self, size: int) -> Any:
        return size

    def _replay(self, i: int) -> None:
        self._step(self.graphs[self.sizes[i]])  # type: ignore[arg-type]


def after_two_epochs(small: dict[str, Any], graph: bool, **values: Any) -> dict[str, torch.Tensor]:
    values |= {"first": {"epochs": 2}, "batch_size": 64, "task_sizes": (2, 8)}
    config = resolve(settings.make(method="icarl", **small | values))
    plan = preflight(config, load_dataset(config))
    r = Run(replace(plan, execution=replace(plan.execution, graph=graph)))
    task, data = r.arrival(0)
    r.method.net.grow(2, r.method.generator)
    r.engine.fit(r.method, task, data.alone())
    return {name: value.cpu() for name, value in r.method.net.state_dict().items()}


@pytest.mark.parametrize("parts", [1, 3])
def test_a_replayed_step_trains_on_the_images_that_were_fed(
    parts: int, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fed: list[int] = []
    feed = Streamed.feed

    def watched(self: Streamed, parts: tuple[torch.Tensor, ...]) -> None:
        feed(self, parts)
        fed.append(sum(map(len, parts)))

    monkeypatch.setattr("jioc.training.engine.GraphSteps", Replayed)
    monkeypatch.setattr(Streamed, "feed", watched)
    wanted = after_two_epochs(small, graph=False, accumulate=parts)
    assert same(after_two_epochs(small, graph=True, accumulate=parts, stream="yes"), wanted)
    assert len({*fed}) == 2 and len(fed) > 6  # a smaller last batch, whose buffers are its own
    fed.clear()
    assert same(after_two_epochs(small, graph=True, accumulate=parts), wanted) and not fed


def test_what_is_fed_stays_where_it_is(small: dict[str, Any]) -> None:
    _, streamed = both()
    streamed.feed((torch.tensor([1, 2]), torch.tensor([3])))
    with streamed.reading_fed():
        first = [streamed._prefetched(torch.zeros(n)) for n in (2, 1)]
    streamed.feed((torch.tensor([4, 5]), torch.tensor([6])))
    assert torch.equal(torch.cat(first), streamed.pixels[[4, 5, 6]])


@pytest.mark.gpu
@pytest.mark.parametrize("parts", [1, 2])
def test_on_a_gpu_a_streamed_graph_is_a_resident_one_bit_for_bit(parts: int, small: dict[str, Any]) -> None:
    exact = {"device": "cuda", "precision": "fp32", "deterministic": True, "compile": False}
    values = small | exact | {"accumulate": parts}
    wanted = after_two_epochs(values, graph=True)
    assert same(after_two_epochs(values, graph=True, stream="yes"), wanted)
