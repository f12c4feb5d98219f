"""A ResNet of basic blocks on a GPU in few kernels: ResNet32 forth and back in 159, and its teacher in 32.

cuDNN and a compiler leave many small kernels, most of which wait for the next launch, and cuDNN's
convolutions of few channels use little of the card. Here a convolution takes the sums of its batch norm
along, the shortcut and the ReLU are read and written once, gradients of the weights are computed beside those
of the activations, and all weights are rounded, and all their gradients added up, in a kernel or two.
Activations are bf16, sums and gradients of weights fp32 or whole numbers, so that a step gives the same bits
each time.

`run` computes what `ResNet.forward` does, to rounding; `layers.fits` says for which networks. The kernels:
`kernels.py`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from jioc.nets.fused import kernels
from jioc.nets.fused.compile_ahead import compile_ahead, launch
from jioc.nets.fused.layers import PROJECTED, SAME, Layer, layers_of, of_convolution
from jioc.nets.fused.tables import round_weights
from jioc.nets.fused.train import backward, forward, outputs
from jioc.nets.resnet import ResNet


def run(
    net: ResNet, x: Tensor, keep_maps: bool = False, dtype: torch.dtype = torch.bfloat16
) -> tuple[Tensor, list[Tensor]]:
    """Run `net` on x: features (n, d) in float32, and the stages' outputs in `dtype`, as activations are."""
    layers = layers_of(net, x.shape[-1])
    given = _stage_ends(net, layers) if keep_maps else []
    with torch.cuda.device_of(x):  # Triton launches on the current one
        if x.is_cuda:
            _compile_ahead(net, layers, given, x, dtype)
        if net.training:
            parameters = [p for k in layers for p in (k.conv.weight, k.bn.weight, k.bn.bias)]
            features, *maps = _Trained.apply(x, net, layers, given, dtype, *parameters)
        else:
            features, *maps = _frozen(net, layers, given, x, dtype)
    return features, maps


def _stage_ends(net: ResNet, layers: list[Layer]) -> list[Layer]:
    last = [stage[-1].conv2 for stage in net.stages]  # type: ignore[index]
    return [k for k in layers if any(k.conv is conv for conv in last)]


def _compile_ahead(
    net: ResNet, layers: list[Layer], given: list[Layer], x: Tensor, dtype: torch.dtype
) -> None:
    def work() -> None:
        if net.training:
            backward(*forward(net, layers, given, x, dtype))
        else:
            _frozen(net, layers, given, x, dtype)

    sizes = tuple((k.side, k.inside, k.outside, k.taps, k.short, k.relu) for k in layers)
    types = (dtype, x.dtype, net.conv.weight.dtype)
    compile_ahead((x.device, x.shape, x.stride(), types, net.training, bool(given), sizes), work)


def _frozen(
    net: ResNet, layers: list[Layer], given: list[Layer], x: Tensor, dtype: torch.dtype
) -> list[Tensor]:
    """The outputs of a network in eval mode, as `train.forward` gives them."""
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
    return outputs(here, maps)


class _Trained(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        net: ResNet,
        layers: list[Layer],
        given: list[Layer],
        dtype: torch.dtype,
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.done, *answers = forward(net, layers, given, x, dtype)
        return tuple(answers)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        done, ctx.done = ctx.done, None  # the activations go with it
        assert done is not None, "the sums of a forward pass serve one backward pass"
        return None, None, None, None, None, *backward(done, *gradients)
