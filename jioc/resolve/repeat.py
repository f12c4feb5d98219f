"""The command line that repeats a run: the flags that it needs and no others. No torch here."""

import shlex
from typing import Any

from jioc.config import Config, Schedule, at, flat, index, plain
from jioc.data.find import find_dataset
from jioc.methods import find_method
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
    departing = Known(flat(values), spec, find_dataset(config.data)).departures()
    skipped = index.MACHINE | {"method"} | ({"memory"} if config.memory_per_class else set())
    wanted = departing.keys() | {"seed"} | _required(config, {*departing})
    arguments = [config.method]
    for path, setting in index.every(spec.options).items():
        if path in wanted - skipped:
            arguments += _flag(setting.flag, at(values, path))
    return arguments


def _required(config: Config, departing: set[str]) -> set[str]:
    """Flags without which others would be refused as without effect."""
    required = set()
    if config.coordination.coordinate == "none" and any(p.startswith("coordination.") for p in departing):
        required.add("coordination.coordinate")
    for name in index.STAGES:
        stage: Schedule = getattr(config, name)
        late = [m for m in stage.milestones or () if m >= (stage.epochs or 0)]
        if late and f"{name}.milestones" in departing:
            required.add(f"{name}.epochs")
        if stage.decay == "steps" and f"{name}.decay" in departing:
            required.add(f"{name}.milestones")
    return required


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [name if value else name.replace("--", "--no-", 1)]
    return [name, ",".join(map(str, value or [])) if isinstance(value, list | None) else str(value)]
