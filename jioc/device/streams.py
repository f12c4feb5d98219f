"""Streams of a CUDA device: branches of a step's graph, and a lock for runs that share a device."""

import threading
from contextlib import AbstractContextManager
from typing import Any

import torch

_one_at_a_time = threading.RLock()


def capture_lock() -> AbstractContextManager[Any]:
    """Let one run at a time capture a graph, or do what may wait for the whole device.

    That would break another run's capture. cuDNN waits for the device when it measures its algorithms.
    """
    return _one_at_a_time


_branches: dict[tuple[torch.device, int], list[torch.cuda.Stream]] = {}


class SideStream:
    """Run the work within beside what comes after it, up to `join`; it starts after all that came before.

    A step that is not being captured runs in order. What a branch makes must be kept until it has joined.
    """

    def __init__(self, device: torch.device, branch: int = 0):
        self.main: torch.cuda.Stream | None = None
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            self.main = torch.cuda.current_stream(device)
            self.other = _other(self.main, device, branch)

    def __enter__(self) -> None:
        if self.main is not None:
            self.other.wait_stream(self.main)
            self._within: Any = torch.cuda.stream(self.other)
            self._within.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.main is not None:
            self._within.__exit__(*error)

    def join(self) -> None:
        if self.main is not None:
            self.main.wait_stream(self.other)


def _other(main: torch.cuda.Stream, device: torch.device, branch: int) -> torch.cuda.Stream:
    """A stream of the branch's own.

    It has high priority, as streams of captures have, so that no run works on it meanwhile.
    """
    own = _branches.setdefault((device, branch), [])
    taken = [
        main,
        *(s for (where, b), streams in _branches.items() if where == device and b != branch for s in streams),
    ]
    while not (free := [stream for stream in own if stream not in taken]):
        fresh = torch.cuda.Stream(device, priority=-1)
        if fresh not in taken:
            own.append(fresh)
    return free[0]
