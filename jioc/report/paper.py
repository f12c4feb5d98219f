"""The JIOC paper's own figures, by setting."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from jioc.config import Values, index, upgraded
from jioc.report import labels
from jioc.resolve.pycil import METHODS
from jioc.results import Result

# data (with -lt under the paper's long tail), backbone, tasks, memory, method, coordinate
Setting = tuple[str, str, int, int, str, str]


@cache
def _tables() -> dict[str, dict[Setting | None, Any]]:
    """`averages` and `steps`, the curves, by setting."""
    tables = json.loads((Path(__file__).parent / "paper.json").read_text(encoding="utf-8"))
    return {name: {tuple(row[1:7]): row[7] for row in tables[name]} for name in ("averages", "steps")}


@cache
def printed_cells() -> list[tuple[int, Setting]]:
    """The cells of tables 2 and 3, each with the number of its table, row by row as printed."""
    tables = json.loads((Path(__file__).parent / "paper.json").read_text(encoding="utf-8"))
    return [(row[0], tuple(row[1:7])) for row in tables["averages"]]


def setting(result: Result) -> Setting | None:
    """Where a finished run would stand in the paper's tables; None where it has no place there."""
    sizes = {row.classes[1] - row.classes[0] for row in result.tasks}
    if not result.complete or len(sizes) != 1:
        return None
    return cell(upgraded(result.config), len(result.tasks))


def cell(config: Values, tasks: int) -> Setting | None:
    """Where a setting with that many equal tasks would stand.

    The paper has one protocol, that of the defaults. What it leaves open makes no other cell, nor does the
    way in which a step is computed.
    """
    tail, method = config.get("long_tail"), str(config.get("method"))
    half = config.get("exemplar_size") == "half"
    memory = config.get("memory_per_class") or config.get("memory_bytes") or half
    other = config.get("holdout") or memory or tail not in (None, "paper")
    departures = labels.departures(config)
    if config.get("backbone") == "resnet18":  # the paper's has ImageNet's stem, whatever the data
        other = other or config.get("stem") not in (None, "imagenet")
        departures.pop("stem", None)
    if other or not all(_left_open(method, *departure) for departure in departures.items()):
        return None
    data = f"{config.get('data')}{'-lt' if tail else ''}"
    coordinate = (config.get("coordination") or {}).get("coordinate", "none")
    return data, str(config.get("backbone")), tasks, config.get("memory", -1), method, coordinate


def _left_open(method: str, path: str, value: Any) -> bool:
    """Whether the paper's runs may have had the value.

    It may be a reading of JIOC, a method's form in PyCIL, on which the paper builds, or batch normalisation
    over half a batch on each of its two GPUs.
    """
    section, _, name = path.rpartition(".")
    in_pycil = METHODS[method].options if method in METHODS else {}
    if path == "accumulate":
        return value == 2
    if section == "options":
        return name in in_pycil and in_pycil[name] == value
    return section == "coordination" or path in (*index.grouped("seeds", "step"), *index.MACHINE)


def average(where: Setting | None) -> float | None:
    """The paper's average accuracy; input or output coordination alone is in its step-by-step tables."""
    steps = curve(where)
    return _tables()["averages"].get(where, mean(steps["all"]) if steps else None)


def mean(values: list[float]) -> float:
    """Average some of the paper's figures and round as the paper does: a half goes up."""
    return math.floor(100 * sum(values) / len(values) + 0.5 + 1e-6) / 100


def curve(where: Setting | None) -> dict[str, list[float]] | None:
    """The paper's accuracy after each task on all, old and new classes, where it gives that."""
    return _tables()["steps"].get(where)


def gain(where: Setting | None) -> float | None:
    """What coordination adds to the method in the paper."""
    if where is None or where[-1] == "none":
        return None
    with_it, without = average(where), average((*where[:-1], "none"))
    return None if with_it is None or without is None else with_it - without
