"""Images that stay on disk: batches are gathered and sent to the device ahead of their use.

They are the same rows in the same order as `Images` gives, so that training is the same. A step that is
replayed from a CUDA graph reads them from memory of the device that stays where it is: a batch is copied
there before the step is launched, on the same stream.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from jioc.data.loader import Images, as_tensor

AHEAD = 4  # batches


class Streamed(Images):
    """`prefetch` names the next batches; a thread gathers each into pinned memory while others train."""

    resident = False

    def _place(self, pixels: np.ndarray) -> Tensor:
        self._pool = ThreadPoolExecutor(1)
        self._coming: deque[tuple[Tensor, Tensor]] = deque()  # a batch, and this process's share on the CPU
        self._ready: deque[tuple[Tensor, Future[Gathered]]] = deque()
        self._spare: deque[Buffer] = deque(Buffer() for _ in range(AHEAD + 1))
        self._fed: dict[tuple[int, int], Tensor] = {}  # by the part of a batch, and its images
        self._part: int | None = None  # the part that a captured step reads next
        self._side = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        return as_tensor(pixels)

    def prefetch(self, batches: list[Tensor]) -> None:
        self._ready.clear()
        # one wait for the device, not one a batch
        here = torch.cat(batches).cpu().split([len(index) for index in batches]) if batches else ()
        self._coming = deque(zip(batches, map(self.own, here), strict=True))
        self._fill()

    def _fill(self) -> None:
        while self._coming and len(self._ready) < AHEAD:
            index, rows = self._coming.popleft()
            self._ready.append((index, self._pool.submit(self._gather, rows)))

    def _rows(self, index: Tensor) -> Tensor:
        return self._gather(index.cpu()).on(self.device)

    def feed(self, parts: tuple[Tensor, ...]) -> None:
        for i, index in enumerate(parts):
            rows = self._prefetched(index)
            self._fed.setdefault((i, len(index)), torch.empty_like(rows)).copy_(rows)

    @contextmanager
    def reading_fed(self) -> Iterator[None]:
        self._part = 0
        try:
            yield
        finally:
            self._part = None

    def _prefetched(self, index: Tensor) -> Tensor:
        if self._part is not None:
            self._part += 1
            return self._fed[self._part - 1, len(index)]
        if not self._ready or not _same(self._ready[0][0], index):  # another batch than the next one
            return super()._prefetched(index)
        _, future = self._ready.popleft()
        self._fill()
        return future.result().on(self.device)

    def _gather(self, rows: Tensor) -> "Gathered":
        if self._side is None:
            return Gathered(self.pixels[rows], None)
        buffer = self._spare.popleft()
        try:
            held = buffer.fill(self.pixels, rows)
            with torch.cuda.stream(self._side):
                sent = held.to(self.device, non_blocking=True)
                buffer.sent = torch.cuda.Event()
                buffer.sent.record(self._side)
        finally:
            self._spare.append(buffer)
        return Gathered(sent, buffer.sent)


def _same(expected: Tensor, index: Tensor) -> bool:
    """Whether both are the same piece of memory: as long as one is held, no other tensor is given it."""
    return expected.data_ptr() == index.data_ptr() and len(expected) == len(index)


class Buffer:
    """Pinned memory for one batch, written again only when its last copy to the device is done."""

    def __init__(self) -> None:
        self.memory: Tensor | None = None
        self.sent: torch.cuda.Event | None = None

    def fill(self, pixels: Tensor, rows: Tensor) -> Tensor:
        if self.sent is not None:
            self.sent.synchronize()
        if self.memory is None or len(self.memory) < len(rows):
            self.memory = torch.empty((len(rows), *pixels.shape[1:]), dtype=pixels.dtype, pin_memory=True)
        return torch.index_select(pixels, 0, rows, out=self.memory[: len(rows)])


class Gathered:
    """A batch on its way to the device."""

    def __init__(self, pixels: Tensor, sent: "torch.cuda.Event | None"):
        self.pixels, self.sent = pixels, sent

    def on(self, device: torch.device) -> Tensor:
        """The batch; the device's current stream waits until it has arrived."""
        if self.sent is None:
            return self.pixels
        now = torch.cuda.current_stream(device)
        now.wait_event(self.sent)
        self.pixels.record_stream(now)
        return self.pixels
