"""Triton kernels compiled ahead of their first launch, many at once: one after the other they take half a minute."""

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

from triton import AsyncCompileMode

Launch = tuple[Any, tuple[Any, ...], dict[str, Any]]

_noted: ContextVar[list[Launch] | None] = ContextVar("noted", default=None)
_ready: set[Hashable] = set()
_one_at_a_time = threading.Lock()


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **words: Any) -> None:
    noted = _noted.get()
    if noted is None:
        kernel[grid](*args, **words)
    else:
        noted.append((kernel, args, words))


def compile_ahead(key: Hashable, work: Callable[[], object]) -> None:
    """Compile every kernel that `work` launches, without launching it; once for each key."""
    with _one_at_a_time:
        if key in _ready:
            return
        token = _noted.set([])
        try:
            work()
            noted = _noted.get() or []
        finally:
            _noted.reset(token)
        with ThreadPoolExecutor(os.cpu_count()) as threads, AsyncCompileMode(threads):
            for kernel, args, words in noted:
                kernel.warmup(*args, grid=(1,), **words)
        _ready.add(key)
