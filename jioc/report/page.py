"""`jioc report`: one self-contained page. The figures are drawn by `page.js` from the JSON that is embedded here."""

import json
from pathlib import Path
from typing import Any

from jioc import __version__
from jioc.config.values import at
from jioc.files import write
from jioc.report import paper
from jioc.report.labels import differing, show
from jioc.report.runs import Group, Run, shown_readouts
from jioc.results import SUMMARIES, Diagnostics

THIRDS = ("many", "medium", "few")
BY_TASK = ("old_mass_on_new", "new_mass_on_old", "drift_on_old", "calibration_error", *THIRDS)
"""Diagnostics drawn over the tasks; of the others the page holds those after the last task."""
BY_CLASS = ("weight_norms", "mean_logits", "trained_on", "delta_by_class")


def save(groups: list[Group], path: Path) -> None:
    write(path, page(groups).encode())


def page(groups: list[Group]) -> str:
    here = Path(__file__).parent
    html = (here / "page.html").read_text(encoding="utf-8")
    parts = {
        name: (here / f"page.{name.lower()}").read_text(encoding="utf-8").rstrip() for name in ("CSS", "JS")
    }
    parts["DATA"] = embedded(content(groups))
    for name, text in parts.items():
        before, after = html.split(f"/*{name}*/")
        html = before + text + after
    return html


def embedded(value: Any) -> str:
    """JSON that cannot end the element it stands in, whatever a class is called."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return text.encode("utf-8", "replace").decode()  # a lone half of a surrogate pair cannot be written


def content(groups: list[Group]) -> dict[str, Any]:
    runs = [run for g in groups for run in g.runs]
    shown = shown_readouts(groups)
    scenarios: dict[str, int] = {}
    listed: list[dict[str, Any]] = []

    def scenario(run: Run) -> int:
        what = {"classes": run.result.classes, "counts": run.result.counts, "tailed": run.tailed}
        key = json.dumps(what)
        if key not in scenarios:
            scenarios[key] = len(scenarios)
            listed.append(what)
        return scenarios[key]

    return {
        "version": __version__,
        "groups": [
            {
                "label": g.label,
                "name": g.name,
                "scene": g.scene,
                "place": g.place,
                "ground": g.ground,
                "coordinate": g.coordinate,
                "base": None if g.base is None else groups.index(g.base),
                "headline": shown[g.runs[0].headline],
                "paper": _paper(g),
            }
            for g in groups
        ],
        "runs": [
            _run(run, i, scenario(run), {*shown.values()}) for i, g in enumerate(groups) for run in g.runs
        ],
        "scenarios": listed,
        "differences": _differences(groups),
        "versions": sorted({str(run.result.jioc) for run in runs}),
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
    """Figures as they are: the page rounds what it shows, once."""
    result, rows, ran = run.result, run.result.tasks, run.result.environment
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
        "readouts": {
            name: {
                **{kind: [accuracy[kind] for accuracy in of] for kind in ("all", "old", "new", "per_task")},
                "per_class": of[-1].per_class,
                **{kind: run.figure(kind, name) for kind in SUMMARIES},
            }
            for name, of in run.readouts.items()
            if name in shown
        },
        "diagnostics": _diagnostics([row.diagnostics for row in rows], run.tailed),
        "about": {
            "jioc": result.jioc,
            "commit": run.commit,
            "device": ran.device,
            "torch": ran.torch,
            "precision": ran.precision,
        },
    }


def _diagnostics(rows: list[Diagnostics | None], tailed: bool) -> dict[str, Any] | None:
    if not any(rows):
        return None
    last = rows[-1] or Diagnostics()
    return {
        **{name: [row and row[name] for row in rows] for name in BY_TASK if tailed or name not in THIRDS},
        **{name: last[name] for name in (*BY_CLASS, "confusion")},
    }
