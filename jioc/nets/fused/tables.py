"""Work for all layers of a network in one kernel, from a table on the device with a row for each program."""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch
import triton.language as tl
from torch import Tensor

from jioc.nets.backbones import ResNet
from jioc.nets.fused import kernels
from jioc.nets.fused import weights as weight_kernels
from jioc.nets.fused.layers import Layer, launch

ROUNDED = 1024  # weights that a program rounds
ADDED = {16: (1024, 2), None: (128, 16)}  # by the parts at most: sums of a program, parts it adds at once

Tables = WeakKeyDictionary[ResNet, tuple[list[int], Tensor]]
"""By network: the addresses that a table was made of, and the table."""
_weight_tables: Tables = WeakKeyDictionary()
_sums_tables: Tables = WeakKeyDictionary()
_parts_tables: dict[Any, list[tuple[Tensor, tuple[int, int]]]] = {}


def round_weights(net: ResNet, layers: list[Layer], dtype: torch.dtype) -> dict[Layer, Tensor]:
    """The weights of each layer in `dtype`; the first layer's as they are, since it reads images."""
    stem, *rest = layers
    weight = stem.conv.weight
    if weight.dtype == dtype:  # a teacher's
        return {k: k.conv.weight for k in layers}

    def rows() -> Iterator[list[int]]:
        to = 0
        for k in rest:
            address, size = k.conv.weight.data_ptr(), k.conv.weight.element_size()
            for e in range(0, k.weights, ROUNDED):
                yield [address + e * size, to + e, min(ROUNDED, k.weights - e)]
            to += k.weights

    table = _table(_weight_tables, net, [k.conv.weight for k in rest], rows)
    every = torch.empty(sum(k.weights for k in rest), dtype=dtype, device=weight.device)
    kind = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16}[weight.dtype]
    launch(weight_kernels.round_all, (len(table),), table, every, BLOCK=ROUNDED, TYPE=kind)
    return {stem: weight, **dict(zip(rest, every.split([k.weights for k in rest]), strict=True))}


def begin_sums(net: ResNet, layers: list[Layer]) -> dict[Layer, Tensor]:
    """Where each layer's sums go, at their start: five rows of its channels, as the kernels have them."""

    def rows() -> Iterator[list[int]]:
        first = 0
        for k in layers:
            yield [k.bn.running_mean.data_ptr(), k.bn.running_var.data_ptr(), first, k.outside]
            first += 5 * k.outside

    statistics = [t for k in layers for t in (k.bn.running_mean, k.bn.running_var)]
    table = _table(_sums_tables, net, statistics, rows)
    every = torch.empty(5 * sum(k.outside for k in layers), dtype=torch.int64, device=table.device)
    launch(kernels.begin, (len(table),), table, every, BLOCK=max(k.outside for k in layers))
    return dict(zip(layers, every.split([5 * k.outside for k in layers]), strict=True))


def add_parts(layers: list[Layer], parts: Tensor, grads: Tensor) -> None:
    """Add up the parts of every layer's gradient."""
    for table, (block, at_once) in _tables_of_parts(layers, grads.device):
        launch(weight_kernels.add_up, (len(table),), parts, grads, table, BLOCK=block, P=at_once)


def _table(
    tables: Tables, net: ResNet, tensors: list[Tensor], rows: Callable[[], Iterator[list[int]]]
) -> Tensor:
    """Keep a table as long as the network's tensors stay where they are: a captured step can't make one."""
    addresses = [t.data_ptr() for t in tensors]
    made = tables.get(net)
    if made is None or made[0] != addresses:
        made = tables[net] = addresses, torch.tensor([*rows()]).to(tensors[0].device)
    return made[1]


def _tables_of_parts(layers: list[Layer], device: torch.device) -> list[tuple[Tensor, tuple[int, int]]]:
    """For layers of few parts and of many: a row for each program of `add_up`, and its sizes."""
    key = (device, *((k.weights, k.parts, k.outside) for k in layers))
    if key not in _parts_tables:
        tables: dict[tuple[int, int], list[list[int]]] = {}
        to = first = 0
        for k in layers:
            if k.parts > 1:
                sizes = next(sizes for most, sizes in ADDED.items() if most is None or k.parts <= most)
                tables.setdefault(sizes, []).extend(
                    [first + e, k.weights, k.parts, to + e, min(sizes[0], k.weights - e)]
                    for e in range(0, k.weights, sizes[0])
                )
                first += k.weights * k.parts
            to += k.weights + 2 * k.outside
        _parts_tables[key] = [(torch.tensor(rows).to(device), sizes) for sizes, rows in tables.items()]
    return _parts_tables[key]
