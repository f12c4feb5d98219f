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

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from jioc.device.streams import SideStream
from jioc.nets.backbones import ResNet
from jioc.nets.fused import kernels, pooling
from jioc.nets.fused import layers as launching
from jioc.nets.fused import weights as weight_kernels
from jioc.nets.fused.layers import (
    NONE,
    PROJECTED,
    SAME,
    WEIGHED,
    Layer,
    compile_ahead,
    launch,
    layers_of,
    of_convolution,
    of_pixels,
)
from jioc.nets.fused.tables import add_parts, begin_sums, round_weights


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

    sizes = tuple((k.side, k.inside, k.outside, k.taps, k.short, k.relu, k.pooled) for k in layers)
    types = (dtype, x.dtype, net.conv.weight.dtype)
    compile_ahead(
        (x.device, x.shape, x.stride(), types, net.training, bool(given), sizes, launching.POSITIONS), work
    )


def _frozen(
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
        if not k.pooled:
            return out
        smaller, geometry = k.empty_output(n, x, dtype, pooled=True), of_pixels(k, n, pooled=True)
        launch(pooling.largest, geometry.grid, out, smaller, **geometry.words, H=k.side_given)
        return smaller

    here = short = x
    maps = []
    for k in layers:
        if k.taps > 1:
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


# --- a network that learns: its gradients of activations in turn, those of the weights beside them ---


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
    outs: dict[Layer, Tensor] = field(default_factory=dict)  # after batch norm, shortcut, ReLU and pooling
    picked: dict[Layer, Tensor] = field(default_factory=dict)  # of a layer that pools: the y of each output
    which: dict[Layer, Tensor] = field(default_factory=dict)  # and its place in the window


def forward(
    net: ResNet, layers: list[Layer], given: list[Layer], x: Tensor, dtype: torch.dtype
) -> tuple[Any, ...]:
    """The pass, the features, and the maps of the layers `given`."""
    done = ForwardPass(x, layers, given, round_weights(net, layers, dtype), begin_sums(net, layers))
    n, here, short = len(x), x, x
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
        bn, other, geometry = k.bn, k.projection or k, of_pixels(k, n, pooled=k.pooled)
        done.outs[k] = here = out = k.empty_output(n, x, dtype, pooled=True)
        if k.pooled:
            done.picked[k], done.which[k] = torch.empty_like(out), torch.empty_like(out, dtype=torch.int8)
            launch(
                pooling.pool, geometry.grid,
                y, done.sums[k], bn.weight, bn.bias, bn.running_mean, bn.running_var, out, done.picked[k],
                done.which[k], float(k.pixels(n)), **geometry.words, H=k.side_given,
            )  # fmt: skip
            short = out
            continue
        launch(
            kernels.join, geometry.grid,
            y, done.sums[k], bn.weight, bn.bias, bn.running_mean, bn.running_var,
            done.ys[other] if k.projection else short, done.sums[other], other.bn.weight, other.bn.bias,
            other.bn.running_mean, other.bn.running_var, out, float(k.pixels(n)),
            **geometry.words, H=k.side_out, KIND=k.short, RELU=k.relu,
        )  # fmt: skip
        if k.ends_block:
            short = out
    return done, *outputs(here, [done.outs[k] for k in given])


def outputs(here: Tensor, maps: list[Tensor]) -> list[Tensor]:
    """The features, and the maps as (n, c, h, w)."""
    return [here.mean((1, 2), dtype=torch.float32), *(out.permute(0, 3, 1, 2) for out in maps)]


def backward(done: ForwardPass, dfeatures: Tensor | None, *dmaps: Tensor | None) -> list[Tensor]:
    """The gradients of each layer's weights, scale and shift. A gradient that is None is zero."""
    layers, ys, outs, sums, x, n = done.layers, done.ys, done.outs, done.sums, done.x, len(done.x)
    sizes = [k.weights + 2 * k.outside for k in layers]
    grads = torch.empty(sum(sizes), device=x.device)
    each = zip(layers, grads.split(sizes), strict=True)
    own = {k: mine.split([k.weights, k.outside, k.outside]) for k, mine in each}
    several = [k for k in layers if k.parts > 1]
    parts = torch.empty(sum(k.weights * k.parts for k in several), device=x.device)
    part = {k: own[k][0] for k in layers}  # where its one part is the whole
    part |= dict(zip(several, parts.split([k.weights * k.parts for k in several]), strict=True))
    gs = {k: torch.empty_like(y) for k, y in outs.items()}
    dys = {k: torch.empty_like(y) for k, y in ys.items()}
    of_maps = zip(done.given, dmaps, strict=True)
    more = {k: d.permute(0, 2, 3, 1).contiguous() for k, d in of_maps if d is not None}
    side_stream = SideStream(x.device)

    def through(k: Layer, g: Tensor) -> None:
        """Back through the batch norm of a layer, and to its weights."""
        geometry, (_, scale, shift) = of_pixels(k, n), own[k]
        rest = ys[k], sums[k], k.bn.weight, dys[k], scale, shift, float(k.pixels(n))
        if k.pooled:
            which, side = done.which[k], k.side_out
            launch(pooling.through_pool, geometry.grid, g, which, *rest, **geometry.words, H=side)
        else:
            launch(kernels.through, geometry.grid, g, *rest, **geometry.words)
        with side_stream:
            _weight_gradient(k, done.read[k], dys[k], part[k])

    main = [k for k in layers if k.taps > 1]
    last = main[-1]
    other, geometry = last.projection or last, of_pixels(last, n)
    if dfeatures is None:
        dfeatures = torch.zeros((n, last.outside), device=x.device)
    launch(
        kernels.top, geometry.grid,
        dfeatures.contiguous(), ys[last], outs[last], gs[last], more.get(last, gs[last]), sums[last],
        ys[other], sums[other], float(last.pixels(n)), **geometry.words, H=last.side_out, MORE=last in more,
        PROJECTS=last.projection is not None, RELU=last.relu,
    )  # fmt: skip
    for i, k in reversed([*enumerate(main)]):
        if k.projection:
            through(k.projection, gs[k])
        through(k, gs[k])
        if k.is_stem:
            continue
        below = main[i - 1]
        end = k if k.ends_block else main[i + 1]  # whose g the shortcut hands down, past both layers
        across = end.projection
        other = below.projection or below
        geometry = of_convolution(k, n, back=True)
        launch(
            kernels.back, geometry.grid,
            dys[k], done.weights[k], done.picked.get(below, ys[below]), outs[below], gs[below],
            more.get(below, gs[below]), sums[below], ys[other], sums[other],
            dys[across] if across else gs[end], done.weights[across or k], float(below.pixels(n)),
            **geometry.words, CI=k.outside, CO=k.inside, H=k.side, UP=k.stride,
            KIND=NONE if k.ends_block else end.short, MORE=below in more,
            PROJECTS=below.projection is not None,
        )  # fmt: skip
    side_stream.join()
    add_parts(layers, parts, grads)
    wanted: list[Tensor] = []
    for k in layers:
        w, scale, shift = own[k]
        height, width = k.conv.kernel_size
        wanted += [w.view(k.outside, height, width, k.inside).permute(0, 3, 1, 2), scale, shift]
    return wanted


def _weight_gradient(k: Layer, x: Tensor, dy: Tensor, parts: Tensor) -> None:
    """Compute the gradient of a layer's weights, in parts that are added up later."""
    pixels, warps, _ = WEIGHED.get(k.channels, WEIGHED[None])
    total, sizes = k.pixels(len(x)), k.sizes()
    tiles = -(-total // pixels)
    stages = 1 if k.is_stem else 2  # its scattered copies to shared memory in advance would meet in one bank
    words = {"BM": pixels, "num_warps": warps, "num_stages": stages, "WHOLE": total % pixels == 0}
    if k.is_stem:
        rows = 7 if k.is_wide else 1  # of taps, each in programs of its own
        kernel = weight_kernels.weigh_wide_stem if k.is_wide else weight_kernels.weigh_stem
        sizes = {name: size for name, size in sizes.items() if name in kernel.arg_names}
        launch(kernel, (k.parts, rows), x, dy, parts, tiles, total, *x.stride(), **words, **sizes)
        return
    del sizes["K"]
    out, into = min(64, k.outside), min(64, k.inside)
    grid = (k.parts, k.taps // k.each, k.outside // out * (k.inside // into))
    launch(
        weight_kernels.weigh, grid, x, dy, parts, tiles, total, BO=out, BI=into, EACH=k.each, **words, **sizes
    )
