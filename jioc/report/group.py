"""A run that was read, and the runs of one setting as a group: their figures, and what coordination gains."""

import statistics
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jioc.config import Config, Values, index, plain
from jioc.data.catalogue import DATASETS, usual_tasks
from jioc.methods import SPECS, MethodRecord, Spec, parse_record, spec_from_record
from jioc.results import Accuracy, Result

TASKS = index.grouped("tasks")  # the settings that say how many tasks there are
ORDER = index.grouped("order")  # those that say the class order
LONG_TAIL = 2  # most images of a class / fewest, from which counts that nobody asked for are a long tail


@dataclass
class Run:
    path: Path
    result: Result
    over_orders: bool = False  # whether its class order counts as one more seed

    @property
    def config(self) -> Values:
        return {name: value for name, value in self.result.config.items() if name != "given"}

    @property
    def seeds(self) -> tuple[Any, ...]:
        names = index.SEEDS[1:] + (ORDER if self.over_orders else ())
        return tuple(self.config.get(name) for name in names)

    @property
    def images(self) -> str:
        """The fingerprint of its images; '' where there is none, as with digits and CIFAR."""
        return self.result.data.fingerprint or ""

    @property
    def commit(self) -> str:
        """The commit of the code that trained it: two where another resumed it, '' where none is known."""
        commits = self.result.commits or [self.result.commit]
        return " then ".join(str(commit or "unknown") for commit in commits) if any(commits) else ""

    @property
    def complete(self) -> bool:
        return self.result.complete

    @property
    def missing(self) -> bool:
        """Whether a recipe wants it and nobody began it."""
        return not self.result.tasks

    @property
    def readouts(self) -> dict[str, list[Accuracy]]:
        """The accuracies after each task, by read-out; only read-outs that every task has."""
        rows = [row.by_readout for row in self.result.tasks]
        names = [name for name in rows[0] if all(name in row for row in rows)] if rows else []
        return {name: [row[name] for row in rows] for name in names}

    @property
    def headline(self) -> str:
        return self.result.headline

    @cached_property
    def spec(self) -> Spec | None:
        """The method as this version knows it, or else as the run has recorded it."""
        return SPECS.get(str(self.config.get("method"))) or spec_from_record(self.record)

    @cached_property
    def record(self) -> MethodRecord | None:
        return parse_record(self.result.method)

    @property
    def long_tailed(self) -> bool:
        """Whether some classes have many images and others few."""
        counts = self.result.counts or [0]
        most, fewest = max(counts), min(counts)
        asked_for = self.config.get("long_tail") is not None
        return most > fewest and (asked_for or most >= LONG_TAIL * fewest)

    def figure(self, kind: str, readout: str) -> float | None:
        """`average`, `last` or `forgetting` of a read-out; None while the run is unfinished."""
        return self.result[kind].get(readout) if self.complete else None


def setting(run: Run) -> Values:
    """The run's configuration without seeds and machine.

    What has no effect, and what the run does not say, is at its default.
    """
    spec = run.spec
    usual = plain(Config(method="", options=spec.options().model_dump() if spec else {}))
    usual["coordination"]["host_kd"] = spec.host_kd if spec else "replace"
    del usual["given"]
    values = dict(usual)
    for name, value in run.config.items():
        in_parts = isinstance(value, dict) and isinstance(usual.get(name), dict)
        values[name] = usual[name] | value if in_parts else value
    if not any(values[name] for name in TASKS):
        values["tasks"] = _usual_tasks(run, str(values["data"]))
    if run.images or run.missing:
        values["data"] = _data_name(str(values["data"]))
    if run.over_orders:
        values |= {name: usual[name] for name in ORDER}
    coordination = values["coordination"]
    idle = index.without_effect(coordination["coordinate"], coordination["host_kd"])
    values["coordination"] = coordination | {name: usual["coordination"][name] for name in idle}
    if run.record and run.record.sha256:  # two states of a method's file are two methods, two copies are one
        values["file"] = run.record.sha256[:8]
        values["method"] = Path(str(values["method"])).name
    return {name: v for name, v in values.items() if name not in index.SEEDS and name not in index.MACHINE}


def _usual_tasks(run: Run, data: str) -> int:
    """The number of tasks where nobody gave it."""
    if run.complete:
        return len(run.result.tasks)
    entry = DATASETS.get(data)
    return entry.tasks if entry else usual_tasks(len(run.result.classes))


def _data_name(data: str) -> str:
    """The last part of a path, however it is written; a folder does not get the name of a data set."""
    name = Path(data).name or data
    if data in DATASETS:
        return data
    return f"./{name}" if name in DATASETS else name


@dataclass(eq=False)
class Group:
    """The runs of one setting on the same images, one for each seed; missing ones come last."""

    runs: list[Run]
    images: str = ""  # their fingerprint
    label: str = ""  # unique: name and own place
    name: str = ""  # the method and its departures; unique within a place
    place: str = ""  # where it ran: data, backbone, tasks, memory
    place_parts: tuple[str, ...] = ()
    own_place: str = ""  # the parts in which the places of all groups differ
    common_place: str = ""  # the parts in which they agree
    base: "Group | None" = field(default=None, repr=False)  # the same setting without coordination

    @property
    def config(self) -> Values:
        """The setting: a configuration without seeds and machine."""
        return setting(self.runs[0])

    @property
    def spec(self) -> Spec | None:
        return next((run.spec for run in self.runs if run.spec), None)

    @property
    def coordinate(self) -> str:
        return (self.config.get("coordination") or {}).get("coordinate", "none")

    @property
    def complete(self) -> list[Run]:
        return [run for run in self.runs if run.complete]

    def figures(self, kind: str, readout: str) -> list[float]:
        return [v for run in self.runs if (v := run.figure(kind, readout)) is not None]

    def gains(self, readout: str) -> list[float]:
        """What coordination adds to `average`, for each seed that both have finished."""
        if self.base is None:
            return []
        without = {run.seeds: run.figure("average", readout) for run in self.base.complete}
        pairs = [(run.figure("average", readout), without.get(run.seeds)) for run in self.complete]
        return [ours - host for ours, host in pairs if ours is not None and host is not None]


def shown_readouts(groups: list[Group]) -> dict[str, str]:
    """Map each read-out to the one that is shown for it.

    That is itself, or another that it repeats in every run that has it, as FOSTER's `boosted` repeats `cnn`.
    """
    accuracies = [(run, run.readouts) for g in groups for run in g.runs]
    names: dict[str, None] = {}
    for run, readouts in accuracies:
        names |= dict.fromkeys([run.headline, *readouts])

    def repeats(name: str, other: str) -> bool:
        having = [(run, readouts) for run, readouts in accuracies if name in readouts]
        same = [readouts[name] == readouts.get(other) for _, readouts in having]
        for kind in ("average", "last"):
            same += [run.figure(kind, name) == run.figure(kind, other) for run, _ in having]
        return bool(having) and all(same)

    shown: dict[str, str] = {}
    for name in names:
        shown[name] = next((other for other in shown.values() if repeats(name, other)), name)
    return shown


def mean_std(values: list[float]) -> tuple[float | None, float | None]:
    """The mean, and with two or more values the standard deviation of the sample."""
    if not values:
        return None, None
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None
