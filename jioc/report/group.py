"""A run that was read, and the runs of one setting as a group: their figures, and what coordination gains."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from jioc.config import READINGS, Config, Options, Values, index, plain, upgraded
from jioc.data.catalogue import DATASETS, MEMORY, tasks_by_default
from jioc.methods import SPECS, MethodRecord, Spec, parse_record, spec_from_record
from jioc.resolve.derive import usual_reading
from jioc.results import Accuracy, Result

TASKS = index.grouped("tasks")  # the settings that say how many tasks there are
ORDER = index.grouped("order")  # those that say the class order
LONG_TAIL = 2  # most images of a class / fewest, from which counts that nobody asked for are a long tail
Key = TypeVar("Key")
Value = TypeVar("Value")


def collect(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Put the values of each key into a list, in the order in which they come."""
    values: dict[Key, list[Value]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


@dataclass
class Run:
    path: Path
    result: Result
    over_orders: bool = False  # whether its class order counts as one more seed

    @cached_property
    def config(self) -> Values:
        """Its settings in the words of this version."""
        return {name: value for name, value in upgraded(self.result.config).items() if name != "given"}

    @property
    def seeds(self) -> tuple[Any, ...]:
        return tuple(self.config.get(name) for name in index.SEEDS[1:] + ORDER * self.over_orders)

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

    @cached_property
    def spec(self) -> Spec | None:
        """The method as this version knows it, or else as the run has recorded it."""
        return SPECS.get(str(self.config.get("method"))) or spec_from_record(self.record)

    @cached_property
    def record(self) -> MethodRecord | None:
        """The method as the run describes it. Before runs had a headline, each was judged by its method's."""
        known = parse_record(self.result.method)
        if known is not None and known.headline is None:
            return known.model_copy(update={"headline": self.result.headline})
        return known

    @property
    def long_tailed(self) -> bool:
        """Whether some classes have many images and others few."""
        most, fewest = max(self.result.counts, default=0), min(self.result.counts, default=0)
        asked_for = self.config.get("long_tail") is not None
        return most > fewest and (asked_for or most >= LONG_TAIL * fewest)

    def figure(self, kind: str, readout: str) -> float | None:
        """`average`, `last`, `forgetting` or `task mean` of a read-out; None while the run is unfinished."""
        if not self.complete:
            return None
        return self._task_mean(readout) if kind == "task mean" else self.result[kind].get(readout)

    def _task_mean(self, readout: str) -> float | None:
        """The mean over the tasks so far of each task's accuracy, averaged over the run (LT-CIL's figure)."""
        known = [[a for a in row.per_task if a is not None] for row in self.readouts.get(readout, ())]
        whole = known and all(len(some) == t for t, some in enumerate(known, 1))
        return statistics.fmean(map(statistics.fmean, known)) if whole else None


def setting(run: Run) -> Values:
    """The run's configuration without seeds and machine.

    What has no effect, and what the run does not say, is at its default.
    """
    spec = run.spec
    usual: Values = json.loads(_usual(spec and spec.options))
    given, of_jioc = run.config, usual["coordination"]
    usual["coordination"] = _coordination({}, of_jioc, spec)
    sections = [name for name in usual if isinstance(usual[name], dict) and isinstance(given.get(name), dict)]
    values = usual | given | {name: usual[name] | given[name] for name in sections}
    entry = DATASETS.get(str(values["data"]))
    if values["memory"] is None:
        values["memory"] = entry.memory if entry else MEMORY
    values["headline"] = values["headline"] or run.result.headline
    if not any(values[name] for name in TASKS):
        by_default = tasks_by_default(str(values["data"]), len(run.result.classes))
        values["tasks"] = len(run.result.tasks) if run.complete else by_default
    if run.images or run.missing:
        values["data"] = _data_name(str(values["data"]))
    if run.over_orders:
        values |= {name: usual[name] for name in ORDER}
    values["coordination"] = _coordination(given.get("coordination") or {}, of_jioc, spec)
    if run.record and run.record.sha256:  # two states of a method's file are two methods, two copies are one
        values["file"] = run.record.sha256[:8]
        values["method"] = Path(str(values["method"])).name
    left_out = {*index.SEEDS, *index.MACHINE, "given"}
    return {name: value for name, value in values.items() if name not in left_out}


@lru_cache(maxsize=256)
def _usual(options: type[Options] | None) -> str:
    """Every setting at its default, and those of a method, as JSON: a table asks hundreds of times."""
    return json.dumps(plain(Config(method="", options=options().model_dump() if options else {})))


def _coordination(given: Values, defaults: Values, spec: Spec | None) -> Values:
    """The options of JIOC that a run has; what has no effect is at its default.

    The name of the reading is the one whose options the run has, whatever it was called.
    """
    usual = defaults | {"host_kd": spec.host_kd if spec else "replace"}
    reading = usual_reading(spec)
    usual |= READINGS[reading] | {"reading": reading}
    if given.get("coordinate", "none") == "none":
        return usual
    named = given.get("reading") or reading
    values = usual | READINGS.get(str(named), {}) | {n: v for n, v in given.items() if v is not None}
    known = {name: values[name] for name in ("coordinate", "host_kd", "gamma1", "gamma2")}
    idle = index.without_effect(**known, shares=spec is None or spec.shares)
    values |= {name: usual[name] for name in idle}
    for word, options in sorted(READINGS.items(), key=lambda one: one[0] != reading):
        if all(values[name] == value for name, value in options.items() if name not in idle):
            return values | options | {"reading": word}
    return values | {"reading": reading}


def _data_name(data: str) -> str:
    """The last part of a path, however it is written; a folder does not get the name of a data set."""
    name = Path(data).name or data
    return f"./{name}" if name in DATASETS and data not in DATASETS else name


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

    @cached_property
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

    def repeats(name: str, other: str) -> bool:
        having = [(run, readouts) for run, readouts in accuracies if name in readouts]
        same = [readouts[name] == readouts.get(other) for _, readouts in having]
        for kind in ("average", "last"):
            same += [run.figure(kind, name) == run.figure(kind, other) for run, _ in having]
        return bool(having) and all(same)

    names = [name for run, readouts in accuracies for name in (run.result.headline, *readouts)]
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        shown[name] = next((other for other in shown.values() if repeats(name, other)), name)
    return shown


def mean_std(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """The mean of what is not None, and with two or more values the standard deviation of the sample."""
    known = [value for value in values if value is not None]
    std = statistics.stdev(known) if len(known) > 1 else None
    return statistics.fmean(known) if known else None, std
