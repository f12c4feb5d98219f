"""A narrow ResNet on a GPU in few kernels: ResNet32's training step in 190 of them instead of 580.

cuDNN and a compiler leave many small kernels, most of which wait for the next launch, and cuDNN's convolutions of 16
channels use little of the card. Here a convolution takes the sums of its batch norm along, the shortcut and the ReLU
are read and written once, gradients of the weights are computed beside those of the activations, and all weights are
rounded, and all their gradients added up, in one kernel each. Activations are bf16, sums and gradients of weights fp32
or whole numbers, so that a step gives the same bits each time.

`run` computes what `ResNet.forward` does, to rounding; `fits` says of which networks. The kernels: `kernels.py`.
"""

from typing import Any
from weakref import WeakKeyDictionary

import torch
import triton.language as tl
from torch import Tensor, nn

from ..streams import Beside
from . import kernels
from .resnet import BatchNorm, Block, ResNet

WORK = {
    "conv": {16: (256, 4), 32: (128, 4), 64: (64, 4)},
    "join": {16: (256, 4), 32: (128, 4), 64: (64, 4)},
    "back": {16: (256, 4), 32: (128, 4), 64: (64, 4)},
    "weigh": {16: (128, 2), 32: (128, 2), 64: (64, 4)},
}
"""By kernel and the larger number of channels: the pixels of a program and its warps; measured on an H200."""
PARTS = {16: 128, 32: 64, 64: 32}  # of a weights' gradient
PACKED, ADDED, AT_ONCE = 1024, 128, 16


class Layer:
    """A convolution with its batch norm: what it reads, and what is added at its end."""

    def __init__(self, conv: nn.Conv2d, bn: BatchNorm, side: int, block: Block | None = None):
        self.conv, self.bn = conv, bn
        self.inside, self.outside, self.stride = conv.in_channels, conv.out_channels, conv.stride[0]
        self.side, self.side_out = side, side // self.stride
        self.channels = max(self.inside, self.outside)
        self.parts, self.weights = PARTS[self.channels], conv.weight.numel()
        self.is_stem = block is None
        self.ends_block = block is None or conv is block.conv2
        self.short = 0 if block is None or conv is block.conv1 else 2 if block.added else 1  # NONE, STRIDED, SAME

    def work(self, kernel: str) -> dict[str, int]:
        pixels, warps = WORK[kernel][self.channels]
        return {"BM": pixels, "num_warps": warps}

    def tiles(self, kernel: str, n: int, side: int | None = None) -> tuple[int]:
        return (n * (side or self.side_out) ** 2 // WORK[kernel][self.channels][0],)

    def pixels(self, n: int) -> float:
        """The outputs of a channel: those that its batch norm averages."""
        return float(n * self.side_out**2)

    def shape(self) -> dict[str, int]:
        own = {"CI": self.inside, "CO": self.outside, "H": self.side, "HO": self.side_out, "ST": self.stride}
        return own | {"K": _power_of_two(9 * self.inside) if self.is_stem else 0}

    def made(self, n: int, like: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.empty((n, self.side_out, self.side_out, self.outside), dtype=dtype, device=like.device)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def layers(net: ResNet, side: int) -> list[Layer]:
    """The network's convolutions in order."""
    found = [Layer(net.conv, net.bn, side)]
    for block in net.modules():
        if isinstance(block, Block):
            found.append(Layer(block.conv1, block.bn1, found[-1].side_out, block))
            found.append(Layer(block.conv2, block.bn2, found[-1].side_out, block))
    return found


def fits(net: ResNet, x: Tensor) -> bool:
    """Whether the kernels serve: 16 to 64 channels, shortcuts without weights, maps of whole tiles."""
    blocks = [block for block in net.modules() if isinstance(block, Block)]
    widths = {net.conv.out_channels, *(block.conv2.out_channels for block in blocks)}
    if net.pool or net.conv.kernel_size != (3, 3) or x.shape[1] > 3 or x.shape[-1] != x.shape[-2] or widths - {*PARTS}:
        return False
    if any(b.down is not None or not b.last_relu or b.added not in (0, b.conv1.in_channels) for b in blocks):
        return False
    if not net.training and torch.is_grad_enabled() and any(p.requires_grad for p in net.parameters()):
        return False
    found = layers(net, x.shape[-1])
    if any(type(k.bn) is not BatchNorm for k in found):  # synchronised among processes
        return False
    return all(k.conv.weight.is_contiguous(memory_format=torch.channels_last) for k in found) and all(
        side * side % WORK[kernel][k.channels][0] == 0
        for k in found
        for kernel in WORK
        for side in (k.side, k.side_out)
    )


def run(net: ResNet, x: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """The features that `net` gives of x: (n, d) in float32; activations are kept in `dtype`."""
    found = layers(net, x.shape[-1])
    if not net.training:
        return _frozen(net, found, x, dtype)
    parameters = [p for k in found for p in (k.conv.weight, k.bn.weight, k.bn.bias)]
    return _Trained.apply(x, net, found, dtype, *parameters)


def _frozen(net: ResNet, found: list[Layer], x: Tensor, dtype: torch.dtype) -> Tensor:
    weights = _packed_once(net, found, dtype)
    here = short = x
    for k in found:
        out, bn = k.made(len(x), x, dtype), k.bn
        kernels.frozen[k.tiles("conv", len(x))](
            here, weights[k], out, bn.weight, bn.bias, bn.running_mean, bn.running_var, short, *x.stride(),
            **k.work("conv"), **k.shape(), KIND=k.short,
        )  # fmt: skip
        here = out
        if k.ends_block:
            short = out
    return here.mean((1, 2), dtype=torch.float32)


class _Trained(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, net: ResNet, found: list[Layer], dtype: torch.dtype, *parameters: Tensor
    ) -> Tensor:
        n = len(x)
        weights, ctx.flipped = _packed(net, found, dtype)
        sums = torch.zeros(4 * sum(k.outside for k in found), dtype=torch.int64, device=x.device)
        ctx.sums = dict(zip(found, sums.split([4 * k.outside for k in found]), strict=True))
        ctx.x, ctx.found, ctx.ys, ctx.outs = x, found, {}, {}
        here = short = x
        for k in found:
            y, out, bn = k.made(n, x, dtype), k.made(n, x, dtype), k.bn
            kernels.conv[k.tiles("conv", n)](
                here, weights[k], y, ctx.sums[k], *x.stride(), **k.work("conv"), **k.shape()
            )
            kernels.join[k.tiles("join", n)](
                y, ctx.sums[k], bn.weight, bn.bias, bn.running_mean, bn.running_var, short, out, k.pixels(n),
                **k.work("join"), C=k.outside, H=k.side_out, KIND=k.short,
            )  # fmt: skip
            ctx.ys[k], ctx.outs[k], here = y, out, out
            if k.ends_block:
                short = out
        return here.mean((1, 2), dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, dfeatures: Tensor) -> tuple[Any, ...]:
        found, ys, outs, sums, x, n = ctx.found, ctx.ys, ctx.outs, ctx.sums, ctx.x, len(ctx.x)
        grads = torch.empty(sum(k.weights + 2 * k.outside for k in found), device=x.device)
        parts = torch.empty(sum(k.weights * k.parts for k in found), device=x.device)
        split = parts.split([k.weights * k.parts for k in found])
        own = [grads_of.split([k.weights, k.outside, k.outside]) for k, grads_of in
               zip(found, grads.split([k.weights + 2 * k.outside for k in found]), strict=True)]  # fmt: skip
        gs, dys = {k: torch.empty_like(ys[k]) for k in found}, {k: torch.empty_like(ys[k]) for k in found}
        last, beside = found[-1], Beside(x.device)
        kernels.top[last.tiles("join", n)](
            dfeatures.contiguous(), ys[last], outs[last], gs[last], sums[last], last.pixels(n),
            **last.work("join"), C=last.outside, H=last.side_out,
        )  # fmt: skip
        for i, k in reversed([*enumerate(found)]):
            _, scale, shift = own[i]
            kernels.through[k.tiles("join", n)](
                gs[k], ys[k], sums[k], k.bn.weight, dys[k], scale, shift, k.pixels(n), **k.work("join"), C=k.outside
            )
            with beside:
                _weigh(k, x if k.is_stem else outs[found[i - 1]], dys[k], split[i])
            if not k.is_stem:
                below = found[i - 1]
                end = k if k.ends_block else found[i + 1]  # whose g the shortcut hands down, past both layers
                kernels.back[k.tiles("back", n, k.side)](
                    dys[k], ctx.flipped[k], ys[below], outs[below], gs[below], sums[below], gs[end], below.pixels(n),
                    **k.work("back"), CI=k.outside, CO=k.inside, H=k.side, UP=k.stride,
                    KIND=0 if k.ends_block else end.short,
                )  # fmt: skip
        beside.join()
        table = _sum_table(found, x.device)
        kernels.add_up[(len(table),)](parts, grads, table, BLOCK=ADDED, P=AT_ONCE)
        wanted: list[Tensor] = []
        for k, (w, scale, shift) in zip(found, own, strict=True):
            wanted += [w.view(k.outside, 3, 3, k.inside).permute(0, 3, 1, 2), scale, shift]
        return None, None, None, None, *wanted


def _weigh(k: Layer, x: Tensor, dy: Tensor, parts: Tensor) -> None:
    tiles, shape = k.tiles("weigh", len(x)), k.shape()
    if k.is_stem:
        shape = {name: shape[name] for name in ("CI", "CO", "H", "K")}
        kernels.weigh_stem[(k.parts,)](x, dy, parts, *tiles, *x.stride(), **k.work("weigh"), **shape)
    else:
        del shape["K"]
        kernels.weigh[(k.parts, 3)](x, dy, parts, *tiles, **k.work("weigh"), **shape)


# --- weights of all layers at once --------------------------------------------------------------------

_pack_tables: WeakKeyDictionary[ResNet, tuple[list[int], Tensor]] = WeakKeyDictionary()
_sum_tables: dict[Any, Tensor] = {}
_frozen_weights: WeakKeyDictionary[ResNet, tuple[Any, list[Tensor]]] = WeakKeyDictionary()


def _packed(net: ResNet, found: list[Layer], dtype: torch.dtype) -> tuple[dict[Layer, Tensor], dict[Layer, Tensor]]:
    """The weights of each layer, rounded: (9, ci, co), and for the way back (9 from the last, co, ci).

    The first layer's stay as they are: it reads images, which have too few channels to be packed.
    """
    stem, *rest = found
    sizes = [k.weights for k in rest]
    table, weight = _pack_table(net, rest), stem.conv.weight
    both = torch.empty((2, sum(sizes)), dtype=dtype, device=weight.device)
    kind = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16}[weight.dtype]
    kernels.pack[(len(table),)](table, both[0], both[1], BLOCK=PACKED, TYPE=kind)
    forward, backward = (dict(zip(rest, half.split(sizes), strict=True)) for half in both)
    return forward | {stem: weight}, backward


def _packed_once(net: ResNet, found: list[Layer], dtype: torch.dtype) -> dict[Layer, Tensor]:
    """The weights of a network that does not learn, packed again only when they have changed."""
    stamp = (dtype, *((k.conv.weight.data_ptr(), k.conv.weight._version) for k in found))
    kept = _frozen_weights.get(net)
    if kept is None or kept[0] != stamp:
        weights, _ = _packed(net, found, dtype)
        kept = stamp, [weights[k] for k in found]
        _frozen_weights[net] = kept
    return dict(zip(found, kept[1], strict=True))


def _pack_table(net: ResNet, rest: list[Layer]) -> Tensor:
    addresses = [k.conv.weight.data_ptr() for k in rest]
    kept = _pack_tables.get(net)
    if kept is None or kept[0] != addresses:
        rows, at = [], 0
        for k, address in zip(rest, addresses, strict=True):
            rows += [[address, first, at, k.inside, k.outside] for first in range(0, k.weights, PACKED)]
            at += k.weights
        kept = addresses, torch.tensor(rows).to(rest[0].conv.weight.device)
        _pack_tables[net] = kept
    return kept[1]


def _sum_table(found: list[Layer], device: torch.device) -> Tensor:
    key = (device, *((k.weights, k.parts, k.outside) for k in found))
    if key not in _sum_tables:
        rows, to, first = [], 0, 0
        for k in found:
            rows += [
                [first + e, k.weights, k.parts, to + e, min(ADDED, k.weights - e)] for e in range(0, k.weights, ADDED)
            ]
            to, first = to + k.weights + 2 * k.outside, first + k.weights * k.parts
        _sum_tables[key] = torch.tensor(rows).to(device)
    return _sum_tables[key]
