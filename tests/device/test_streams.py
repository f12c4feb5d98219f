"""Streams without a GPU: torch's pool of them is played by a counter."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count

import pytest
import torch

from jioc.device import RUNS_AT_ONCE, streams
from jioc.device.streams import SideStream, capture_stream, own_stream

CUDA = torch.device("cuda", 0)


@dataclass(frozen=True)
class Stream:
    priority: int
    number: int
    device: torch.device = CUDA

    def wait_stream(self, other: "Stream") -> None: ...


class Pool:
    """Hands out 32 streams of each priority in turn, and knows the current one."""

    def __init__(self) -> None:
        self.next = {0: count(), -1: count()}
        self.current = Stream(0, -1)  # the default one

    def stream(self, device: torch.device, priority: int) -> Stream:
        return Stream(priority, next(self.next[priority]) % streams.POOL)

    @contextmanager
    def within(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    pool = Pool()
    monkeypatch.setattr(torch.cuda, "Stream", pool.stream)
    monkeypatch.setattr(torch.cuda, "stream", pool.within)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: pool.current)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: pool.current.priority < 0)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(streams, "_working", {})
    monkeypatch.setattr(streams, "_captured", {})
    return pool


def capture(pool: Pool) -> list[Stream]:
    """The streams of a step: its own, its teacher's, and that of a backbone within the teacher."""
    main = capture_stream(torch.cuda.current_stream())
    with pool.within(main):  # type: ignore[arg-type]
        teacher = SideStream(CUDA)
        with teacher:
            within = SideStream(CUDA, 1)
            with within:
                return [main, within.main, pool.current]  # type: ignore[list-item]


def test_no_two_runs_capture_on_one_stream(pool: Pool) -> None:
    with own_stream(CUDA):
        first = capture(pool)
        for _ in range(50):  # others come and go, and torch's pool begins again
            with own_stream(CUDA):
                assert not {*capture(pool)} & {*first}
        assert capture(pool) == first


def test_a_branch_within_a_branch_is_neither_the_branch_nor_the_step(pool: Pool) -> None:
    for _ in range(40):
        with own_stream(CUDA):
            assert len({*capture(pool)}) == 3


def test_no_two_runs_work_on_one_stream(pool: Pool) -> None:
    with own_stream(CUDA):
        first = pool.current
        for _ in range(40):
            with own_stream(CUDA):
                assert pool.current != first


def test_every_run_of_a_full_pack_has_a_stream_though_not_each_branch(pool: Pool) -> None:
    capture(pool)  # of a run outside it, which keeps its streams
    before = dict(streams._captured)
    with ExitStack() as runs:
        steps = []
        for _ in range(RUNS_AT_ONCE):
            runs.enter_context(own_stream(CUDA))
            capture(pool)
            steps.append(capture_stream(torch.cuda.current_stream()))
        assert len({*steps}) == RUNS_AT_ONCE
        with pool.within(steps[-1]), SideStream(CUDA, 2):  # type: ignore[arg-type]
            assert pool.current == steps[-1]  # in order
    assert streams._captured == before


def test_a_run_outside_a_pack_keeps_its_streams(pool: Pool) -> None:
    assert capture(pool) == capture(pool)


def test_on_a_cpu_there_are_no_streams() -> None:
    with own_stream(torch.device("cpu")), SideStream(torch.device("cpu")):
        pass
    SideStream(torch.device("cpu")).join()
