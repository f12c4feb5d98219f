"""Find methods by name: ours, those in a Python file, and those that Python code registers.

A method that is not ours has a checksum, by which a run or a model notices that its code has changed.
"""

import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from jioc.config import GONE, Options, refusal
from jioc.errors import Refused, refuse_if, unknown
from jioc.files import read_bytes
from jioc.methods.specs import SPECS, Spec
from jioc.scripts import SCRIPT, imported, is_script

if TYPE_CHECKING:
    from jioc.methods.base import Method

ELSEWHERE = {"er": "replay", "naive": "finetune", "cumulative": "joint"}  # names in other libraries
WRAPPED = ("__func__", "fget", "func")  # what a static method, a property and a cached one hold

_OURS = frozenset(SPECS)
_CLASSES: dict[str, "type[Method]"] = {}
_IN_FILES: dict[str, list["type[Method]"]] = {}  # by the name of the file's module
_CHECKSUMS: dict[type, str | None] = {}  # of classes that Python code registered, as they were then


def register(spec: Spec | str) -> Callable[["type[Method]"], "type[Method]"]:
    """Class decorator: register a class as the method of an entry, or of one of ours by its name."""
    if isinstance(spec, str) and spec not in SPECS:
        raise ValueError(
            f"{spec!r} is no method of jioc; give an entry: replace(SPECS['replay'], name={spec!r}, title=…)"
        )
    entry = SPECS[spec] if isinstance(spec, str) else spec
    for name in ("cnn", entry.headline):
        if name not in entry.readouts:
            raise ValueError(
                f"{entry.name} has the readouts {', '.join(entry.readouts)}, and {name!r} must be among them"
            )

    def keep(cls: "type[Method]") -> "type[Method]":
        cls.spec = entry
        if cls.__module__.startswith(SCRIPT):  # it is found by its file, and may share a name
            _IN_FILES.setdefault(cls.__module__, []).append(cls)
            return cls
        if entry.name in _OURS and cls.__module__ != f"{__package__}.{entry.name}":
            raise ValueError(f"{entry.name!r} is a method of jioc; give yours another name")
        if _CLASSES.get(entry.name, cls).__qualname__ != cls.__qualname__:
            raise ValueError(f"two methods are called {entry.name!r}")
        SPECS[entry.name], _CLASSES[entry.name] = entry, cls
        if not is_ours(cls):
            _CHECKSUMS[cls] = _source_checksum(cls)
        return cls

    return keep


def find_method(word: str, presets: Iterable[str] = ()) -> Spec:
    """Find the entry of a method by its name, or of the one that a Python file registers.

    `presets`: names that the person could have meant as well.
    """
    if is_script(word):
        return _from_file(Path(word)).spec
    if word not in SPECS:
        refuse_if(word in ELSEWHERE, f"unknown method {word!r}; here it is {ELSEWHERE.get(word)!r}")
        raise unknown("method", word, [*SPECS, *presets])
    return SPECS[word]


def load_method(word: str) -> "type[Method]":
    """Import the class of a method; this imports torch."""
    if is_script(word):
        return _from_file(Path(word))
    name = find_method(word).name
    if name not in _CLASSES:
        importlib.import_module(f"jioc.methods.{name}")
    return _CLASSES[name]


def _from_file(path: Path) -> "type[Method]":
    refuse_if(not path.is_file(), f"there is no method file {str(path)!r}")
    registered = _IN_FILES.get(imported(path).__name__, [])  # some by an import that failed later on
    own = [*{cls.__qualname__: cls for cls in registered}.values()]
    refuse_if(len(own) != 1, f"{str(path)!r} registers {len(own)} methods; a method file registers one")
    return own[0]


def own_options(spec: Spec, values: dict[str, Any]) -> Options:
    """Check the method's own options."""
    try:
        return spec.options.model_validate(values)
    except ValidationError as error:
        if (first := error.errors()[0])["type"] == "extra_forbidden":
            name = str(first["loc"][0])
            gone = GONE.get(("options", name))
            if gone is not None and spec.name in gone.methods:
                raise Refused(f"{name} of {spec.name} is gone: only what was {gone.was!r} is left") from None
            raise unknown(f"option of {spec.name}", name, spec.options.model_fields) from None
        raise refusal(error) from None


def of_model(named: object, file: str | None, sha: str | None = None) -> str:
    """Find the method of a saved model. A Python file is run only if it is given as `file`.

    `sha`: the checksum of the method that the model was trained with; no other code is run.
    """
    if not isinstance(named, str):
        raise Refused("the settings of this model name no method")
    in_file = is_script(named)
    refuse_if(
        in_file and file is None,
        f"the method of this model is in a file, {named!r}, which is not run unasked; "
        "give --method FILE, or method= in Python",
    )
    refuse_if(
        file not in (None, named) and not (in_file and is_script(file)),
        f"--method {file!r} does not fit: the method of this model is {named!r}",
    )
    refuse_if(
        not in_file and named not in SPECS,
        f"unknown method {named!r}; if Python code registers it, open this model there, with jioc.load",
    )
    if not in_file:
        refuse_other(named, sha, sha256(named))
    elif file is not None and Path(file).is_file():
        refuse_other(file, sha, hashlib.sha256(read_bytes(file)).hexdigest())
    return file or named


# --- the code of a method that is not ours ---


def is_ours(method: type) -> bool:
    return method.__module__.startswith(f"{__package__}.")


def sha256(word: str) -> str | None:
    """The checksum of a method that is not ours, by its name or file."""
    if is_script(word):
        return imported(Path(word)).__sha256__
    return checksum(_CLASSES[word]) if word in _CLASSES else None


def checksum(method: type) -> str | None:
    """The checksum of the file that a class came from, or of the source of one that Python code registered.

    It is that of the code in use, whatever became of the file since. None for a method of ours, which the
    commit identifies, and if there is no source to read.
    """
    return getattr(sys.modules.get(method.__module__), "__sha256__", None) or _CHECKSUMS.get(method)


def _source_checksum(method: type) -> str | None:
    """Hash what a class and its bases that are not ours hold: plain values, and the source of functions.

    A notebook has that source too. None if a function has none, as at a prompt.
    """
    parts: list[str] = []
    bases = [cls for cls in method.__mro__ if cls is not object and not is_ours(cls)]
    for name, value in (item for cls in bases for item in sorted(vars(cls).items())):
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
    refuse_if(
        before != now and None not in (before, now),
        f"{word!r} has changed since {run} began; bring it back as it was, or choose another --out",
    )


def refuse_other(word: str, before: str | None, now: str | None) -> None:
    """Refuse a method that has changed since the model learnt."""
    kind = "file" if is_script(word) else "code"
    refuse_if(
        before != now and None not in (before, now),
        f"{word!r} is not the method's {kind} as it was when this model learnt: its checksum is another; "
        f"give that {kind} as it was, or train a model with this one",
    )
