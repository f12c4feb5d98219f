"""The code of a method that is not ours: its checksum, by which a run or a model notices a change."""

import hashlib
import inspect
import json
import sys
from contextlib import suppress
from types import FunctionType

from jioc.errors import Refused

WRAPPED = ("__func__", "fget", "func")  # what a static method, a property and a cached one hold
_registered: dict[type, str | None] = {}  # checksums of classes that Python code registered


def is_ours(method: type) -> bool:
    return method.__module__.startswith(f"{__package__}.")


def remember(method: type) -> None:
    """Compute the checksum of a class now: its file may change while it is in use."""
    _registered[method] = _checksum(method)


def checksum(method: type) -> str | None:
    """The checksum of the file that a class came from, or of the source of one that Python code registered.

    It is that of the code in use, whatever became of the file since. None for a method of ours, which the
    commit identifies, and if there is no source to read.
    """
    return getattr(sys.modules.get(method.__module__), "__sha256__", None) or _registered.get(method)


def _checksum(method: type) -> str | None:
    """Hash what a class and its bases that are not ours hold: plain values, and the source of functions.

    A notebook has that source too. None if a function has none, as at a prompt.
    """
    parts: list[str] = []
    for cls in method.__mro__:
        if cls is object or is_ours(cls):
            continue
        for name, value in sorted(vars(cls).items()):
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
    """Refuse to go on with a method that has changed since the run began."""
    if before != now and None not in (before, now):
        raise Refused(
            f"{word!r} has changed since {run} began; bring it back as it was, or choose another --out"
        )


def refuse_other(word: str, before: str | None, now: str | None) -> None:
    """Refuse a method that has changed since the model learnt."""
    if before != now and None not in (before, now):
        kind = "file" if word.endswith(".py") else "code"
        raise Refused(
            f"{word!r} is not the method's {kind} as it was when this model learnt: its checksum is another; "
            f"give that {kind} as it was, or train a model with this one"
        )
