"""Whether a file is a result that the tables can be made from. What it lacks is told in a sentence, with its name."""

import json
import math
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jioc.config.schema import Config
from jioc.errors import Refused
from jioc.training.store import Store

NEEDED = {"config": dict, "classes": list, "tasks": list}
THIRDS = ("many", "medium", "few")
BY_TASK = ("old_mass_on_new", "new_mass_on_old", "drift_on_old", "calibration_error", *THIRDS)
"""Diagnostics drawn over the tasks; of the others the page holds those after the last task."""
BY_CLASS = ("weight_norms", "mean_logits", "trained_on", "delta_by_class")
SUMMARIES = ("average", "last", "forgetting")
MACHINE = ("device", "torch", "precision")


def check(path: Path, result: Any) -> None:
    version = result.get("format") if isinstance(result, dict) else None
    if not isinstance(version, int) or not all(isinstance(result.get(k), kind) for k, kind in NEEDED.items()):
        raise Refused(f"{str(path)!r} is not a result of jioc")
    if version > Store.FORMAT:
        raise Refused(f"{str(path)!r} was written by a newer jioc ({result.get('jioc')}); this one cannot read it")
    for t, row in enumerate(result["tasks"]):
        if not isinstance(row, dict) or not _task(row):
            raise Refused(f"task {t + 1} of {str(path)!r} has no classes or no accuracy, or figures that are none")
    if not result["tasks"]:
        raise Refused(f"{str(path)!r} holds no task yet")
    if wrong := _setting(result["config"]) or _summary(result):
        raise Refused(f"{str(path)!r} is damaged: {wrong} is missing or not what it should be")


def _setting(config: dict[str, Any]) -> str | None:
    """The first setting of a wrong kind. Names and words that only another version knows are none of our business."""
    try:
        Config.model_validate_json(json.dumps(config), strict=True)
    except ValidationError as error:
        for one in error.errors():
            other = one["type"] == "extra_forbidden" or (
                one["type"] == "literal_error" and isinstance(one["input"], str)
            )
            if not other:
                return f"setting {'.'.join(map(str, one['loc']))!r}"
    return None


def _task(row: dict[str, Any]) -> bool:
    classes, more, diagnosed = row.get("classes"), row.get("readouts") or {}, row.get("diagnostics") or {}
    if (
        not isinstance(classes, list)
        or [type(c) for c in classes] != [int, int]
        or not isinstance(row.get("cnn"), dict)
    ):
        return False
    if not isinstance(more, dict) or not isinstance(diagnosed, dict):
        return False
    judged = [row["cnn"], *(of for of in (row.get("nme"), *more.values()) if of)]
    figures = [row.get(name) for name in ("memory", "seconds", "images_per_second")]
    measured = [value for name, value in diagnosed.items() if name != "confusion"]
    return (
        all(isinstance(of, dict) and _number(of.get("all")) and all(map(_figures, of.values())) for of in judged)
        and all(not isinstance(of.get(name), list) for of in judged for name in ("old", "new", "top5"))
        and all(isinstance(of.get(name) or [], list) for of in judged for name in ("per_task", "per_class"))
        and all(value is None or _number(value) for value in figures)
        and all(map(_figures, measured))
        and all(not isinstance(diagnosed.get(name), list) for name in BY_TASK)
        and all(isinstance(diagnosed.get(name) or [], list) for name in BY_CLASS)
    )


def _summary(result: dict[str, Any]) -> str | None:
    """The first part of a wrong kind beside settings and tasks."""
    rows, headline = result["tasks"], result.get("headline", "cnn")
    if not isinstance(headline, str) or not all(
        row.get(headline) or (row.get("readouts") or {}).get(headline) for row in rows
    ):
        return "'headline'"
    if not isinstance(result.get("complete", False), bool):
        return "'complete'"
    for name in SUMMARIES:
        of = result.get(name, {})
        if not isinstance(of, dict) or not all(value is None or _number(value) for value in of.values()):
            return repr(name)
    if result.get("complete") and not _number(result.get("average", {}).get(headline)):
        return "'average'"
    ran = result.get("environment") or {}
    if not isinstance(ran, dict) or not all(isinstance(ran.get(name) or "", str) for name in MACHINE):
        return "'environment'"
    commits = result.get("commits") or []
    if not isinstance(commits, list) or not all(isinstance(commit or "", str) for commit in commits):
        return "'commits'"
    data = result.get("data") or {}
    if not isinstance(data, dict) or not isinstance(data.get("fingerprint") or "", str):
        return "'data'"
    counts = result.get("counts") or []
    return None if isinstance(counts, list) and all(map(_number, counts)) else "'counts'"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _figures(value: Any) -> bool:
    """A number, none, or a list of such."""
    return value is None or _number(value) or (isinstance(value, list) and all(v is None or _number(v) for v in value))
