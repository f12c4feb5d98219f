"""The exemplars: indices into the training images, a list per class, best first."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

# as `device.distributed.World.map_sharded`: apply a function to every item, shared among a run's processes
Map = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def nothing(index: Tensor) -> None:
    """Leave the images as they are."""


def one_by_one(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


class Memory:
    """At most `total` exemplars, shared equally by the classes seen, or `per_class` of each.

    With neither, every image is kept.
    """

    def __init__(
        self,
        total: int | None = None,
        per_class: int | None = None,
        select: str = "herding",
        map: Map = one_by_one,
    ):
        self.total, self.per_class, self.select, self.map = total, per_class, select, map
        self.on_change: Callable[[Tensor], None] = nothing  # called with all exemplars once they are chosen
        self.classes: list[Tensor] = []  # (m_c,) each, on the CPU

    def __len__(self) -> int:
        return sum(map(len, self.classes))

    def quota(self, classes: int) -> int | None:
        """Exemplars of each class once this many classes are seen; the remainder is left unused."""
        if self.per_class is not None:
            return self.per_class
        return None if self.total is None else self.total // classes

    def held_out(self, n_old: int, share: float) -> int:
        """Images of each class to hold out: a share of an old class's exemplars, at least one (BiC)."""
        per_class = self.per_class if self.per_class is not None else (self.total or 0) / n_old
        return max(1, int(share * per_class))

    @property
    def index(self) -> Tensor:
        """Every exemplar, class after class."""
        return torch.cat(self.classes) if self.classes else torch.zeros(0, dtype=torch.long)

    def update(
        self,
        arrived: list[Tensor],
        features: Callable[[Tensor], Tensor],
        generator: torch.Generator,
        classes: int | None = None,
    ) -> None:
        """Trim the old classes to their new quota, then choose exemplars of the classes that arrived.

        `features(index)` gives the unit-norm features of training images under the test transform.
        """
        m = self.quota(classes or len(self.classes) + len(arrived))
        self.classes = [c[:m] for c in self.classes]  # best first, so trimming keeps the best
        if m is not None and m > 0 and self.select == "herding":
            self.classes += self.map(lambda index: index[herd(features(index), m).cpu()], arrived)
        elif m is not None and self.select == "random":
            self.classes += [index[torch.randperm(len(index), generator=generator)[:m]] for index in arrived]
        else:
            self.classes += [index[:m] for index in arrived]
        self.on_change(self.index)

    def on_trial(self) -> "Memory":
        """A copy to choose exemplars with that are not kept."""
        other = copy.copy(self)
        other.on_change = nothing
        return other


def herd(features: Tensor, m: int) -> Tensor:
    """Choose m rows, in order, whose running mean stays closest to the mean of all (Welling, 2009): (m,)."""
    mean, total = features.mean(0), torch.zeros_like(features[0])
    taken = torch.zeros(len(features), dtype=torch.bool, device=features.device)
    picks = []
    for k in range(1, min(m, len(features)) + 1):  # a tail class may hold fewer than m
        gap = (mean - (total + features) / k).norm(dim=1).masked_fill(taken, torch.inf)
        pick = gap.argmin(0, keepdim=True)
        picks.append(pick)
        taken = taken.index_fill(0, pick, True)
        total = total + features.index_select(0, pick)[0]
    return torch.cat(picks)


def class_means(memory: Memory, features: Callable[[Tensor], Tensor], width: int) -> Tensor:
    """Unit-norm mean of each class's unit-norm exemplar features, NaN for a class without any: (K, d)."""
    by_class = features(memory.index).split([len(c) for c in memory.classes])
    return torch.stack(
        [F.normalize(f.mean(0), dim=0) if len(f) else f.new_full((width,), torch.nan) for f in by_class]
    )
