"""Write docs/settings.md, the page of all settings, from their declarations: `make reference`."""

from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from jioc.cli import grid, run
from jioc.cli.flags import Parser, show
from jioc.config import SECTIONS, Options, index
from jioc.config.declare import LARGEST, MOST
from jioc.grid.options import LaunchOptions
from jioc.methods import SPECS

INTRODUCTION = """\
# Settings

Written by `make reference` from `jioc/config/schema.py`, `jioc/methods/specs.py` and
`jioc/grid/options.py`; change it there.

A setting is a flag of `jioc run`, a line of config.yaml and a keyword of `jioc.run`, there by the flag's name
or nested as in the file: `jioc.run(method="icarl", epochs=17)` or `later={"epochs": 17}`. The method itself
is the first word of `jioc run`. A setting that nobody gives has its default or follows from others:
`first.epochs` follows from the method, and scales with `later.epochs`. `jioc run METHOD --help` shows the
values that follow from a method.
"""
TABLE = "| flag | setting | value | default | |\n|---|---|---|---|---|"
TYPES = {bool: "yes or no", int: "whole number", float: "number", Path: "path"}
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def page() -> str:
    """The whole page, in Markdown."""
    sections = [(heading, title) for heading, title in SECTIONS.items() if heading != "options"]
    methods = [spec for spec in SPECS.values() if spec.options.model_fields]
    launch = [_row(index.flag(name), "", field) for name, field in LaunchOptions.model_fields.items()]
    parts = [
        INTRODUCTION,
        *(f"## {title[0].upper()}{title[1:]}\n\n{_settings(heading)}" for heading, title in sections),
        "## The methods' own options\n",
        *(f"### {m.title} (`{m.name}`)\n\n{_settings('options', m.options)}" for m in methods),
        f"## jioc run: files\n\n{_flags(run.build_parser(SPECS['icarl']), 'files')}",
        f"## jioc grid\n\n{_flags(grid.build_parser(None), 'the grid')}",
        "## jioc grid: where the runs go\n",
        *[TABLE, *launch, ""],
    ]
    return "\n".join(parts)


def _settings(heading: str, options: type[Options] | None = None) -> str:
    """The settings of a section."""
    settings = [s for s in index.every(options).values() if s.heading == heading]
    return "\n".join([TABLE, *(_row(s.flag, f"`{s.path}`", s.field, s.follows) for s in settings), ""])


def _row(flag: str, path: str, field: FieldInfo, follows: tuple[str, ...] = ()) -> str:
    default = "" if field.default in (None, ()) else f"`{show(field.default)}`"
    if field.default is None and follows:
        default = "follows from " + ", ".join(f"`{name}`" for name in follows)
    text = " ".join((field.description or "").split()).replace("|", r"\|")
    return f"| `{flag}` | {path} | {_values(field.annotation, field.metadata)} | {default} | {text} |"


def _flags(parser: Parser, title: str) -> str:
    """The flags of a command that are no settings, by the title of their group."""
    (group,) = (group for group in parser._action_groups if group.title == title)
    flags = [(a.option_strings[0], a.metavar or "", a.help) for a in group._group_actions]
    return "\n".join([TABLE, *(f"| `{flag}` | | {value} | | {text} |" for flag, value, text in flags), ""])


def _values(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """The values of a type in words: whole number, at least 1."""
    if hasattr(annotation, "__metadata__"):
        kind, *notes = get_args(annotation)
        return _values(kind, [m for note in notes for m in getattr(note, "metadata", [note])])
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(annotation))
    if get_origin(annotation) is tuple:
        return f"list of: {_values(get_args(annotation)[0])}"
    if kinds := [kind for kind in get_args(annotation) if kind is not NoneType]:
        return " or ".join(map(_values, kinds))
    bounds = ((word, getattr(m, key)) for m in metadata for key, word in BOUNDS.items() if hasattr(m, key))
    limits = "".join(f", {word} {bound}" for word, bound in bounds if bound not in (MOST, LARGEST))
    return TYPES.get(annotation, "text") + limits


if __name__ == "__main__":
    print(page(), end="")
