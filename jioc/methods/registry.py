"""Find methods by name: ours, those in a Python file, and those that Python code registers."""

import hashlib
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from jioc.config import Options, refusal
from jioc.errors import Refused, unknown
from jioc.methods import source
from jioc.methods.specs import SPECS, Spec
from jioc.scripts import SCRIPT, imported

if TYPE_CHECKING:
    from jioc.methods.base import Method

ELSEWHERE = {"er": "replay", "naive": "finetune", "cumulative": "joint"}
"""Names of methods in other libraries that are close to the name of another one here."""

_OURS = frozenset(SPECS)
_CLASSES: dict[str, "type[Method]"] = {}
_IN_FILES: dict[str, list["type[Method]"]] = {}  # by the name of the file's module


def register(spec: Spec | str) -> Callable[["type[Method]"], "type[Method]"]:
    """Class decorator: register a class as the method of an entry, or of one of ours by its name."""
    entry = SPECS[spec] if isinstance(spec, str) else spec
    for name in dict.fromkeys(("cnn", entry.headline)):
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
        known = _CLASSES.get(entry.name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise ValueError(f"two methods are called {entry.name!r}")
        SPECS[entry.name], _CLASSES[entry.name] = entry, cls
        if not source.is_ours(cls):
            source.remember(cls)
        return cls

    return keep


def find_method(word: str) -> Spec:
    """Find the entry of a method by its name, or of the one that a Python file registers."""
    if word.endswith(".py"):
        return _from_file(Path(word)).spec
    if word in ELSEWHERE and word not in SPECS:
        raise Refused(f"unknown method {word!r}; here it is {ELSEWHERE[word]!r}")
    if word not in SPECS:
        raise unknown("method", word, SPECS)
    return SPECS[word]


def load_method(word: str) -> "type[Method]":
    """Import the class of a method; this imports torch."""
    if word.endswith(".py"):
        return _from_file(Path(word))
    name = find_method(word).name
    if name not in _CLASSES:
        importlib.import_module(f"jioc.methods.{name}")
    return _CLASSES[name]


def _from_file(path: Path) -> "type[Method]":
    """Import the one method that a Python file registers."""
    if not path.is_file():
        raise Refused(f"there is no method file {str(path)!r}")
    module = imported(path)
    own = _IN_FILES.get(module.__name__, [])
    if len(own) != 1:
        raise Refused(f"{str(path)!r} registers {len(own)} methods; a method file registers one")
    return own[0]


def own_options(spec: Spec, values: dict[str, Any]) -> Options:
    """Check the method's own options."""
    try:
        return spec.options.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "extra_forbidden":
            raise unknown(f"option of {spec.name}", str(first["loc"][0]), spec.options.model_fields) from None
        raise refusal(error) from None


def sha256(word: str) -> str | None:
    """The checksum of a method that is not ours, by its name or file: see `source.checksum`."""
    if word.endswith(".py"):
        return imported(Path(word)).__sha256__
    return source.checksum(_CLASSES[word]) if word in _CLASSES else None


def of_model(named: str, file: str | None, sha: str | None = None) -> str:
    """Find the method of a saved model. A Python file is run only if it is given as `file`.

    `sha`: the checksum of the method that the model was trained with; no other code is run.
    """
    in_file = named.endswith(".py")
    if in_file and file is None:
        raise Refused(
            f"the method of this model is in a file, {named!r}, which is not run unasked; "
            "give --method FILE, or method= in Python"
        )
    if file not in (None, named) and not (in_file and str(file).endswith(".py")):
        raise Refused(f"--method {file!r} does not fit: the method of this model is {named!r}")
    if file is not None and in_file and Path(file).is_file():
        source.refuse_other(file, sha, hashlib.sha256(Path(file).read_bytes()).hexdigest())
    if not in_file and named not in SPECS:
        raise Refused(
            f"unknown method {named!r}; if Python code registers it, open this model there, with jioc.load"
        )
    if not in_file:
        source.refuse_other(named, sha, sha256(named))
    return file or named
