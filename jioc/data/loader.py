"""Images on the device, and the order in which training visits them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ..memory import Memory
from .dataset import Augmentation


class Images:
    """A set of uint8 images on the device, handed out normalised."""

    resident = True  # whether every pixel is on the device

    def __init__(
        self,
        pixels: np.ndarray,
        labels: np.ndarray,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        device: torch.device,
        size: int | None = None,
    ):
        self.device, self.size = device, size
        self.pixels = self._place(torch.from_numpy(np.ascontiguousarray(pixels)))
        self.labels = torch.from_numpy(labels).to(
            device
        )  # in the order in which classes are learnt; -1 for classes not used
        shape = (1, -1, 1, 1)
        self.scale = (1 / (255 * torch.tensor(std, device=device))).view(shape)
        self.shift = (torch.tensor(mean, device=device) / torch.tensor(std, device=device)).view(shape)

    def _place(self, pixels: Tensor) -> Tensor:
        return pixels.to(self.device)

    def _rows(self, index: Tensor) -> Tensor:
        return self.pixels[index]

    def prefetch(self, batches: list[Tensor]) -> None:
        """The batches that will be asked for next, in order; images on the device need no notice."""

    def plain(self, index: Tensor) -> Tensor:
        """As the test set is seen: (n, c, h, w)."""
        return self._centre(self._rows(index)) * self.scale - self.shift

    def augmented(self, index: Tensor, augment: Augmentation, generator: torch.Generator) -> Tensor:
        return self._centre(augment(self._rows(index), generator)) * self.scale - self.shift

    def _centre(self, x: Tensor) -> Tensor:
        """The centred square that the network sees; what already has its size stays."""
        if self.size is None or x.shape[-1] == self.size:
            return x
        start = (x.shape[-1] - self.size) // 2
        return x[..., start : start + self.size, start : start + self.size]


class Stream(Protocol):
    """The images that a stage trains on."""

    images: int  # an epoch visits

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        """One epoch's batches of indices, in an order drawn from the generator."""


class Mixed:
    """Every image once an epoch, shuffled; the last batch may be smaller."""

    def __init__(self, index: Tensor, batch_size: int):
        self.index, self.batch_size, self.images = index, batch_size, len(index)

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        order = self.index[torch.randperm(len(self.index), generator=generator)]
        return list(order.split(self.batch_size))


@dataclass(frozen=True)
class TaskData:
    """The data of an arriving task, as a method is handed it."""

    classes: list[Tensor]  # indices of each new class's training images
    batch_size: int
    features: Callable[..., Tensor]  # (net, index) -> unit-norm features under the test transform, fp32
    generator: torch.Generator  # of the data order

    @property
    def new(self) -> Tensor:
        return torch.cat(self.classes)

    def alone(self) -> Stream:
        """The new images."""
        return Mixed(self.new, self.batch_size)

    def with_memory(self, memory: Memory) -> Stream:
        """The new images and the exemplars, shuffled together."""
        return Mixed(torch.cat([self.new, memory.index]), self.batch_size)
