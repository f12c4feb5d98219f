"""When to stop: at Ctrl-C, at SIGTERM or SIGHUP, before a time limit. No torch here.

What is saved then: `training/checkpoint.py`.
"""

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jioc.errors import Interrupted, refuse_if
from jioc.events import Callback, Event, Waiting

RESUME = 75  # exit status: stopped with a checkpoint, go on with --resume (EX_TEMPFAIL of sysexits.h)


class Stop:
    """Called before every step; true once a signal came or another step would end too near the time limit.

    A step is taken to last as long as the shorter of the two before: between tasks one may seem long.
    """

    def __init__(self, seconds: float | None = None):
        self.signal: int | None = None
        self.until = None if seconds is None else time.monotonic() + seconds - min(60.0, seconds / 10)
        self.called: dict[int, float] = {}  # when each thread called it last: packed runs share one
        self.steps: dict[int, list[float]] = {}  # seconds between its last calls

    def __call__(self) -> bool:
        if self.until is None:
            return self.signal is not None
        now, run = time.monotonic(), threading.get_ident()
        steps = self.steps.setdefault(run, [])
        if run in self.called:
            steps[:] = [*steps[-1:], now - self.called[run]]
        self.called[run] = now
        return self.signal is not None or now + min(steps, default=0.0) >= self.until


ctrl_c = Stop()  # whether Ctrl-C has interrupted a command, outside of `signals`


def interrupt(number: int, frame: object) -> None:
    """Python's own answer to Ctrl-C, remembered: a library may make another error of it."""
    ctrl_c.signal = number
    raise KeyboardInterrupt


@contextmanager
def signals(seconds: float | None = None, *also: int) -> Iterator[Stop]:
    """Let Ctrl-C, SIGTERM, SIGHUP and others ask the run to save and stop; a second Ctrl-C does not wait.

    An `Interrupted` that passes through gets the exit status: 130 for Ctrl-C, 75 for the others.
    """
    stop = Stop(seconds)

    def handle(number: int, frame: object) -> None:
        if stop.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.signal = number

    heeded = [signal.SIGINT, signal.SIGTERM, *also]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        heeded.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield stop
    except Interrupted as error:
        error.status = Interrupted.status if stop.signal == signal.SIGINT else RESUME
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def duration(word: str) -> float:
    """Read 90, 90s, 30m, 2h or 1:30:00 as seconds."""
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", word):
        seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
    elif match := re.fullmatch(r"(\d+):(\d\d):(\d\d)", word):
        seconds = 3600.0 * float(match[1]) + 60 * int(match[2]) + int(match[3])
    else:
        seconds = 0.0
    refuse_if(not 0 < seconds < 1e9, f"--time-limit: {word!r} is refused: give seconds, 30m, 2h or 1:30:00")
    return seconds


def until(stop: Callable[[], bool] | None, callback: Callback | None = None) -> Callback:
    """The callback of work before the first checkpoint: it also stops that work when asked to."""

    def tell(event: Event) -> None:
        if stop is not None and stop():
            raise Interrupted("stopped before the first task")
        if callback is not None and not isinstance(event, Waiting):
            callback(event)

    return tell
