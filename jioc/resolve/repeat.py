"""The command line that repeats a run: the flags that it needs and no others. No torch here."""

import shlex
from collections.abc import Set
from typing import Any

from jioc.config import Config, Schedule, flat, index, plain
from jioc.data.find import find_dataset
from jioc.methods import find_method
from jioc.resolve.derive import Known


def line(config: Config) -> str:
    """`jioc run icarl --data cifar100 …`: on any machine, the same settings."""
    return shlex.join(["jioc", "run", *argv(config)])


def argv(config: Config) -> list[str]:
    """The method and its flags. What is a default, or follows from another flag, is left out.

    A class order of one's own has no flag but a file's name: such a run is repeated from the config.yaml in
    its folder.
    """
    if isinstance(config.order, tuple):
        return [config.method, "--config", "config.yaml"]
    spec = find_method(config.method)
    values = {path: value for path, value in flat(plain(config)).items() if path != "given"}
    departing = Known(values, spec, find_dataset(config.data)).departures().keys()
    skipped = (
        index.MACHINE | {"method"} | ({"memory"} if config.memory_per_class or config.memory_bytes else set())
    )
    wanted = (departing | {"seed"} | _required(config, departing)) - skipped
    settings = [setting for path, setting in index.every(spec.options).items() if path in wanted]
    return sum((_flag(setting.flag, values.get(setting.path)) for setting in settings), [config.method])


def _required(config: Config, departing: Set[str]) -> set[str]:
    """Flags without which others would be refused as without effect."""
    required = set()
    if config.coordination.coordinate == "none" and any(p.startswith("coordination.") for p in departing):
        required.add("coordination.coordinate")
    for name in index.STAGES:
        stage: Schedule = getattr(config, name)
        late = stage.epochs is not None and any(m >= stage.epochs for m in stage.milestones or ())
        if late and f"{name}.milestones" in departing:
            required.add(f"{name}.epochs")
        if stage.decay == "steps" and f"{name}.decay" in departing:
            required.add(f"{name}.milestones")
    return required


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [name if value else name.replace("--", "--no-", 1)]
    return [name, ",".join(map(str, value or [])) if isinstance(value, list | None) else str(value)]
