"""Augmentation of whole batches on their device, every draw from a given generator.

Crop, flip and brightness are those of torchvision's RandomCrop, RandomHorizontalFlip and ColorJitter on PIL
images, levels cut to whole numbers as PIL does. AutoAugment is in `autoaugment.py`.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.data.augment import autoaugment

# numbers drawn for a batch; the last axis is the image: a share of a batch takes its share of the draws
Draws = tuple[Tensor, ...]


class Augmentation:
    """The interface of all augmentations: draw all that is random, then apply it."""

    compiles = False  # whether a GPU may run `apply` compiled

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        n, _, h, w = x.shape
        return self.apply(x, *self.draw(n, h, w, generator))

    def draw(self, n: int, h: int, w: int, generator: torch.Generator) -> Draws:
        """Draw for n images of h x w."""
        raise NotImplementedError

    def apply(self, x: Tensor, *draws: Tensor) -> Tensor:
        """Augment uint8 (n, c, h, w) as drawn: whole levels as float32."""
        raise NotImplementedError

    def side(self, h: int, w: int) -> tuple[int, int]:
        """Height and width of the augmented images."""
        return h, w


@dataclass(frozen=True)
class WithPolicy(Augmentation):
    """The usual augmentation, then AutoAugment's policy for CIFAR-10, and perhaps Cutout."""

    usual: Augmentation
    cutout: bool = False

    @property
    def compiles(self) -> bool:  # type: ignore[override]
        return self.usual.compiles

    def draw(self, n: int, h: int, w: int, generator: torch.Generator) -> Draws:
        side = self.side(h, w)
        drawn = (*self.usual.draw(n, h, w, generator), *autoaugment.draw(n, *side, generator))
        return (*drawn, *draw_centre(n, *side, generator)) if self.cutout else drawn

    def apply(self, x: Tensor, *draws: Tensor) -> Tensor:
        draws, centre = (draws[:-2], draws[-2:]) if self.cutout else (draws, ())
        levels = self.usual.apply(x, *draws[:-4]).to(torch.uint8)
        x = autoaugment.augmented(levels, autoaugment.Operation(*draws[-4:])).float()
        return cutout(x, *centre) if self.cutout else x

    def side(self, h: int, w: int) -> tuple[int, int]:
        return self.usual.side(h, w)


@dataclass(frozen=True)
class Augment(Augmentation):
    """A shifted crop, a flip, and brightness."""

    pad: int = 0  # black border from which a crop of the original size is taken
    flip: bool = False
    brightness: float = 0.0  # factor drawn from [1 - brightness, 1 + brightness]

    compiles = True

    def draw(self, n: int, h: int, w: int, generator: torch.Generator) -> Draws:
        """Draw where to crop (2, n), whether to mirror (n,), and how to brighten (n,)."""
        corner = torch.randint(0, 2 * self.pad + 1, (2, n), generator=generator, device=generator.device)
        mirrored, factor = torch.rand((2, n), generator=generator, device=generator.device)
        return corner, mirrored < (0.5 if self.flip else 0.0), 1 + self.brightness * (2 * factor - 1)

    def apply(self, x: Tensor, *draws: Tensor) -> Tensor:
        """Crop, flip and brighten as drawn. It draws nothing itself, so that it can be compiled."""
        corner, mirrored, factor = draws
        if self.pad or self.flip:
            x = crop_flip(x, self.pad, corner[0], corner[1], mirrored)
        return brighten(x, factor) if self.brightness else x.float()


def crop_flip(x: Tensor, pad: int, top: Tensor, left: Tensor, mirrored: Tensor) -> Tensor:
    """The crop of each padded image that starts at (top, left), mirrored where asked: (n, c, h, w)."""
    n, c, h, w = x.shape
    x = F.pad(x, (pad,) * 4)
    rows = top[:, None] + torch.arange(h, device=x.device)  # (n, h)
    across = torch.arange(w, device=x.device)
    cols = left[:, None] + torch.where(mirrored[:, None], across.flip(0), across)  # (n, w)
    image = torch.arange(n, device=x.device)[:, None, None]
    return x.permute(0, 2, 3, 1)[image, rows[:, :, None], cols[:, None, :]].permute(0, 3, 1, 2)


def brighten(x: Tensor, factor: Tensor) -> Tensor:
    return (x * factor[:, None, None, None]).clamp(0, 255).floor()


def draw_centre(n: int, h: int, w: int, generator: torch.Generator) -> Draws:
    """Draw a pixel of each image: its row (n,) and its column (n,)."""
    drawn = (torch.randint(0, k, (n, 1), generator=generator, device=generator.device) for k in (h, w))
    return tuple(number.squeeze(1) for number in drawn)


def cutout(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Black out a square of half the image's side around a pixel of each image, cut off at the border.

    16 x 16 of 32 x 32 (DeVries and Taylor, 2017).
    """

    def inside(side: int, centre: Tensor) -> Tensor:
        offset = torch.arange(side, device=x.device) - centre[:, None]
        return (offset >= -(side // 4)) & (offset < side // 4)

    hole = inside(x.shape[2], row)[:, :, None] & inside(x.shape[3], column)[:, None, :]
    return x.masked_fill(hole[:, None], 0)
