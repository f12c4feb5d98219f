"""Augmentation of whole batches on their device, every draw from a given generator.

Crop, flip and brightness are those of torchvision's RandomCrop, RandomHorizontalFlip and ColorJitter on PIL images,
levels cut to whole numbers as PIL does. AutoAugment is in `autoaugment.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .autoaugment import autoaugment

Augmentation = Callable[[Tensor, torch.Generator], Tensor]
"""uint8 (n, c, h, w) -> whole levels as float32: `Augment`, `crops.ResizedCrop`, `WithPolicy`."""


@dataclass(frozen=True)
class WithPolicy:
    """The usual augmentation, then AutoAugment's policy for CIFAR-10 and Cutout."""

    usual: Augmentation

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        levels = self.usual(x, generator)
        return cutout(autoaugment(levels.to(torch.uint8), generator).float(), generator)


def chosen(usual: Augmentation, word: str) -> Augmentation:
    """The data set's usual augmentation under a word of `--augment`."""
    if word == "standard":
        return usual
    return WithPolicy(usual) if word == "autoaugment" else Augment()


@dataclass(frozen=True)
class Augment:
    pad: int = 0  # black border from which a crop of the original size is taken
    flip: bool = False
    brightness: float = 0.0  # factor drawn from [1 - brightness, 1 + brightness]

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """uint8 (n, c, h, w) -> whole levels as float32."""
        return self.apply(x, *self.draw(len(x), x.device, generator))

    def draw(self, n: int, device: torch.device, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Where to crop (2, n), whether to mirror (n,), how to brighten (n,)."""
        corner = torch.randint(0, 2 * self.pad + 1, (2, n), generator=generator, device=device)
        mirrored, factor = torch.rand((2, n), generator=generator, device=device)
        return corner, mirrored < (0.5 if self.flip else 0.0), 1 + self.brightness * (2 * factor - 1)

    def apply(self, x: Tensor, corner: Tensor, mirrored: Tensor, factor: Tensor) -> Tensor:
        """Crop, flip and brightness as drawn: what can be compiled, because it draws nothing."""
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


def cutout(x: Tensor, generator: torch.Generator) -> Tensor:
    """Black out a square of half the image's side around a pixel drawn for each image, cut off at the border.

    16 x 16 of 32 x 32 (DeVries and Taylor, 2017).
    """
    n, _, h, w = x.shape

    def inside(side: int) -> Tensor:
        centre = torch.randint(0, side, (n, 1), generator=generator, device=x.device)
        offset = torch.arange(side, device=x.device) - centre
        return (offset >= -(side // 4)) & (offset < side // 4)

    hole = inside(h)[:, :, None] & inside(w)[:, None, :]
    return x.masked_fill(hole[:, None], 0)
