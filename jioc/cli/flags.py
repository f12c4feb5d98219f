"""Command-line flags from the configuration: a field is a flag, its docstring the help, its type the check.

argparse only splits the words; pydantic checks the values, so that a flag, a line of config.yaml and a keyword of
`jioc.run` obey one rule.
"""

import argparse
from collections.abc import Collection, Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NoReturn, get_args, get_origin

from pydantic.fields import FieldInfo

from jioc.config.schema import Config, Coordination, Options, Schedule, without_effect
from jioc.errors import Refused, unknown
from jioc.methods.specs import Spec
from jioc.resolve.derive import PREFIX, idle_schedule, refuse_idle, resolve

GROUPS = {  # first field of each group of `jioc run --help`
    "data": "what is learnt",
    "memory": "what is remembered",
    "backbone": "the network",
    "later": "training",
    "coordination": "JIOC",
    "options": "of the method alone",
    "seed": "seeds",
    "device": "the machine",
}
EXCLUSIVE = (("memory", "memory_per_class"), ("order", "order_seed"))


class Parser(argparse.ArgumentParser):
    """argparse with our manners: one sentence, the nearest right word, exit status 2."""

    def __init__(self, name: str | None = None, **kwargs: Any):
        super().__init__(name, allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise Refused(message)

    def parse(self, words: list[str]) -> argparse.Namespace:
        found, rest = self.parse_known_args(words)
        if rest:
            flags = [flag for action in self._actions for flag in action.option_strings]
            wrong = next((word for word in rest if word.startswith("-")), rest[0]).split("=")[0]
            raise (
                unknown("option", wrong, flags) if wrong.startswith("-") else Refused(f"{wrong!r} is one word too many")
            )
        return found


def add_config(parser: Parser, spec: Spec, usual: Config | None = None, skip: Collection[str] = ()) -> None:
    """Every field of the configuration but those to skip, with the usual values, else the method's defaults."""
    given, usual = usual, usual or resolve(Config(method=spec.name), spec=spec)
    parser.usage = "jioc run METHOD [options]"
    group: Any = parser
    for name, field in Config.model_fields.items():
        if name in GROUPS:
            title = f"of {spec.title} alone" if name == "options" else GROUPS[name]
            group = parser.add_argument_group(title, _stages(usual, spec) if name == "later" else None)
        if name == "method" or name in skip:
            continue
        if name in PREFIX:
            if name == "second" and spec.second is None:
                continue
            for part, info in Schedule.model_fields.items():
                _add(group, PREFIX[name] + part, info, getattr(getattr(usual, name), part), hidden=name != "later")
        elif name == "coordination":
            for part, info in type(usual.coordination).model_fields.items():
                _add(group, part, info, getattr(usual.coordination, part))
        elif name == "options":
            for part, info in spec.options.model_fields.items():
                _add(group, part, info, usual.options[part])
        else:
            of_usual = given is not None or name in ("backbone", "stem")
            _add(group, name, field, getattr(usual, name) if of_usual else field.default)


def _stages(usual: Config, spec: Spec) -> str:
    """What the flags for the other stages are, and their defaults."""
    lines = ["These are for the tasks after the first."]
    for name, what in [("first", "the first task"), ("second", "the second stage")]:
        if name == "first" or spec.second:
            values = [f"{n.replace('_', ' ')} {_show(v)}" for n, v in getattr(usual, name) if v is not None]
            lines.append(f"For {what}: --{name}-epochs, --{name}-lr and so on ({', '.join(values)}).")
    return " ".join(lines)


def add_fields(parser: Any, names: Iterable[str], of: type[Options] = Config) -> None:
    """Some fields of the configuration or of other options, for a command that is not a run."""
    for name in names:
        _add(parser, name, of.model_fields[name], of.model_fields[name].default)


def said(found: argparse.Namespace, spec: Spec) -> dict[str, Any]:
    """The values that were given, in the shape of the configuration."""
    known = names(spec)  # a command has flags of its own besides
    values = nested({key: value for key, value in vars(found).items() if value is not None and key in known}, spec)
    for a, b in EXCLUSIVE:
        if a in values and b in values:
            raise Refused(f"--{a} and --{b.replace('_', '-')} exclude each other")
    if "order" in values:
        values["order"] = _lines(Path(values["order"]))
    return values


def nested(flat: dict[str, Any], spec: Spec) -> dict[str, Any]:
    """Values by the names of their flags, in the shape of the configuration."""
    values: dict[str, Any] = {}
    for key, value in flat.items():
        if key in Config.model_fields:
            values[key] = value
        elif key in spec.options.model_fields:
            values.setdefault("options", {})[key] = value
        else:
            section, part = _section(key)
            if section is None:
                raise unknown("setting", key, names(spec))
            values.setdefault(section, {})[part] = value
    return values


def idle(values: dict[str, Any], config: Config) -> list[str]:
    """Notes on flags that change nothing; where nobody chose what makes them so they are refused.

    `values`: what was said; `config`: what came of it.
    """
    stages = [note for stage in PREFIX for note in idle_schedule(stage, values.get(stage, {}), getattr(config, stage))]
    return stages + _idle_coordination(values, config)


def _idle_coordination(values: dict[str, Any], config: Config) -> list[str]:
    """Of options of JIOC that have no part in the loss."""
    given, word, host_kd = values.get("coordination", {}), config.coordination.coordinate, config.coordination.host_kd
    refuse_idle(config.coordination, given)
    names = [name for name in given if name in without_effect(word, host_kd)]
    told = ", ".join("--" + name.replace("_", "-") for name in names)
    why = f" --host-kd {host_kd}" * (not set(names) <= set(without_effect(word, None)))
    return [f"{told}: without effect under --coordinate {word}{why}"] if told else []


def names(spec: Spec) -> list[str]:
    """Of every flag, with underscores."""
    stages = [prefix + part for prefix in PREFIX.values() for part in Schedule.model_fields]
    single = [name for name in Config.model_fields if name not in (*PREFIX, "coordination", "options")]
    return [*single, *stages, *Coordination.model_fields, *spec.options.model_fields]


def _section(key: str) -> tuple[str | None, str]:
    for section in ("first", "second"):
        if key.startswith(PREFIX[section]) and key.removeprefix(PREFIX[section]) in Schedule.model_fields:
            return section, key.removeprefix(PREFIX[section])
    if key in Schedule.model_fields:
        return "later", key
    return ("coordination", key) if key in Coordination.model_fields else (None, key)


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"--order: {str(path)!r} cannot be read: {error}") from None


def _add(group: Any, name: str, field: FieldInfo, usual: Any, hidden: bool = False) -> None:
    flag = "--" + name.replace("_", "-")
    told = "" if usual is None else f" ({_show(usual)})"
    text = argparse.SUPPRESS if hidden else (field.description or "").replace("%", "%%").rstrip(".") + told
    kinds = _kinds(field.annotation)
    if bool in kinds:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
        return
    choices = [str(w) for kind in kinds if get_origin(kind) is Literal for w in get_args(kind)]
    only = choices if all(get_origin(kind) is Literal for kind in kinds) else None
    many = any(get_origin(kind) is tuple for kind in kinds) and name != "order"
    noun = "FILE" if name == "order" else name.rsplit("_", 1)[-1].upper()
    group.add_argument(
        flag,
        metavar="{" + ",".join(only) + "}" if only else noun,
        type=(lambda word: word.replace(",", " ").split()) if many else _one_of(flag, only) if only else str,
        default=None,
        help=text,
    )


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
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
