"""Fully connected layers for vectors: each linear, batch-normalised, ReLU.

A vector comes as an image of one pixel, (n, d, 1, 1), and a layer's output is a map of that size: every
method works. Weights N(0, 2 / out), drawn as a 1x1 convolution's are.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from jioc.nets.batchnorm import BatchNorm
from jioc.nets.catalogue import Layers


class MLP(nn.Module):
    """`cosine`: the features keep their signs, as a cosine head wants."""

    def __init__(self, layers: Layers, channels: int, cosine: bool = False):
        super().__init__()
        inside = (channels, *layers.widths)
        self.linear = nn.ModuleList(
            [nn.Linear(a, b, bias=False) for a, b in zip(inside, layers.widths, strict=False)]
        )
        self.bn = nn.ModuleList([BatchNorm(width) for width in layers.widths])
        self.width, self.cosine = layers.widths[-1], cosine

    def forward(self, x: Tensor, keep_maps: bool = False) -> tuple[Tensor, list[Tensor]]:
        x = x.flatten(1)
        maps = []
        for i in range(len(self.linear)):
            x = self.bn[i](self.linear[i](x))
            if not (self.cosine and i == len(self.linear) - 1):
                x = F.relu(x)
            if keep_maps:
                maps.append(x[:, :, None, None])
        return x, maps
