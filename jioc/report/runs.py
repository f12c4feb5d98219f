"""Results read from disk, put together by setting: runs that differ only in their seeds are one group."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import config as settings
from .. import store
from ..config import Config
from ..errors import Refused
from ..methods.specs import SPECS
from ..recipes import Recipe
from ..resolve import resolve

FORMAT = 1
SEEDS = ("seed", "init_seed", "data_seed")
TOLD_FIRST = ("data", "long_tail", "backbone", "tasks", "base", "increment", "memory", "memory_per_class")


@dataclass
class Run:
    path: Path
    result: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        return self.result["config"]

    @property
    def seeds(self) -> tuple[Any, ...]:
        return tuple(self.config.get(name) for name in SEEDS[1:])

    @property
    def complete(self) -> bool:
        return bool(self.result.get("complete"))

    @property
    def planned(self) -> bool:
        """Whether it stands for a run that is wanted and not there."""
        return not self.result["tasks"]

    @property
    def readouts(self) -> dict[str, list[dict[str, Any]]]:
        """Each read-out's rows, those that every task has."""
        rows = self.result["tasks"]
        names = ["cnn", "nme", *(n for row in rows for n in row.get("readouts") or {})]
        found = {n: [row.get(n) or (row.get("readouts") or {}).get(n) for row in rows] for n in dict.fromkeys(names)}
        return {n: [r for r in of if r] for n, of in found.items() if of and all(of)}

    @property
    def headline(self) -> str:
        return self.result.get("headline") or "cnn"

    def figure(self, kind: str, readout: str) -> float | None:
        """`average`, `last` or `forgetting` of a read-out; an unfinished run has none to compare."""
        return (self.result.get(kind) or {}).get(readout) if self.complete else None


@dataclass
class Group:
    """Runs of one setting, an element each seed."""

    runs: list[Run]
    label: str = ""  # unique
    name: str = ""  # unique among those of its scene
    base: "Group | None" = field(default=None, repr=False)  # the same setting without coordination

    @property
    def config(self) -> dict[str, Any]:
        """The setting: the configuration without seeds and machine."""
        return setting(self.runs[0])

    @property
    def coordinate(self) -> str:
        return (self.config.get("coordination") or {}).get("coordinate", "none")

    @property
    def complete(self) -> list[Run]:
        return [run for run in self.runs if run.complete]

    def figures(self, kind: str, readout: str) -> list[float]:
        return [v for run in self.runs if (v := run.figure(kind, readout)) is not None]

    def gains(self, readout: str) -> list[float]:
        """What coordination adds to `average`, seed by seed."""
        if self.base is None:
            return []
        without = {run.seeds: run.figure("average", readout) for run in self.base.runs}
        pairs = [(run.figure("average", readout), without.get(run.seeds)) for run in self.runs]
        return [a - b for a, b in pairs if a is not None and b is not None]


def read(places: list[Path]) -> list[Run]:
    found: dict[Path, Run] = {}
    for path, result in store.results(places):
        _check(path, result)
        found.setdefault(path.resolve(), Run(path, result))
    if not found:
        raise Refused(f"there is no result.json at or below {', '.join(repr(str(p)) for p in places)}")
    return list(found.values())


def _check(path: Path, result: Any) -> None:
    version = result.get("format") if isinstance(result, dict) else None
    if not isinstance(version, int) or not all(isinstance(result.get(k), kind) for k, kind in NEEDED.items()):
        raise Refused(f"{str(path)!r} is not a result of jioc")
    if version > FORMAT:
        raise Refused(f"{str(path)!r} was written by a newer jioc ({result.get('jioc')}); this one cannot read it")
    for t, row in enumerate(result["tasks"]):
        if not isinstance(row, dict) or len(row.get("classes") or []) != 2 or not isinstance(row.get("cnn"), dict):
            raise Refused(f"task {t + 1} of {str(path)!r} has no classes or no accuracy")
    if not result["tasks"]:
        raise Refused(f"{str(path)!r} holds no task yet")


NEEDED = {"config": dict, "classes": list, "tasks": list}


def planned(recipe: Recipe, found: list[Run]) -> list[Run]:
    """The runs in the recipe's order, others last, with one without tasks for each setting that no finished run has."""
    configs = {label: settings.plain(resolve(settings.make(**values))) for label, values in recipe.make().items()}
    runs = [Run(Path(label), {"config": c, "classes": [], "tasks": []}) for label, c in configs.items()]
    wanted = {_key(setting(run)): run for run in runs}
    there = {_key(setting(run)) for run in found if run.complete}
    place = {key: i for i, key in enumerate(wanted)}
    every = found + [run for key, run in wanted.items() if key not in there]
    return sorted(every, key=lambda run: place.get(_key(setting(run)), len(place)))


def setting(run: Run) -> dict[str, Any]:
    """The configuration without seeds and machine; what an older version did not know is at its default."""
    spec = SPECS.get(str(run.config.get("method")))
    usual = settings.plain(Config(method="", options=spec.options().model_dump() if spec else {}))
    for key, value in run.config.items():
        both = isinstance(value, dict) and isinstance(usual.get(key), dict)
        usual[key] = usual[key] | value if both else value
    return {k: v for k, v in usual.items() if k not in SEEDS and k not in settings.MACHINE}


def group(runs: Iterable[Run]) -> list[Group]:
    """Groups in order of first appearance, each coordinated one after its uncoordinated host; labels are unique."""
    by_setting: dict[str, list[Run]] = {}
    for run in runs:
        by_setting.setdefault(_key(setting(run)), []).append(run)
    found = {key: Group(sorted(of, key=lambda r: str(r.seeds))) for key, of in by_setting.items()}
    hosts = {_key(_host(g.config)): g for g in found.values() if g.coordinate == "none"}
    for g in found.values():
        g.base = hosts.get(_key(_host(g.config))) if g.coordinate != "none" else None
    rank = {"none": 0, "ic": 1, "oc": 2, "jioc": 3}
    place: dict[str, int] = {}
    for key in (_key(_host(g.config)) for g in found.values()):
        place.setdefault(key, len(place))
    groups = sorted(found.values(), key=lambda g: (place[_key(_host(g.config))], rank.get(g.coordinate, 4)))
    _label(groups)
    return groups


def _key(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def _host(config: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in config.items() if k != "coordination"}


def name(config: dict[str, Any]) -> str:
    """iCaRL + JIOC."""
    method = str(config.get("method"))
    title = SPECS[method].title if method in SPECS else Path(method).stem
    word = (config.get("coordination") or {}).get("coordinate", "none")
    return title if word == "none" else f"{title} + {word.upper()}"


def _label(groups: list[Group]) -> None:
    """The name, and where several share it the settings in which they differ."""
    by_name: dict[str, list[Group]] = {}
    for g in groups:
        by_name.setdefault(name(g.config), []).append(g)
    for title, of in by_name.items():
        paths = differing([g.config for g in of])
        told: dict[str, int] = {}
        for g in of:
            parts = [f"{p.rsplit('.', 1)[-1].replace('_', '-')} {show(at(g.config, p))}" for p in paths[:3]]
            label = ", ".join([title, *parts])
            told[label] = told.get(label, 0) + 1
            g.label = label if told[label] == 1 else f"{label} ({told[label]})"
        scenes = [scene(g) for g in of]
        for g, where in zip(of, scenes, strict=True):
            g.name = title if scenes.count(where) == 1 else g.label


def differing(configs: list[dict[str, Any]]) -> list[str]:
    """Dotted names of the settings in which the configurations differ, those that say most first."""
    names = {n for c in configs[1:] for n in settings.differences(configs[0], c)}
    return sorted(names, key=lambda n: (TOLD_FIRST.index(n) if n in TOLD_FIRST else len(TOLD_FIRST), n))


def at(config: dict[str, Any], path: str) -> Any:
    value: Any = config
    for word in path.split("."):
        value = value.get(word) if isinstance(value, dict) else None
    return value


def show(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (list, tuple)):
        text = ",".join(map(str, value))
        return text if len(text) <= 24 else f"{text[:22]}…"
    return f"{value:g}" if isinstance(value, float) else str(value)


def scene(g: Group) -> str:
    """cifar100, long tail paper, resnet18, 10 tasks, 1,000 exemplars."""
    c = g.config
    parts = [Path(str(c.get("data"))).name]
    if c.get("long_tail") is not None:
        parts.append(f"long tail {show(c['long_tail'])}")
    parts += [str(c.get("backbone")), _tasks(g)]
    if c.get("memory_per_class"):
        parts.append(f"{c['memory_per_class']} exemplars a class")
    else:
        parts.append(f"{c.get('memory', 0):,} exemplars")
    if c.get("holdout"):
        parts.append(f"judged by {100 * c['holdout']:g} % held out")
    return ", ".join(parts)


def _tasks(g: Group) -> str:
    c = g.config
    if g.complete:
        return f"{len(g.complete[0].result['tasks'])} tasks"
    if c.get("tasks") or c.get("task_sizes"):
        return f"{c.get('tasks') or len(c['task_sizes'])} tasks"
    return f"{c.get('base') or c.get('increment')}+{c.get('increment')} classes" if c.get("increment") else "unfinished"


def mean_std(values: list[float]) -> tuple[float | None, float | None]:
    """Mean, and the standard deviation of a sample where there are two or more."""
    if not values:
        return None, None
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None
