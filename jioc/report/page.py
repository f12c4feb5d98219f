"""`jioc report`: one self-contained page. The figures are drawn by `page.js` from the JSON that is embedded here."""

import json
from pathlib import Path
from typing import Any

from jioc import __version__
from jioc.files import write
from jioc.report import paper
from jioc.report.checks import BY_CLASS, BY_TASK, THIRDS
from jioc.report.labels import at, differing, show
from jioc.report.runs import Group, Run, shown_readouts


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
    shown = shown_readouts(groups)
    scenarios: dict[str, int] = {}
    listed: list[dict[str, Any]] = []

    def scenario(run: Run) -> int:
        names, counts = [str(c) for c in run.result["classes"]], run.result.get("counts")
        what = {"classes": names, "counts": counts, "tailed": run.tailed}
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
        "runs": [_run(run, i, scenario(run), {*shown.values()}) for i, g in enumerate(groups) for run in g.runs],
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


def _run(run: Run, group: int, scenario: int, shown: set[str]) -> dict[str, Any]:
    """Figures as they are: the page rounds what it shows, once."""
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
        "seconds": [row.get("seconds") for row in rows],
        "speed": [row.get("images_per_second") for row in rows],
        "readouts": {
            name: {
                **{kind: [r.get(kind) for r in of] for kind in ("all", "old", "new")},
                "per_task": [r.get("per_task") or [] for r in of],
                "per_class": of[-1].get("per_class") or [],
                **{kind: run.figure(kind, name) for kind in ("average", "last", "forgetting")},
            }
            for name, of in run.readouts.items()
            if name in shown
        },
        "diagnostics": _diagnostics([row.get("diagnostics") or {} for row in rows], run.tailed),
        "about": {
            "jioc": result.get("jioc"),
            "commit": run.commit,
            "device": environment.get("device"),
            "torch": environment.get("torch"),
            "precision": environment.get("precision"),
        },
    }


def _diagnostics(rows: list[dict[str, Any]], tailed: bool) -> dict[str, Any] | None:
    if not any(rows):
        return None
    last = rows[-1]
    return {
        **{name: [row.get(name) for row in rows] for name in BY_TASK if tailed or name not in THIRDS},
        **{name: last.get(name) for name in BY_CLASS},
        "confusion": last.get("confusion"),
    }
