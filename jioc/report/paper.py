"""The JIOC paper's own figures, found by setting."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from ..methods.specs import SPECS, Spec
from ..pycil import METHODS

Setting = tuple[str, str, int, int, str, str]
"""data (with -lt under the paper's long tail), backbone, tasks, memory, method, coordinate."""


@cache
def _cells() -> tuple[dict[Setting, float], dict[Setting, dict[str, list[float]]]]:
    tables = json.loads((Path(__file__).parent / "paper.json").read_text(encoding="utf-8"))
    averages = {tuple(row[1:7]): row[7] for row in tables["averages"]}
    steps = {tuple(row[1:7]): row[7] for row in tables["steps"]}
    return averages, steps


def setting(result: dict[str, Any]) -> Setting | None:
    """Where a finished run would stand in the paper's tables; None where it has no place there."""
    if not result.get("complete") or len(_sizes(result)) != 1:
        return None
    return cell(result["config"], len(result["tasks"]))


def cell(config: dict[str, Any], tasks: int) -> Setting | None:
    """The place of a setting with that many equal tasks. The paper has no shorter schedules and no other losses of a
    host (its own options changed, other than to PyCIL's, with which the paper implements them); the readings of JIOC
    that the paper leaves open share a cell."""
    tail, method = config.get("long_tail"), str(config.get("method"))
    if config.get("holdout") or config.get("memory_per_class") or tail not in (None, "paper"):
        return None
    if method in SPECS and (_options_changed(config, SPECS[method]) or _shorter(config, SPECS[method])):
        return None
    data = f"{config.get('data')}{'-lt' if tail else ''}"
    coordinate = (config.get("coordination") or {}).get("coordinate", "none")
    return data, str(config.get("backbone")), tasks, config.get("memory", -1), method, coordinate


def _options_changed(config: dict[str, Any], spec: Spec) -> bool:
    given, coded = config.get("options") or {}, METHODS[spec.name].options if spec.name in METHODS else {}
    usual = spec.options().model_dump()
    return any(given.get(name, value) not in (value, coded.get(name, value)) for name, value in usual.items())


def _shorter(config: dict[str, Any], spec: Spec) -> bool:
    epochs = [((config.get(name) or {}).get("epochs"), getattr(spec, name)) for name in ("first", "later", "second")]
    return any(given is not None and usual is not None and given < usual.epochs for given, usual in epochs)


def _sizes(result: dict[str, Any]) -> set[int]:
    return {row["classes"][1] - row["classes"][0] for row in result["tasks"]}


def average(where: Setting | None) -> float | None:
    """The paper's average accuracy; input or output coordination alone is in its step-by-step tables."""
    if where is None:
        return None
    averages, steps = _cells()
    if where in averages:
        return averages[where]
    curve = steps.get(where)
    return None if curve is None else mean(curve["all"])


def mean(values: list[float]) -> float:
    """Of some of the paper's figures, as the paper rounds it: a half goes up."""
    return math.floor(100 * sum(values) / len(values) + 0.5 + 1e-6) / 100


def curve(where: Setting | None) -> dict[str, list[float]] | None:
    """The paper's accuracy after each task on all, old and new classes, where it gives that."""
    return None if where is None else _cells()[1].get(where)


def gain(where: Setting | None) -> float | None:
    """What coordination adds to the method in the paper."""
    if where is None or where[-1] == "none":
        return None
    with_it, without = average(where), average((*where[:-1], "none"))
    return None if with_it is None or without is None else with_it - without
