"""A command on a pseudo-terminal: what stands on its screen and above it, and what stood there meanwhile."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass, field

import pyte

from helpers.paths import ROOT

BAR = "━"  # of which bars are drawn
ERASED = re.compile(rb"(?=\r\x1b\[2K)")


@dataclass
class Seen:
    lines: list[str]  # in the end, the scrollback first
    status: int
    frames: list[list[str]] = field(repr=False)  # the screen after each drawing of bars

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def bars(self) -> list[str]:
        """Bars that stood on the screen while the command ran."""
        return [line for frame in self.frames for line in frame if BAR in line]


def show(words: list[str], columns: int, lines: int = 24, **environment: str) -> Seen:
    """Run `python WORDS...` on a terminal of that size."""
    screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=1)
    stream, frames = pyte.ByteStream(screen), list[list[str]]()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    kept |= {"TERM": "xterm-256color", "PYTHONPATH": path, **environment}
    process = subprocess.Popen(
        [sys.executable, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=kept, start_new_session=True
    )
    os.close(theirs)
    try:
        while data := _read(ours):
            for part in ERASED.split(data):  # one read may hold a drawing and the next
                stream.feed(part)
                if BAR.encode() in part:
                    frames.append(list(screen.display))
    finally:
        os.close(ours)
        status = process.wait()
    above = ["".join(row[i].data for i in range(columns)) for row in screen.history.top]
    whole = [line.rstrip() for line in [*above, *screen.display]]
    while whole and not whole[-1]:
        whole.pop()
    return Seen(whole, status, frames)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the command has ended
        return b""
