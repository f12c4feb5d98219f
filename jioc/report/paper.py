"""The JIOC paper's own figures, found by setting."""

import json
from functools import cache
from pathlib import Path
from typing import Any

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
    c = result["config"]
    if not result.get("complete") or c.get("holdout") or c.get("memory_per_class") or len(_sizes(result)) != 1:
        return None
    tail = c.get("long_tail")
    if tail not in (None, "paper"):
        return None
    data = f"{c.get('data')}{'-lt' if tail else ''}"
    coordinate = (c.get("coordination") or {}).get("coordinate", "none")
    return data, str(c.get("backbone")), len(result["tasks"]), c.get("memory", -1), str(c.get("method")), coordinate


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
    return None if curve is None else sum(curve["all"]) / len(curve["all"])


def curve(where: Setting | None) -> dict[str, list[float]] | None:
    """The paper's accuracy after each task on all, old and new classes, where it gives that."""
    return None if where is None else _cells()[1].get(where)


def gain(where: Setting | None) -> float | None:
    """What coordination adds to the method in the paper."""
    if where is None or where[-1] == "none":
        return None
    with_it, without = average(where), average((*where[:-1], "none"))
    return None if with_it is None or without is None else with_it - without
