"""Compile Triton kernels ahead of their first launch, many at once: in turn they take half a minute."""

from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

from triton import AsyncCompileMode

from jioc.device.cores import cores
from jioc.device.streams import capture_lock

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
