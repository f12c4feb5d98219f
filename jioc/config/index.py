"""Look settings up by dotted name: section, flag, what a setting follows from. No setting is named here.

memory              --memory            coordination.gamma1    --gamma1
first.epochs        --first-epochs      options.kd_weight      --kd-weight
"""

from collections.abc import Iterable, Iterator
from functools import cache

from pydantic.fields import FieldInfo

from jioc.config.schema import About, Config, Coordination, Options, Schedule

STAGES = tuple(name for name, field in Config.model_fields.items() if field.annotation is Schedule)
"""later, first, second: the tasks after the first, the first task, and the second stage of a task."""
PARTS: dict[str, type[Options]] = {**dict.fromkeys(STAGES, Schedule), "coordination": Coordination}
"""Fields of `Config` that hold settings of their own."""


def about(field: FieldInfo) -> About:
    """What was declared with `schema.setting`; for a method's own option nothing was."""
    extra = field.json_schema_extra
    return extra["about"] if isinstance(extra, dict) else About()  # type: ignore[return-value]


class Setting:
    """One setting, such as first.epochs: `section` is first, a part of `Config`, and `name` is epochs.

    `heading`: its section of the help, a key of `SECTIONS`. `commands`: those that take it, besides run.
    `key`: the name of its flag, with underscores. `follows`: what decides it where nobody gives it.
    """

    def __init__(self, path: str, field: FieldInfo, whole: FieldInfo | None = None):
        """`whole`: the field of `Config` that this setting is a part of."""
        self.path, self.field, self.about = path, field, about(field)
        self.section, _, self.name = path.rpartition(".")
        self.key = f"{self.section}_{self.name}" if self.section in STAGES[1:] else self.name
        self.flag = flag(self.key)
        of_whole = about(whole or field)
        self.heading, self.commands = of_whole.section, of_whole.commands
        follows = of_whole.follows if self.section == "options" else self.about.follows
        names = (f"{self.section}{name}" if name.startswith(".") else name for name in follows)
        self.follows = tuple(name for name in names if name != path)


def flag(key: str) -> str:
    """--batch-size for batch_size."""
    return "--" + key.replace("_", "-")


def every(options: type[Options] | None = None) -> dict[str, Setting]:
    """All settings by path, in the order of their declaration. `options`: a method's own, to include."""
    settings: dict[str, Setting] = {}
    for path, setting in _shared().items():
        settings |= {path: setting} if path != "options" else own(options or Options)
    return settings


def own(options: type[Options]) -> dict[str, Setting]:
    """A method's own options by path."""
    whole, fields = Config.model_fields["options"], options.model_fields.items()
    return {f"options.{name}": Setting(f"options.{name}", field, whole) for name, field in fields}


@cache
def _shared() -> dict[str, Setting]:
    return {setting.path: setting for setting in _walk()}


def _walk() -> Iterator[Setting]:
    for name, field in Config.model_fields.items():
        if name in PARTS:
            for key, part in PARTS[name].model_fields.items():
                yield Setting(f"{name}.{key}", part, field)
        else:
            yield Setting(name, field)


def setting(path: str) -> Setting:
    """The setting of that path. An unknown path counts as a method's own option."""
    return _shared().get(path) or Setting(path, FieldInfo(), Config.model_fields["options"])


def grouped(*groups: str) -> tuple[str, ...]:
    """The paths of the settings of some groups."""
    return tuple(path for path, setting in _shared().items() if setting.about.group in groups)


def labelled(kind: str) -> tuple[str, ...]:
    """The paths of the settings that tables show in that way."""
    return tuple(path for path, setting in _shared().items() if setting.about.label == kind)


def taken_by(command: str) -> tuple[str, ...]:
    """The paths of the settings that a command takes."""
    return tuple(path for path, setting in _shared().items() if command in setting.commands)


MACHINE = frozenset(path for path, setting in _shared().items() if setting.about.machine)
"""Settings that a resumed run may change."""
SEEDS = grouped("seeds")
"""Settings in which repetitions of a run differ."""


def affected(changed: Iterable[str], among: Iterable[str]) -> list[str]:
    """Choose the paths that follow from a changed one, directly or through others."""
    reached, paths = set(changed), list(among)
    while more := [path for path in paths if path not in reached and reached & {*setting(path).follows}]:
        reached.update(more)
    return [path for path in paths if path in reached.difference(changed)]


def without_effect(coordinate: str, host_kd: str | None) -> list[str]:
    """Names of the options of JIOC that have no part in the loss."""
    parts = {
        "none": {"inputs", "outputs", "distillation"},
        "ic": {"outputs", "distillation"},
        "oc": {"inputs"},
    }
    unused = parts.get(coordinate, set()) | ({"distillation"} if host_kd in ("keep", "drop") else set())
    names = [name for name, field in Coordination.model_fields.items() if about(field).part in unused]
    return [*names, "gamma1"] if host_kd == "keep" and "gamma1" not in names else names
