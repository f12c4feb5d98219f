"""The name of a group: its method and where its settings depart from the usual. And its place: where it ran.

name    iCaRL + JIOC, gamma2 5
place   cifar100, resnet18, 10 tasks, 1,000 exemplars
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jioc.config import GONE, Values, at, differences, flat, index
from jioc.data.catalogue import DATASETS, in_memory, task_sizes
from jioc.methods import SPECS, Spec
from jioc.report.group import Group, collect
from jioc.resolve.derive import Known
from jioc.text import coordinated, counted, exemplars, printable

IN_PLACE = index.labelled("place")
NO_DEPARTURES = {*index.labelled("title"), *IN_PLACE}  # the title and the place tell these settings
IMAGES = index.grouped("images")  # the settings that decide which images there are
COORDINATIONS = ("none", "ic", "oc", "jioc")  # in the order of a table; others come last


def assign(groups: list[Group]) -> list[Group]:
    """Give the groups their names, places and labels, and sort them as tables show them.

    Place by place; then method by method, without coordination first, the usual setting before departures.
    """
    methods = list(dict.fromkeys(g.config["method"] for g in groups))
    beside_tail = any(g.config.get("long_tail") is not None for g in groups)
    with_images = of_other_images(groups)
    with_memory = any(g.spec is None or g.spec.memory == "exemplars" for g in groups)
    places = collect((_place(g, beside_tail, g in with_images, with_memory), g) for g in groups)
    ordered: list[Group] = []
    for parts, members in places.items():
        departing = _departures(members)
        shared = _shared(departing)
        own = {}
        for g, values in departing.items():
            own[g] = {path: value for path, value in values.items() if shared.get(path) != value}
            g.place_parts = (*parts, _joined(as_flags(shared)))
        _name(own)
        ordered += _sorted(own, methods)
    varying = [len(set(parts)) > 1 for parts in zip(*(g.place_parts for g in ordered), strict=True)]
    for g in ordered:
        parts_vary = list(zip(g.place_parts, varying, strict=True))
        g.place = _joined(g.place_parts)
        g.own_place = _joined(part for part, varies in parts_vary if varies)
        g.common_place = _joined(part for part, varies in parts_vary if not varies)
        g.label = _joined([g.name, g.own_place])
    return ordered


def _sorted(changes: dict[Group, Values], methods: list[str]) -> list[Group]:
    """Sort the groups of a place by method, coordination, and the settings in which they differ.

    Settings come as the configuration declares them, numbers by size, words by letter.
    """
    position = {path: i for i, path in enumerate(index.every())}

    def rank(path: str, value: Any) -> tuple[Any, ...]:
        by_size = isinstance(value, int | float)
        return position.get(path, len(position)), path, not by_size, value if by_size else show(value)

    def key(g: Group) -> tuple[Any, ...]:
        coordination = [*COORDINATIONS, g.coordinate].index(g.coordinate)
        return methods.index(g.config["method"]), coordination, [rank(*one) for one in changes[g].items()]

    return sorted(changes, key=key)


def _joined(parts: Iterable[str]) -> str:
    return printable(", ".join(part for part in parts if part))


# --- the name ---


def title(g: Group) -> str:
    """iCaRL + JIOC."""
    return coordinated(method(g), g.coordinate)


def method(g: Group) -> str:
    """The method's title. A method in a file without a title of its own is called by the file's name."""
    spec, file = g.spec, Path(str(g.config.get("method"))).stem
    name = printable(spec.title).strip() if spec else ""
    if spec is None or not name:
        return file
    taken = any(name == other.title and spec.name != other.name for other in SPECS.values())
    return f"{name} ({file})" if taken else name


def _name(changes: dict[Group, Values]) -> None:
    """Name each group by its title and its changes; add to alike names what the groups differ in."""
    for alike in collect((_described(g, own), g) for g, own in changes.items()).values():
        paths = differing([g.config for g in alike])
        leading = [path for path in paths if not set(paths).intersection(index.setting(path).follows)]
        for g in alike:
            changes[g] |= {path: v for path in leading if (v := at(g.config, path)) is not None}
    for name, alike in collect((_described(g, own), g) for g, own in changes.items()).items():
        for i, g in enumerate(alike, 1):
            g.name = name if i == 1 else f"{name} ({i})"


def _described(g: Group, changes: Values) -> str:
    """The title, what the method keeps whatever the memory of its place, and the changes."""
    memory = {"none": "no exemplars", "all": "every image kept"}.get(g.spec.memory if g.spec else "", "")
    return _joined([title(g), memory, *as_flags(changes)])


def _departures(groups: list[Group]) -> dict[Group, Values]:
    """The departures of each group of a place.

    `epochs 17` decides the length of the first task too, and that differs between methods. So where methods
    with the same epochs have first tasks of different length, that length is a departure too.
    """
    departing = {g: departures(g.config, g.spec) for g in groups}
    with_epochs = [g for g in groups if "later.epochs" in departing[g]]
    for members in collect((departing[g]["later.epochs"], g) for g in with_epochs).values():
        first = {g: at(g.config, "first.epochs") for g in members}
        for g in members:
            others = {first[other] for other in members if other.config["method"] != g.config["method"]}
            if first[g] and others - {first[g], None}:
                departing[g]["first.epochs"] = first[g]
    return departing


def _shared(departing: dict[Group, Values]) -> Values:
    """Find the settings in which every group departs, with the value that most of them have."""
    first, *others = departing.values()
    every = [path for path in first if all(path in own for own in others)]
    values = {path: [own[path] for own in departing.values()] for path in every}
    most_common = {path: max(values[path], key=values[path].count) for path in every}
    return {path: v for path, v in most_common.items() if 2 * values[path].count(v) > len(departing)}


def departures(config: Values, spec: Spec | None = None) -> Values:
    """Find the settings that do not follow from the others, apart from those that title and place tell.

    What follows from an unknown method is unknown, and so no departure.
    """
    spec = spec or SPECS.get(str(config.get("method")))
    data = str(config.get("data"))
    entry = DATASETS.get(data) or in_memory(data, 10, config.get("image_size") or 32)
    values = flat(config)
    departing = Known(dict(values), spec, entry).fill().departures()
    known = index.every(spec.options if spec else None)
    paths = [path for path, one in known.items() if spec or "method" not in one.follows]
    paths += map(".".join, GONE)  # where an earlier version's run has one, it acted
    recorded = [path for path in paths if values.get(path) is not None and path not in NO_DEPARTURES]
    return {path: departing[path] for path in recorded if path in departing}


# --- the place ---


def _place(g: Group, beside_tail: bool, with_images: bool, with_memory: bool) -> tuple[str, ...]:
    """cifar100, long tail paper, resnet18, 10 tasks, 1,000 exemplars; a part without anything to say is ''.

    `beside_tail`: some other group has a long tail. `with_images`: the images' fingerprint is added.
    `with_memory`: some group keeps exemplars.
    """
    c = g.config
    data = f"{data_name(g)} (images {g.images[:8]})" if with_images else data_name(g)
    balanced = "balanced" if c.get("data") in DATASETS else "no long tail"
    tail = balanced * beside_tail if c.get("long_tail") is None else f"long tail {show(c['long_tail'])}"
    memory = exemplars(c.get("memory") or 0, c.get("memory_per_class"), c.get("memory_bytes"))
    memory += " at half size" * (c.get("exemplar_size") == "half")
    memory *= with_memory
    held = f"{100 * c['holdout']:g} % held out" if c.get("holdout") else ""
    holdout = held and (f"judged by {held}" if c.get("judge_by") != "test" else f"{held} and left aside")
    return data, tail, str(c.get("backbone")), tasks_of(g), memory, holdout


def data_name(g: Group) -> str:
    data = str(g.config.get("data"))
    return Path(data).name or data


def image_settings(config: Values) -> tuple[Any, ...]:
    """The settings that decide which images there are; the first is `data`."""
    return tuple(config.get(name) for name in IMAGES)


def of_other_images(groups: list[Group]) -> list[Group]:
    """Find the groups whose data, known by a fingerprint, has other images in another group of that name."""

    def key(g: Group) -> tuple[Any, ...]:
        return data_name(g), *image_settings(g.config)[1:]

    images = collect((key(g), (g.config.get("data"), g.images)) for g in groups)
    return [g for g in groups if g.images and len(set(images[key(g)])) > 1]


def tasks_of(g: Group) -> str:
    """10 tasks; or 50+5×10 classes where they are of unequal size."""
    sizes = _sizes(g)
    if max(sizes) - min(sizes) <= 1:
        return counted(len(sizes), "task")
    equal = [(size, len(list(tasks))) for size, tasks in itertools.groupby(sizes)]
    return "+".join(str(size) if n == 1 else f"{n}×{size}" for size, n in equal) + " classes"


def _sizes(g: Group) -> Sequence[int]:
    """The number of classes of each task, those not learnt yet included."""
    if g.complete:
        return [row.classes[1] - row.classes[0] for row in g.complete[0].result.tasks]
    c, entry = g.config, DATASETS.get(str(g.config.get("data")))
    classes = len(g.runs[0].result.classes) or (entry.classes if entry else 0)
    return task_sizes(classes, c.get("tasks") or 1, c.get("base"), c.get("increment"), c.get("task_sizes"))


# --- settings by their dotted names ---


def as_flags(values: Values) -> list[str]:
    """gamma2 5, first-epochs 20: as the flags are called."""
    return [f"{index.setting(path).flag[2:]} {show(value)}" for path, value in values.items()]


def differing(configs: list[Values]) -> list[str]:
    """Dotted names of the settings in which the configurations differ, those of the place first."""
    names = {name for config in configs[1:] for name in differences(configs[0], config)}
    return [name for name in IN_PLACE if name in names] + sorted(names.difference(IN_PLACE))


def show(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (list, tuple)):
        text = ",".join(map(str, value))
        return text if len(text) <= 24 else f"{text[:22]}…"
    return f"{value:g}" if isinstance(value, float) else str(value)
