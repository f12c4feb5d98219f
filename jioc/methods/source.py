"""The code of a method that is not ours: its checksum, by which a run and a model notice that it has changed."""

import hashlib
import inspect
import json
import sys
from contextlib import suppress
from types import FunctionType

from jioc.errors import Refused

WRAPPED = ("__func__", "fget", "func")  # what a static method, a property and a cached one hold
_registered: dict[type, str | None] = {}  # checksums of classes that somebody's Python code registered


def is_ours(method: type) -> bool:
    return method.__module__.startswith(f"{__package__}.")


def remember(method: type) -> None:
    """Take the checksum of a class now: its file may change while it is in use."""
    _registered[method] = _checksum(method)


def checksum(method: type) -> str | None:
    """The checksum of the file that a class came from, whatever became of the file since, or of the source of a class
    that Python code registered. None of one of ours, which the commit tells, and where there is no source to read."""
    return getattr(sys.modules.get(method.__module__), "__sha256__", None) or _registered.get(method)


def _checksum(method: type) -> str | None:
    """Of what the class holds, and those above it that are not ours: plain values, and the source of functions, which
    a notebook has too. None where a function has no source, as at a prompt."""
    parts: list[str] = []
    for cls in method.__mro__:
        for name, value in sorted(vars(cls).items()) if cls is not object and not is_ours(cls) else ():
            function = next((f for kind in WRAPPED if (f := getattr(value, kind, None)) is not None), value)
            if isinstance(function, FunctionType):
                try:
                    parts.append(inspect.getsource(function))
                except (OSError, TypeError):
                    return None
            elif not name.startswith("__"):
                with suppress(TypeError, ValueError):
                    parts.append(json.dumps([name, value]))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def refuse_changed(word: str, before: str | None, now: str | None, run: str = "this run") -> None:
    """Refuse to go on with a method whose checksum is not that with which the run began."""
    if before != now and None not in (before, now):
        raise Refused(
            f"{word!r} has changed since {run} began; bring it back as it was, or choose another --out"
        )


def refuse_other(word: str, before: str | None, now: str | None) -> None:
    """Refuse a method whose checksum is not that with which a model learnt."""
    if before != now and None not in (before, now):
        what = "file" if word.endswith(".py") else "code"
        raise Refused(
            f"{word!r} is not the method's {what} as it was when this model learnt: its checksum is another; "
            f"give that {what} as it was, or train a model with this one"
        )
