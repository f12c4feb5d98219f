"""The page of `jioc report`, in one file: page.html with style, scripts and data put into it.

The scripts of `web/` draw its figures from the JSON that is embedded here. They are one program, cut into
files that follow each other; no build step, no library.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from jioc import __version__
from jioc.config import at
from jioc.files import write
from jioc.report import alerts, labels, losses, paper
from jioc.report.figures import MECHANISMS, THIRDS
from jioc.report.group import Group, Run, shown_readouts
from jioc.report.looks import COLOURS, DASHES, MARKS, ON_DARK, looks
from jioc.results import SUMMARIES, Diagnostics

# the diagnostics that are drawn over the tasks, and those class by class, after the last task alone
BY_TASK = (*MECHANISMS, *THIRDS)
BY_CLASS = ("weight_norms", "mean_logits", "delta_by_class")
AFTER_LAST = (*BY_CLASS, "trained_on", "confusion")
DIGITS = 6  # of the figures of each class, which charts alone show
WEB = Path(__file__).parent / "web"
SCRIPTS = (  # in the order in which they follow each other
    "elements", "numbers", "state", "tip", "charts", "matrices", "tables", "downloads",
    "summary", "gains", "accuracy", "mechanisms", "runs", "side", "start",
)  # fmt: skip
FACETS = ("data", "long tail", "network", "tasks", "memory", "judged by", "also")  # the parts of a place
MARK = b"<title>jioc report</title>"  # in every page, by which it may be replaced by the next


def save(groups: list[Group], path: Path, left_out: Sequence[str] = ()) -> None:
    write(path, page(groups, left_out).encode())


def page(groups: list[Group], left_out: Sequence[str] = ()) -> str:
    """Put style, script and data into page.html. `left_out`: what it says of results that it lacks."""
    data = embedded(content(groups) | {"left_out": list(left_out)})
    script = "\n".join(_part(f"{name}.js").rstrip() for name in SCRIPTS)
    html = _part("page.html")
    for name, text in {"CSS": _part("page.css").rstrip(), "JS": script, "DATA": data}.items():
        html = html.replace(f"/*{name}*/", text)
    return html


def _part(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def embedded(value: Any) -> str:
    """Write JSON that cannot end the element it stands in, whatever a class is called."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return text.encode("utf-8", "replace").decode()  # a lone half of a surrogate pair cannot be written


def content(groups: list[Group]) -> dict[str, Any]:
    """Everything that the page shows."""
    shown = shown_readouts(groups)
    logs = [[losses.read(run.path.parent) for run in g.runs] for g in groups]
    scenarios: list[dict[str, Any]] = []
    runs = []
    for i, g in enumerate(groups):
        for run, log in zip(g.runs, logs[i], strict=True):
            about = {"classes": run.result.classes, "counts": run.result.counts, "tailed": run.long_tailed}
            if about not in scenarios:
                scenarios.append(about)
            one = _run(run, i, scenarios.index(about), {*shown.values()})
            runs.append(one | {"losses": log.plain()})
    differences = labels.differing([g.config for g in groups])
    return {
        "version": __version__,
        "groups": _groups(groups, shown),
        "runs": runs,
        "scenarios": scenarios,
        "facets": [*FACETS, "method", "coordination"],
        "alerts": [asdict(alert) for alert in alerts.find(groups, logs)],
        "differences": {
            "names": differences,
            "rows": [[labels.show(at(g.config, name)) for name in differences] for g in groups],
        },
        "versions": sorted({str(run.result.jioc) for g in groups for run in g.runs}),
        "colours": {"light": COLOURS, "dark": ON_DARK},
        "dashes": DASHES,
        "marks": MARKS,
    }


def _groups(groups: list[Group], shown: dict[str, str]) -> list[dict[str, Any]]:
    ids = _ids(groups)
    return [
        {
            "id": ids[i],
            "label": g.label,
            "name": g.name,
            "place": g.place,
            "own_place": g.own_place,
            "common_place": g.common_place,
            "facets": [*g.place_parts, labels.method(g), g.coordinate],
            "method": labels.method(g),
            "coordinate": g.coordinate,
            "base": None if g.base is None else groups.index(g.base),
            "headline": shown[g.runs[0].result.headline],
            "paper": _paper(g),
            **asdict(look),
        }
        for i, (g, look) in enumerate(zip(groups, looks(groups), strict=True))
    ]


def _ids(groups: list[Group]) -> list[str]:
    """Short names for links to the page: the same in a later page with more runs."""
    sums = [sha256(json.dumps([g.config, g.images], sort_keys=True).encode()).hexdigest() for g in groups]
    size = next((n for n in range(6, 64) if len({text[:n] for text in sums}) == len(sums)), 64)
    return [text[:size] for text in sums]


def _paper(g: Group) -> dict[str, Any] | None:
    where = paper.setting(g.complete[0].result) if g.complete else None
    figures = {"average": paper.average(where), "gain": paper.gain(where), "curve": paper.curve(where)}
    return None if figures["average"] is None else figures


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
    rows, kinds = run.readouts[name], ("all", "old", "new", "per_task")
    over_tasks = {kind: [accuracy[kind] for accuracy in rows] for kind in kinds}
    return (
        over_tasks | {"per_class": rows[-1].per_class} | {kind: run.figure(kind, name) for kind in SUMMARIES}
    )


def _diagnostics(rows: list[Diagnostics | None], long_tailed: bool) -> dict[str, Any] | None:
    if not any(rows):
        return None
    names, last = (BY_TASK if long_tailed else tuple(MECHANISMS)), rows[-1] or Diagnostics()
    over_tasks = {name: [row and row[name] for row in rows] for name in names}
    after_last = {name: last[name] for name in AFTER_LAST}
    return over_tasks | after_last | {name: _short(last[name]) for name in BY_CLASS}


def _short(values: list[float | None] | None) -> list[float | None] | None:
    """The figures of each class at the precision of a chart; unrounded, a seventh of the page."""
    if values is None:
        return None
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in values]
