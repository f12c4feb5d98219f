"""Training steps on a device: as they are, or replayed from a CUDA graph.

A graph holds the whole step: the draw of a batch from the epoch's order, augmentation, forward pass, teacher,
terms, coordination, backward pass and update. Python then launches one thing a step instead of a thousand.
The epoch's order, the place in it, the learning rate and the sums of the terms are tensors that stay where
they are. A batch of another size, such as an epoch's last, has a graph of its own.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Protocol

import torch
from torch import Tensor

from jioc.device.streams import capture_lock
from jioc.errors import first_line

Sums = dict[str, Tensor]
Body = Callable[[Tensor, Sums], None]
"""One step on a batch of indices; adds the sum of each term over the batch to the sums."""

WARM_UP = 3
AHEAD = 3
"""Steps launched before the first of them is done. With whole epochs, packed runs held each other up."""
_capturer = ThreadPoolExecutor(1, "capture")
"""Runs that share a device capture one at a time, in one thread: cuDNN chooses its kernels per thread."""


class Steps(Protocol):
    sums: Sums

    def begin(self, batches: list[Tensor], first: int) -> None:
        """Begin an epoch of these batches of indices, at the batch `first`."""

    def run(self, i: int) -> None:
        """Train on batch i."""


class EagerSteps:
    """Steps launched piece by piece."""

    def __init__(self, body: Body, device: torch.device):
        self.body, self.device = body, device
        self.sums: Sums = {}

    def begin(self, batches: list[Tensor], first: int) -> None:
        whole = torch.cat(batches).to(self.device, non_blocking=True)
        self.batches = whole.split([len(b) for b in batches])

    def run(self, i: int) -> None:
        self.body(self.batches[i], self.sums)


class GraphSteps:
    """Steps replayed from CUDA graphs.

    `live` gives the tensors that a step changes: they are put back after the steps that warm a graph up.
    """

    def __init__(
        self, body: Body, device: torch.device, noise: torch.Generator, live: Callable[[], list[Tensor]]
    ):
        self.body, self.device, self.noise, self.live = body, device, noise, live
        self.sums: Sums = {}
        self.order = torch.zeros(0, dtype=torch.long, device=device)
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self.sizes: list[int] = []
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.done = [torch.cuda.Event(blocking=True) for _ in range(AHEAD)]

    def begin(self, batches: list[Tensor], first: int) -> None:
        self.sizes = [len(b) for b in batches]
        whole = torch.cat(batches)
        if len(whole) != len(self.order):
            assert not self.graphs, "every epoch of a stage visits as many images"
            self.order = torch.empty_like(whole, device=self.device)
        self.order.copy_(whole, non_blocking=True)
        self.place.fill_(sum(self.sizes[:first]))
        for size in sorted(set(self.sizes), reverse=True):
            if size not in self.graphs:
                self.graphs[size] = self._capture(size)

    def run(self, i: int) -> None:
        done = self.done[i % AHEAD]
        done.synchronize()
        self.graphs[self.sizes[i]].replay()
        done.record(torch.cuda.current_stream(self.device))

    def _step(self, size: int) -> None:
        index = self.order[(self.place + torch.arange(size, device=self.device)) % len(self.order)]
        self.place.add_(size)
        self.body(index, self.sums)

    def _capture(self, size: int) -> torch.cuda.CUDAGraph:
        here = torch.cuda.current_stream(self.device)
        return _capturer.submit(copy_context().run, self._captured, size, here).result()

    def _captured(self, size: int, caller: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        # torch hands out streams from a pool, and soon the same ones again; those of high priority have
        # their own pool, so that none that another run works on is captured
        stream, graph = torch.cuda.Stream(self.device, priority=-1), torch.cuda.CUDAGraph()
        stream.wait_stream(caller)
        with capture_lock(), torch.cuda.stream(stream):
            noise, live = self.noise.get_state(), [*self.live(), self.place]
            sums = {name: value.clone() for name, value in self.sums.items()}
            before = [t.detach().clone() for t in live]  # a gradient would tie the graph to this stream
            graph.register_generator_state(self.noise)
            try:
                for _ in range(WARM_UP):
                    self._step(size)
                with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                    self._step(size)
            except BaseException:
                # a state that was being captured refuses to be drawn from
                fresh = torch.Generator(self.device)
                self.noise.graphsafe_set_state(fresh.graphsafe_get_state())
                raise
            finally:
                with torch.no_grad():
                    for t, value in zip(live, before, strict=True):
                        t.copy_(value)
                    for name, value in self.sums.items():
                        value.copy_(sums[name]) if name in sums else value.zero_()
                self.noise.set_state(noise)
                caller.wait_stream(stream)
        return graph


def graph_refusal(error: Exception) -> str:
    """Say in a line why a step could not be captured."""
    return first_line(error)[:200]
