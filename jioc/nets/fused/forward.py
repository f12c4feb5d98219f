"""The forward passes, of a network that learns and of a frozen one."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from jioc.nets.fused import kernels
from jioc.nets.fused.compile_ahead import launch
from jioc.nets.fused.layers import PROJECTED, SAME, Layer, of_convolution, of_pixels
from jioc.nets.fused.tables import begin_sums, round_weights
from jioc.nets.resnet import ResNet


@dataclass(eq=False)
class ForwardPass:
    """What the backward pass needs of a forward one."""

    x: Tensor
    layers: list[Layer]
    given: list[Layer]  # whose outputs are outputs of the network
    weights: dict[Layer, Tensor]
    sums: dict[Layer, Tensor]
    read: dict[Layer, Tensor] = field(default_factory=dict)  # the input of each convolution
    ys: dict[Layer, Tensor] = field(default_factory=dict)  # its output
    outs: dict[Layer, Tensor] = field(default_factory=dict)  # after batch norm, shortcut and ReLU


def forward(
    net: ResNet, layers: list[Layer], given: list[Layer], x: Tensor, dtype: torch.dtype
) -> tuple[ForwardPass, list[Tensor]]:
    """A pass in training mode, and its outputs: the features and the maps of the layers `given`."""
    n, done = (
        len(x),
        ForwardPass(x, layers, given, round_weights(net, layers, dtype), begin_sums(net, layers)),
    )
    here = short = x
    for k in layers:
        done.read[k] = short if k.taps == 1 else here
        done.ys[k] = y = k.empty_output(n, x, dtype)
        geometry = of_convolution(k, n)
        launch(
            kernels.conv, geometry.grid,
            done.read[k], done.weights[k], y, done.sums[k], *x.stride(), **geometry.words, **k.sizes(),
        )  # fmt: skip
        if k.taps == 1:
            continue  # its batch norm is part of the block's end
        bn, other, geometry = k.bn, k.projection or k, of_pixels(k, n)
        done.outs[k] = out = k.empty_output(n, x, dtype)
        launch(
            kernels.join, geometry.grid,
            y, done.sums[k], bn.weight, bn.bias, bn.running_mean, bn.running_var,
            done.ys[other] if k.projection else short, done.sums[other], other.bn.weight, other.bn.bias,
            other.bn.running_mean, other.bn.running_var, out, float(k.pixels(n)),
            **geometry.words, H=k.side_out, KIND=k.short, RELU=k.relu,
        )  # fmt: skip
        here = out
        if k.ends_block:
            short = out
    return done, _outputs(here, [done.outs[k] for k in given])


def frozen_forward(
    net: ResNet, layers: list[Layer], given: list[Layer], x: Tensor, dtype: torch.dtype
) -> list[Tensor]:
    """The outputs of a network in eval mode, as `forward` gives them."""
    weights, n = round_weights(net, layers, dtype), len(x)

    def run_layer(k: Layer, here: Tensor, short: Tensor) -> Tensor:
        out, bn, geometry = k.empty_output(n, x, dtype), k.bn, of_convolution(k, n)
        launch(
            kernels.frozen, geometry.grid,
            here, weights[k], out, bn.weight, bn.bias, bn.running_mean, bn.running_var, short, *x.stride(),
            **geometry.words, **k.sizes(), KIND=SAME if k.short == PROJECTED else k.short, RELU=k.relu,
        )  # fmt: skip
        return out

    here = short = x
    maps = []
    for k in layers:
        if k.taps == 9:
            here = run_layer(k, here, run_layer(k.projection, short, short) if k.projection else short)
            if k.ends_block:
                short = here
            if k in given:
                maps.append(here)
    return _outputs(here, maps)


def _outputs(here: Tensor, maps: list[Tensor]) -> list[Tensor]:
    """Features, and maps as (n, c, h, w)."""
    return [here.mean((1, 2), dtype=torch.float32), *(out.permute(0, 3, 1, 2) for out in maps)]
