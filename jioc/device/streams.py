"""Streams of a CUDA device for runs that share it, and a lock: each run works and captures on its own."""

import threading
from collections.abc import Container, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from jioc.device import RUNS_AT_ONCE

_one_at_a_time = threading.RLock()
POOL = 32  # streams that torch hands out of each priority, in turn


def capture_lock() -> AbstractContextManager[Any]:
    """Let one run at a time capture a graph, or do what may wait for the whole device.

    That would break another run's capture. cuDNN waits for the device when it measures its algorithms.
    """
    return _one_at_a_time


class _Capturing:
    """The streams on which one run captures: that of its steps, and one for each branch of a step.

    No other run captures on them while this one lasts: graphs of one stream share a workspace of cuBLAS, and
    two runs replay theirs at once. No branch is the step's own stream either, where what a branch has freed
    would be taken anew before others have read it.
    """

    def __init__(self, device: torch.device):
        self.device, self.branches = device, dict[int, torch.cuda.Stream]()
        self.main = self._draw()

    def _draw(self) -> torch.cuda.Stream:
        # those of high priority have their own pool, so that none that a run works on is captured
        stream = _free(self.device, _captured, priority=-1)
        _captured[stream] = self
        return stream

    def branch(self, number: int) -> torch.cuda.Stream | None:
        """The stream of a branch; None if the streams that are left are for the steps of other runs."""
        taken = [run for stream, run in _captured.items() if stream.device == self.main.device]
        to_come = RUNS_AT_ONCE + 1 - len({run.main for run in taken})  # a pack's, and one outside any
        if number not in self.branches and POOL - len(taken) > to_come:
            self.branches[number] = self._draw()
        return self.branches.get(number)


_working: dict[torch.cuda.Stream, _Capturing | None] = {}  # by the stream that a run works on
_captured: dict[torch.cuda.Stream, _Capturing] = {}  # by each stream that is captured


def _free(device: torch.device, taken: Container[torch.cuda.Stream], priority: int) -> torch.cuda.Stream:
    """A stream that is not taken: torch hands out streams from a pool, and soon the same ones again."""
    drawn = (torch.cuda.Stream(device, priority=priority) for _ in range(POOL))
    free = next((stream for stream in drawn if stream not in taken), None)
    assert free is not None, f"at most {RUNS_AT_ONCE} runs share a device"
    return free


def capture_stream(working: torch.cuda.Stream) -> torch.cuda.Stream:
    """The stream on which the run that works on `working` captures; to be asked for with the lock."""
    run = _working.get(working)
    if run is None:
        run = _working[working] = _Capturing(working.device)
    return run.main


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Run what is within on a stream that no other run works on, and capture on such streams."""
    if device.type != "cuda":
        yield
        return
    with capture_lock():
        torch.cuda.synchronize(device)  # another stream wrote the shared data
        stream = _free(device, _working, priority=0)
        _working[stream] = None
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        with capture_lock():
            run = _working.pop(stream)
            for captured in [] if run is None else (run.main, *run.branches.values()):
                del _captured[captured]


class SideStream:
    """Run the work within beside what comes after it, up to `join`; it starts after all that came before.

    A step that is not being captured runs in order, and so does a branch for which no stream is left. What a
    branch makes must be kept until it has joined.
    """

    def __init__(self, device: torch.device, branch: int = 0):
        self.other: torch.cuda.Stream | None = None
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            self.main = torch.cuda.current_stream(device)
            run = _captured.get(self.main)
            other = None if run is None else run.branch(branch)
            self.other = None if other == self.main else other

    def __enter__(self) -> None:
        if self.other is not None:
            self.other.wait_stream(self.main)
            self._within: Any = torch.cuda.stream(self.other)
            self._within.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.other is not None:
            self._within.__exit__(*error)

    def join(self) -> None:
        if self.other is not None:
            self.main.wait_stream(self.other)
