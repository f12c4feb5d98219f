"""What a setting is declared with: its type, its bounds, its section. `schema.py` declares them all."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

SECTIONS = {  # headings of `jioc run --help`, in order
    "data": "what is learnt",
    "memory": "what is remembered",
    "network": "the network",
    "training": "training",
    "coordination": "JIOC",
    "options": "of the method alone",
    "seeds": "seeds",
    "machine": "the machine",
}


@dataclass(frozen=True)
class About:
    """What is declared with a setting, in addition to its type, default and help."""

    section: str = ""  # a key of SECTIONS; a part of `later`, `first`, … stands in the section of the whole
    group: str = ""  # settings that belong together: images, reading, tasks, order, seeds, step
    label: Literal["value", "place", "title"] = "value"  # where tables show it
    machine: bool = False  # a resumed run may have another value
    commands: tuple[str, ...] = ("learn", "estimator")  # that take it, besides `jioc run`, which takes all
    follows: tuple[str, ...] = ()  # what decides it where nobody gives it; ".epochs": of the same stage
    excludes: tuple[str, ...] = ()  # cannot be given together with it; over a file, it replaces these
    resets: tuple[str, ...] = ()  # over a file, it replaces these; they can be given together with it
    part: str = ""  # of JIOC, for `index.without_effect`
    only: tuple[str, ...] = ()  # for an option of `jioc grid`: the values of --on that use it
    metavar: str = ""  # the name of its value in the help; by default the last word of its name


def setting(default: Any, section: str = "", **about: Any) -> Any:
    """Declare a field together with what `About` holds."""
    return Field(default, json_schema_extra={"about": About(section, **about)})  # type: ignore[dict-item]


MOST = 2**31 - 1  # of anything that is counted, and more than any run has
Count = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]
LARGEST = 1e38  # about the largest 32-bit float
Amount = Annotated[float, Field(ge=0, le=LARGEST)]
Above0 = Annotated[float, Field(gt=0, le=LARGEST)]
Share = Annotated[float, Field(ge=0, lt=1)]
Within01 = Annotated[float, Field(gt=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


def _path_as_text(value: Any) -> Any:
    """Turn a path into text that stays a path: ./digits is a folder, digits a data set."""
    if not isinstance(value, Path):
        return value
    return str(value) if os.sep in str(value) else os.path.join(os.curdir, value)


Word = Annotated[str, BeforeValidator(_path_as_text)]


NO_TEXT = re.compile("[\0\ud800-\udfff]")  # NUL, and bytes that are no letters


class Options(BaseModel):
    """A set of settings. It refuses unknown names and cannot be changed."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, validate_default=True
    )
    any_text: ClassVar[bool] = False  # whether a text may hold what no name of a file can

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_odd(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what pydantic takes: true and false as 1 and 0, text that no file holds, an empty path."""
        if value is None or type(value) in (int, float):  # most settings, and none of these is odd
            return value
        allows = partial(_field_allows, cls, info.field_name or "")
        parts = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(part, bool) for part in parts) and not allows(bool):
            raise PydanticCustomError("switch", "Input should be neither true nor false")
        held = [] if cls.any_text else _leaves(value) if allows(dict) else parts
        texts = [str(part) for part in held if isinstance(part, str | Path)]
        if any(map(NO_TEXT.search, texts)):
            raise PydanticCustomError("text", "Input should be UTF-8, without NUL")
        if "" in texts and allows(Path):
            raise PydanticCustomError("text", "Input should not be empty")
        return tuple(value) if isinstance(value, list) and allows(tuple) else value  # of strict JSON, too


def _leaves(value: Any) -> Iterator[Any]:
    """What a tree of dictionaries and lists holds, names included."""
    if isinstance(value, dict | list | tuple):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _leaves(part)
    else:
        yield value


@lru_cache(maxsize=4096)
def _field_allows(options: type[Options], name: str, kind: type) -> bool:
    """Whether the type of a field allows values of that kind."""
    return _allows(options.model_fields[name].annotation, kind)


def _allows(annotation: Any, kind: type) -> bool:
    """Whether a type allows values of that kind."""
    names = (annotation, get_origin(annotation))
    return (
        kind in names
        or (annotation is Any and kind is bool)
        or any(_allows(part, kind) for part in get_args(annotation))
    )
