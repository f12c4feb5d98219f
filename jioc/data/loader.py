"""Images on the device, and the samplers that say in which order training visits them."""

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from jioc.data.augment.basic import Augment, Augmentation
from jioc.device.compile import maybe_compiled
from jioc.memory import Memory


class Images:
    """A set of images on the device, handed out normalised; uint8, or float32 of any scale.

    A set of vectors is one of images of a pixel, a channel for each number.
    """

    resident = True  # whether every pixel is on the device
    share: slice | None = None  # of each training batch, where several processes share it

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
        self.pixels = self._place(pixels)
        self.labels = torch.from_numpy(labels).to(device)  # in the order of learning; -1 for classes not used
        shape = (1, -1, 1, 1)
        levels = (
            255 if pixels.dtype == np.uint8 else 1
        )  # mean and std: of pixels in [0, 1], or of floats as they are
        self.scale = (1 / (levels * torch.tensor(std, device=device))).view(shape)
        self.shift = (torch.tensor(mean, device=device) / torch.tensor(std, device=device)).view(shape)

    def _place(self, pixels: np.ndarray) -> Tensor:
        return placed(pixels, self.device)

    def _rows(self, index: Tensor) -> Tensor:
        return self.pixels[index]

    def _announced(self, index: Tensor) -> Tensor:
        """This process's share of the rows of a batch that `prefetch` may have named."""
        return self._rows(self.own(index))

    def prefetch(self, batches: list[Tensor]) -> None:
        """The batches that will be asked for next, in order; images on the device need no notice."""

    def plain(self, index: Tensor) -> Tensor:
        """As the test set is seen: (n, c, h, w)."""
        return self.normal(self._rows(index))

    def normal(self, pixels: Tensor) -> Tensor:
        """The same of images that are given."""
        return self._centre(pixels) * self.scale - self.shift

    def augmented(self, index: Tensor, augment: Augmentation, generator: torch.Generator) -> Tensor:
        """This process's share of a batch. Draws are made for all of it: an image's do not depend on the shares."""
        h, w = self.pixels.shape[2:]
        own, draws = self.own(index), augment.draw(len(index), h, w, generator)
        if self.share is not None:
            draws = tuple(drawn[..., self.share] for drawn in draws)
        if self.resident and isinstance(augment, Augment):
            x = maybe_compiled(_augmented, len(own))(augment, self.pixels, own, draws, self.scale, self.shift)
        else:
            x = augment.apply(self._announced(index), *draws) * self.scale - self.shift
        return self._centre(x)

    def own(self, index: Tensor) -> Tensor:
        """This process's share of a batch of indices."""
        return index if self.share is None else index[self.share]

    def _centre(self, x: Tensor) -> Tensor:
        """The centred square that the network sees; what already has its size stays."""
        if self.size is None or x.shape[-1] == self.size:
            return x
        start = (x.shape[-1] - self.size) // 2
        return x[..., start : start + self.size, start : start + self.size]


def _augmented(
    augment: Augment, pixels: Tensor, index: Tensor, draws: tuple[Tensor, ...], scale: Tensor, shift: Tensor
) -> Tensor:
    return augment.apply(pixels[index], *draws) * scale - shift


def wrapped(pixels: np.ndarray) -> Tensor:
    """The same memory, or a copy where torch cannot have it: strided, or not to be written."""
    return torch.from_numpy(np.require(pixels, requirements=["C", "W"]))


_placed: list[tuple[weakref.ref[np.ndarray], torch.device, weakref.ref[Tensor]]] = []
_placing = threading.Lock()


def placed(pixels: np.ndarray, device: torch.device) -> Tensor:
    """The pixels on the device; runs that share a data set share its copy there."""
    with _placing:
        _placed[:] = [kept for kept in _placed if kept[0]() is not None and kept[2]() is not None]
        for array, where, tensor in _placed:
            found = tensor()
            if array() is pixels and where == device and found is not None:
                return found
        there = wrapped(pixels).to(device)
        _placed.append((weakref.ref(pixels), device, weakref.ref(there)))
        return there


class Sampler(Protocol):
    """The images that a stage trains on."""

    images: int  # an epoch visits
    batch_size: int  # of a full step

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        """One epoch's batches of indices, in an order drawn from the generator."""


class Shuffled:
    """Every image once an epoch, shuffled; the last batch may be smaller."""

    def __init__(self, index: Tensor, batch_size: int):
        self.index, self.batch_size, self.images = index, batch_size, len(index)

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        order = self.index[torch.randperm(len(self.index), generator=generator)]
        return list(order.split(self.batch_size))


class TwoStreams:
    """New images once an epoch, and beside each batch of them a fixed share of exemplars from shuffled passes."""

    def __init__(self, new: Tensor, exemplars: Tensor, new_batch: int, share: float):
        self.new, self.exemplars, self.new_batch = new, exemplars, new_batch
        self.beside = [max(1, round(share * len(part))) for part in new.split(new_batch)]
        self.images = len(new) + sum(self.beside)
        self.batch_size = new_batch + self.beside[0]

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        def shuffled(index: Tensor) -> Tensor:
            return index[torch.randperm(len(index), generator=generator)]

        batches = shuffled(self.new).split(self.new_batch)
        passes = -(-sum(self.beside) // len(self.exemplars))
        drawn = torch.cat([shuffled(self.exemplars) for _ in range(passes)])[: sum(self.beside)]
        return [torch.cat(pair) for pair in zip(batches, drawn.split(self.beside), strict=True)]


@dataclass(frozen=True)
class TaskData:
    """The data of an arriving task, as a method is handed it."""

    classes: list[Tensor]  # indices of each new class's training images
    batch_size: int
    features: Callable[
        ..., Tensor
    ]  # (net, index, as_trained=False) -> unit-norm features, as `Run.features` has them
    generator: torch.Generator  # of the data order

    @property
    def new(self) -> Tensor:
        return torch.cat(self.classes)

    def alone(self) -> Sampler:
        """The new images."""
        return self.of(self.new)

    def with_memory(self, memory: Memory) -> Sampler:
        """The new images and the exemplars, shuffled together."""
        return self.of(torch.cat([self.new, memory.index]))

    def beside_memory(self, memory: Memory, share: float) -> Sampler:
        """Batches of new images, each with `share` times as many exemplars; the epoch is a pass over the new images."""
        if not len(memory):
            return self.alone()
        return TwoStreams(self.new, memory.index, self.batch_size, share)

    def of(self, index: Tensor) -> Sampler:
        """Some images of the caller's choice."""
        return Shuffled(index, self.batch_size)

    def split(self, memory: Memory, v: int) -> tuple[Sampler, Sampler | None]:
        """The new images and the exemplars less v of each class, and those; a class keeps at least one to
        train on.

        None, and every image in the first, where no class in memory has an image to spare.
        """
        if all(len(index) < 2 for index in memory.classes):
            return self.with_memory(memory), None
        kept, held = [], []
        for index in [*memory.classes, *self.classes]:
            index, n = index[torch.randperm(len(index), generator=self.generator)], min(v, len(index) - 1)
            held.append(index[:n])
            kept.append(index[n:])
        return self.of(torch.cat(kept)), self.of(torch.cat(held))
