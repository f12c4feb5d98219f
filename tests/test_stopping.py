"""Time limits, and Ctrl-C at any moment."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from jioc.errors import Refused
from jioc.stopping import Stop, duration, signals


@pytest.mark.parametrize(
    ("word", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1:30:05", 5405), ("0", None)]
)
def test_times(word: str, seconds: float | None) -> None:
    if seconds is not None:
        assert duration(word) == seconds
        return
    for wrong in (word, "soon", "-3m", "1:70"):
        with pytest.raises(Refused, match="--time-limit"):
            duration(wrong)


CTRL_C = "os.kill(os.getpid(), signal.SIGINT)"
MOMENTS = {  # when Ctrl-C comes, and what the command says then
    "while it is imported": ("if name == 'pydantic': " + CTRL_C, ""),
    "while it imports a command": ("if name == 'jioc.cli.list': " + CTRL_C, "jioc: stopped\n"),
    "inside a library that makes another error of it": (
        "if name == 'jioc.cli.list':\n            try: " + CTRL_C + "\n"
        "            except KeyboardInterrupt: raise RecursionError",
        "jioc: stopped\n",
    ),
    "once it has ended": (f"pass\natexit.register(lambda: {CTRL_C})", ""),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_shows_no_traceback(moment: str) -> None:
    does, told = MOMENTS[moment]
    code = f"""import atexit, os, runpy, signal, sys
class Watch:
    def find_spec(self, name, *_):
        {does}
sys.meta_path.insert(0, Watch())
sys.argv[1:] = ["list", "methods"]
runpy.run_module("jioc", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, told)


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_step_that_would_pass_the_time_limit_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("jioc.stopping.time.monotonic", lambda: now)
    for limit, steps in [(130, 2), (75, 1), (60, 1), (20, 1)]:  # steps of 40 s, a tenth for the checkpoint
        now, taken = 0.0, 0
        stop = Stop(limit)
        while not stop():
            now, taken = now + 40, taken + 1
        assert taken == steps
    now = 0.0
    stop = Stop(1000)
    for seconds in (5, 5, 600, 5):  # a long one alone, as between tasks, is no measure
        assert not stop()
        now += seconds
    assert not stop() and now == 615


def test_packed_runs_have_steps_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight runs with steps of 100 s, begun one after another: none takes a step that would end too late."""
    now, run, last = 0.0, 0, [0.0] * 8
    monkeypatch.setattr("jioc.stopping.time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr("jioc.stopping.threading", SimpleNamespace(get_ident=lambda: run))
    stop = Stop(1000)
    for call in range(80):
        run, now = call % 8, call * 100 / 8
        if not stop():
            last[run] = now
    assert all(700 < begun < 840 for begun in last)  # 60 s are for the checkpoint
