"""Crop, flip and brightness against PIL, image by image."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from jioc.data.augment.basic import Augment, brighten, crop_flip


def test_crop_and_flip_are_pils() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (8, 3, 9, 9), np.uint8)
    top, left = torch.tensor([0, 1, 2, 3, 4, 0, 4, 2]), torch.tensor([4, 3, 0, 1, 2, 0, 4, 2])
    mirrored = torch.tensor([True, False] * 4)
    got = crop_flip(torch.from_numpy(x), 2, top, left, mirrored)
    for i in range(8):
        image = ImageOps.expand(Image.fromarray(x[i].transpose(1, 2, 0)), 2)
        image = image.crop((int(left[i]), int(top[i]), int(left[i]) + 9, int(top[i]) + 9))
        if mirrored[i]:
            image = ImageOps.mirror(image)
        assert np.array_equal(got[i].numpy().transpose(1, 2, 0), np.asarray(image))


@pytest.mark.parametrize("factor", [0.753, 0.9, 1.0, 1.1, 1.247])
def test_brightness_is_pils(factor: float) -> None:
    levels = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16).repeat(3, 1)
    got = brighten(torch.from_numpy(levels), torch.tensor([factor]))[0].numpy().transpose(1, 2, 0)
    expected = ImageEnhance.Brightness(Image.fromarray(levels[0].transpose(1, 2, 0))).enhance(factor)
    assert np.array_equal(got, np.asarray(expected))


def test_augmentation_draws_from_its_generator_alone() -> None:
    x = torch.randint(0, 256, (64, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    augment, world = Augment(pad=2, flip=True, brightness=0.25), torch.random.get_rng_state()
    a = augment(x, torch.Generator().manual_seed(3))
    assert a.equal(augment(x, torch.Generator().manual_seed(3)))
    assert not a.equal(augment(x, torch.Generator().manual_seed(4)))
    assert torch.random.get_rng_state().equal(world)
    assert Augment()(x, torch.Generator()).equal(x.float())
