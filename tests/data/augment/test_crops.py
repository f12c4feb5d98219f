"""Resized crops of a batch against one image at a time."""

import torch
import torch.nn.functional as F

from jioc.data.augment.crops import ResizedCrop, boxes, resized


def draws(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def one_at_a_time(x: torch.Tensor, box: torch.Tensor, size: int, mirrored: torch.Tensor) -> torch.Tensor:
    parts = []
    for image, (top, left, high, wide), mirror in zip(x, box.T.long().tolist(), mirrored, strict=True):
        crop = image[None, :, top : top + high, left : left + wide]
        part = F.interpolate(crop, (size, size), mode="bilinear", antialias=True, align_corners=False)[0]
        parts.append(part.flip(2) if mirror else part)
    return torch.stack(parts)


def test_a_batch_is_resized_as_each_image_alone() -> None:
    x = torch.randint(0, 256, (40, 3, 30, 26), generator=draws()).double()
    box = boxes(40, 30, 26, (0.02, 1.0), (0.5, 2.0), draws(1))
    mirrored = torch.rand(40, generator=draws(2)) < 0.5
    for size in (7, 20, 33):  # boxes shrink and grow
        slow = one_at_a_time(x, box, size, mirrored)
        assert torch.allclose(resized(x, box, size, mirrored), slow, rtol=0, atol=1e-9)


def test_the_whole_augmentation_is_that_on_whole_levels() -> None:
    x = torch.randint(0, 256, (64, 3, 24, 24), generator=draws(), dtype=torch.uint8)
    crop = ResizedCrop(21)
    out = crop(x, draws(5))
    g = draws(5)
    box = boxes(64, 24, 24, crop.area, crop.ratio, g)
    slow = one_at_a_time(x.double(), box, 21, torch.rand(64, generator=g) < 0.5)
    assert out.dtype == torch.float32 and out.shape == (64, 3, 21, 21)
    assert torch.equal(out, out.round()) and out.min() >= 0 and out.max() <= 255
    assert (out - slow).abs().max() <= 0.5 + 1e-3  # rounding alone


def test_boxes_lie_inside_and_have_the_area_and_ratio_asked_for() -> None:
    top, left, high, wide = boxes(5000, 96, 96, (0.08, 1.0), (3 / 4, 4 / 3), draws())
    assert (top >= 0).all() and (left >= 0).all() and (top + high <= 96).all() and (left + wide <= 96).all()
    share, ratio = high * wide / 96**2, wide / high
    assert share.min() > 0.07 and 0.4 < share.mean() < 0.55 and share.max() <= 1
    assert ratio.min() > 0.70 and ratio.max() < 1.43


def test_where_no_try_fits_the_whole_image_is_taken() -> None:
    box = boxes(3, 10, 10, (4.0, 5.0), (1.0, 1.0), draws())
    assert box.T.tolist() == [[0, 0, 10, 10]] * 3


def test_the_whole_image_at_its_size_is_itself() -> None:
    x = torch.randint(0, 256, (2, 3, 9, 9), generator=draws()).float()
    whole = torch.tensor([[0.0, 0], [0, 0], [9, 9], [9, 9]])
    assert torch.allclose(resized(x, whole, 9, torch.tensor([False, False])), x, atol=1e-3)
    assert torch.allclose(resized(x, whole, 9, torch.tensor([True, True])), x.flip(3), atol=1e-3)


def test_the_generator_alone_decides() -> None:
    x = torch.randint(0, 256, (8, 3, 12, 12), generator=draws(), dtype=torch.uint8)
    crop = ResizedCrop(10)
    assert torch.equal(crop(x, draws(1)), crop(x, draws(1)))
    assert not torch.equal(crop(x, draws(1)), crop(x, draws(2)))
    never = ResizedCrop(12, flip=False, area=(1.0, 1.0), ratio=(1.0, 1.0))
    assert torch.allclose(never(x, draws(3)), x.float())
