"""Evaluate a method after a task: the accuracy of every read-out, and the diagnostics."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from jioc import diagnostics, metrics
from jioc.data.loader import Images
from jioc.data.scenario import Scenario
from jioc.device.distributed import World
from jioc.methods import base, contract
from jioc.methods.simplecil import FrozenFeatures
from jioc.nets.incremental import Net
from jioc.results import Accuracy, Diagnostics
from jioc.training.execution import cudnn_benchmark_off
from jioc.training.finite import check_scores
from jioc.types import Task

AT_ONCE = 1000  # images of a forward pass
PIXELS = {"cuda": 2**22, "cpu": 2**17}  # of a forward pass, in all: what fits a CPU's caches is twice as fast
BLOCK = 32  # images of a forward pass whose results must not depend on the images beside them


def at_once(images: Images) -> int:
    """Images of a forward pass, by the side of the square that the network sees."""
    pixels = PIXELS.get(images.device.type, PIXELS["cuda"])
    return max(BLOCK, min(AT_ONCE, pixels // images.side**2))


@dataclass(frozen=True)
class Evaluator:
    """Passes over test images, shared out among the processes of a run."""

    method: base.Method
    images: Images
    scenario: Scenario
    world: World
    known: dict[int, Tensor] = field(default_factory=dict)  # features of images, of a backbone that stays

    def scores_of_new(self, task: Task) -> Tensor | None:
        """Score the test images of the classes that are about to be learnt, by the old ones: (m, K_old)."""
        if task.n_old == 0:
            return None
        index = self._index(self.scenario.test[task.new])
        return torch.cat(
            map_images(
                lambda part: self._readouts(part)["cnn"], index, self.method.net, self.images, self.world
            )
        )

    def __call__(
        self, task: Task, before: Tensor | None, trained_on: list[int]
    ) -> tuple[dict[str, Accuracy], Diagnostics]:
        """Evaluate every read-out on the test images of all classes seen.

        `before` and `trained_on` are what the diagnostics compare with: the scores of the new classes' images
        as the task came, and the images of each class that it trained on.
        """

        def scored(part: Tensor) -> dict[str, Tensor]:
            scores = self._readouts(part)
            contract.check_readouts(self.method, scores, len(part))
            check_scores(scores)
            ranked = {name: s.topk(min(5, task.n_seen)).indices for name, s in scores.items()}
            return ranked | {"logits": scores["cnn"]}

        index = self._index(self.scenario.test[: task.n_seen])
        every = map_images(scored, index, self.method.net, self.images, self.world)
        joined = {name: torch.cat([part[name] for part in every]) for name in every[0]}
        logits, y = joined.pop("logits"), self.images.labels[index]
        accuracies = {name: metrics.accuracy(ranked, y, task.sizes) for name, ranked in joined.items()}
        measured = diagnostics.diagnose(logits, y, task, before, self.method.head_weight(), trained_on)
        thirds = diagnostics.thirds(accuracies["cnn"].per_class, self.scenario.counts[: task.n_seen])
        return accuracies, Diagnostics(**measured | thirds)

    def _readouts(self, part: Tensor) -> dict[str, Tensor]:
        method = self.method
        stays = method.net.plan.get("freeze") == "all" and type(method).readouts is FrozenFeatures.readouts
        if isinstance(method, FrozenFeatures) and stays:  # features are computed once
            return method.scores(self._known_features(part))
        return method.readouts(self.images.plain(part))

    def _known_features(self, part: Tensor) -> Tensor:
        """Features of images, each computed once in a run."""
        rows = part.tolist()
        new = [row for row in rows if row not in self.known]
        if new:
            x = self.images.plain(torch.tensor(new, device=part.device))
            self.known.update(zip(new, self.method.net(x).features, strict=True))
        empty = torch.zeros(0, self.method.net.width, device=part.device)
        return torch.stack([self.known[row] for row in rows]) if rows else empty

    def _index(self, classes: list[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.concatenate(classes)).to(self.images.device)


def unit_features(net: Net, images: Images, index: Tensor, world: World) -> Tensor:
    """Unit-norm features (n, d) of training images under the test transform."""
    index = index.to(images.device)
    features = map_images(lambda part: net(images.plain(part)).features.float(), index, net, images, world)
    return F.normalize(torch.cat(features), dim=1)


def plain_features(
    net: Net, images: Images, index: Tensor, world: World, before: Callable[[], None] | None = None
) -> Tensor:
    """Features (n, d) of training images as they are, to the same bits whatever images are beside them.

    Kernels round by the size of a batch, so that each pass has one size: the last is filled up. `before` is
    called before each pass.
    """
    index = index.to(images.device)
    whole = torch.cat([index, index[:1].expand(-len(index) % BLOCK)])

    def features(part: Tensor) -> Tensor:
        if before is not None:
            before()
        return net(images.plain(part)).features.float()

    return torch.cat(map_images(features, whole, net, images, world, BLOCK))[: len(index)]


@torch.no_grad()
def map_images(
    function: Callable[[Tensor], Any],
    index: Tensor,
    net: Net,
    images: Images,
    world: World,
    size: int | None = None,
) -> list[Any]:
    """Apply a function that asks a network to images, in parts that the processes of a run share out.

    `size`: of each part; by default as many images as memory has room for.
    """
    net.eval()
    with cudnn_benchmark_off(images.device):
        return world.map_sharded(function, index.split(size or at_once(images)))
