"""SimpleCIL: the nearest class mean of frozen features (Zhou et al., IJCV 2024).

    s_c(x) = cos(f, m_c)              m_c = the mean of f over the training images of class c
    p(c | x) = softmax(s / T)

Sums and counts are kept, in float64: any order of tasks gives the same means, and a class more changes no
other. No gradient, no exemplars, no augmentation. T fits a task's images by cross-entropy, each scored by the
mean of its class without it; of n images one more is taken to be wrong, or T would be 0 where all are right
(as Platt, 1999). Over tasks it is the geometric mean, so that a few new images do not unsettle all scores.
"""

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.data.loader import TaskData
from jioc.methods import register
from jioc.methods.base import Fit, Method, NetPlan
from jioc.types import Task


class FrozenFeatures(Method):
    """A method that keeps its backbone and computes a classifier from sums over images: RanPAC, too."""

    persistent: ClassVar[tuple[str, ...]] = ("sums", "counts", "rows", "temperature")
    for_learning: ClassVar[tuple[str, ...]] = ("teacher", "sums")

    sums: Tensor | None = None  # over all images learnt, float64
    counts: Tensor | None = None  # images of each class (K,)
    rows: Tensor | None = None  # of the classifier: (K, ·), float32
    temperature: float = 0.05

    @staticmethod
    def plan(plan: NetPlan) -> NetPlan:
        return {**plan, "head": "none", "freeze": "all"}

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        self.net.grow(task.n_new, self.generator)
        self.take_in([*self.memory.classes, *data.classes], data)
        self.remember(task, data)

    def rehearsed(self, task: Task, data: TaskData) -> None:
        self.take_in(self.memory.classes, data)
        self.remember(task, data)

    def take_in(self, classes: list[Tensor], data: TaskData) -> None:
        """Add images, indices by class, to the sums, and compute the classifier from them."""
        y = torch.arange(len(classes)).repeat_interleave(torch.tensor([len(index) for index in classes]))
        f = data.features(self.net, torch.cat(classes), unit=False).double()
        one_hot = F.one_hot(y, len(classes)).to(f)
        counts = one_hot.sum(0)
        before = 0.0 if self.counts is None else self.counts.sum().item()
        self.counts = counts if self.counts is None else grown(self.counts, len(classes)) + counts
        scores = self.solve(f, one_hot)
        usable = (self.counts > 1).to(y.device)[y].to(f.device)  # a single image has no other to go by
        if len(classes) > 1 and usable.any():
            fitted, share = (
                fit_temperature(scores[usable], y.to(f.device)[usable]),
                before / (before + len(y)),
            )
            self.temperature = self.temperature**share * fitted ** (1 - share)

    def solve(self, f: Tensor, one_hot: Tensor) -> Tensor:
        """Add features (n, d) of images and set `rows`; score each image as if it had not been added."""
        raise NotImplementedError

    def score(self, f: Tensor) -> Tensor:
        """Scores (n, K) of features (n, d), before they are divided by the temperature."""
        raise NotImplementedError

    def scores(self, f: Tensor) -> dict[str, Tensor]:
        """The read-outs of images whose features are known."""
        if self.rows is None:
            return {"cnn": f[:, :0]}
        return {"cnn": self.score(f.float()) / self.temperature}

    def readouts(self, x: Tensor) -> dict[str, Tensor]:
        return self.scores(self.net(x).features)

    def head_weight(self) -> Tensor | None:
        return self.rows


def grown(values: Tensor, n: int) -> Tensor:
    """Add zeros along the first axis, up to n."""
    return torch.cat([values, values.new_zeros(n - len(values), *values.shape[1:])])


def fit_temperature(scores: Tensor, y: Tensor) -> float:
    """The T between 0.001 and 10 with the least cross-entropy of softmax(scores / T)."""
    grid, doubt = torch.logspace(-3, 1, 81, dtype=torch.float64).tolist(), 1 / (len(y) + 1)
    losses = [F.cross_entropy(scores / t, y, label_smoothing=doubt).item() for t in grid]
    return grid[min(range(len(grid)), key=lambda i: losses[i] if math.isfinite(losses[i]) else math.inf)]


@register("simplecil")
class SimpleCIL(FrozenFeatures):
    def solve(self, f: Tensor, one_hot: Tensor) -> Tensor:
        added = one_hot.T @ f
        self.sums = added if self.sums is None else grown(self.sums, len(added)) + added
        self.rows = F.normalize(self.sums, dim=1).float()
        others = F.normalize(one_hot @ self.sums - f, dim=1)  # of the same class, the image itself left out
        own = (F.normalize(f, dim=1) * others).sum(1, keepdim=True)
        return torch.where(one_hot > 0, own, F.normalize(f, dim=1) @ F.normalize(self.sums, dim=1).T)

    def score(self, f: Tensor) -> Tensor:
        assert self.rows is not None
        return F.normalize(f, dim=1) @ self.rows.T
