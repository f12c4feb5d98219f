"""Networks whose classes grow. A network knows its `plan`: plain data from which `build` makes another of its shape."""

import copy
from typing import Any, Self

import torch
from torch import Tensor, nn

from ..compiled import maybe_compiled
from ..types import Output
from .catalogue import shape
from .heads import HEADS
from .resnet import ResNet, initialise


class Net(nn.Module):
    """What every network of ours answers to."""

    plan: dict[str, Any]
    width: int  # of the features

    def forward(self, x: Tensor) -> Output:
        raise NotImplementedError

    def grow(self, n: int, generator: torch.Generator) -> None:
        """Room for n more classes."""
        raise NotImplementedError

    def frozen_copy(self) -> Self:
        """A teacher: in eval mode for good, no gradients."""
        twin = copy.deepcopy(self).eval().requires_grad_(False)
        for p in twin.parameters():
            p.grad = None
        return twin


def run_backbone(backbone: ResNet, x: Tensor, keep_maps: bool = False) -> tuple[Tensor, list[Tensor]]:
    """Features (n, d) and the stages' outputs; as a function of the module, so that one compilation serves them all."""
    return maybe_compiled(_forward, len(x))(backbone, x, keep_maps)


def _forward(backbone: ResNet, x: Tensor, keep_maps: bool) -> tuple[Tensor, list[Tensor]]:
    return backbone(x, keep_maps)


class IncrementalNet(Net):
    """One backbone and a head that grows.

    plan: backbone, stem, channels, cosine (a backbone for cosine heads), maps (give the stages' outputs), head, classes
    """

    def __init__(self, plan: dict[str, Any], generator: torch.Generator | None = None):
        super().__init__()
        self.plan = dict(plan)
        with torch.random.fork_rng(devices=[]):  # torch draws weights as it builds; ours come from the generator
            self.backbone = ResNet(shape(plan["backbone"]), plan["stem"], plan["channels"], plan["cosine"])
        self.width = self.backbone.width
        self.head = HEADS[plan["head"]](self.width, plan["classes"])
        if generator is not None:
            initialise(self.backbone, generator)

    def grow(self, n: int, generator: torch.Generator) -> None:
        self.head.grow(n, generator)
        self.plan["classes"] += n

    def forward(self, x: Tensor) -> Output:
        features, maps = run_backbone(self.backbone, x, self.plan["maps"])
        return Output(self.head(features).float(), features, maps)


NETS: dict[str, type[Any]] = {"incremental": IncrementalNet}


def build(plan: dict[str, Any], generator: torch.Generator | None = None) -> Net:
    """A network of that plan; without a generator its weights are yet to be loaded."""
    return NETS[plan.get("kind", "incremental")](plan, generator)
