"""The types that every layer shares. n images, K classes seen, d features."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

Terms = dict[str, Tensor]  # a loss by parts: one number per image (n,) each; `cls` classifies, `kd` distils
Weights = Mapping[str, float | Tensor]  # factors of the terms' means in the total; 1 for one not named


@dataclass
class Batch:
    x: Tensor  # (n, c, h, w), normalised
    y: Tensor  # (n,), labels in the order in which classes are learnt
    old: Tensor  # (n,), whether the image is of an old class
    whole_old: Tensor | None = None  # the same of the whole batch, where this is a part of it
    # where images are mixed, x is a share of an image labelled y and for the rest of one labelled `other`;
    # `old` then says whether both are of old classes
    other: Tensor | None = None  # (n,)
    share: Tensor | None = None  # (n,)


@dataclass
class Output:
    logits: Tensor  # (n, K)
    features: Tensor = field(default_factory=lambda: torch.empty(0))  # (n, d); coordination needs none
    maps: list[Tensor] = field(default_factory=list)  # the stages' outputs, where the plan asks for them
    extra: dict[str, Tensor] = field(default_factory=dict)  # of auxiliary heads, by name


@dataclass(frozen=True)
class Task:
    """The task at hand: which classes are old and new, and how many images of each there are to train on."""

    index: int  # 0 for the first
    sizes: tuple[int, ...]  # classes of every task up to this one
    new_images: int
    old_images: int  # exemplars held when the task arrives

    @property
    def n_old(self) -> int:
        return sum(self.sizes[:-1])

    @property
    def n_new(self) -> int:
        return self.sizes[-1]

    @property
    def n_seen(self) -> int:
        return sum(self.sizes)

    @property
    def old_share(self) -> float:
        """K_old / K: the share of the classes seen that is old."""
        return self.n_old / self.n_seen

    @property
    def slices(self) -> list[slice]:
        """The classes of each task so far, this one last."""
        ends = [sum(self.sizes[: i + 1]) for i in range(len(self.sizes))]
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    @property
    def past(self) -> list[slice]:
        return self.slices[:-1]

    @property
    def new(self) -> slice:
        return self.slices[-1]
