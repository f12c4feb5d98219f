"""The layers of a ResNet as the kernels see them, and how kernels are launched for a layer."""

from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from triton import AsyncCompileMode

from jioc.device.pick import cores
from jioc.device.streams import capture_lock
from jioc.nets.backbones import Block, Bottleneck, ResNet
from jioc.nets.batchnorm import BatchNorm
from jioc.nets.fused import kernels

BATCH = 128  # for which tiles are chosen; any other size works
MOST = 2**20  # pixels of a channel, for which a batch norm's sums and 32-bit offsets have room
FILLED = 60  # programs that a convolution should have: half of the multiprocessors; other runs fill the rest
TILES = ((128, 128, 8), (128, 64, 4), (64, 64, 4))
"""For 64 channels or more: pixels, channels and warps of a program; the first that fills the card serves."""
NARROW = {16: (256, 4), 32: (128, 4)}  # for fewer: pixels and warps, all channels in one program
BETWEEN = {16: 512, 32: 256}  # pixels of a program between convolutions; otherwise 128
WEIGHED = {16: (128, 2, 3), 32: (128, 2, 3), None: (64, 4, 3)}
"""By channels, or else: pixels, warps and taps of a program for the weights' gradients."""
PARTS = {16: 128, 32: 64}  # of a weights' gradient, all taps together; otherwise enough for PARTED programs
PARTED = 120
STEM_PARTS = 256  # of the first layer's
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
        conv = self.conv
        self.inside, self.outside, self.stride = conv.in_channels, conv.out_channels, conv.stride[0]
        self.side_out, self.taps = self.side // self.stride, conv.kernel_size[0] ** 2
        self.channels, self.weights = max(self.inside, self.outside), conv.weight.numel()
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

    def empty_output(self, n: int, like: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.empty((n, self.side_out, self.side_out, self.outside), dtype=dtype, device=like.device)

    def sizes(self) -> dict[str, int]:
        return {
            "CI": self.inside, "CO": self.outside, "H": self.side, "HO": self.side_out, "ST": self.stride,
            "TAPS": self.taps, "K": _power_of_two(9 * self.inside) if self.is_stem else 0,
        }  # fmt: skip


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def layers_of(net: ResNet, side: int) -> list[Layer]:
    """The network's convolutions in order, those of shortcuts before the end of their block."""
    layers = [Layer(net.conv, net.bn, side, is_stem=True)]
    for block in net.modules():
        if isinstance(block, Block):
            side = layers[-1].side_out
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
            layers += [first, *([projection] if projection else []), last]
    return layers


# --- which networks the kernels serve ---


def fits(net: ResNet, x: Tensor) -> bool:
    """Whether the kernels can run the network on x.

    They need a 3x3 stem, basic blocks, channels in powers of two from 16 on, and square maps that halve
    evenly.
    """
    blocks = [block for block in net.modules() if isinstance(block, Block)]
    widths = [net.conv.out_channels, *(block.conv2.out_channels for block in blocks)]
    side, halvings = x.shape[-1], sum(block.stride > 1 for block in blocks)
    known = (
        not net.pool
        and not any(isinstance(block, Bottleneck) for block in net.modules())
        and net.conv.kernel_size == (3, 3)
        and x.shape[1] <= 3
        and x.shape[-2] == side
        and side % 2**halvings == 0
        and all(width >= 16 and not width & (width - 1) for width in widths)
        and all(block.last_relu for block in blocks[:-1])
        and all(block.down is not None or block.added in (0, block.conv1.in_channels) for block in blocks)
    )
    learns = torch.is_grad_enabled() and any(p.requires_grad for p in net.parameters())
    if not known or x.requires_grad or (learns and not net.training):
        return False
    layers = layers_of(net, side)
    if not 1 < layers[-1].pixels(len(x)) <= layers[0].pixels(len(x)) <= MOST:  # one value has no variance
        return False
    if any(type(k.bn) is not BatchNorm or k.bn.training != net.training for k in layers):  # or synchronised
        return False
    return all(_is_channels_last(k.conv.weight) for k in layers)


def _is_channels_last(weight: Tensor) -> bool:
    """Whether it is (co, taps, ci) in memory; torch's own question is ambiguous for kernels of 1x1."""
    co, ci, h, w = weight.shape
    same_memory = weight.permute(0, 2, 3, 1).reshape(-1).data_ptr() == weight.data_ptr()
    return same_memory and weight.stride(1) == 1 and weight.stride(0) == ci * h * w


# --- how kernels are launched ---


@dataclass(frozen=True)
class Geometry:
    """How a kernel is launched: its programs, and what each of them writes."""

    grid: tuple[int, ...]
    words: dict[str, Any]


def of_convolution(layer: Layer, n: int, back: bool = False) -> Geometry:
    """For a kernel that writes a layer's output; `back`: its input's gradient, in quarters if it strides."""
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
    geometry = _tiled(n * side**2, pixels, outside // channels, words)
    return Geometry((quarters * geometry.grid[0], geometry.grid[1]), geometry.words)


def of_pixels(layer: Layer, n: int) -> Geometry:
    """For a kernel that changes a layer's output, pixel by pixel."""
    pixels, channels = BETWEEN.get(layer.channels, 128), min(64, layer.outside)
    words = {"BM": pixels, "BN": channels, "C": layer.outside, "num_warps": 4}
    return _tiled(layer.pixels(n), pixels, layer.outside // channels, words)


def _tiled(total: int, pixels: int, blocks: int, words: dict[str, Any]) -> Geometry:
    return Geometry((-(-total // pixels), blocks), {**words, "total": total, "WHOLE": total % pixels == 0})


# --- launching; kernels are compiled ahead, many at once: in turn they take half a minute ---

Launch = tuple[Any, tuple[Any, ...], dict[str, Any]]

_noted: ContextVar[list[Launch] | None] = ContextVar("noted", default=None)
_ready: set[Hashable] = set()


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **words: Any) -> None:
    """Launch a kernel; within `launches` only note it."""
    noted = _noted.get()
    if noted is None:
        kernel[grid](*args, **words)
    else:
        noted.append((kernel, args, words))


def launches(work: Callable[[], object]) -> list[Launch]:
    """What `work` would launch; nothing is launched."""
    noted: list[Launch] = []
    token = _noted.set(noted)
    try:
        work()
    finally:
        _noted.reset(token)
    return noted


def compile_ahead(key: Hashable, work: Callable[[], object]) -> None:
    """Compile and load every kernel that `work` launches, once for each key; it may wait for the device."""
    if key in _ready:
        return
    with capture_lock():
        noted = launches(work)
        with ThreadPoolExecutor(cores()) as threads, AsyncCompileMode(threads):
            for kernel, args, words in noted:
                kernel.warmup(*args, grid=(1,), **words)
        for kernel, args, words in noted:
            kernel.warmup(*args, grid=(1,), **words).run  # noqa: B018 - loads it, before threads launch it at once
        _ready.add(key)
