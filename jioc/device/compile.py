"""Compile backbones, augmentation and pooled maps: once in a process, for all its tasks, runs and teachers.

`torch.compile` is given a function of (backbone, x), so that a module's weights are inputs and any backbone
of the same shape runs the same kernels. Heads grow and stay outside. A batch of another size, such as an
epoch's last, runs as it is: compiling for it would cost more than it saves. What was compiled is kept on
disk, where the next process finds it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch

from jioc import files

CACHES = {"TORCHINDUCTOR_CACHE_DIR": "torch", "TRITON_CACHE_DIR": "triton"}  # a variable, and our folder

_sizes: ContextVar[frozenset[int]] = ContextVar("sizes", default=frozenset())


@contextmanager
def compiling(*sizes: int) -> Iterator[None]:
    """Within, let what `maybe_compiled` is given run compiled on batches of these sizes."""
    token = _sizes.set(frozenset(sizes))
    try:
        yield
    finally:
        _sizes.reset(token)


def keep_compiled() -> None:
    """Have torch and Triton keep what they compile in the cache folder; variables that are set stand.

    Both read code from there and run it: a folder that others can write to is not used, nor another's.
    """
    folder = files.cache() / f"compiled-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    if all(name in os.environ for name in CACHES) or not files.private_folder(folder):
        return
    for name, kind in CACHES.items():
        os.environ.setdefault(name, str(folder.absolute() / kind))


def is_compiling() -> bool:
    return bool(_sizes.get())


def maybe_compiled(function: Callable[..., Any], size: int, exact: bool = False) -> Callable[..., Any]:
    """The function, compiled if batches of that size are to be.

    `exact`: it rounds as it does without compilation, no product and sum in one instruction. An exporter's
    size is a symbol; it is not compared where nothing is compiled.
    """
    sizes = _sizes.get()
    return _compiled(function, exact) if sizes and size in sizes else function


@cache
def _compiled(function: Callable[..., Any], exact: bool) -> Callable[..., Any]:
    torch._dynamo.config.recompile_limit = 64  # train, eval and frozen; each batch size and backbone
    options: dict[str, Any] | None = {"emulate_precision_casts": True} if exact else None
    return torch.compile(function, dynamic=False, fullgraph=True, options=options)
