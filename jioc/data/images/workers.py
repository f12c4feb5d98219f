"""Image files decoded as they are asked for, in order, by every core, and never more than a few megabytes at once."""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from queue import SimpleQueue

import numpy as np

from jioc.data.images import decode
from jioc.workers import cores, end

MOST_WORKERS = 16


@dataclass
class Part:
    paths: list[str]
    pixels: np.ndarray  # uint8 (n, c, h, w), black where a file is bad
    bad: dict[int, str]  # rows, and why


def decoded(paths: Iterable[str], canvas: int, grey: bool) -> Iterator[Part]:
    """Some images at a time, in the order of their paths."""
    at_once = max(8, min(256, decode.PIECE // (canvas * canvas * (1 if grey else 3))))
    source = iter(paths)
    chunks = iter(lambda: list(islice(source, at_once)), [])
    first = next(chunks, None)
    if first is None:
        return
    second = next(chunks, None)
    if second is None or not sys.executable:  # a few images are not worth a process
        for chunk in chain([first], [second] if second else [], chunks):
            yield _here(chunk, canvas, grey)
        return
    workers = Workers(min(cores(), MOST_WORKERS), canvas, grey)
    try:
        coming: deque[Future[Part]] = deque()
        for chunk in chain([first, second], chunks):
            coming.append(workers.part(chunk))
            if len(coming) > 2 * workers.n:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:
        workers.close()


def _here(paths: list[str], canvas: int, grey: bool) -> Part:
    pixels = np.zeros((len(paths), 1 if grey else 3, canvas, canvas), np.uint8)
    bad, _ = decode.fill(paths, pixels, None, grey)
    return Part(paths, pixels, dict(bad))


class Workers:
    """Processes that decode, and a thread for each to wait for it."""

    def __init__(self, n: int, canvas: int, grey: bool):
        self.n, self.canvas, self.grey = n, canvas, grey
        self.threads = ThreadPoolExecutor(n)
        self.idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self.every: list[subprocess.Popen[bytes]] = []
        self.closed = False
        for _ in range(n):
            self.idle.put(self._started())

    def _started(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", decode.__file__]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.every.append(worker)
        assert worker.stdin is not None
        task = json.dumps({"canvas": self.canvas, "grey": self.grey})
        worker.stdin.write(task.encode() + b"\n")  # kept by the pipe until the first paths are sent
        return worker

    def part(self, paths: list[str]) -> "Future[Part]":
        return self.threads.submit(self._part, paths)

    def _part(self, paths: list[str]) -> Part:
        worker = self.idle.get()
        try:
            part = self._asked(worker, paths)
        except (OSError, ValueError):  # it died
            worker.kill()
            if self.closed:
                raise
            worker = self._started()
            if len(paths) == 1:
                pixels = np.zeros((1, 1 if self.grey else 3, self.canvas, self.canvas), np.uint8)
                return Part(paths, pixels, {0: "ended the process that decoded it"})
        else:
            return part
        finally:
            self.idle.put(worker)
        alone = [self._part([path]) for path in paths]  # to find out which file it was
        bad = {row: why for row, one in enumerate(alone) for why in one.bad.values()}
        return Part(paths, np.concatenate([one.pixels for one in alone]), bad)

    def _asked(self, worker: "subprocess.Popen[bytes]", paths: list[str]) -> Part:
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(json.dumps(paths).encode() + b"\n")
        worker.stdin.flush()
        bad = json.loads(worker.stdout.readline())
        pixels = np.empty((len(paths), 1 if self.grey else 3, self.canvas, self.canvas), np.uint8)
        if worker.stdout.readinto(pixels.data.cast("B")) < pixels.nbytes:  # type: ignore[attr-defined]
            raise ValueError("cut short")
        return Part(paths, pixels, dict(bad))

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.closed = True
        end(self.every, self.threads)
