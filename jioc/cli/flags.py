"""Flags from the settings: a setting is a flag, its docstring the help, its type the check.

argparse only splits the words; pydantic checks the values, so that a flag, a line of config.yaml and a keyword of
`jioc.run` obey one rule.
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NoReturn, get_args, get_origin

from pydantic.fields import FieldInfo

from jioc.config import index
from jioc.config.schema import SECTIONS, Config, Options
from jioc.config.values import Values, by_keys, flat
from jioc.errors import Refused, unknown
from jioc.methods.specs import Spec
from jioc.resolve import validate
from jioc.resolve.derive import Known


class Parser(argparse.ArgumentParser):
    """argparse with our manners: one sentence, the nearest right word, exit status 2."""

    def __init__(self, name: str | None = None, **kwargs: Any):
        super().__init__(name, allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise Refused(message)

    def parse(self, argv: list[str]) -> argparse.Namespace:
        found, rest = self.parse_known_args(argv)
        if rest:
            flags = [flag for action in self._actions for flag in action.option_strings]
            wrong = next((word for word in rest if word.startswith("-")), rest[0]).split("=")[0]
            raise (
                unknown("option", wrong, flags)
                if wrong.startswith("-")
                else Refused(f"{wrong!r} is one word too many")
            )
        return found


HELP = ("-h", "--help")


def wants_help(argv: list[str]) -> bool:
    return any(word in HELP for word in argv)


def usual_values(spec: Spec) -> Values:
    """What `jioc run --help` shows as defaults: those of the schema, and what follows from the method."""
    return (
        Known({path: one.field.default for path, one in index.every(spec.options).items()}, spec)
        .fill()
        .values
    )


def add_settings(
    parser: Parser, spec: Spec, usual: Values | None, paths: Iterable[str] | None = None
) -> None:
    """Add a flag for every setting, or for those of the paths, under the headings of their sections.

    `usual`: the defaults that the help shows, by their paths; None where nobody asked for help.
    """
    taken, groups = None if paths is None else {*paths}, dict[str, Any]()
    for path, one in index.every(spec.options).items():
        if path == "method" or (taken is not None and not taken & {path, one.section}):
            continue
        if one.section == "second" and spec.second is None:
            continue
        if one.heading not in groups:
            title = SECTIONS[one.heading] if one.heading != "options" else f"of {spec.title} alone"
            about = _stages(usual) if one.heading == "training" and usual else None
            groups[one.heading] = parser.add_argument_group(title, about)
        default = None if usual is None else usual.get(path)
        _add(groups[one.heading], one.key, one.field, default, hidden=one.section in index.STAGES[1:])


def _stages(usual: Values) -> str:
    """What the flags of the other stages are, and their defaults."""
    lines = ["These are for the tasks after the first."]
    for stage, what in [("first", "the first task"), ("second", "the second stage")]:
        of = {
            path.rpartition(".")[2]: v
            for path, v in usual.items()
            if path.startswith(f"{stage}.") and v is not None
        }
        if of:
            values = ", ".join(f"{name.replace('_', ' ')} {_show(value)}" for name, value in of.items())
            lines.append(f"For {what}: --{stage}-epochs, --{stage}-lr and so on ({values}).")
    return " ".join(lines)


def add_fields(parser: Any, fields: Mapping[str, FieldInfo]) -> None:
    """Add a flag for each of some fields, for a command that is not a run."""
    for name, field in fields.items():
        _add(parser, name, field, field.default)


def config_fields(paths: Iterable[str]) -> dict[str, FieldInfo]:
    return {path: Config.model_fields[path] for path in paths}


def given_values(found: argparse.Namespace, options: type[Options]) -> Values:
    """The settings that were given as flags, nested; a command has flags of its own besides."""
    values = by_keys({key: value for key, value in vars(found).items() if value is not None}, options)
    validate.excluded(flat(values))
    if "order" in values:
        values["order"] = _lines(Path(values["order"]))
    return values


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"--order: {str(path)!r} cannot be read: {error}") from None


def _add(group: Any, key: str, field: FieldInfo, default: Any, hidden: bool = False) -> None:
    flag = index.flag(key)
    shown = "" if default is None else f" ({_show(default)})"
    text = argparse.SUPPRESS if hidden else (field.description or "").replace("%", "%%").rstrip(".") + shown
    kinds = _kinds(field.annotation)
    if bool in kinds:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
        return
    words = choices(field)
    only = words if all(get_origin(kind) is Literal for kind in kinds) else None
    named = metavar(field)
    many = any(get_origin(kind) is tuple for kind in kinds) and named != "FILE"
    group.add_argument(
        flag,
        metavar="{" + ",".join(only) + "}" if only else named or key.rsplit("_", 1)[-1].upper(),
        type=(lambda word: word.replace(",", " ").split()) if many else _one_of(flag, only) if only else str,
        default=None,
        help=text,
    )


def choices(field: FieldInfo) -> list[str]:
    """The words that a setting takes, where it takes words of a list."""
    return [
        str(word)
        for kind in _kinds(field.annotation)
        if get_origin(kind) is Literal
        for word in get_args(kind)
    ]


def metavar(field: FieldInfo) -> str | None:
    extra = field.json_schema_extra
    return str(extra["metavar"]) if isinstance(extra, dict) and extra["metavar"] else None


def _one_of(flag: str, choices: list[str]) -> Any:
    def check(word: str) -> str:
        if word not in choices:
            raise unknown(f"value of {flag}", word, choices)
        return word

    return check


def _kinds(annotation: Any) -> list[Any]:
    """The alternatives of a type, None aside."""
    if get_origin(annotation) is None or get_origin(annotation) in (Literal, tuple):
        return [annotation]
    if hasattr(annotation, "__metadata__"):
        return _kinds(get_args(annotation)[0])
    return [kind for part in get_args(annotation) if part is not NoneType for kind in _kinds(part)]


def _show(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
