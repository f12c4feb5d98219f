"""Flags made from the settings: a setting is a flag, its docstring the help, its type the check.

argparse only splits the command line; pydantic checks the values, so that a flag, a line of config.yaml and a
keyword of `jioc.run` obey one rule.
"""

import argparse
import sys
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NoReturn, get_args, get_origin

from pydantic.fields import FieldInfo

from jioc.cli.stdout import PipeSafeStdout, print_help
from jioc.config import SECTIONS, Config, Options, Values, by_keys, flat, index
from jioc.errors import Refused, refuse_if, refuse_unknown, unknown
from jioc.files import read_text
from jioc.methods import Spec
from jioc.resolve import validate
from jioc.resolve.derive import Known

HELP = ("-h", "--help")
FORCE = "replace a file that this command did not write"
OWN_METHOD = "the Python file of your own method; it is run"  # help of --method


class Parser(argparse.ArgumentParser):
    """argparse that refuses in one sentence, with the nearest right word.

    `examples`: command lines and what they do. `common`: the flags that -h shows; without any, all.
    """

    add = argparse.ArgumentParser.add_argument

    def __init__(
        self,
        command: str = "jioc",
        about: str | None = None,
        *,
        examples: Mapping[str, str] | None = None,
        common: Collection[str] = (),
        add_help: bool = True,
        **kwargs: Any,
    ):
        super().__init__(command, description=about, allow_abbrev=False, add_help=False, **kwargs)
        self.examples, self.common = examples or {}, common
        self.color = False  # of later versions of argparse; headings are coloured by `print_help`
        self._positionals.title = "arguments"
        if add_help:
            self.add("-h", action=_Help, short=True, help=argparse.SUPPRESS if not common else "show less")
            self.add("--help", action=_Help, help="show this, and exit")

    def print_help(self, file: Any = None, short: bool = False) -> None:
        print_help(self._format_common() if short and self.common else self.format_help())

    def format_help(self) -> str:
        return super().format_help() + self._format_examples()

    def _format_common(self) -> str:
        """The help of the common options, with the number of all."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, [])
        formatter.add_text(self.description)
        options = [a for a in self._actions if a.option_strings and a.help is not argparse.SUPPRESS]
        groups = {
            "arguments": [a for a in self._actions if not a.option_strings],
            "common options": [a for a in options if a.option_strings[0] in self.common],
        }
        for title, actions in groups.items():
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        more = f"\n{self.prog} --help shows all {len(options)} options.\n"
        return formatter.format_help() + self._format_examples() + more

    def _format_examples(self) -> str:
        lines = [f"  {line}\n      {does}\n" for line, does in self.examples.items()]
        return "\nexamples:\n" + "".join(lines) if lines else ""

    def error(self, message: str) -> NoReturn:
        raise Refused(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Leave after the help, if it could be printed."""
        PipeSafeStdout.fail_if_lost(sys.stdout)
        super().exit(status, message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        empty = next((word for word in args if word.startswith("--") and word.endswith("=--")), "")
        refuse_if(empty, f"{empty[:-3]}: '--' is refused: it is no value")  # argparse would drop it
        return super().parse_known_args(args, namespace)

    def parse(self, argv: list[str]) -> argparse.Namespace:
        args, rest = self.parse_known_args(argv)
        if rest:
            wrong = next((word for word in rest if word.startswith("-")), rest[0]).split("=")[0]
            refuse_if(not wrong.startswith("-"), f"{wrong!r} is one word too many")
            raise unknown("option", wrong, self._option_string_actions)
        return args


class _Help(argparse.Action):
    """Print the help and leave."""

    def __init__(self, option_strings: Any, dest: str, short: bool = False, help: str | None = None):
        super().__init__(option_strings, argparse.SUPPRESS, 0, default=argparse.SUPPRESS, help=help)
        self.short = short

    def __call__(self, parser: Any, *_: Any) -> None:
        parser.print_help(short=self.short)
        parser.exit()


def wants_help(argv: list[str]) -> bool:
    return any(word in HELP for word in argv)


def add_settings(
    parser: Parser, spec: Spec, usual: Values | None = None, names: Collection[str] = Config.model_fields
) -> None:
    """Add a flag for every setting, or for those fields of `Config`, under the headings of their sections.

    `usual`: the defaults that the help shows, by path; otherwise the method's.
    """
    settings = index.every(spec.options)
    usual = defaults(spec, {}) if usual is None else usual
    titles = SECTIONS | {"options": f"of {spec.title} alone"}
    taken = {*names} - ({"second"} if spec.second is None else set())
    for heading, title in titles.items():
        group = parser.add_argument_group(title, _stages(usual) if usual and heading == "training" else None)
        for s in settings.values():
            if s.heading == heading and (s.section or s.name) in taken:
                _add(group, s.key, s.field, usual.get(s.path), s.section in index.STAGES[1:])


def defaults(spec: Spec, preset: Values) -> Values:
    """The settings by path if nobody gave any: a preset's, and what follows for the method."""
    fields = {path: s.field.default for path, s in index.every(spec.options).items()}
    return Known(fields | preset, spec).fill().values


def _stages(usual: Values) -> str:
    """Name the flags of the other stages, which the help does not list, with their defaults."""
    lines = ["These are for the tasks after the first."]
    for stage, title in [("first", "the first task"), ("second", "the second stage")]:
        shown = [
            f"{path.rpartition('.')[2].replace('_', ' ')} {show(value)}"
            for path, value in usual.items()
            if path.startswith(f"{stage}.") and value is not None
        ]
        if shown:
            lines.append(f"For {title}: --{stage}-epochs, --{stage}-lr and so on ({', '.join(shown)}).")
    return " ".join(lines)


def add_fields(parser: Any, fields: Mapping[str, FieldInfo]) -> None:
    """Add a flag for each of some fields, for a command that is not a run."""
    for name, field in fields.items():
        _add(parser, name, field, field.default)


def _add(group: Any, key: str, field: FieldInfo, default: Any, hidden: bool = False) -> None:
    """Add the flag of a field. `hidden`: the help does not list it."""
    flag, types = index.flag(key), alternatives(field.annotation)
    kinds = {get_origin(kind) for kind in types}
    shown = "" if default is None else f" ({show(default)})"
    text = argparse.SUPPRESS if hidden else (field.description or "").replace("%", "%%").rstrip(".") + shown
    metavar = index.about(field).metavar or key.rsplit("_", 1)[-1].upper()
    if bool in types:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
    elif kinds == {Literal}:
        choices = [word for kind in types for word in get_args(kind)]
        metavar = "{" + ",".join(choices) + "}"
        group.add_argument(flag, metavar=metavar, type=partial(_checked, flag, choices), help=text)
    else:
        convert = _lines if metavar == "FILE" else split_list if tuple in kinds else str
        group.add_argument(flag, metavar=metavar, type=convert, help=text)


def named_path(word: str) -> Path:
    """A file or folder that somebody names; an empty word, as of an unset variable, is not this folder."""
    refuse_if(not word, "a file or folder has an empty name")
    return Path(word)


def split_list(text: str) -> list[str]:
    """80,120 as two words."""
    return text.replace(",", " ").split()


def _lines(path: str) -> list[str] | str:
    if path == "original":
        return path
    try:
        return [line.strip() for line in read_text(path).splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise Refused(f"--order: {path!r} cannot be read: {why}") from None


def _checked(flag: str, choices: list[str], word: str) -> str:
    refuse_unknown(f"value of {flag}", word, choices)
    return word


def given_values(args: argparse.Namespace, options: type[Options]) -> Values:
    """The settings that were given as flags, nested. The command's other flags are left out."""
    values = by_keys({key: value for key, value in vars(args).items() if value is not None}, options)
    validate.excluded(flat(values))
    return values


def alternatives(annotation: Any) -> list[Any]:
    """The types that a union allows, without None and without bounds."""
    if get_origin(annotation) is None or get_origin(annotation) in (Literal, tuple):
        return [annotation]
    if hasattr(annotation, "__metadata__"):
        return alternatives(get_args(annotation)[0])
    return [kind for part in get_args(annotation) if part is not NoneType for kind in alternatives(part)]


def show(value: Any) -> str:
    """A value as it is given to a flag; yes and no for a switch."""
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
