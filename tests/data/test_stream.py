"""Images that stay on disk train as those on the device do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from helpers.trees import picture
from jioc.data.augment.basic import Augment
from jioc.data.loader import Images
from jioc.data.stream import AHEAD, Streamed
from jioc.training.run import run


def both(device: str = "cpu") -> tuple[Images, Streamed]:
    pixels = np.random.RandomState(0).randint(0, 256, (50, 3, 8, 8)).astype(np.uint8)
    parts = (pixels, np.arange(50), (0.5,) * 3, (0.25,) * 3, torch.device(device), 6)
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


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_batches_are_the_same(device: str) -> None:
    resident, streamed = both(device)
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
