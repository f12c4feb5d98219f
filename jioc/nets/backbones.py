"""The backbones: residual networks of basic blocks or bottlenecks, fully connected layers for vectors.

ResNet32 for small images, ResNet18, 34 and 50, and a tiny one: He et al., CVPR 2016. Weights are drawn from a
given generator: convolutions N(0, 2 / (k k out)), BN 1 and 0, no zero-init of the last BN. Those of basic
blocks are PyCIL's networks; the parameter counts in the tests are theirs. With the stem `imagenet`, ResNet18,
34 and 50 are torchvision's, whose weights `weights.py` reads.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jioc.nets.batchnorm import BatchNorm
from jioc.nets.catalogue import Layers, Shape


class Block(nn.Module):
    """conv - BN - ReLU - conv - BN, plus the shortcut, ReLU."""

    def __init__(self, inside: int, outside: int, stride: int, shortcut: str, last_relu: bool = True):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = BatchNorm(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = BatchNorm(outside)
        self.stride, self.added, self.last_relu = stride, outside - inside, last_relu
        self.down: nn.Module | None = None
        if shortcut == "B" and (stride > 1 or self.added):
            self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), BatchNorm(outside))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.down is not None:
            x = self.down(x)
        elif self.added:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))
        y = y + x
        return F.relu(y) if self.last_relu else y


EXPANSION = 4  # of a bottleneck


class Bottleneck(nn.Module):
    """1x1 - BN - ReLU - 3x3, which strides - BN - ReLU - 1x1 - BN, plus the shortcut, ReLU."""

    def __init__(self, inside: int, width: int, stride: int, shortcut: str, last_relu: bool = True):
        super().__init__()
        outside = EXPANSION * width
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.bn1 = BatchNorm(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = BatchNorm(width)
        self.conv3 = nn.Conv2d(width, outside, 1, bias=False)
        self.bn3 = BatchNorm(outside)
        self.last_relu, self.down = last_relu, nn.Sequential()
        if stride > 1 or inside != outside:
            self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), BatchNorm(outside))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y)) + self.down(x)
        return F.relu(y) if self.last_relu else y


class ResNet(nn.Module):
    """x (n, c, h, w) -> features (n, d) and the stages' outputs.

    `cosine`: for cosine heads, with B shortcuts and without the last ReLU.
    """

    def __init__(self, shape: Shape, stem: str, channels: int, cosine: bool = False):
        super().__init__()
        first, self.pool = shape.widths[0], stem in ("imagenet", "cifar-pool")
        kernel, stride, padding = (7, 2, 3) if stem == "imagenet" else (3, 1, 1)
        self.conv = nn.Conv2d(channels, first, kernel, stride, padding, bias=False)
        self.bn = BatchNorm(first)
        self.stages, inside, shortcut = nn.ModuleList(), first, "B" if cosine else shape.shortcut
        kind, wider = (Bottleneck, EXPANSION) if shape.bottleneck else (Block, 1)
        for i, (width, count) in enumerate(zip(shape.widths, shape.blocks, strict=True)):
            blocks = []
            for j in range(count):
                last = i == len(shape.widths) - 1 and j == count - 1
                stride = 2 if i > 0 and j == 0 else 1
                blocks.append(kind(inside, width, stride, shortcut, last_relu=not (cosine and last)))
                inside = wider * width
            self.stages.append(nn.Sequential(*blocks))
        self.width = inside

    def first_stages(self, n: int) -> list[nn.Module]:
        """The stem and the first n stages."""
        return [self.conv, self.bn, *self.stages[:n]]

    def forward(self, x: Tensor, keep_maps: bool = False) -> tuple[Tensor, list[Tensor]]:
        x = F.relu(self.bn(self.conv(x)))
        if self.pool:
            x = F.max_pool2d(x, 3, 2, 1)
        maps = []
        for stage in self.stages:
            x = stage(x)
            if keep_maps:
                maps.append(x)
        return x.mean((2, 3)), maps


class MLP(nn.Module):
    """Fully connected layers for vectors: each linear, batch-normalised, ReLU.

    A vector comes as an image of one pixel, (n, d, 1, 1), and a layer's output is a map of that size: every
    method works. Weights N(0, 2 / out), drawn as a 1x1 convolution's are. `cosine`: the features keep their
    signs, as a cosine head wants.
    """

    def __init__(self, layers: Layers, channels: int, cosine: bool = False):
        super().__init__()
        inside = (channels, *layers.widths)
        self.linear = nn.ModuleList(
            [nn.Linear(a, b, bias=False) for a, b in zip(inside, layers.widths, strict=False)]
        )
        self.bn = nn.ModuleList([BatchNorm(width) for width in layers.widths])
        self.width, self.cosine = layers.widths[-1], cosine

    def first_stages(self, n: int) -> list[nn.Module]:
        """The first n layers."""
        return [*self.linear[:n], *self.bn[:n]]

    def forward(self, x: Tensor, keep_maps: bool = False) -> tuple[Tensor, list[Tensor]]:
        x, maps = x.flatten(1), []
        for i in range(len(self.linear)):
            x = self.bn[i](self.linear[i](x))
            if not (self.cosine and i == len(self.linear) - 1):
                x = F.relu(x)
            if keep_maps:
                maps.append(x[:, :, None, None])
        return x, maps


@torch.no_grad()
def initialise(net: nn.Module, generator: torch.Generator) -> None:
    """Draw every convolution and every layer of a backbone, from the generator alone."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels // module.groups * math.prod(module.kernel_size)
            module.weight.normal_(0, math.sqrt(2 / fan_out), generator=generator)
        elif isinstance(module, nn.Linear):
            module.weight.normal_(0, math.sqrt(2 / module.out_features), generator=generator)
