"""Kept results, each read once by a process: `tables.py` runs twenty scripts, and most read all of them."""

from functools import cache
from pathlib import Path

from jioc import results
from jioc.report import runs
from jioc.report.group import Run


def read(*places: Path) -> list[Run]:
    """Read every result at or below the places; one that has not changed since is not read again."""
    found: dict[Path, Path] = {}
    for path in results.find([*places]):
        found.setdefault(path.resolve(), path)
    return [_read(path, _state(path)) for path in found.values()] or runs.read([*places])  # which refuses


@cache
def _read(path: Path, state: tuple[int, ...]) -> Run:
    (run,) = runs.read([path])
    return run


def _state(path: Path) -> tuple[int, ...]:
    """What is another after a change of the file."""
    now = path.stat()
    return now.st_ino, now.st_size, now.st_mtime_ns
