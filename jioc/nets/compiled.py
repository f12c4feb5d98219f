"""Backbones compiled once per process, shared by tasks, runs and teachers.

`torch.compile` is given a function of (backbone, x), so that a module's weights are inputs and any backbone of the same
shape runs the same kernels. Heads grow and stay outside. A batch of another size, such as an epoch's last, runs as it
is: compiling for it would cost more than it saves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
from torch import Tensor

from .resnet import ResNet

_sizes: ContextVar[frozenset[int]] = ContextVar("sizes", default=frozenset())


@contextmanager
def compiling(*sizes: int) -> Iterator[None]:
    """Within, backbones run compiled on batches of these sizes."""
    token = _sizes.set(frozenset(sizes))
    try:
        yield
    finally:
        _sizes.reset(token)


def run_backbone(backbone: ResNet, x: Tensor, keep_maps: bool = False) -> tuple[Tensor, list[Tensor]]:
    if len(x) in _sizes.get():
        return _compiled()(backbone, x, keep_maps)
    return backbone(x, keep_maps)


@cache
def _compiled() -> Any:
    torch._dynamo.config.recompile_limit = 64  # train, eval and frozen; each batch size and backbone
    return torch.compile(lambda backbone, x, keep_maps: backbone(x, keep_maps), dynamic=False, fullgraph=True)
