"""Every setting by its dotted name: where it stands, its flag, what it follows from. Nothing here names a setting.

memory              --memory            coordination.gamma1    --gamma1
first.epochs        --first-epochs      options.kd_weight      --kd-weight
"""

from collections.abc import Iterable, Iterator
from functools import cache

from pydantic.fields import FieldInfo

from jioc.config.schema import About, Config, Coordination, Options, Schedule

STAGES = tuple(name for name, field in Config.model_fields.items() if field.annotation is Schedule)
"""later, first, second: a run's tasks after the first, its first, and a second stage of a task."""
PARTS: dict[str, type[Options]] = {**dict.fromkeys(STAGES, Schedule), "coordination": Coordination}
"""Settings that are settings themselves."""


def about(field: FieldInfo) -> About:
    """What was declared with `setting`; of a method's own option nothing was."""
    extra = field.json_schema_extra
    return extra["about"] if isinstance(extra, dict) else About()  # type: ignore[return-value]


class Setting:
    """One setting: `path` (first.epochs), `section` (first, or nothing), `name` (epochs), `field` and `about`."""

    def __init__(self, path: str, field: FieldInfo, whole: FieldInfo | None = None):
        self.path, self.field = path, field
        self.section, _, self.name = path.rpartition(".")
        self.about, self._whole = about(field), about(whole or field)

    @property
    def heading(self) -> str:
        """Its section in the help."""
        return self._whole.section

    @property
    def commands(self) -> tuple[str, ...]:
        return self._whole.commands

    @property
    def follows(self) -> tuple[str, ...]:
        """The settings that decide it where nobody gives it."""
        if self.section == "options":
            return self._whole.follows
        names = (f"{self.section}{name}" if name.startswith(".") else name for name in self.about.follows)
        return tuple(name for name in names if name != self.path)

    @property
    def key(self) -> str:
        """The name of its flag, with underscores."""
        return f"{self.section}_{self.name}" if self.section in STAGES[1:] else self.name

    @property
    def flag(self) -> str:
        return flag(self.key)


def flag(key: str) -> str:
    return "--" + key.replace("_", "-")


def every(options: type[Options] | None = None) -> dict[str, Setting]:
    """All settings in the order of their declaration, with a method's own options where those are given."""
    own = {f"options.{name}": Setting(f"options.{name}", field, Config.model_fields["options"])
           for name, field in (options.model_fields if options else {}).items()}  # fmt: skip
    found: dict[str, Setting] = {}
    for path, one in _shared().items():
        found |= own if path == "options" else {path: one}
    return found


@cache
def _shared() -> dict[str, Setting]:
    return {one.path: one for one in _walk()}


def _walk() -> Iterator[Setting]:
    for name, field in Config.model_fields.items():
        if name in PARTS:
            for key, part in PARTS[name].model_fields.items():
                yield Setting(f"{name}.{key}", part, field)
        else:
            yield Setting(name, field)


def setting(path: str) -> Setting:
    """The setting of that path. A path that only another version, or a method's own options, know is an option."""
    return _shared().get(path) or Setting(path, FieldInfo(), Config.model_fields["options"])


def grouped(*groups: str) -> tuple[str, ...]:
    """The settings of some groups."""
    return tuple(path for path, one in _shared().items() if one.about.group in groups)


def labelled(kind: str) -> tuple[str, ...]:
    """The settings that tables tell in that way."""
    return tuple(path for path, one in _shared().items() if one.about.label == kind)


def taken_by(command: str) -> tuple[str, ...]:
    """The settings that a command takes."""
    return tuple(path for path, one in _shared().items() if command in one.commands)


MACHINE = frozenset(path for path, one in _shared().items() if one.about.machine)
"""In which a resumed run may differ from the one it goes on from."""
SEEDS = grouped("seeds")
"""In which the runs of one setting differ."""


def affected(changed: Iterable[str], among: Iterable[str]) -> list[str]:
    """Those of the paths that follow from a changed one, straight or through others."""
    reached, paths = set(changed), list(among)
    while more := [
        path for path in paths if path not in reached and reached.intersection(setting(path).follows)
    ]:
        reached.update(more)
    return [path for path in paths if path in reached.difference(changed)]


def without_effect(coordinate: str, host_kd: str | None) -> list[str]:
    """The options of JIOC that have no part in the loss."""
    idle = {
        "none": {"inputs", "outputs", "distillation"},
        "ic": {"outputs", "distillation"},
        "oc": {"inputs"},
    }
    parts = idle.get(coordinate, set()) | ({"distillation"} if host_kd in ("keep", "drop") else set())
    names = [name for name, field in Coordination.model_fields.items() if about(field).part in parts]
    return [*names, "gamma1"] if host_kd == "keep" and "gamma1" not in names else names
