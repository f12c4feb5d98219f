"""Counts, titles and names for people; text that commands nothing in a terminal. No torch here."""

import codecs
import io
import os
from typing import Any, TextIO


def counted(n: int, noun: str) -> str:
    """1 class, 2,000 images."""
    return f"{n:,} {noun}" + ("" if n == 1 else "es" if noun.endswith("s") else "s")


def exemplars(total: int, per_class: int | None, in_bytes: int | None) -> str:
    """2,000 exemplars; 20 exemplars a class; exemplars of 6,144,000 bytes."""
    if in_bytes:
        return f"exemplars of {in_bytes:,} bytes"
    return f"{counted(per_class, 'exemplar')} a class" if per_class else counted(total, "exemplar")


def sized(n: float) -> str:
    """900 bytes, 1.5 MiB, 2,048.0 GiB."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            return f"{n / size:,.1f} {unit}"
    return f"{n:.0f} bytes"


def timed(seconds: float) -> str:
    """12 s, 3 min, 2.5 h."""
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7170 else f"{seconds / 3600:.1f} h"


def middle_out(name: str, most: int) -> str:
    """The name without its middle where it is longer: a run is known by its first letters and its seed."""
    if len(name) <= most:
        return name
    end = max(1, (most - 1) // 2)
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def shortened(text: str, most: int = 2000) -> str:
    """The text, without its middle where somebody wrote a very long word."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def uncapitalised(sentence: str) -> str:
    """The sentence with a small first letter, to stand within another."""
    return sentence[:1].lower() + sentence[1:]


def coordinated(title: str, coordinate: str) -> str:
    """iCaRL + JIOC: a method's title with the word of --coordinate."""
    return title if coordinate == "none" else f"{title} + {coordinate.upper()}"


BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))  # bytes of a file's name that are no letters


def printable(text: str, keep: str = "") -> str:
    """Replace what moves the cursor by spaces; a class may have any name. `keep`: what stays nevertheless."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in keep else " " for c in text)


class PlainOutput(io.TextIOWrapper):
    """A standard stream on which no text that is printed commands the terminal, wherever it comes from."""

    def write(self, text: str) -> int:
        super().write(printable(text, keep="\n\t" + BYTES))
        return len(text)


class TerminalOutput:
    """The same stream for bars and tables: their codes reach the terminal. They make their text printable."""

    def __init__(self, stream: TextIO):
        self._stream: TextIO = getattr(
            stream, "rich_proxied_file", stream
        )  # not what stands in for it under a bar

    def write(self, text: str) -> int:
        plain = isinstance(self._stream, PlainOutput)
        return io.TextIOWrapper.write(self._stream, text) if plain else self._stream.write(text)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def coloured(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colour, and nobody has asked for none."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


HEADING = "\x1b[1;36m{}\x1b[0m"  # bold and cyan

STAND_INS = {"–": "-", "±": "+-", "×": "x", "…": "..."}


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":  # a byte of a file's name, as it is
        return letter.encode("ascii", "surrogateescape"), error.start + 1
    return STAND_INS.get(letter, "?"), error.start + 1


PLAINLY = "jioc.plainly"  # for `errors` of str.encode: a stand-in for each letter that the output lacks
codecs.register_error(PLAINLY, _plainly)
