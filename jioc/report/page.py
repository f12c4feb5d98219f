"""`jioc report`: one self-contained page. The figures are drawn by `page.js` from the JSON that is embedded here."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import __version__
from ..files import write
from . import paper
from .checks import BY_CLASS, BY_TASK
from .labels import at, differing, show
from .runs import Group, Run

DIGITS = 6  # significant digits of what is embedded


def save(groups: list[Group], path: Path) -> None:
    write(path, page(groups).encode())


def page(groups: list[Group]) -> str:
    here = Path(__file__).parent
    html = (here / "page.html").read_text(encoding="utf-8")
    parts = {name: (here / f"page.{name.lower()}").read_text(encoding="utf-8").rstrip() for name in ("CSS", "JS")}
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
    scenarios: dict[str, int] = {}
    listed: list[dict[str, Any]] = []

    def scenario(run: Run) -> int:
        what = {"classes": [str(c) for c in run.result["classes"]], "counts": run.result.get("counts")}
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
                "coordinate": g.coordinate,
                "base": None if g.base is None else groups.index(g.base),
                "headline": g.runs[0].headline,
                "paper": _paper(g),
            }
            for g in groups
        ],
        "runs": [_run(run, i, scenario(run)) for i, g in enumerate(groups) for run in g.runs],
        "scenarios": listed,
        "differences": _differences(groups),
        "versions": sorted({str(run.result.get("jioc")) for run in runs}),
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


def _run(run: Run, group: int, scenario: int) -> dict[str, Any]:
    result, rows = run.result, run.result["tasks"]
    environment = result.get("environment") or {}
    seed, data_seed = run.seeds
    return {
        "group": group,
        "scenario": scenario,
        "name": f"seed {seed}" if seed == data_seed else f"seeds {seed}, {data_seed}",
        "path": str(run.path.parent),
        "seeds": list(run.seeds),
        "complete": run.complete,
        "seen": [row["classes"][1] for row in rows],
        "memory": [row.get("memory") for row in rows],
        "seconds": _short(row.get("seconds") for row in rows),
        "speed": _short(row.get("images_per_second") for row in rows),
        "readouts": {
            name: {
                **{kind: _short(r.get(kind) for r in of) for kind in ("all", "old", "new")},
                "per_task": [_short(r.get("per_task") or []) for r in of],
                "per_class": _short(of[-1].get("per_class") or []),
                **{kind: _short([run.figure(kind, name)])[0] for kind in ("average", "last", "forgetting")},
            }
            for name, of in run.readouts.items()
        },
        "diagnostics": _diagnostics([row.get("diagnostics") or {} for row in rows]),
        "about": {
            "jioc": result.get("jioc"),
            "commit": result.get("commit"),
            "device": environment.get("device"),
            "torch": environment.get("torch"),
            "precision": environment.get("precision"),
        },
    }


def _diagnostics(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not any(rows):
        return None
    last = rows[-1]
    return {
        **{name: _short(row.get(name) for row in rows) for name in BY_TASK},
        **{name: None if last.get(name) is None else _short(last[name]) for name in BY_CLASS},
        "confusion": last.get("confusion"),
    }


def _short(values: Iterable[float | None]) -> list[float | None]:
    return [v if v is None or isinstance(v, int) else float(f"{v:.{DIGITS}g}") for v in values]
