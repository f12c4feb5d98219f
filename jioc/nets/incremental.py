"""Networks whose classes grow. Each carries its `plan`, plain data from which `build` makes another."""

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn

from jioc.device.compile import is_compiling, maybe_compiled
from jioc.device.streams import SideStream
from jioc.nets.backbones import MLP, ResNet, initialise
from jioc.nets.catalogue import Layers, Mobile, Timm, shape
from jioc.nets.efficientnet import EfficientNetLite
from jioc.nets.heads import HEADS, Head, LinearHead, ScaledCosineHead
from jioc.nets.timm import TimmNetwork
from jioc.nets.weights import Pretrained
from jioc.types import Output

Backbone = ResNet | EfficientNetLite | MLP | TimmNetwork


class Net(nn.Module):
    """The interface of every network."""

    plan: dict[str, Any]
    width: int  # of the features
    head: Head

    def forward(self, x: Tensor) -> Output:
        raise NotImplementedError

    def grow(self, n: int, generator: torch.Generator) -> None:
        """Make room for n more classes."""
        raise NotImplementedError

    @property
    def learning_backbone(self) -> Backbone:
        """The backbone that learns, or the newest one."""
        raise NotImplementedError

    def load_pretrained(self, weights: Pretrained) -> None:
        """Begin with pretrained values of the backbone, before the first task; the plan says whose."""
        self.learning_backbone.load_state_dict(weights.tensors)
        self.plan["weights"] = dict(weights.about)

    def pretrained_parameters(self) -> list[nn.Parameter]:
        """The parameters that began with pretrained values, or grew out of such."""
        return [*self.learning_backbone.parameters()] if self.plan.get("weights") else []

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        for part in frozen_parts(self.learning_backbone, self.plan.get("freeze", 0)):
            part.eval()
        return self

    def _freeze_stages(self) -> None:
        """Keep the stages that the plan freezes as they are, BN statistics included."""
        for part in frozen_parts(self.learning_backbone, self.plan.get("freeze", 0)):
            part.requires_grad_(False)
        self.train(self.training)

    def frozen_copy(self) -> Self:
        """A copy that serves as a teacher: in eval mode, without gradients."""
        twin = copy.deepcopy(self).eval().requires_grad_(False)
        twin.zero_grad()
        return twin


def frozen_parts(backbone: Backbone, freeze: int | str) -> list[nn.Module]:
    """The parts of a backbone that --freeze names: all of it, or the stem and the first stages."""
    if freeze == "all":
        return [backbone]
    assert isinstance(freeze, int)
    return backbone.first_stages(freeze) if freeze else []


def run_backbone(backbone: Backbone, x: Tensor, keep_maps: bool = False) -> tuple[Tensor, list[Tensor]]:
    """Features (n, d) and the stages' outputs; a function, so that one compilation serves every backbone."""
    if isinstance(backbone, ResNet) and fused_kernels(backbone, x):
        from jioc.nets.fused.run import run

        return run(backbone, x, keep_maps)
    return maybe_compiled(_forward, x.shape[0])(backbone, x, keep_maps)


def fused_kernels(backbone: ResNet, x: Tensor) -> bool:
    """Whether our own kernels are used: on a GPU, where backbones are compiled, in bf16."""
    if not (x.is_cuda and is_compiling() and torch.is_autocast_enabled("cuda")):
        return False
    try:
        from jioc.nets.fused.layers import fits
    except ImportError:  # torch comes without Triton on some systems, or with an old one
        return False
    return fits(backbone, x)


def _forward(backbone: Backbone, x: Tensor, keep_maps: bool) -> tuple[Tensor, list[Tensor]]:
    return backbone(x, keep_maps)


class IncrementalNet(Net):
    """One backbone and a head that grows.

    plan: backbone, stem, channels, cosine (a backbone for cosine heads), maps (give the stages' outputs),
    head, sizes (the classes of each task); perhaps freeze (first stages that never learn, or "all") and
    weights (whose values the backbone began with: name, licence, sha256).
    """

    def __init__(self, plan: dict[str, Any], generator: torch.Generator | None = None):
        super().__init__()
        self.plan = dict(plan)
        self.backbone = backbone(plan, generator)
        self.width = self.backbone.width
        self.head = HEADS[plan["head"]](self.width, plan["sizes"])
        self.keeps_maps = bool(plan["maps"])
        self._freeze_stages()

    @property
    def learning_backbone(self) -> Backbone:
        return self.backbone

    def grow(self, n: int, generator: torch.Generator) -> None:
        self.head.grow(n, generator)
        self.plan["sizes"] = [*self.plan["sizes"], n]

    def forward(self, x: Tensor) -> Output:
        features, maps = run_backbone(self.backbone, x, self.keeps_maps)
        return Output(self.head(features).float(), features, maps)


WIDENING: dict[str, type[LinearHead] | type[ScaledCosineHead]] = {  # heads that grow by features, too
    "linear": LinearHead,
    "scaled-cosine": ScaledCosineHead,
}
BRANCHES = 3  # of a step's graph in which the frozen backbones run


class ExpandingNet(Net):
    """A backbone for each task, their features side by side, one head over all of them.

    Only the newest backbone learns; the others are frozen and stay in eval mode, BN statistics included.
    `aux` is a head on the newest backbone's features alone, `before` the frozen head of the network as it was
    before it grew: on the frozen features it gives that network's logits without another forward pass.

    plan: as IncrementalNet's, and kind, backbones, aux (outputs of the auxiliary head).
    """

    head: LinearHead | ScaledCosineHead

    def __init__(self, plan: dict[str, Any], generator: torch.Generator | None = None):
        super().__init__()
        self.plan, head = dict(plan), WIDENING[plan["head"]]
        self.before: LinearHead | ScaledCosineHead | None = None
        self.aux: LinearHead | None = None
        self.backbones = nn.ModuleList([backbone(plan, generator) for _ in range(plan["backbones"])])
        self.unit: int = self.learning_backbone.width
        self.head = head(self.width, plan["sizes"])
        if plan["backbones"] > 1:
            self.before = head(self.width - self.unit, plan["sizes"][:-1])
            self.aux = LinearHead(self.unit, [plan["aux"]])
        self._freeze()

    @property
    def learning_backbone(self) -> Backbone:
        newest = self.backbones[-1]
        assert isinstance(newest, Backbone)
        return newest

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.unit * len(self.backbones)

    @classmethod
    def over(cls, net: IncrementalNet) -> Self:
        """The same function as a network of one backbone, ready to expand."""
        wide = cls({**net.plan, "kind": "expanding", "backbones": 1, "aux": 0})
        wide.backbones[0].load_state_dict(net.backbone.state_dict())
        wide.head.load_state_dict(net.head.state_dict())
        return wide.to(next(net.parameters()).device)

    def grow(self, n: int, generator: torch.Generator, aux: int = 0) -> None:
        """Add classes to the head; later also a copy of the newest backbone, and a new aux head."""
        if not self.plan["sizes"]:
            self.head.grow(n, generator)
        else:
            self.before = copy.deepcopy(self.head)
            self.backbones.append(copy.deepcopy(self.backbones[-1]))
            self.head.grow(n, generator, self.unit)
            self.aux = LinearHead(self.unit).to(self.head.weight.device)
            self.aux.grow(aux, generator)
            self.plan.update(backbones=len(self.backbones), aux=aux)
            self._freeze()
        self.plan["sizes"] = [*self.plan["sizes"], n]

    def _freeze(self) -> None:
        for part in [*self.backbones[:-1], *([self.before] if self.before else [])]:
            part.requires_grad_(False)
        self._freeze_stages()

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        for part in self.backbones[:-1]:
            part.eval()
        return self

    def forward(self, x: Tensor) -> Output:
        *frozen, newest = [part for part in self.backbones if isinstance(part, Backbone)]
        parts, branches = self.frozen_features(frozen, x)
        parts.append(run_backbone(newest, x)[0])
        for branch in branches:
            branch.join()
        features = torch.cat(parts, dim=1)
        out = Output(self.head(features).float(), features)
        if self.aux is not None:
            out.extra["aux"] = self.aux(features[:, -self.unit :]).float()
        return out

    def frozen_features(self, frozen: list[Backbone], x: Tensor) -> tuple[list[Tensor], list[SideStream]]:
        """The features of each frozen backbone, and the branches of the step that compute them."""
        branches = [SideStream(x.device, 1 + i % BRANCHES) for i in range(len(frozen))]
        parts = []
        for part, branch in zip(frozen, branches, strict=True):
            with branch:
                parts.append(run_backbone(part, x)[0])
        return parts, branches

    def previous(self, out: Output) -> Output:
        """The output that the network gave for these images before it grew."""
        assert self.before is not None
        features = out.features[:, : -self.unit]
        return Output(self.before(features).float(), features)


_drawing = threading.RLock()


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Seed torch's own generator for modules that are built within, and put it back as it was."""
    with _drawing, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def backbone(plan: dict[str, Any], generator: torch.Generator | None) -> Backbone:
    """Make the backbone of a plan, its weights drawn from the generator, or yet to be loaded.

    The channels of its convolutions are innermost: on a CPU, too, that is faster, and our kernels need it.
    """
    form, channels, cosine = shape(plan["backbone"]), plan["channels"], plan["cosine"]
    if isinstance(form, Timm):
        seed = 0 if generator is None else int(torch.randint(2**31, (), generator=generator))
        with drawing_from(seed):
            timms = TimmNetwork(form, channels, plan["maps"])
        return timms.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    net: Backbone
    with drawing_from(0):  # weights that are overwritten: ours come from the generator
        if isinstance(form, Layers):
            net = MLP(form, channels, cosine)
        elif isinstance(form, Mobile):
            net = EfficientNetLite(form, channels, cosine)
        else:
            net = ResNet(form, plan["stem"], channels, cosine)
    if generator is not None:
        initialise(net, generator)
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


NETS: dict[str, type[Any]] = {"incremental": IncrementalNet, "expanding": ExpandingNet}


def fits(plan: dict[str, Any], tensors: dict[str, Tensor]) -> bool:
    """Whether tensors have the shapes of a plan. No network takes up memory to find that out."""
    held = {name: tensor.shape for name, tensor in tensors.items()}
    with torch.device("meta"):
        one = sum(p.numel() for p in backbone(plan, None).parameters())
        if plan.get("backbones", 1) * one > sum(size.numel() for size in held.values()):
            return False
        return {name: tensor.shape for name, tensor in build(plan).state_dict().items()} == held


def build(plan: dict[str, Any], generator: torch.Generator | None = None) -> Net:
    """Make a network from its plan; without a generator its weights are yet to be loaded."""
    return NETS[plan.get("kind", "incremental")](plan, generator)
