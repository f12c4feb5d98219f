"""What a setting is called: its method, and where it departs from the usual. The place in which it ran stands apart."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jioc.config import index
from jioc.config.values import Values, at, differences, flat
from jioc.data.catalogue import DATASETS, in_memory, task_sizes, usual_tasks
from jioc.methods.specs import SPECS, Spec
from jioc.resolve.derive import Known
from jioc.text import coordinated, counted, printable

if TYPE_CHECKING:
    from jioc.report.runs import Group

PLACED = index.labelled("place")
ELSEWHERE = {*index.labelled("title"), *PLACED}  # what is told otherwise than as a departure
IMAGES = index.grouped("images")  # what the images depend on
RANK = {"none": 0, "ic": 1, "oc": 2, "jioc": 3}


def assign(groups: list["Group"]) -> list["Group"]:
    """The groups with their names, places and labels, in the order of tables: place by place, a method's settings
    together, without coordination first, the usual one before those that depart from it."""
    by_place: dict[tuple[str, ...], list[Group]] = {}
    tailed, several = any(g.config.get("long_tail") is not None for g in groups), changed(groups)
    for g in groups:
        by_place.setdefault(place(g, tailed, g in several), []).append(g)
    methods = list(dict.fromkeys(g.config["method"] for g in groups))
    found: list[Group] = []
    for parts, of in by_place.items():
        departing = [departures(g.config, g.spec) for g in of]
        _tell_first(of, departing)
        shared = _shared(departing)
        told = [{p: v for p, v in d.items() if p not in shared or shared[p] != v} for d in departing]
        _name(of, told)
        rank = {}
        for g, t in zip(of, told, strict=True):
            g.places = (*parts, _joined(words(shared)))
            changes = [_order(*change) for change in t.items()]
            rank[id(g)] = (methods.index(g.config["method"]), RANK.get(g.coordinate, len(RANK)), changes)
        found += sorted(of, key=lambda g: rank[id(g)])
    differs = [len(set(kind)) > 1 for kind in zip(*(g.places for g in found), strict=True)]
    for g in found:
        g.scene = _joined(g.places)
        g.place = _joined(p for p, d in zip(g.places, differs, strict=True) if d)
        g.ground = _joined(p for p, d in zip(g.places, differs, strict=True) if not d)
        g.label = _joined([g.name, g.place])
    return found


def _joined(parts: Iterable[str]) -> str:
    return printable(", ".join(part for part in parts if part))


# --- the name ---


def title(g: "Group") -> str:
    """iCaRL + JIOC."""
    return coordinated(_host(str(g.config.get("method")), g.spec), g.coordinate)


def _host(method: str, spec: Spec | None) -> str:
    """The method's title; of one that is in a file, the file's name where it has none or has taken another's."""
    name = printable(spec.title).strip() if spec else ""
    if spec is None or not name:
        return Path(method).stem
    taken = any(name == other.title and spec.name != other.name for other in SPECS.values())
    return f"{name} ({Path(method).stem})" if taken else name


def _called(g: "Group") -> list[str]:
    """The title, and what a method keeps whatever the memory of its place."""
    return [
        title(g),
        {"none": "no exemplars", "all": "every image kept"}.get(g.spec.memory if g.spec else "", ""),
    ]


def _name(groups: list["Group"], told: list[Values]) -> None:
    """The title and what is told beside it; where that leaves two groups alike, also what they differ in."""
    names = [_joined([*_called(g), *words(t)]) for g, t in zip(groups, told, strict=True)]
    for alike in [n for n, count in Counter(names).items() if count > 1]:
        here = [i for i, n in enumerate(names) if n == alike]
        paths = differing([groups[i].config for i in here])
        paths = [p for p in paths if not _follows(p, paths)]
        for i in here:
            told[i] |= {p: v for p in paths if (v := at(groups[i].config, p)) is not None}
            names[i] = _joined([*_called(groups[i]), *words(told[i])])
    count: Counter[str] = Counter()
    for g, name in zip(groups, names, strict=True):
        count[name] += 1
        g.name = name if count[name] == 1 else f"{name} ({count[name]})"


def _tell_first(groups: list["Group"], departing: list[Values]) -> None:
    """Adds the length of the first task where it is another in another method of the same `epochs 17`: from them it
    follows as long as it usually is beside the method's later tasks."""
    trained: dict[Any, set[tuple[str, Any]]] = {}
    for g, d in zip(groups, departing, strict=True):
        trained.setdefault(d.get("later.epochs"), set()).add(
            (g.config["method"], at(g.config, "first.epochs"))
        )
    for g, d in zip(groups, departing, strict=True):
        method, first = g.config["method"], at(g.config, "first.epochs")
        others = [n for m, n in trained[d.get("later.epochs")] if m != method and n != first]
        if "later.epochs" in d and first and any(others):
            d["first.epochs"] = first


def _shared(departing: list[Values]) -> Values:
    """Where no group of a place is as usual, what most have instead: told once, with the place."""
    found = {}
    for path in departing[0]:
        values = [d[path] for d in departing if path in d]
        common = max(values, key=values.count)
        if len(values) == len(departing) and 2 * values.count(common) > len(values):
            found[path] = common
    return found


def departures(config: Values, spec: Spec | None = None) -> Values:
    """The settings that are not what follows from the others, less those that the title and the place tell: from
    `epochs 17` follows the length of the first task, unless it has another."""
    spec = spec or SPECS.get(str(config.get("method")))
    data, given = str(config.get("data")), flat({name: v for name, v in config.items() if name != "given"})
    entry = DATASETS.get(data) or in_memory(data, 10, config.get("image_size") or 32)
    found = Known(dict(given), spec, entry).fill().departures()
    known = index.every(spec.options if spec else None)
    paths = [path for path in known if path in found and path in given and path not in ELSEWHERE]
    return {path: found[path] for path in paths if spec or "method" not in known[path].follows}


def _follows(path: str, others: list[str]) -> bool:
    """Whether one of the others decides what this setting is where nobody gives it."""
    return path in index.affected(others, [path])


def _order(path: str, value: Any) -> tuple[Any, ...]:
    """The rank of a departure: settings as the configuration lists them, numbers by size, words by letter."""
    place = [*index.every()].index(path) if path in index.every() else len(index.every())
    return place, path, (0, value) if isinstance(value, int | float) else (1, show(value))


# --- the place ---


def source(config: Values) -> tuple[Any, ...]:
    """Where the images come from, and what is made of them."""
    return tuple(config.get(name) for name in IMAGES)


def data(g: "Group") -> str:
    return Path(str(g.config.get("data"))).name or str(g.config.get("data"))


def changed(groups: list["Group"]) -> list["Group"]:
    """Those that tell which images they had, where others of that name had others."""
    of: dict[Any, set[tuple[Any, str]]] = {}
    for g in groups:
        of.setdefault((data(g), *source(g.config)[1:]), set()).add((g.config.get("data"), g.images))
    return [g for g in groups if g.images and len(of[data(g), *source(g.config)[1:]]) > 1]


def place(g: "Group", tailed: bool, several: bool) -> tuple[str, ...]:
    """cifar100, long tail paper, resnet18, 10 tasks, 1,000 exemplars; a part that there is nothing to say of is ''.
    `tailed`: it stands beside a long tail; `several`: and beside other images of that name."""
    c = g.config
    whole = "balanced" if c.get("data") in DATASETS else "no long tail"
    each = c.get("memory_per_class")
    return (
        data(g) + f" (images {g.images[:8]})" * several,
        whole * tailed if c.get("long_tail") is None else f"long tail {show(c['long_tail'])}",
        str(c.get("backbone")),
        _tasks(g),
        f"{counted(each, 'exemplar')} a class" if each else counted(c.get("memory", 0), "exemplar"),
        f"judged by {100 * c['holdout']:g} % held out" if c.get("holdout") else "",
    )


def _tasks(g: "Group") -> str:
    """10 tasks, or 50+5×10 classes where they are of unequal size."""
    sizes = _sizes(g)
    if max(sizes) - min(sizes) <= 1:
        return counted(len(sizes), "task")
    equal = [(size, len(list(of))) for size, of in itertools.groupby(sizes)]
    return "+".join(str(size) if n == 1 else f"{n}×{size}" for size, n in equal) + " classes"


def _sizes(g: "Group") -> Sequence[int]:
    """Classes of each task, those to come too."""
    if g.complete:
        return [row.classes[1] - row.classes[0] for row in g.complete[0].result.tasks]
    c, entry = g.config, DATASETS.get(str(g.config.get("data")))
    classes = len(g.runs[0].result.classes) or (entry.classes if entry else 0)
    tasks = c.get("tasks") or (entry.tasks if entry else usual_tasks(classes))
    return task_sizes(classes, tasks, c.get("base"), c.get("increment"), c.get("task_sizes"))


# --- settings by their dotted names ---


def words(told: Values) -> list[str]:
    """gamma2 5, first-epochs 20: as the flags are called."""
    return [f"{index.setting(path).flag[2:]} {show(value)}" for path, value in told.items()]


def differing(configs: list[Values]) -> list[str]:
    """Dotted names of the settings in which the configurations differ, those that say most first."""
    names = {n for c in configs[1:] for n in differences(configs[0], c)}
    return sorted(names, key=lambda n: (PLACED.index(n) if n in PLACED else len(PLACED), n))


def show(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (list, tuple)):
        text = ",".join(map(str, value))
        return text if len(text) <= 24 else f"{text[:22]}…"
    return f"{value:g}" if isinstance(value, float) else str(value)
