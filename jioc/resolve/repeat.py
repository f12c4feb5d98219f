"""The line that repeats a run: the flags that it needs and no others. No torch."""

import shlex
from typing import Any

from jioc.config import index
from jioc.config.schema import Config
from jioc.config.values import at, flat, plain
from jioc.data.find import find as find_data
from jioc.methods.registry import find as find_method
from jioc.resolve.derive import Known


def line(config: Config) -> str:
    """`jioc run icarl --data cifar100 …`: on any machine, the same settings."""
    return shlex.join(["jioc", "run", *argv(config)])


def argv(config: Config) -> list[str]:
    """The method and its flags. What is a default, or follows from another flag, is left out.

    A class order has no flag but a file's name: such a run is repeated from the config.yaml in its folder.
    """
    if config.order is not None:
        return [config.method, "--config", "config.yaml"]
    values, spec = plain(config), find_method(config.method)
    del values["given"]
    departs = Known(flat(values), spec, find_data(config.data)).departures()
    skipped = index.MACHINE | {"method"} | ({"memory"} if config.memory_per_class else set())
    paths = [
        path
        for path in index.every(spec.options)
        if path not in skipped and (path in departs or path == "seed")
    ]
    paths += [path for path in _needed(config, paths) if path not in paths]
    words = [config.method]
    for path in paths:
        words += _flag(index.setting(path).flag, at(values, path))
    return words


def _needed(config: Config, paths: list[str]) -> list[str]:
    """Flags without which others would be refused, because nobody would have chosen what leaves them without effect."""
    found = []
    if config.coordination.coordinate == "none" and any(path.startswith("coordination.") for path in paths):
        found.append("coordination.coordinate")
    for stage in index.STAGES:
        epochs = getattr(config, stage).epochs
        if f"{stage}.milestones" in paths and any(
            m >= epochs for m in getattr(config, stage).milestones or ()
        ):
            found.append(f"{stage}.epochs")
        if f"{stage}.decay" in paths and getattr(config, stage).decay == "steps":
            found.append(f"{stage}.milestones")
    return found


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [name if value else name.replace("--", "--no-", 1)]
    return [name, ",".join(map(str, value or [])) if isinstance(value, list | None) else str(value)]
