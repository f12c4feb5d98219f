"""Look settings up by dotted name: section, flag, what a setting follows from. No setting is named here.

memory              --memory            coordination.gamma1    --gamma1
first.epochs        --first-epochs      options.kd_weight      --kd-weight
"""

from collections.abc import Iterable
from functools import cache

from pydantic.fields import FieldInfo

from jioc.config.declare import About, Options
from jioc.config.schema import Config, Coordination, Schedule

# later, first, second: the tasks after the first, the first task, and the second stage of a task
STAGES = tuple(name for name, field in Config.model_fields.items() if field.annotation is Schedule)
# the fields of `Config` that hold settings of their own
PARTS: dict[str, type[Options]] = {**dict.fromkeys(STAGES, Schedule), "coordination": Coordination}


def about(field: FieldInfo) -> About:
    """What was declared with `declare.setting`; for a method's own option nothing was."""
    extra = field.json_schema_extra
    return extra["about"] if isinstance(extra, dict) else About()  # type: ignore[return-value]


def flag(key: str) -> str:
    """--batch-size for batch_size."""
    return "--" + key.replace("_", "-")


class Setting:
    """One setting, such as first.epochs: `section` is first, a part of `Config`, and `name` is epochs.

    `heading`: its section of the help, a key of `SECTIONS`. `commands`: those that take it, besides run.
    `key`: the name of its flag, with underscores. `follows`: what decides it where nobody gives it.
    """

    def __init__(self, path: str, field: FieldInfo):
        self.path, self.field, self.about = path, field, about(field)
        self.section, _, self.name = path.rpartition(".")
        self.key = f"{self.section}_{self.name}" if self.section in STAGES[1:] else self.name
        self.flag = flag(self.key)
        whole = about(Config.model_fields.get(self.section or path, Config.model_fields["options"]))
        self.heading, self.commands = whole.section, whole.commands
        follows = whole.follows if self.section == "options" else self.about.follows
        names = (f"{self.section}{name}" if name.startswith(".") else name for name in follows)
        self.follows = tuple(name for name in names if name != path)


@cache
def every(options: type[Options] | None = None) -> dict[str, Setting]:
    """All settings by path, in the order of their declaration. `options`: a method's own, to include."""
    parts, settings = PARTS | {"options": options or Options}, dict[str, Setting]()
    for name, field in Config.model_fields.items():
        fields = {name: field}
        if name in parts:
            fields = {f"{name}.{key}": part for key, part in parts[name].model_fields.items()}
        settings |= {path: Setting(path, field) for path, field in fields.items()}
    return settings


def setting(path: str) -> Setting:
    """The setting of that path. An unknown path counts as a method's own option."""
    return every().get(path) or Setting(path, FieldInfo())


def grouped(*groups: str) -> tuple[str, ...]:
    """The paths of the settings of some groups."""
    return tuple(path for path, setting in every().items() if setting.about.group in groups)


def labelled(kind: str) -> tuple[str, ...]:
    """The paths of the settings that tables show in that way."""
    return tuple(path for path, setting in every().items() if setting.about.label == kind)


def taken_by(command: str) -> tuple[str, ...]:
    """The fields of `Config` that a command takes."""
    return tuple(name for name, field in Config.model_fields.items() if command in about(field).commands)


# settings that a resumed run may change
MACHINE = frozenset(path for path, setting in every().items() if setting.about.machine)
SEEDS = grouped("seeds")  # settings in which repetitions of a run differ


def affected(changed: Iterable[str], among: Iterable[str]) -> list[str]:
    """Choose the paths that follow from a changed one, directly or through others."""
    reached, paths = set(changed), list(among)
    while more := [path for path in paths if path not in reached and reached & {*setting(path).follows}]:
        reached.update(more)
    return [path for path in paths if path in reached.difference(changed)]


UNUSED_PARTS = {  # parts of JIOC without effect, by the word of --coordinate or that of --host-kd
    "none": ("reading", "inputs", "outputs", "scale", "host", "strength", "distillation", "factors"),
    "ic": ("outputs", "scale", "host", "strength", "distillation", "factors"),
    "oc": ("inputs",),
    "keep": ("strength", "distillation", "factors"),
    "add": ("factors",),
    "drop": ("distillation", "factors"),
}


def without_effect(
    coordinate: str = "jioc",
    host_kd: str | None = None,
    gamma1: float = 1.0,
    gamma2: float = 1.0,
    shares: bool = True,
) -> list[str]:
    """Names of the options of JIOC that have no part in the loss. `shares`: of the method's entry."""
    unused = {*UNUSED_PARTS.get(coordinate, ()), *UNUSED_PARTS.get(host_kd or "", ())}
    unused |= {"distillation", "factors", "host"} if gamma1 == 0 else set()
    unused |= {"scale"} if gamma2 == 0 else set()
    unused |= set() if shares else {"factors"}
    return [name for name, field in Coordination.model_fields.items() if about(field).part in unused]
