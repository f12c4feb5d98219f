"""The line that repeats a run: the flags that a configuration needs and no others. No torch here."""

import shlex
from functools import cache
from typing import Any

from jioc.config import schema as settings
from jioc.config.schema import MACHINE, Config, Options
from jioc.data import catalogue as datasets
from jioc.resolve.derive import PREFIX, resolve


def line(config: Config) -> str:
    """`jioc run icarl --data cifar100 …`: on any machine, the same settings."""
    return shlex.join(["jioc", "run", *words(config)])


def words(config: Config) -> list[str]:
    """The method and its flags. What a flag's default or another flag gives already is left out.

    A class order has no flag but a file's name: such a run is repeated from the config.yaml in its folder.
    """
    if config.order is not None:
        return [config.method, "--config", "config.yaml"]
    entry = cache(datasets.find)  # a data set is listed once, not for every setting

    def filled_in(config: Config) -> dict[str, Any]:
        return settings.plain(resolve(config, entry(config.data, config.image_size)))

    wanted = filled_in(config)
    values: dict[str, Any] = {"method": config.method, "coordination": {"coordinate": "none"}}
    found = [config.method]
    for section, name in _paths(config, wanted):
        value = _of(wanted, section, name)
        if name == "seed" or value != _of(filled_in(settings.make(**values)), section, name):
            _holder(values, section)[name] = value
            found += _flag(PREFIX.get(section, "") + name, value)
    if values["coordination"]["coordinate"] == "none" and len(values["coordination"]) > 1:
        found += _flag("coordinate", "none")  # without it, flags of no effect are refused
    for section, prefix in PREFIX.items():  # likewise
        said, epochs = values.get(section, {}), wanted[section]["epochs"]
        if "epochs" not in said and any(m >= epochs for m in said.get("milestones") or ()):
            found += _flag(prefix + "epochs", epochs)
        if said.get("decay") == "steps" and "milestones" not in said:
            found += _flag(prefix + "milestones", [])
    return found


def _paths(config: Config, wanted: dict[str, Any]) -> list[tuple[str, str]]:
    """Every setting that may differ, what others derive from first."""
    skipped = MACHINE | {"method", "order"} | ({"memory"} if config.memory_per_class else set())
    paths = []
    for name in Config.model_fields:
        part = getattr(config, name)
        if isinstance(part, Options):
            paths += [(name, key) for key in type(part).model_fields]
        elif name == "options":
            paths += [(name, key) for key in wanted["options"]]
        elif name not in skipped:
            paths.append(("", name))
    return paths


def _of(values: dict[str, Any], section: str, name: str) -> Any:
    return (values[section] if section else values).get(name)


def _holder(values: dict[str, Any], section: str) -> dict[str, Any]:
    return values.setdefault(section, {}) if section else values


def _flag(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    return [flag, ",".join(map(str, value)) if isinstance(value, list) else str(value)]
