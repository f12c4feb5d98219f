"""The page of `jioc report`, in one file. `page.js` draws its figures from the JSON that is embedded here."""

import json
from pathlib import Path
from typing import Any

from jioc import __version__
from jioc.config import at
from jioc.files import write
from jioc.report import paper
from jioc.report.group import Group, Run, shown_readouts
from jioc.report.labels import differing, show
from jioc.results import SUMMARIES, Diagnostics

THIRDS = ("many", "medium", "few")
BY_TASK = ("old_mass_on_new", "new_mass_on_old", "drift_on_old", "calibration_error", *THIRDS)
"""The diagnostics that are drawn over the tasks."""
AFTER_LAST = ("weight_norms", "mean_logits", "trained_on", "delta_by_class", "confusion")
"""Those that are drawn class by class; the page holds them after the last task alone."""


def save(groups: list[Group], path: Path) -> None:
    write(path, page(groups).encode())


def page(groups: list[Group]) -> str:
    """Put style, script and data into page.html."""
    parts = {"CSS": _part("css").rstrip(), "JS": _part("js").rstrip(), "DATA": embedded(content(groups))}
    html = _part("html")
    for name, text in parts.items():
        before, after = html.split(f"/*{name}*/")
        html = before + text + after
    return html


def _part(kind: str) -> str:
    return (Path(__file__).parent / f"page.{kind}").read_text(encoding="utf-8")


def embedded(value: Any) -> str:
    """Write JSON that cannot end the element it stands in, whatever a class is called."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return text.encode("utf-8", "replace").decode()  # a lone half of a surrogate pair cannot be written


def content(groups: list[Group]) -> dict[str, Any]:
    """Everything that the page shows."""
    shown = shown_readouts(groups)
    scenarios: list[dict[str, Any]] = []
    runs = []
    for i, g in enumerate(groups):
        for run in g.runs:
            result, tailed = run.result, run.long_tailed
            scenario = {"classes": result.classes, "counts": result.counts, "tailed": tailed}
            if scenario not in scenarios:
                scenarios.append(scenario)
            runs.append(_run(run, i, scenarios.index(scenario), {*shown.values()}))
    return {
        "version": __version__,
        "groups": [_group(g, groups, shown) for g in groups],
        "runs": runs,
        "scenarios": scenarios,
        "differences": _differences(groups),
        "versions": sorted({str(run.result.jioc) for g in groups for run in g.runs}),
    }


def _group(g: Group, groups: list[Group], shown: dict[str, str]) -> dict[str, Any]:
    return {
        "label": g.label,
        "name": g.name,
        "place": g.place,
        "own_place": g.own_place,
        "common_place": g.common_place,
        "coordinate": g.coordinate,
        "base": None if g.base is None else groups.index(g.base),
        "headline": shown[g.runs[0].headline],
        "paper": _paper(g),
    }


def _paper(g: Group) -> dict[str, Any] | None:
    where = paper.setting(g.complete[0].result) if g.complete else None
    average = paper.average(where)
    if average is None:
        return None
    return {"average": average, "gain": paper.gain(where), "curve": paper.curve(where)}


def _differences(groups: list[Group]) -> dict[str, Any]:
    names = differing([g.config for g in groups])
    return {"names": names, "rows": [[show(at(g.config, n)) for n in names] for g in groups]}


def _run(run: Run, group: int, scenario: int, shown: set[str]) -> dict[str, Any]:
    """The figures of a run, unrounded: the page rounds what it shows."""
    result, rows, environment = run.result, run.result.tasks, run.result.environment
    seed, data_seed = run.seeds
    return {
        "group": group,
        "scenario": scenario,
        "name": f"seed {seed}" if seed == data_seed else f"seeds {seed}, {data_seed}",
        "path": str(run.path.parent),
        "seeds": list(run.seeds),
        "complete": run.complete,
        "seen": [row.classes[1] for row in rows],
        "memory": [row.memory for row in rows],
        "seconds": [row.seconds for row in rows],
        "speed": [row.images_per_second for row in rows],
        "readouts": {name: _readout(run, name) for name in run.readouts if name in shown},
        "diagnostics": _diagnostics([row.diagnostics for row in rows], run.long_tailed),
        "about": {
            "jioc": result.jioc,
            "commit": run.commit,
            "device": environment.device,
            "torch": environment.torch,
            "precision": environment.precision,
        },
    }


def _readout(run: Run, name: str) -> dict[str, Any]:
    accuracies = run.readouts[name]
    over_tasks = {kind: [a[kind] for a in accuracies] for kind in ("all", "old", "new", "per_task")}
    summaries = {kind: run.figure(kind, name) for kind in SUMMARIES}
    return {**over_tasks, "per_class": accuracies[-1].per_class, **summaries}


def _diagnostics(rows: list[Diagnostics | None], long_tailed: bool) -> dict[str, Any] | None:
    if not any(rows):
        return None
    names = [name for name in BY_TASK if long_tailed or name not in THIRDS]
    last = rows[-1] or Diagnostics()
    over_tasks = {name: [row and row[name] for row in rows] for name in names}
    return {**over_tasks, **{name: last[name] for name in AFTER_LAST}}
