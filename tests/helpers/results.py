"""Results made up for the tests of tables and pages: right in shape, cheap, no training."""

import json
import random
from pathlib import Path
from typing import Any

from jioc.report.runs import Group, Run, group
from jioc.results import Result


def made(
    method: str = "icarl",
    coordinate: str = "none",
    seed: int = 1,
    *,
    classes: list[str] | int = 10,
    tasks: int = 5,
    done: int | None = None,
    diagnosed: bool = True,
    counts: list[int] | None = None,
    alls: list[float] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """Make up a result. `alls`: the accuracy after each task; `done`: the tasks of an unfinished run."""
    draw = random.Random(f"{method} {coordinate} {seed} {config}")
    names = [f"class {c}" for c in range(classes)] if isinstance(classes, int) else classes
    size = len(names) // tasks
    rows = []
    for t in range(done or tasks):
        seen = size * (t + 1)
        every = alls[t] if alls else 90 * 0.9**t + draw.random()
        per_class = [min(100.0, every + draw.random()) for _ in range(seen)]
        figures = {
            "all": every,
            "new": every + 3,
            "old": every - 3 if t else None,
            "top5": None,
            "per_task": [sum(per_class[s * size : (s + 1) * size]) / size for s in range(t + 1)],
            "per_class": per_class,
        }
        row: dict[str, Any] = {
            "task": t + 1,
            "classes": [seen - size, seen],
            "memory": 100,
            "seconds": 10.0 + draw.random(),
            "images_per_second": 5000.0,
            "cnn": figures,
            "nme": figures | {"all": every + 1},
            "readouts": {},
        }
        if diagnosed:
            row["diagnostics"] = diagnostics(draw, t, size, seen)
        rows.append(row)
    last = {n: rows[-1][n]["all"] for n in ("cnn", "nme")}
    return {
        "format": 1,
        "jioc": "0.1.0",
        "commit": None,
        "config": {
            "method": method,
            "data": "cifar100",
            "long_tail": None,
            "holdout": 0.0,
            "tasks": tasks,
            "memory": 1000,
            "memory_per_class": None,
            "backbone": "resnet18",
            "seed": seed,
            "init_seed": seed,
            "data_seed": seed,
            "device": "auto",
            **config,
            "coordination": {"reading": None, **config.get("coordination", {"coordinate": coordinate})},
        },
        "environment": {"torch": "2.13.0", "device": "a device", "precision": "fp32"},
        "headline": "cnn",
        "classes": names,
        "counts": counts or [500] * len(names),
        "tasks": rows,
        "average": {n: sum(row[n]["all"] for row in rows) / len(rows) for n in ("cnn", "nme")},
        "last": last,
        "forgetting": {"cnn": 20.0, "nme": 10.0},
        "complete": done is None,
    }


def jioc(**options: Any) -> dict[str, Any]:
    """The setting of JIOC, with options of it."""
    return {"coordination": {"coordinate": "jioc", **options}}


def runs_of(*results: dict[str, Any]) -> list[Run]:
    """The results as they are read from disk."""
    return [Run(Path(str(i)), Result.model_validate(result)) for i, result in enumerate(results)]


def groups_of(*results: dict[str, Any]) -> list[Group]:
    """The results grouped and named, as tables and pages show them."""
    return group(runs_of(*results))


def read_out(result: dict[str, Any], name: str, value: float) -> dict[str, Any]:
    """The result with one more read-out, whose every figure is that."""
    for row in result["tasks"]:
        row["readouts"] = row["readouts"] | {name: row["cnn"] | {"all": value}}
    return result | {kind: result[kind] | {name: value} for kind in ("average", "last", "forgetting")}


def diagnostics(draw: random.Random, t: int, size: int, seen: int) -> dict[str, Any]:
    rows = []
    for r in range(seen):
        row = {r: 60}
        for _ in range(20):  # 40 images elsewhere
            c = draw.randrange(seen)
            row[c] = row.get(c, 0) + 2
        rows.append(row)
    dense = [[row.get(c, 0) for c in range(seen)] for row in rows]
    sparse = [" ".join(f"{c}:{n}" for c, n in sorted(row.items())) for row in rows]
    return {
        "old_mass_on_new": draw.random() if t else None,
        "new_mass_on_old": draw.random() if t else None,
        "drift_on_old": draw.random() if t else None,
        "weight_norms": [1 + draw.random() for _ in range(seen)],
        "mean_logits": [draw.gauss(0, 1) for _ in range(seen)],
        "trained_on": [20] * (seen - size) + [500] * size,
        "delta_by_class": [draw.random() for _ in range(seen)],
        "calibration_error": 10 * draw.random(),
        "confusion": dense if seen <= 20 else sparse,
    }


def keep(folder: Path, *results: dict[str, Any]) -> Path:
    for i, result in enumerate(results):
        place = folder / f"run-{i:03d}"
        place.mkdir(parents=True)
        (place / "result.json").write_text(json.dumps(result, indent=1))
    return folder
