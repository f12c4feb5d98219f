"""Images are normalised, and an epoch visits each once."""

import numpy as np
import pytest
import torch

from jioc.data.loader import Images, Shuffled


def test_normalisation() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3, 2, 2), np.uint8)
    images = Images(pixels, np.arange(4), (0.4, 0.5, 0.6), (0.1, 0.2, 0.3), torch.device("cpu"))
    expected = (pixels[2, 1, 0, 1] / 255 - 0.5) / 0.2
    assert images.plain(torch.tensor([2]))[0, 1, 0, 1].item() == pytest.approx(expected, abs=1e-5)


def test_an_epoch_visits_every_image_once_and_keeps_the_last_batch() -> None:
    sampler, g = Shuffled(torch.arange(100, 203), 25), torch.Generator().manual_seed(0)
    first, second = sampler.epoch(g), sampler.epoch(g)
    assert [len(b) for b in first] == [25, 25, 25, 25, 3]
    assert torch.cat(first).sort().values.equal(torch.arange(100, 203))
    assert not torch.cat(first).equal(torch.cat(second))
