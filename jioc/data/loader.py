"""Images on the device, and samplers: the order in which training visits them."""

import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.data.augment.basic import Augmentation, Draws
from jioc.data.augment.mix import Mix
from jioc.device.compile import maybe_compiled
from jioc.memory import Memory

SHOWN_HALVED = 0.5  # of the images that are no exemplars, in each step, where exemplars are halved


class Images:
    """Images on the device, given out normalised; uint8, or float32 of any scale.

    Vectors are images of a pixel, with a channel for each number.
    """

    resident = True  # whether every pixel is on the device
    share: slice | None = None  # of each training batch, where several processes share it
    # (images,), the chance that a training step shows an image halved and enlarged: SHOWN_HALVED, 1 for an
    # exemplar, 0 for pixels that an earlier run has halved and enlarged; None: exemplars keep their size
    halving: Tensor | None = None

    def __init__(
        self,
        pixels: np.ndarray,
        labels: np.ndarray,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        device: torch.device,
        size: int | None = None,
        half: bool = False,  # whether exemplars are kept at half their side
    ):
        self.device, self.size = device, size
        self.pixels = self._place(pixels)
        self.labels = torch.from_numpy(labels).to(device)  # in the order of learning; -1 for classes not used
        levels = 255 if pixels.dtype == np.uint8 else 1  # mean and std are of levels in [0, 1], or of floats
        centre, spread = (torch.tensor(values, device=device).view(1, -1, 1, 1) for values in (mean, std))
        self.scale, self.shift = 1 / (levels * spread), centre / spread
        if half:
            self.halving = torch.full((len(pixels),), SHOWN_HALVED, device=device)

    def _place(self, pixels: np.ndarray) -> Tensor:
        return on_device(pixels, self.device)

    def _rows(self, index: Tensor) -> Tensor:
        return self.pixels[index]

    def _prefetched(self, index: Tensor) -> Tensor:
        """This process's share of a batch that `prefetch` may have named."""
        return self._rows(self.own(index))

    def prefetch(self, batches: list[Tensor]) -> None:
        """Get the next batches ready, in their order; images on the device are."""

    def feed(self, parts: tuple[Tensor, ...]) -> None:
        """Put a batch, in these parts, where a captured step reads it; images on the device are there."""

    def reading_fed(self) -> AbstractContextManager[None]:
        """Within, let `augmented` give what was fed: its parts in their order, whatever their indices."""
        return nullcontext()

    def plain(self, index: Tensor) -> Tensor:
        """Images as they are judged and their features taken, normalised: (n, c, h, w)."""
        return self.judged(self._rows(index), index)

    def judged(self, pixels: Tensor, index: Tensor) -> Tensor:
        """Normalise pixels of the images of those indices; where exemplars are halved, every image is."""
        if self.halving is not None:
            pixels = halved_and_enlarged(pixels, self.halving[index] > 0)
        return self.normal(pixels)

    def halve(self, index: Tensor, before: int = 0) -> None:
        """Keep these images at half their side, and no others.

        `before`: so many of the first images hold pixels that an earlier run has halved and enlarged.
        """
        assert self.halving is not None
        already = self.halving == 0
        already[:before] = True
        self.halving.fill_(SHOWN_HALVED)
        self.halving[index.to(self.device)] = 1
        self.halving[already] = 0

    def exemplars(self, pixels: np.ndarray, index: Tensor) -> np.ndarray:
        """The images of those indices as they are kept, given the pixels of all: (n, c, h, w)."""
        rows = pixels[index.numpy()]
        if self.halving is None:
            return rows
        chosen = self.halving[index.to(self.device)].cpu() == 1
        return halved_and_enlarged(torch.from_numpy(rows), chosen).numpy()

    @property
    def side(self) -> int:
        """Of the images that the network sees."""
        return self.size or self.pixels.shape[-1]

    def normal(self, pixels: Tensor) -> Tensor:
        """Normalise pixels, and cut out the centred square."""
        return self._centre(pixels) * self.scale - self.shift

    def augmented(self, index: Tensor, augment: Augmentation, generator: torch.Generator) -> Tensor:
        """This process's share of a batch, augmented and normalised.

        Numbers are drawn for the whole batch: those of an image do not depend on the shares.
        """
        draws = self._draw(index, augment, generator)
        return self._apply(index, augment, draws, self._prefetched)

    def mixed(
        self, index: Tensor, augment: Augmentation, mix: Mix, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `augmented`, each image mixed with another of the batch: with the partners (n,) and shares (n,).

        The partners are places in the whole batch.
        """
        draws = self._draw(index, augment, generator)
        partner, share, centre = mix.draw(len(index), generator)
        x = self._apply(index, augment, draws, self._prefetched)
        if self.share is None:
            other = x[partner]
        else:  # a partner may belong to the share of another process
            theirs = tuple(drawn[..., partner] for drawn in draws)
            other = self._apply(index[partner], augment, theirs, lambda index: self._rows(self.own(index)))
        x, own_share = mix.apply(x, other, self.own(share), centre[:, self.share or slice(None)])
        return x, partner, own_share

    def _draw(self, index: Tensor, augment: Augmentation, generator: torch.Generator) -> Draws:
        """Draw for a whole batch how it is augmented and, where exemplars are halved, which images are."""
        h, w = self.pixels.shape[2:]
        draws = augment.draw(len(index), h, w, generator)
        if self.halving is None:
            return draws
        number = torch.rand(len(index), generator=generator, device=generator.device)
        return *draws, number < self.halving[index]

    def _apply(
        self, index: Tensor, augment: Augmentation, draws: Draws, rows: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Augment this process's share of a batch as drawn for the whole; `rows` gives its pixels."""
        own = self.own(index)
        if self.share is not None:
            draws = tuple(drawn[..., self.share] for drawn in draws)
        halved = None
        if self.halving is not None:
            draws, halved = draws[:-1], draws[-1]
        if self.resident and augment.compiles:
            step = maybe_compiled(_augmented, len(own), exact=True)
            x = step(augment, self.pixels, own, draws, self.scale, self.shift, halved)
        else:
            pixels = rows(index)
            if halved is not None:
                pixels = halved_and_enlarged(pixels, halved)
            step = _augmented_rows
            if augment.compiles:
                step = maybe_compiled(step, len(own), exact=True)
            x = step(augment, pixels, draws, self.scale, self.shift)
        return self._centre(x)

    def own(self, index: Tensor) -> Tensor:
        """This process's share of a batch of indices."""
        return index if self.share is None else index[self.share]

    def _centre(self, x: Tensor) -> Tensor:
        """Cut out the centred square that the network sees, or enlarge a smaller one to it."""
        if self.size is None or x.shape[-1] == self.size:
            return x
        if x.shape[-1] < self.size:
            return F.interpolate(x.float(), (self.size, self.size), mode="bilinear", align_corners=False)
        start = (x.shape[-1] - self.size) // 2
        return x[..., start : start + self.size, start : start + self.size]


def _augmented(
    augment: Augmentation,
    pixels: Tensor,
    index: Tensor,
    draws: Draws,
    scale: Tensor,
    shift: Tensor,
    halved: Tensor | None,
) -> Tensor:
    x = pixels[index] if halved is None else halved_and_enlarged(pixels[index], halved)
    return augment.apply(x, *draws) * scale - shift


def halved_and_enlarged(pixels: Tensor, halved: Tensor) -> Tensor:
    """Shrink the images where asked to half their side, and enlarge them again: (n, c, h, w).

    A level is the mean of four, then of the nearest pixels 9, 3, 3 and 1 sixteenths (bilinear), rounded: in
    whole numbers, so that every device has the same.
    """
    x = pixels.int()
    small = (x[..., ::2, ::2] + x[..., 1::2, ::2] + x[..., ::2, 1::2] + x[..., 1::2, 1::2] + 2) // 4
    large = (_doubled(_doubled(small, -2), -1) + 8) // 16
    return torch.where(halved[:, None, None, None], large.to(pixels.dtype), pixels)


def _doubled(x: Tensor, axis: int) -> Tensor:
    """Double the images along an axis: 3 times the nearest pixel and once the next, four times the levels."""
    first, last = x.narrow(axis, 0, 1), x.narrow(axis, x.shape[axis] - 1, 1)
    before = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    after = torch.cat([x.narrow(axis, 1, x.shape[axis] - 1), last], axis)
    axis = axis % x.ndim
    return torch.stack([3 * x + before, 3 * x + after], axis + 1).flatten(axis, axis + 1)


def _augmented_rows(
    augment: Augmentation, rows: Tensor, draws: tuple[Tensor, ...], scale: Tensor, shift: Tensor
) -> Tensor:
    return augment.apply(rows, *draws) * scale - shift


def as_tensor(pixels: np.ndarray) -> Tensor:
    """Wrap an array, or copy it where torch cannot wrap it: strided, or read-only."""
    return torch.from_numpy(np.require(pixels, requirements=["C", "W"]))


_copies: list[tuple[weakref.ref[np.ndarray], torch.device, weakref.ref[Tensor]]] = []
_copying = threading.Lock()


def on_device(pixels: np.ndarray, device: torch.device) -> Tensor:
    """Copy pixels to the device; runs that share a data set share its copy there."""
    with _copying:
        _copies[:] = [one for one in _copies if one[0]() is not None and one[2]() is not None]
        for array, where, tensor in _copies:
            if array() is pixels and where == device and (copy := tensor()) is not None:
                return copy
        copy = as_tensor(pixels).to(device)
        _copies.append((weakref.ref(pixels), device, weakref.ref(copy)))
        return copy


class Sampler(Protocol):
    """The images that a stage trains on, and their order."""

    images: int  # an epoch visits
    batch_size: int  # of a full step

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        """The batches of an epoch, as indices, in an order drawn from the generator."""


def _shuffled(index: Tensor, generator: torch.Generator) -> Tensor:
    return index[torch.randperm(len(index), generator=generator)]


FEW = 8  # images


def batch_sizes(images: int, batch_size: int) -> list[int]:
    """The sizes of an epoch's batches: the last may be smaller, unless it would be a few images alone.

    Batch normalisation has little to go by in a few images, so that they join the batch before.
    """
    whole, rest = divmod(images, batch_size)
    if whole and rest < min(FEW, batch_size // 2):
        return [batch_size] * (whole - 1) + [batch_size + rest]
    return [batch_size] * whole + [rest] * bool(rest)


class Shuffled:
    """Every image once an epoch, shuffled."""

    def __init__(self, index: Tensor, batch_size: int):
        self.index, self.batch_size, self.images = index, batch_size, len(index)

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        return list(_shuffled(self.index, generator).split(batch_sizes(self.images, self.batch_size)))


class Balanced:
    """Equally many images of each class in an epoch, from shuffled passes over its images."""

    def __init__(self, classes: list[Tensor], per_class: int, batch_size: int):
        self.classes, self.per_class, self.batch_size = classes, per_class, batch_size
        self.images = per_class * len(classes)

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        drawn = torch.cat([_passes(index, self.per_class, generator) for index in self.classes])
        return list(_shuffled(drawn, generator).split(batch_sizes(self.images, self.batch_size)))


def _passes(index: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Take n images from shuffled passes over all of them."""
    return torch.cat([_shuffled(index, generator) for _ in range(-(-n // len(index)))])[:n]


class TwoStreams:
    """Every new image once an epoch, each batch with a fixed share of exemplars from shuffled passes."""

    def __init__(self, new: Tensor, exemplars: Tensor, new_batch: int, share: float):
        self.new, self.exemplars, self.sizes = new, exemplars, batch_sizes(len(new), new_batch)
        self.per_batch = [max(1, round(share * size)) for size in self.sizes]
        self.images = len(new) + sum(self.per_batch)
        self.batch_size = new_batch + self.per_batch[0]

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        batches, wanted = _shuffled(self.new, generator).split(self.sizes), sum(self.per_batch)
        drawn = _passes(self.exemplars, wanted, generator)
        return [torch.cat(pair) for pair in zip(batches, drawn.split(self.per_batch), strict=True)]


@dataclass(frozen=True)
class TaskData:
    """The data of an arriving task, as a method gets it."""

    classes: list[Tensor]  # indices of each new class's training images
    batch_size: int
    # `Run.features`: (net, index, as_trained=False, unit=True) -> features, of norm 1 or as they are
    features: Callable[..., Tensor]
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
        """Batches of new images, each with `share` times as many exemplars; every new image once an epoch."""
        return TwoStreams(self.new, memory.index, self.batch_size, share) if len(memory) else self.alone()

    def balanced(self, memory: Memory) -> Sampler:
        """Equally many images of each class that has some, in all about as many as there are to train on."""
        classes = [index for index in [*memory.classes, *self.classes] if len(index)]
        return Balanced(classes, -(-sum(map(len, classes)) // len(classes)), self.batch_size)

    def of(self, index: Tensor) -> Sampler:
        """Images that the caller chooses, shuffled."""
        return Shuffled(index, self.batch_size)

    def split(self, memory: Memory, v: int) -> tuple[Sampler, list[Tensor] | None]:
        """Hold out v images of each class: a sampler of the others, and the indices of those by class.

        A class keeps at least one image to train on. Where no class in memory has one to spare, nothing is
        held out.
        """
        if all(len(index) < 2 for index in memory.classes):
            return self.with_memory(memory), None
        rest, held = [], []
        for index in [*memory.classes, *self.classes]:
            index, n = _shuffled(index, self.generator), min(v, len(index) - 1)
            held.append(index[:n])
            rest.append(index[n:])
        return self.of(torch.cat(rest)), held
