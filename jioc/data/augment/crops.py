"""Random resized crop and flip of whole batches on their device, every draw from a given generator.

The boxes are those of torchvision's RandomResizedCrop: area a share of the image, ratio of the sides drawn on
a log scale, ten tries, else the whole image. Each box is resized by bilinear interpolation with antialiasing,
as two products with matrices of weights, one pair per image: no loop over images, no shape that depends on a
draw.
"""

from dataclasses import dataclass
from math import log

import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.data.augment.basic import Augment, Augmentation, Draws

TRIES = 10


@dataclass(frozen=True)
class ResizedCrop(Augmentation):
    """A random part of the image, resized, and a flip."""

    size: int  # of the square that comes out
    flip: bool = True
    area: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)

    def draw(self, n: int, h: int, w: int, generator: torch.Generator) -> Draws:
        """Draw the boxes (4, n), and whether to mirror (n,)."""
        box = boxes(n, h, w, self.area, self.ratio, generator)
        return box, torch.rand(n, generator=generator, device=generator.device) < (0.5 if self.flip else 0.0)

    def apply(self, x: Tensor, *draws: Tensor) -> Tensor:
        """Crop and resize uint8 (n, c, h, w): whole levels as float32 (n, c, size, size)."""
        box, mirrored = draws
        return resized(x.float(), box, self.size, mirrored).round()

    def side(self, h: int, w: int) -> tuple[int, int]:
        return self.size, self.size


@dataclass(frozen=True)
class PaddedCrop(Augmentation):
    """A random part of the image with a black border, resized to the image's side, and a flip.

    As LT-CIL's code (Liu et al., ECCV 2022) augments CIFAR: a border of 4 pixels of 32.
    """

    flip: bool = True

    compiles = True

    def draw(self, n: int, h: int, w: int, generator: torch.Generator) -> Draws:
        pad = 2 * border(h)
        return ResizedCrop(h, self.flip).draw(n, h + pad, w + pad, generator)

    def apply(self, x: Tensor, *draws: Tensor) -> Tensor:
        side = x.shape[-1]
        return ResizedCrop(side, self.flip).apply(F.pad(x, (border(side),) * 4), *draws)


def boxes(
    n: int, h: int, w: int, area: tuple[float, float], ratio: tuple[float, float], generator: torch.Generator
) -> Tensor:
    """Draw n boxes: top, left, height and width in whole pixels: (4, n)."""
    share, turn, down, across = torch.rand((4, n, TRIES), generator=generator, device=generator.device)
    covered = h * w * (area[0] + (area[1] - area[0]) * share)
    slant = torch.exp(log(ratio[0]) + (log(ratio[1]) - log(ratio[0])) * turn)
    high, wide = (covered / slant).sqrt().round(), (covered * slant).sqrt().round()
    fits = (high >= 1) & (wide >= 1) & (high <= h) & (wide <= w)  # (n, TRIES)
    first, some = fits.int().argmax(1, keepdim=True), fits.any(1)
    high = torch.where(some, high.gather(1, first)[:, 0], float(h))
    wide = torch.where(some, wide.gather(1, first)[:, 0], float(w))
    top, left = (down[:, 0] * (h - high + 1)).floor(), (across[:, 0] * (w - wide + 1)).floor()
    return torch.stack([top, left, high, wide])


def resized(x: Tensor, box: Tensor, size: int, mirrored: Tensor) -> Tensor:
    """Resize each image's box to a square, mirrored where asked: (n, c, size, size).

    Where the products of fp32 are TF32's, as on a GPU by default, a level may be off by one.
    """
    top, left, high, wide = box.to(x.dtype)
    rows = weights(top, high, x.shape[2], size)[:, None]  # (n, 1, size, h)
    cols = weights(left, wide, x.shape[3], size)[:, None]  # (n, 1, size, w)
    cols = torch.where(mirrored[:, None, None, None], cols.flip(2), cols)
    return rows @ x @ cols.transpose(2, 3)


def weights(start: Tensor, length: Tensor, inside: int, size: int) -> Tensor:
    """The weight of each of `inside` pixels for each of `size`, a triangle: (n, size, inside)."""
    scale = (length / size)[:, None, None]
    centre = (torch.arange(size, device=start.device, dtype=start.dtype) + 0.5)[None, :, None] * scale
    pixels = torch.arange(inside, device=start.device, dtype=start.dtype)
    at = pixels + 0.5 - start[:, None, None]  # within the box
    height = (1 - (at - centre).abs() / scale.clamp(min=1)).clamp(min=0)
    height = torch.where((at > 0) & (at < length[:, None, None]), height, 0.0)
    return height / height.sum(2, keepdim=True)


def usual_augment(size: int, canvas: int) -> Augment | ResizedCrop:
    """The augmentation of images cached at `canvas` and seen at `size`, unless another is chosen.

    Images cached as small as they are seen are shifted by an eighth, at most 4 pixels; others are cropped and
    resized.
    """
    return ResizedCrop(size) if canvas > size else Augment(pad=border(size), flip=True)


def border(size: int) -> int:
    """The border from which an image of that side is cropped: an eighth, at most 4 pixels."""
    return max(1, min(4, size // 8))
