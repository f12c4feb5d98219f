"""`jioc grid` on a cluster, watched and killed."""

import collections
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helpers.runs import complete, events, outcome
from jioc.grid.plan import read_json

LEASH = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""Words before a command that is to die with the tests, however they end."""
PATIENCE = 600  # seconds after which a driver hangs


class Driver:
    """`jioc grid` in a process of its own; its words go to a file, because its jobs may outlive it."""

    def __init__(self, file: Path, out: Path, *words: str, **env: str):
        self.out, self.log = out, out.with_suffix(".log")
        with self.log.open("w") as log:
            command = [*LEASH, sys.executable, "-m", "jioc", "grid", str(file), "--out", str(out), *words]
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=os.environ | env
            )

    def until(self, holds: Callable[[], Any]) -> Any:
        """What becomes true while it works."""
        end = time.monotonic() + PATIENCE
        while not (found := holds()):
            assert self.process.poll() is None and time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)
        return found

    def running(self) -> dict[str, int]:
        """The process of each run that has begun and not ended."""
        at: dict[str, int] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in events(self.out):
                if line["event"] == "begins":
                    at[line["run"]] = line["pid"]
                else:
                    at.pop(line["run"], None)
        return at

    def busy(self) -> tuple[str, int] | None:
        """A run that has learnt one or two of its four tasks, and its process."""
        for name, pid in self.running().items():
            if 0 < len((read_json(self.out / name / "result.json") or {"tasks": []})["tasks"]) < 3:
                return name, pid
        return None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, status: int = 0) -> str:
        assert self.process.wait(PATIENCE) == status, self.log.read_text()
        return self.log.read_text()


def must_be_as_alone(out: Path, alone: Path, runs: int = 8) -> None:
    """Every run is finished, none twice, and equals the one that was left in peace."""
    assert len(complete(out)) == runs
    ended = collections.Counter(line["run"] for line in events(out) if line["event"] == "finished")
    assert set(ended.values()) == {1}
    for name in complete(out):
        assert outcome(out / name) == outcome(alone / name), name
