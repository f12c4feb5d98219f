"""Results read from disk, put together by setting and images: runs that differ only in their seeds are one group."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jioc import results
from jioc.config import index
from jioc.config.schema import Config
from jioc.config.values import Values, make, plain
from jioc.data.catalogue import DATASETS, usual_tasks
from jioc.data.find import find as find_data
from jioc.errors import Refused
from jioc.methods.record import MethodRecord, parse_record, record, spec_from_record
from jioc.methods.registry import find, sha256
from jioc.methods.specs import SPECS, Spec
from jioc.report import labels
from jioc.resolve.derive import resolve
from jioc.resolve.recipe_file import Recipe, scaled
from jioc.results import Accuracy, Result

SPLIT = index.grouped("tasks")  # how many tasks there are
ORDER = index.grouped("order")
TAIL = (
    2  # times the images of the rarest class that the most frequent has, where nobody asked for a long tail
)


@dataclass
class Run:
    path: Path
    result: Result
    over_orders: bool = False  # whether its class order is one more seed

    @property
    def config(self) -> Values:
        return {name: value for name, value in self.result.config.items() if name != "given"}

    @property
    def seeds(self) -> tuple[Any, ...]:
        return tuple(self.config.get(name) for name in index.SEEDS[1:] + ORDER * self.over_orders)

    @property
    def images(self) -> str:
        """Which they were: their fingerprint; '' where the run tells none, as of digits and CIFAR."""
        return self.result.data.fingerprint or ""

    @property
    def commit(self) -> str:
        """Of the code that trained it: two where another resumed it, '' where none is known."""
        commits = self.result.commits or [self.result.commit]
        return " then ".join(str(commit or "unknown") for commit in commits) if any(commits) else ""

    @property
    def complete(self) -> bool:
        return self.result.complete

    @property
    def planned(self) -> bool:
        """Whether it stands for a run that is wanted and not there."""
        return not self.result.tasks

    @property
    def readouts(self) -> dict[str, list[Accuracy]]:
        """Each read-out's accuracies, of those that every task has."""
        rows = [row.by_readout for row in self.result.tasks]
        return (
            {name: [row[name] for row in rows] for name in rows[0] if all(name in row for row in rows)}
            if rows
            else {}
        )

    @property
    def headline(self) -> str:
        return self.result.headline

    @cached_property
    def spec(self) -> Spec | None:
        """The method as this version knows it, else as the run has told of it."""
        return SPECS.get(str(self.config.get("method"))) or spec_from_record(self.record)

    @cached_property
    def record(self) -> MethodRecord | None:
        return parse_record(self.result.method)

    @property
    def tailed(self) -> bool:
        """Whether there are classes of many and of few images."""
        counts = self.result.counts or [0]
        most, fewest = max(counts), min(counts)
        return most > fewest and (self.config.get("long_tail") is not None or most >= TAIL * fewest)

    def figure(self, kind: str, readout: str) -> float | None:
        """`average`, `last` or `forgetting` of a read-out; an unfinished run has none to compare."""
        return self.result[kind].get(readout) if self.complete else None


@dataclass(eq=False)
class Group:
    """Runs of one setting on the same images, an element each seed; those that are wanted and not there come last."""

    runs: list[Run]
    images: str = ""
    label: str = ""  # unique: name and place
    name: str = ""  # unique among those of its scene
    scene: str = ""  # where it ran: data, backbone, tasks, memory
    places: tuple[str, ...] = ()  # the parts of the scene
    place: str = ""  # those in which the scenes differ
    ground: str = ""  # those that all have
    base: "Group | None" = field(default=None, repr=False)  # the same setting without coordination

    @property
    def config(self) -> Values:
        """The setting: the configuration without seeds and machine."""
        return setting(self.runs[0])

    @property
    def spec(self) -> Spec | None:
        return next((spec for run in self.runs if (spec := run.spec)), None)

    @property
    def coordinate(self) -> str:
        return (self.config.get("coordination") or {}).get("coordinate", "none")

    @property
    def complete(self) -> list[Run]:
        return [run for run in self.runs if run.complete]

    def figures(self, kind: str, readout: str) -> list[float]:
        return [v for run in self.runs if (v := run.figure(kind, readout)) is not None]

    def gains(self, readout: str) -> list[float]:
        """What coordination adds to `average`, seed by seed, over the seeds that both have finished."""
        if self.base is None:
            return []
        without = {run.seeds: run.figure("average", readout) for run in self.base.complete}
        pairs = [(run.figure("average", readout), without.get(run.seeds)) for run in self.complete]
        return [a - b for a, b in pairs if a is not None and b is not None]


def read(places: list[Path], over_orders: bool = False) -> list[Run]:
    """Read every result at or below the places; one that is damaged is refused by its name."""
    found: dict[Path, Run] = {}
    for path in results.find(places):
        result = results.read(path)
        if wrong := _wrong_setting(result.config):
            raise Refused(f"{str(path)!r} is damaged: setting {wrong!r} is missing or not what it should be")
        found.setdefault(path.resolve(), Run(path, result, over_orders))
    if not found:
        raise Refused(f"there is no result.json at or below {', '.join(repr(str(p)) for p in places)}")
    return list(found.values())


def _wrong_setting(config: Values) -> str | None:
    """The first setting of a wrong kind. Names and words that only another version knows are none of our business."""
    values = {name: value for name, value in config.items() if name != "given"}
    try:
        Config.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        for one in error.errors():
            word = one["type"] == "literal_error" and isinstance(one["input"], str)
            if not word and one["type"] != "extra_forbidden":
                return ".".join(map(str, one["loc"]))
    return None


def planned(recipe: Recipe, found: list[Run], scale: float | None = None) -> list[Run]:
    """The runs in the recipe's order, others last, with one without tasks for each setting and seed of the recipe that
    was not even begun. `scale`: of the schedules; by default the recipe's own."""
    wanted: dict[str, list[Run]] = {}
    over_orders = any(run.over_orders for run in found)
    for label, values in recipe.make().items():
        method = str(values["method"])
        spec = find(method)
        values = scaled(values, spec, recipe.scale if scale is None else scale)
        about = record(spec, sha256(method)).model_dump(mode="json")
        for seed in recipe.seeds:
            config = plain(resolve(make(**values | {"seed": seed})))
            if not any(config[name] for name in SPLIT):
                config["tasks"] = find_data(config["data"]).tasks
            run = Run(Path(label), Result(config=config, method=about, classes=[], tasks=[]), over_orders)
            wanted.setdefault(_key(setting(run)), []).append(run)
    there = {(_key(setting(run)), run.seeds) for run in found}
    place = {key: i for i, key in enumerate(wanted)}
    every = found + [run for key, of in wanted.items() for run in of if (key, run.seeds) not in there]
    return sorted(every, key=lambda run: place.get(_key(setting(run)), len(place)))


def setting(run: Run) -> Values:
    """The configuration without seeds and machine. Options of JIOC that have no part in the loss are at their default,
    and so is what the run does not say."""
    spec = run.spec
    usual = plain(Config(method="", options=spec.options().model_dump() if spec else {}))
    usual["coordination"]["host_kd"] = spec.host_kd if spec else "replace"
    del usual["given"]
    found = dict(usual)
    for key, value in run.config.items():
        both = isinstance(value, dict) and isinstance(usual.get(key), dict)
        found[key] = usual[key] | value if both else value
    if not any(found[name] for name in SPLIT):
        entry, classes = DATASETS.get(str(found["data"])), len(run.result.classes)
        later = entry.tasks if entry else usual_tasks(classes)
        found["tasks"] = len(run.result.tasks) if run.complete else later
    if run.images or run.planned:
        found["data"] = _called(str(found["data"]))
    if run.over_orders:
        found |= {name: usual[name] for name in ORDER}
    idle = index.without_effect(*(found["coordination"][name] for name in ("coordinate", "host_kd")))
    found["coordination"] = found["coordination"] | {name: usual["coordination"][name] for name in idle}
    if run.record and run.record.sha256:
        found["file"] = run.record.sha256[
            :8
        ]  # two states of a method's file are two methods, two places of it one
        found["method"] = Path(str(found["method"])).name
    return {k: v for k, v in found.items() if k not in index.SEEDS and k not in index.MACHINE}


def group(runs: Iterable[Run]) -> list[Group]:
    """Runs of one setting and the same images together, each coordinated group with its uncoordinated host; named and
    sorted. A run that is wanted, or of a named data set, and tells no images has those that all others of it had."""
    every = [(run, setting(run)) for run in runs]
    known: dict[Any, set[str]] = {}
    for run, here in every:
        known.setdefault(labels.source(here), set()).update([run.images] * bool(run.images))
    by_setting: dict[tuple[str, str], list[Run]] = {}
    for run, here in every:
        of = known[labels.source(here)] if run.planned or here["data"] in DATASETS else set()
        images = run.images or (next(iter(of)) if len(of) == 1 else "")
        by_setting.setdefault((_key(here), images), []).append(run)
    groups = [
        Group(sorted(of, key=lambda r: (r.planned, str(r.seeds))), key[1]) for key, of in by_setting.items()
    ]
    hosts = {(_key(_host(g.config)), g.images): g for g in groups if g.coordinate == "none"}
    for g in groups:
        g.base = hosts.get((_key(_host(g.config)), g.images)) if g.coordinate != "none" else None
    return labels.assign(groups)


def shown_readouts(groups: list[Group]) -> dict[str, str]:
    """Those of the runs, each with the one that is shown for it: itself, or another that it repeats wherever it is, as
    FOSTER's `boosted` its `cnn`."""
    runs = [run for g in groups for run in g.runs]
    of = {id(run): run.readouts for run in runs}
    names = dict.fromkeys(n for run in runs for n in [run.headline, *of[id(run)]])

    def repeats(name: str, other: str) -> bool:
        having = [run for run in runs if name in of[id(run)]]
        return bool(having) and all(
            of[id(run)][name] == of[id(run)].get(other)
            and all(run.figure(kind, name) == run.figure(kind, other) for kind in ("average", "last"))
            for run in having
        )

    found: dict[str, str] = {}
    for name in names:
        found[name] = next((other for other in found.values() if repeats(name, other)), name)
    return found


def _called(data: str) -> str:
    """The last name of a place, which may be written in many ways; that of a data set is not for a folder."""
    name = Path(data).name or data
    return data if data in DATASETS else f"./{name}" if name in DATASETS else name


def _key(values: Values) -> str:
    return json.dumps(values, sort_keys=True)


def _host(config: Values) -> Values:
    return {k: v for k, v in config.items() if k != "coordination"}


def mean_std(values: list[float]) -> tuple[float | None, float | None]:
    """Mean, and the standard deviation of a sample where there are two or more."""
    if not values:
        return None, None
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None
