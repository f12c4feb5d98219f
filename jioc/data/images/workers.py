"""Decode image files on every core: the processes that do it are started, given work, watched and ended here.

A process runs `decode.py` and answers one order at a time: some paths, whose pixels it gives back or writes
to a file. Answers come in the order of the paths.
"""

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Any

import numpy as np

from jioc.data.images import decode
from jioc.device.pick import cores
from jioc.errors import Failed, fail_if

MOST_FILES = 256  # of an order
LEAST_FILES = 8
MOST_BYTES = 8 << 20  # of an order's pixels, unless they are of the least files
MOST_WORKERS = 16  # where pixels are given back

Order = dict[str, Any]  # arguments of `decode.decode_files`


@dataclass
class Part:
    paths: list[str]
    pixels: np.ndarray  # uint8 (n, c, h, w), black where a file is bad; none if they were written to a file
    bad: dict[int, str]  # rows, and why
    coloured: bool  # whether any has colour
    digests: np.ndarray  # (n, 16), of the files' bytes, if pixels were written to a file


def decoded(
    paths: Iterable[str], canvas: int, grey: bool, into: np.memmap | None = None
) -> Generator[Part, None, None]:
    """Decode files, some at a time, in the order of their paths.

    Pixels are given back, and a few megabytes are decoded ahead; or they are written to the rows of `into`.
    A file that ends its process is bad in the first case, and ends the work in the second.
    """
    orders = _orders(paths, canvas, grey, into)
    first = list(islice(orders, 2))
    if len(first) < 2 or not sys.executable:  # a few images are not worth a process
        for order in chain(first, orders):
            yield _part(order, *decode.decode_files(**order))
        return
    n = min(cores(), MOST_WORKERS) if into is None else cores()
    with closing(Workers(n)) as workers:
        yield from workers.answers(chain(first, orders), ahead=2 * n if into is None else sys.maxsize)


def _orders(paths: Iterable[str], canvas: int, grey: bool, into: np.memmap | None) -> Iterator[Order]:
    row_bytes = canvas * canvas * (1 if grey else 3)
    at_once = min(MOST_FILES, max(LEAST_FILES, MOST_BYTES // row_bytes))
    source = iter(paths)
    order: Order = {"canvas": canvas, "grey": grey}
    for row in count(0, at_once):
        if not (chunk := list(islice(source, at_once))):
            return
        if into is not None:
            order |= {"file": str(into.filename), "offset": into.offset + row * row_bytes}
        yield order | {"paths": chunk}


def _part(order: Order, answer: dict[str, Any], pixels: np.ndarray) -> Part:
    digests = np.frombuffer(bytes.fromhex(answer["digests"]), np.uint8).reshape(-1, decode.DIGEST)
    return Part(order["paths"], pixels, dict(answer["bad"]), answer["coloured"], digests)


class Workers:
    """Processes that decode, each started when it is needed, and a thread for each that waits for it."""

    def __init__(self, n: int):
        self.threads = ThreadPoolExecutor(n)
        self.lock, self.closed = threading.Lock(), False  # held to take a process, and to forbid that
        self.started: list[subprocess.Popen[bytes]] = []
        self.idle: list[subprocess.Popen[bytes]] = []

    def answers(self, orders: Iterable[Order], ahead: int) -> Iterator[Part]:
        """The answer of each order, in turn; so many orders more are given out meanwhile."""
        coming: deque[Future[Part]] = deque()
        for order in orders:
            coming.append(self.threads.submit(self._answer, order))
            if len(coming) > ahead:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()

    def _answer(self, order: Order) -> Part:
        """Have a process answer; one that dies is not asked again."""
        process = self._take()
        try:
            part = self._ask(process, order)
        except (OSError, ValueError):  # no answer, or half of one
            process.kill()
            return self._explain_death(order)
        self.idle.append(process)
        return part

    def _take(self) -> "subprocess.Popen[bytes]":
        with self.lock:
            fail_if(self.closed, "the decoding processes have been ended")
            if self.idle:
                return self.idle.pop()
            command = [sys.executable, "-P", decode.__file__]
            self.started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            return self.started[-1]

    def _ask(self, process: Any, order: Order) -> Part:
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        answer, pixels = json.loads(process.stdout.readline()), _blank(order)
        fail_if("failed" in answer, f"decoded images cannot be kept: {answer.get('failed')}")
        if "file" not in order and process.stdout.readinto(pixels.data.cast("B")) < pixels.nbytes:
            raise ValueError("cut short")
        return _part(order, answer, pixels)

    def _explain_death(self, order: Order) -> Part:
        """Find the file that ended a process by decoding each alone; if pixels go to a file, give up."""
        paths = order["paths"]
        if "file" in order:
            raise Failed(
                f"a decoding process died (too little memory?) on one of {len(paths)} files "
                f"between {paths[0]!r} and {paths[-1]!r}"
            )
        if len(paths) == 1:
            answer = {"bad": {0: "ended the process that decoded it"}, "coloured": False, "digests": ""}
            return _part(order, answer, _blank(order))
        alone = [self._answer(order | {"paths": [path]}) for path in paths]
        bad = {row: why for row, part in enumerate(alone) for why in part.bad.values()}
        answer = {"bad": bad, "coloured": any(part.coloured for part in alone), "digests": ""}
        return _part(order, answer, np.concatenate([part.pixels for part in alone]))

    def close(self) -> None:
        """Kill the processes, wait for the threads that talk to them, and close the pipes."""
        with self.lock:
            self.closed = True
        self.threads.shutdown(wait=False, cancel_futures=True)
        for process in self.started:
            process.kill()
        self.threads.shutdown()
        for process in self.started:
            with suppress(OSError):
                process.communicate()


def _blank(order: Order) -> np.ndarray:
    n = 0 if "file" in order else len(order["paths"])
    return np.zeros((n, 1 if order["grey"] else 3, order["canvas"], order["canvas"]), np.uint8)
