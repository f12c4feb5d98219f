"""Standard output that survives a closed pipe, a full device and odd letters, and commands nothing."""

import io
import os
import re
import signal
import sys
from contextlib import suppress
from typing import Any, TextIO

from jioc.errors import fail_if
from jioc.text import HEADING, PLAINLY, PlainOutput, TerminalOutput, coloured

HEADING_LINE = re.compile(r"^(?:[a-zA-Z][^\n]*:$|usage:)", re.MULTILINE)


def print_help(text: str) -> None:
    """Print a help text, its headings in colour where the terminal has it."""
    if coloured(sys.stdout):
        TerminalOutput(sys.stdout).write(HEADING_LINE.sub(lambda line: HEADING.format(line[0]), text))
    else:
        sys.stdout.write(text)


class PipeSafeStdout(io.FileIO):
    """Standard output that ends the command in silence when its reader has left (`jioc table runs | head`).

    SIGPIPE would do so too, but also when any other pipe breaks, such as one to a process that died.
    On a full device, or a terminal that is gone, the work goes on unheard: `main` tells it in the end.
    """

    lost: OSError | None = None  # why something could not be written

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            os._exit(128 + signal.SIGPIPE)
        except OSError as error:
            self.lost = error
            return len(data)

    @staticmethod
    def fail_if_lost(stream: TextIO) -> None:
        """Fail where something could not be written to a standard stream."""
        stream.flush()
        buffer = getattr(stream, "buffer", None)
        error = getattr(getattr(buffer, "raw", buffer), "lost", None)
        fail_if(error, f"standard output cannot be written: {error and error.strerror}")

    @classmethod
    def behind(cls, stream: TextIO | None) -> TextIO:
        """Wrap a standard stream; print stand-ins for letters that its encoding lacks."""
        if stream is None:  # it was closed
            return open(os.devnull, "w", encoding="utf-8", errors=PLAINLY)  # noqa: SIM115
        if stream not in (sys.__stdout__, sys.__stderr__) or not isinstance(stream, io.TextIOWrapper):
            return stream
        with suppress(OSError):  # the next write notices it
            stream.flush()
        raw = cls(stream.fileno(), "w", closefd=False)
        return PlainOutput(
            raw if stream.write_through else io.BufferedWriter(raw),
            encoding=stream.encoding,
            errors=PLAINLY if stream.errors in ("strict", "surrogateescape") else stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
