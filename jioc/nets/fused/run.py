"""A ResNet of basic blocks on a GPU in few kernels: ResNet32 forth and back in 159, and its teacher in 32.

cuDNN and a compiler leave many small kernels, most of which wait for the next launch, and cuDNN's convolutions of few
channels use little of the card. Here a convolution takes the sums of its batch norm along, the shortcut and the ReLU
are read and written once, gradients of the weights are computed beside those of the activations, and all weights are
rounded, and all their gradients added up, in a kernel or two. Activations are bf16, sums and gradients of weights fp32
or whole numbers, so that a step gives the same bits each time.

`run` computes what `ResNet.forward` does, to rounding; `fits` says of which networks. The kernels: `kernels.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
import triton.language as tl
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from jioc.device.streams import SideStream
from jioc.nets.fused import kernels
from jioc.nets.fused.compile_ahead import compile_ahead, launch
from jioc.nets.resnet import BatchNorm, Block, ResNet

BATCH = 128  # for which tiles are chosen; any other size works
MOST = 2**20  # pixels of a channel, for which a batch norm's sums and 32-bit offsets have room
FILLED = 60  # programs that a convolution should have, for half of the multiprocessors: runs beside it fill the rest
TILES = ((128, 128, 8), (128, 64, 4), (64, 64, 4))
"""For 64 channels or more: pixels and channels of a program, and its warps; the first that fills the card is taken."""
NARROW = {16: (256, 4), 32: (128, 4)}  # for fewer: pixels and warps, all channels in one program
BETWEEN = {16: 512, 32: 256}  # pixels of a program between convolutions; otherwise 128
WEIGHED = {16: (128, 2, 3), 32: (128, 2, 3), None: (64, 4, 3)}
"""By channels, or else: pixels, warps and taps of a program for the weights' gradients."""
PARTS = {
    16: 128,
    32: 64,
}  # of a weights' gradient, all taps together; otherwise as many as give this many programs:
PARTED = 120
STEM_PARTS = 256  # of the first layer's
ROUNDED = 1024  # weights that a program rounds
ADDED = {
    16: (1024, 2),
    None: (128, 16),
}  # by the number of parts at most: sums of a program, parts it adds at once
NONE, SAME, STRIDED, PROJECTED = (kind.value for kind in (
    kernels.NONE, kernels.SAME, kernels.STRIDED, kernels.PROJECTED
))  # fmt: skip


@dataclass(eq=False)
class Layer:
    """A convolution with its batch norm: what it reads, and what is added at its end."""

    conv: nn.Conv2d
    bn: BatchNorm
    side: int  # of the map that it reads
    short: int = NONE
    ends_block: bool = True
    is_stem: bool = False
    relu: bool = True
    projection: "Layer | None" = None  # the shortcut's own layer, of a layer that ends a block

    def __post_init__(self) -> None:
        self.inside, self.outside, self.stride = (
            self.conv.in_channels,
            self.conv.out_channels,
            self.conv.stride[0],
        )
        self.side_out, self.taps = self.side // self.stride, self.conv.kernel_size[0] ** 2
        self.channels, self.weights = max(self.inside, self.outside), self.conv.weight.numel()
        self.each = min(
            self.taps, WEIGHED.get(self.channels, WEIGHED[None])[2]
        )  # taps of a program of `weigh`
        assert self.taps % self.each == 0, "a program's taps divide the kernel's"
        blocks = -(-self.inside // 64) * -(-self.outside // 64)
        filling = max(1, PARTED * self.each // (self.taps * blocks))
        self.parts = STEM_PARTS if self.is_stem else PARTS.get(self.channels, filling)

    def pixels(self, n: int) -> int:
        """The outputs of a channel: those that its batch norm averages."""
        return n * self.side_out**2

    def made(self, n: int, like: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.empty((n, self.side_out, self.side_out, self.outside), dtype=dtype, device=like.device)

    def sizes(self) -> dict[str, int]:
        return {
            "CI": self.inside, "CO": self.outside, "H": self.side, "HO": self.side_out, "ST": self.stride,
            "TAPS": self.taps, "K": _power_of_two(9 * self.inside) if self.is_stem else 0,
        }  # fmt: skip


@dataclass(frozen=True)
class Work:
    """How a kernel is launched: its programs, and what each of them writes."""

    grid: tuple[int, ...]
    words: dict[str, Any]


def _convolving(layer: Layer, n: int, back: bool = False) -> Work:
    """A kernel that writes what the layer does; `back`: the gradient of what it reads, in quarters where it strides."""
    inside, outside = (layer.outside, layer.inside) if back else (layer.inside, layer.outside)
    side, quarters = layer.side_out, layer.stride**2 if back else 1
    if layer.channels in NARROW:
        pixels, warps = NARROW[layer.channels]
        channels = outside
    else:
        fitting = [t for t in TILES if t[1] <= max(64, outside)]
        filling = [t for t in fitting if quarters * BATCH * side**2 // t[0] * -(-outside // t[1]) >= FILLED]
        pixels, channels, warps = (filling or fitting[-1:])[0]
        channels = min(channels, outside)
    words = {"BM": pixels, "BN": channels, "BK": min(64, inside), "num_warps": warps}
    work = _work(n * side**2, pixels, outside // channels, words)
    return Work((quarters * work.grid[0], work.grid[1]), work.words)


def _between(layer: Layer, n: int) -> Work:
    """A kernel that changes a layer's output, pixel by pixel."""
    pixels, channels = BETWEEN.get(layer.channels, 128), min(64, layer.outside)
    words = {"BM": pixels, "BN": channels, "C": layer.outside, "num_warps": 4}
    return _work(layer.pixels(n), pixels, layer.outside // channels, words)


def _work(total: int, pixels: int, blocks: int, words: dict[str, Any]) -> Work:
    return Work((-(-total // pixels), blocks), {**words, "total": total, "WHOLE": total % pixels == 0})


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def layers(net: ResNet, side: int) -> list[Layer]:
    """The network's convolutions in order, those of shortcuts before the end of their block."""
    found = [Layer(net.conv, net.bn, side, is_stem=True)]
    for block in net.modules():
        if isinstance(block, Block):
            side = found[-1].side_out
            first = Layer(block.conv1, block.bn1, side, ends_block=False)
            projection = None
            short = STRIDED if block.added else SAME
            if isinstance(block.down, nn.Sequential):
                conv, bn = block.down
                assert isinstance(conv, nn.Conv2d) and isinstance(bn, BatchNorm)
                projection, short = Layer(conv, bn, side, ends_block=False, relu=False), PROJECTED
            last = Layer(
                block.conv2, block.bn2, first.side_out, short, relu=block.last_relu, projection=projection
            )
            found += [first, *([projection] if projection else []), last]
    return found


def fits(net: ResNet, x: Tensor) -> bool:
    """Whether the kernels serve: a 3x3 stem, channels in powers of two from 16 on, square maps that halve evenly."""
    blocks = [block for block in net.modules() if isinstance(block, Block)]
    widths = [net.conv.out_channels, *(block.conv2.out_channels for block in blocks)]
    side, halvings = x.shape[-1], sum(block.stride > 1 for block in blocks)
    if (
        net.pool
        or net.conv.kernel_size != (3, 3)
        or x.shape[1] > 3
        or x.shape[-2] != side
        or side % 2**halvings
    ):
        return False
    if any(width < 16 or width & (width - 1) for width in widths) or not all(
        b.last_relu for b in blocks[:-1]
    ):
        return False
    if any(block.down is None and block.added not in (0, block.conv1.in_channels) for block in blocks):
        return False
    learns = torch.is_grad_enabled() and any(p.requires_grad for p in net.parameters())
    if x.requires_grad or (learns and not net.training):
        return False
    found = layers(net, side)
    if not 1 < found[-1].pixels(len(x)) <= found[0].pixels(len(x)) <= MOST:  # one value has no variance
        return False
    if any(type(k.bn) is not BatchNorm or k.bn.training != net.training for k in found):  # or synchronised
        return False
    return all(_is_channels_last(k.conv.weight) for k in found)


def _is_channels_last(weight: Tensor) -> bool:
    """(co, taps, ci) in memory; torch's own question is ambiguous for kernels of 1x1."""
    co, ci, h, w = weight.shape
    return (
        weight.permute(0, 2, 3, 1).reshape(-1).data_ptr() == weight.data_ptr()
        and weight.stride(1) == 1
        and (weight.stride(0) == ci * h * w)
    )


def run(
    net: ResNet, x: Tensor, keep_maps: bool = False, dtype: torch.dtype = torch.bfloat16
) -> tuple[Tensor, list[Tensor]]:
    """What `net` gives of x: features (n, d) in float32, and the stages' outputs in `dtype`, as activations are."""
    found = layers(net, x.shape[-1])
    kept = _stage_ends(net, found) if keep_maps else []
    with torch.cuda.device_of(x):  # Triton launches on the current one
        if x.is_cuda:
            _compile_ahead(net, found, kept, x, dtype)
        if net.training:
            parameters = [p for k in found for p in (k.conv.weight, k.bn.weight, k.bn.bias)]
            features, *maps = _Trained.apply(x, net, found, kept, dtype, *parameters)
        else:
            features, *maps = _frozen(net, found, kept, x, dtype)
    return features, maps


def _compile_ahead(net: ResNet, found: list[Layer], kept: list[Layer], x: Tensor, dtype: torch.dtype) -> None:
    def work() -> None:
        if net.training:
            _back(*_forth(net, found, kept, x, dtype))
        else:
            _frozen(net, found, kept, x, dtype)

    sizes = tuple((k.side, k.inside, k.outside, k.taps, k.short, k.relu) for k in found)
    types = (dtype, x.dtype, net.conv.weight.dtype)
    compile_ahead((x.device, x.shape, x.stride(), types, net.training, bool(kept), sizes), work)


def _stage_ends(net: ResNet, found: list[Layer]) -> list[Layer]:
    last = [stage[-1].conv2 for stage in net.stages]  # type: ignore[index]
    return [k for k in found if any(k.conv is conv for conv in last)]


def _outputs(here: Tensor, maps: list[Tensor]) -> list[Tensor]:
    """Features, and maps as (n, c, h, w)."""
    return [here.mean((1, 2), dtype=torch.float32), *(out.permute(0, 3, 1, 2) for out in maps)]


def _frozen(
    net: ResNet, found: list[Layer], kept: list[Layer], x: Tensor, dtype: torch.dtype
) -> list[Tensor]:
    weights, n = _rounded(net, found, dtype), len(x)

    def layer(k: Layer, here: Tensor, short: Tensor) -> Tensor:
        out, bn, work = k.made(n, x, dtype), k.bn, _convolving(k, n)
        launch(
            kernels.frozen, work.grid,
            here, weights[k], out, bn.weight, bn.bias, bn.running_mean, bn.running_var, short, *x.stride(),
            **work.words, **k.sizes(), KIND=SAME if k.short == PROJECTED else k.short, RELU=k.relu,
        )  # fmt: skip
        return out

    here = short = x
    maps = []
    for k in found:
        if k.taps == 9:
            here = layer(k, here, layer(k.projection, short, short) if k.projection else short)
            if k.ends_block:
                short = here
            if k in kept:
                maps.append(here)
    return _outputs(here, maps)


class _Trained(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        net: ResNet,
        found: list[Layer],
        kept: list[Layer],
        dtype: torch.dtype,
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.way, *outputs = _forth(net, found, kept, x, dtype)
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        way, ctx.way = ctx.way, None  # the activations go with it
        assert way is not None, "the sums of a forward pass serve one backward pass"
        return None, None, None, None, None, *_back(way, *gradients)


@dataclass(eq=False)
class Way:
    """What the way back needs of the way there."""

    x: Tensor
    found: list[Layer]
    kept: list[Layer]  # whose outputs are outputs of the network
    weights: dict[Layer, Tensor]
    sums: dict[Layer, Tensor]
    read: dict[Layer, Tensor] = field(default_factory=dict)
    ys: dict[Layer, Tensor] = field(default_factory=dict)
    outs: dict[Layer, Tensor] = field(default_factory=dict)


def _forth(
    net: ResNet, found: list[Layer], kept: list[Layer], x: Tensor, dtype: torch.dtype
) -> tuple[Any, ...]:
    """The way, the features and the maps."""
    n, way = len(x), Way(x, found, kept, _rounded(net, found, dtype), _sums(net, found))
    here = short = x
    for k in found:
        way.read[k] = short if k.taps == 1 else here
        way.ys[k] = y = k.made(n, x, dtype)
        work = _convolving(k, n)
        launch(
            kernels.conv, work.grid, way.read[k], way.weights[k], y, way.sums[k], *x.stride(), **work.words, **k.sizes()
        )  # fmt: skip
        if k.taps == 1:
            continue  # its batch norm is part of the block's end
        bn, other, work = k.bn, k.projection or k, _between(k, n)
        way.outs[k] = out = k.made(n, x, dtype)
        launch(
            kernels.join, work.grid,
            y, way.sums[k], bn.weight, bn.bias, bn.running_mean, bn.running_var,
            way.ys[other] if k.projection else short, way.sums[other], other.bn.weight, other.bn.bias,
            other.bn.running_mean, other.bn.running_var, out, float(k.pixels(n)),
            **work.words, H=k.side_out, KIND=k.short, RELU=k.relu,
        )  # fmt: skip
        here = out
        if k.ends_block:
            short = out
    return way, *_outputs(here, [way.outs[k] for k in kept])


def _back(way: Way, dfeatures: Tensor | None, *dmaps: Tensor | None) -> list[Tensor]:
    """The gradients of each layer's weights, scale and shift. A gradient that is None is zero."""
    found, ys, outs, sums, x, n = way.found, way.ys, way.outs, way.sums, way.x, len(way.x)
    grads = torch.empty(sum(k.weights + 2 * k.outside for k in found), device=x.device)
    each = grads.split([k.weights + 2 * k.outside for k in found])
    own = {k: mine.split([k.weights, k.outside, k.outside]) for k, mine in zip(found, each, strict=True)}
    several = [k for k in found if k.parts > 1]
    parts = torch.empty(sum(k.weights * k.parts for k in several), device=x.device)
    part = {k: own[k][0] for k in found}  # where its one part is the whole
    part |= dict(zip(several, parts.split([k.weights * k.parts for k in several]), strict=True))
    gs, dys = (
        {k: torch.empty_like(y) for k, y in outs.items()},
        {k: torch.empty_like(y) for k, y in ys.items()},
    )
    more = {
        k: d.permute(0, 2, 3, 1).contiguous() for k, d in zip(way.kept, dmaps, strict=True) if d is not None
    }
    beside = SideStream(x.device)

    def through(k: Layer, g: Tensor) -> None:
        """Back through the batch norm of a layer, and to its weights."""
        work, (_, scale, shift) = _between(k, n), own[k]
        launch(
            kernels.through, work.grid,
            g, ys[k], sums[k], k.bn.weight, dys[k], scale, shift, float(k.pixels(n)), **work.words,
        )  # fmt: skip
        with beside:
            _weigh(k, way.read[k], dys[k], part[k])

    main = [k for k in found if k.taps == 9]
    last = main[-1]
    other, work = last.projection or last, _between(last, n)
    if dfeatures is None:
        dfeatures = torch.zeros((n, last.outside), device=x.device)
    launch(
        kernels.top, work.grid,
        dfeatures.contiguous(), ys[last], outs[last], gs[last], more.get(last, gs[last]), sums[last], ys[other],
        sums[other], float(last.pixels(n)), **work.words, H=last.side_out, MORE=last in more,
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
        work = _convolving(k, n, back=True)
        launch(
            kernels.back, work.grid,
            dys[k], way.weights[k], ys[below], outs[below], gs[below], more.get(below, gs[below]), sums[below],
            ys[other], sums[other],
            dys[across] if across else gs[end], way.weights[across or k], float(below.pixels(n)),
            **work.words, CI=k.outside, CO=k.inside, H=k.side, UP=k.stride,
            KIND=NONE if k.ends_block else end.short, MORE=below in more, PROJECTS=below.projection is not None,
        )  # fmt: skip
    beside.join()
    for table, (block, at_once) in _tables_of_parts(found, x.device):
        launch(kernels.add_up, (len(table),), parts, grads, table, BLOCK=block, P=at_once)
    wanted: list[Tensor] = []
    for k in found:
        w, scale, shift = own[k]
        height, width = k.conv.kernel_size
        wanted += [w.view(k.outside, height, width, k.inside).permute(0, 3, 1, 2), scale, shift]
    return wanted


def _weigh(k: Layer, x: Tensor, dy: Tensor, parts: Tensor) -> None:
    pixels, warps, _ = WEIGHED.get(k.channels, WEIGHED[None])
    total, sizes = k.pixels(len(x)), k.sizes()
    tiles = -(-total // pixels)
    stages = (
        1 if k.is_stem else 2
    )  # its scattered copies to shared memory in advance would all meet in one bank
    words = {"BM": pixels, "num_warps": warps, "num_stages": stages, "WHOLE": total % pixels == 0}
    if k.is_stem:
        sizes = {name: sizes[name] for name in ("CI", "CO", "H", "K")}
        launch(kernels.weigh_stem, (k.parts,), x, dy, parts, tiles, total, *x.stride(), **words, **sizes)
        return
    del sizes["K"]
    out, into = min(64, k.outside), min(64, k.inside)
    grid = (k.parts, k.taps // k.each, k.outside // out * (k.inside // into))
    launch(kernels.weigh, grid, x, dy, parts, tiles, total, BO=out, BI=into, EACH=k.each, **words, **sizes)


# --- all layers at once ---------------------------------------------------------------------------------

Tables = WeakKeyDictionary[ResNet, tuple[list[int], Tensor]]
"""By network: the addresses that a table was made of, and the table."""
_round_tables: Tables = WeakKeyDictionary()
_begin_tables: Tables = WeakKeyDictionary()
_add_tables: dict[Any, list[tuple[Tensor, tuple[int, int]]]] = {}


def _rounded(net: ResNet, found: list[Layer], dtype: torch.dtype) -> dict[Layer, Tensor]:
    """The weights of each layer in `dtype`; the first layer's as they are, since it reads images."""
    stem, *rest = found
    weight = stem.conv.weight
    if weight.dtype == dtype:  # a teacher's
        return {k: k.conv.weight for k in found}

    def rows() -> Iterator[list[int]]:
        to = 0
        for k in rest:
            address, size = k.conv.weight.data_ptr(), k.conv.weight.element_size()
            for e in range(0, k.weights, ROUNDED):
                yield [address + e * size, to + e, min(ROUNDED, k.weights - e)]
            to += k.weights

    table = _table(_round_tables, net, [k.conv.weight for k in rest], rows)
    every = torch.empty(sum(k.weights for k in rest), dtype=dtype, device=weight.device)
    kind = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16}[weight.dtype]
    launch(kernels.round_all, (len(table),), table, every, BLOCK=ROUNDED, TYPE=kind)
    return {stem: weight, **dict(zip(rest, every.split([k.weights for k in rest]), strict=True))}


def _sums(net: ResNet, found: list[Layer]) -> dict[Layer, Tensor]:
    """Where each layer's sums go: five rows of its channels, as the kernels have them."""

    def rows() -> Iterator[list[int]]:
        first = 0
        for k in found:
            yield [k.bn.running_mean.data_ptr(), k.bn.running_var.data_ptr(), first, k.outside]
            first += 5 * k.outside

    table = _table(
        _begin_tables, net, [t for k in found for t in (k.bn.running_mean, k.bn.running_var)], rows
    )
    every = torch.empty(5 * sum(k.outside for k in found), dtype=torch.int64, device=table.device)
    launch(kernels.begin, (len(table),), table, every, BLOCK=max(k.outside for k in found))
    return dict(zip(found, every.split([5 * k.outside for k in found]), strict=True))


def _table(tables: Tables, net: ResNet, of: list[Tensor], rows: Callable[[], Iterator[list[int]]]) -> Tensor:
    """Kept for as long as the network's tensors stay where they are: a step that is captured can't make one."""
    addresses = [t.data_ptr() for t in of]
    kept = tables.get(net)
    if kept is None or kept[0] != addresses:
        kept = tables[net] = addresses, torch.tensor([*rows()]).to(of[0].device)
    return kept[1]


def _tables_of_parts(found: list[Layer], device: torch.device) -> list[tuple[Tensor, tuple[int, int]]]:
    """For layers of few parts and of many: a row for each program of `add_up`, and its sizes."""
    key = (device, *((k.weights, k.parts, k.outside) for k in found))
    if key not in _add_tables:
        rows: dict[tuple[int, int], list[list[int]]] = {}
        to = first = 0
        for k in found:
            if k.parts > 1:
                sizes = next(sizes for most, sizes in ADDED.items() if most is None or k.parts <= most)
                rows.setdefault(sizes, []).extend(
                    [first + e, k.weights, k.parts, to + e, min(sizes[0], k.weights - e)]
                    for e in range(0, k.weights, sizes[0])
                )
                first += k.weights * k.parts
            to += k.weights + 2 * k.outside
        _add_tables[key] = [(torch.tensor(of).to(device), sizes) for sizes, of in rows.items()]
    return _add_tables[key]
