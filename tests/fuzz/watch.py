"""Watch a process by an audit hook: what it writes, which code it runs, which programs it starts.

What must not happen is reported and stopped there: a fault may not harm the machine that looks for it.
The hook also counts file operations, and kills the process at one of them.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {  # audit events, and which of their arguments are paths and the folders that these start from
    "os.remove": [(0, 1)], "os.rmdir": [(0, 1)], "os.mkdir": [(0, 2)], "os.truncate": [(0, None)],
    "os.rename": [(0, 2), (1, 3)], "os.link": [(0, 2), (1, 3)], "os.symlink": [(1, 2)],
    "os.chmod": [(0, 2)], "os.chown": [(0, 3)], "os.utime": [(0, 3)], "os.setxattr": [(0, None)],
}  # fmt: skip
PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.spawn")


class Watch:
    """The hook. `report` gets a line for everything that must not happen; `said`: what was printed so far."""

    def __init__(
        self,
        folder: Path,
        writable: list[str],
        runnable: str,
        report: Callable[[str], None],
        said: Callable[[], str],
        kill_at: int | None = None,
    ):
        self.folder = os.path.realpath(folder)
        self.writable = tuple(os.path.realpath(path) for path in writable)
        self.runnable, self.report, self.said, self.kill_at = runnable, report, said, kill_at
        self.operations, self.on = 0, True

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, _, flags = args
            if isinstance(path, str | bytes) and isinstance(flags, int) and flags & WRITING:
                self._changed(event, os.path.realpath(os.fsdecode(path)))
        elif event in CHANGES:
            for place, start in CHANGES[event]:
                if not isinstance(args[place], int):
                    self._changed(event, _entry(args[place], None if start is None else args[start]))
        elif event in ("exec", "compile"):
            self._runs(args[0].co_filename if event == "exec" else args[1])
        elif event in PROGRAMS:
            words = [str(word) for word in (args[1] if event == "subprocess.Popen" else args)]
            if not _our_program(words):
                self._stop(f"a program was started: {words}")
        elif event == "pickle.find_class":
            self._stop(f"a pickle asked for {args[0]}.{args[1]}")
        elif event == "socket.connect":
            self._stop(f"a connection was opened to {args[1]}")

    def _stop(self, line: str) -> None:
        self.report(line)
        raise PermissionError(errno.EACCES, "stopped by the watch")

    def operation(self) -> None:
        """Count a file operation; end the process if it is the one to die at."""
        self.operations += 1
        if self.operations == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _changed(self, event: str, path: str) -> None:
        if path.startswith(("/dev/null", "/proc/")):
            return
        self.operation()
        inside = any(path == place or path.startswith(place + "/") for place in self.writable)
        if not inside:
            self._stop(f"a file was touched that is not its own: {event} {_short(path, self.folder)}")

    def _runs(self, path: Any) -> None:
        path = os.path.realpath(os.fsdecode(path)) if isinstance(path, str | bytes) else ""
        if not path.startswith(self.folder + "/") or not os.path.isfile(path):
            return  # made up in memory, or of this machine's Python
        name = os.path.basename(path)
        if self.runnable == "no" or (self.runnable == "once said" and name not in self.said()):
            self._stop(f"code ran from {_short(path, self.folder)}")


def _entry(path: Any, start: Any) -> str:
    """The name that an operation changes: links on the way are followed, the last one is not."""
    path = os.fsdecode(path)
    if isinstance(start, int) and start >= 0:
        path = os.path.join(os.readlink(f"/proc/self/fd/{start}"), path)
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _short(path: str, folder: str) -> str:
    return "HERE" + path[len(folder) :] if path.startswith(folder) else path


def _our_program(words: list[str]) -> bool:
    """Whether it decodes images, or is git, asked for the commit, or matplotlib's search for fonts."""
    decodes = words[:2] == [sys.executable, "-P"] and words[2].endswith("jioc/data/images/decode.py")
    return decodes or words[0] in ("git", "fc-list")
