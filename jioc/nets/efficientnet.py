"""EfficientNet-Lite: inverted bottlenecks with ReLU6, without squeeze-and-excitation (Tan and Le, ICML 2019).

A stage's first block may stride; the others add their input. Stem and head have 32 and 1,280 channels at any
size. BN has eps 1e-3. Convolutions pad as TensorFlow's `same`: a map of n becomes ceil(n / stride), and an
odd pixel of padding goes below and to the right, as the published weights need it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jioc.nets.batchnorm import BatchNorm
from jioc.nets.catalogue import Mobile

STEM, HEAD, EPS = 32, 1280, 1e-3
KERNELS = (3, 3, 5, 3, 5, 5, 3)  # of each stage
STRIDES = (1, 2, 2, 2, 1, 2, 1)
EXPANSION = 6  # of a block inside; 1 in the first stage


class Same(nn.Conv2d):
    """A convolution without bias that pads as TensorFlow's `same`."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1):
        super().__init__(inside, outside, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        (kernel, _), (stride, _) = self.kernel_size, self.stride
        missing = [max(0, (-(-side // stride) - 1) * stride + kernel - side) for side in x.shape[-2:]]
        (top, bottom), (left, right) = ((m // 2, m - m // 2) for m in missing)
        if (top, left) == (bottom, right):
            return F.conv2d(x, self.weight, None, self.stride, (top, left), groups=self.groups)
        return super().forward(F.pad(x, (left, right, top, bottom)))


class Inverted(nn.Module):
    """1x1 to more channels, a filter for each of them, 1x1 to fewer; plus x where the shape stays."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int, expansion: int):
        super().__init__()
        between = expansion * inside
        self.expand = nn.ModuleList()
        if expansion > 1:
            self.expand.extend([Same(inside, between, 1), BatchNorm(between, EPS)])
        self.filter, self.bn1 = Same(between, between, kernel, stride, between), BatchNorm(between, EPS)
        self.project, self.bn2 = Same(between, outside, 1), BatchNorm(outside, EPS)
        self.adds = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        y = x
        if len(self.expand):
            conv, bn = self.expand
            y = F.relu6(bn(conv(y)))
        y = F.relu6(self.bn1(self.filter(y)))
        y = self.bn2(self.project(y))
        return x + y if self.adds else y


class EfficientNetLite(nn.Module):
    """x (n, c, h, w) -> features (n, 1280) and the stages' outputs.

    `cosine`: for cosine heads, without the last ReLU6.
    """

    def __init__(self, shape: Mobile, channels: int, cosine: bool = False):
        super().__init__()
        self.conv, self.bn = Same(channels, STEM, 3, 2), BatchNorm(STEM, EPS)
        self.stages, inside = nn.ModuleList(), STEM
        plan = zip(shape.widths, shape.blocks, KERNELS, STRIDES, strict=True)
        for i, (width, count, kernel, stride) in enumerate(plan):
            blocks = []
            for j in range(count):
                blocks.append(Inverted(inside, width, kernel, 1 if j else stride, EXPANSION if i else 1))
                inside = width
            self.stages.append(nn.Sequential(*blocks))
        self.head, self.head_bn = Same(inside, HEAD, 1), BatchNorm(HEAD, EPS)
        self.width, self.cosine = HEAD, cosine

    def first_stages(self, n: int) -> list[nn.Module]:
        """The stem and the first n stages."""
        return [self.conv, self.bn, *self.stages[:n]]

    def forward(self, x: Tensor, keep_maps: bool = False) -> tuple[Tensor, list[Tensor]]:
        x = x.contiguous(memory_format=torch.channels_last)  # a third quicker on a CPU
        x, maps = F.relu6(self.bn(self.conv(x))), []
        for stage in self.stages:
            x = stage(x)
            if keep_maps:
                maps.append(x)
        x = self.head_bn(self.head(x))
        return (x if self.cosine else F.relu6(x)).mean((2, 3)), maps
