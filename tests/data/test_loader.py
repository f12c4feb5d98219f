"""Images are normalised, and an epoch visits each once."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jioc.data.loader import Images, Shuffled, batch_sizes


def test_normalisation() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3, 2, 2), np.uint8)
    images = Images(pixels, np.arange(4), (0.4, 0.5, 0.6), (0.1, 0.2, 0.3), torch.device("cpu"))
    expected = (pixels[2, 1, 0, 1] / 255 - 0.5) / 0.2
    assert images.plain(torch.tensor([2]))[0, 1, 0, 1].item() == pytest.approx(expected, abs=1e-5)


def test_an_epoch_visits_every_image_once_and_keeps_the_last_batch() -> None:
    sampler, g = Shuffled(torch.arange(100, 210), 25), torch.Generator().manual_seed(0)
    first, second = sampler.epoch(g), sampler.epoch(g)
    assert [len(b) for b in first] == [25, 25, 25, 25, 10]
    assert torch.cat(first).sort().values.equal(torch.arange(100, 210))
    assert not torch.cat(first).equal(torch.cat(second))


@given(st.integers(1, 400), st.integers(1, 130))
def test_a_last_batch_of_a_few_images_joins_the_one_before(images: int, batch_size: int) -> None:
    *full, last = batch_sizes(images, batch_size)
    assert sum(full) + last == images and all(size == batch_size for size in full)
    assert last < batch_size + 8
    assert not full or last >= min(8, batch_size // 2)  # never a few alone beside full ones
    assert batch_sizes(3202, 128)[-2:] == [128, 130]
    assert batch_sizes(16, 10) == [10, 6]  # half a batch is no remainder
