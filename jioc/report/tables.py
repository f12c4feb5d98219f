"""`jioc table`: mean ± standard deviation over seeds, beside the paper's figures."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import unknown
from . import labels, paper
from .runs import Group, mean_std

FORMATS = ("text", "markdown", "latex")

Curves = dict[str, list[float | None]]
Mean = Callable[[list[float]], float | None]


@dataclass
class Sheet:
    """A table. Columns up to `n` hold words, the others figures; `blocks`: rows that begin another part."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str]
    blocks: list[int]

    @property
    def words(self) -> int:
        return self.heads.index("n")


def summarise(groups: list[Group], beside_paper: bool) -> Sheet:
    """A row for each setting; the read-out by which methods are judged comes first."""
    shown = _readouts(groups)
    names = list(dict.fromkeys(shown.values()))
    title, scenes = _title(groups)
    heads = _first_heads(scenes)
    heads += ["n", *(f"{n.upper()} {kind}" for n in names for kind in ("average", "last")), "gain"]
    heads += ["paper", "difference", "paper's gain"] if beside_paper else []
    rows, unmatched = [], 0
    for g in groups:
        judged = shown[g.runs[0].headline]
        row = _first_cells(g, scenes)
        row += [str(len(g.complete)), *(spread(g.figures(k, n)) for n in names for k in ("average", "last"))]
        if not g.complete:
            row[heads.index(f"{judged.upper()} average")] = "not run" if g.runs[0].planned else "unfinished"
        row.append(_gain(g, judged))
        if beside_paper:
            where = cell(g)
            theirs, ours = paper.average(where), mean_std(g.figures("average", judged))[0]
            unmatched += theirs is None
            row += [number(theirs), number(None if theirs is None or ours is None else ours - theirs, "+")]
            row.append(number(paper.gain(where), "+"))
        rows.append(row)
    blocks = [i for i in range(1, len(groups)) if groups[i].scene != groups[i - 1].scene]
    if len(scenes) > 1:
        for i in {*range(1, len(rows))} - {*blocks}:
            rows[i][0] = ""  # the setting of the row above
    over = f"mean ± standard deviation over n {_seeds(groups)}"
    notes = [f"accuracy in percent; {over}; average: over the tasks, the first included"]
    if any(g.base for g in groups):
        some = any(row[heads.index("gain")].endswith(")") for row in rows)
        notes.append("gain: average minus that of the same setting without coordination, seed by seed")
        notes[-1] += "; in brackets: the number of seeds that both have, where one has more" * some
    if beside_paper and unmatched < len(rows):
        notes.append(f"paper: its average accuracy; difference: ours ({_judged(groups, shown)}) minus the paper's")
    if beside_paper and unmatched:
        notes.append(f"{unmatched} of {len(rows)} rows have no counterpart in the paper")
    return Sheet(title, heads, rows, notes + _warnings(groups), blocks)


def _gain(g: Group, readout: str) -> str:
    """With the number of seeds where the host has others, so that the columns do not give it."""
    gains, seeds = g.gains(readout), {run.seeds for run in g.complete}
    told = gains and g.base is not None and seeds != {run.seeds for run in g.base.complete}
    return spread(gains, "+") + f" ({len(gains)})" * bool(told)


def _seeds(groups: list[Group]) -> str:
    return "seeds or class orders" if any(run.over_orders for g in groups for run in g.runs) else "seeds"


def _judged(groups: list[Group], shown: dict[str, str]) -> str:
    names = dict.fromkeys(shown[g.runs[0].headline].upper() for g in groups)
    return " or ".join(names) + (", whichever the method is judged by" if len(names) > 1 else "")


def _warnings(groups: list[Group]) -> list[str]:
    notes = _unrun(groups)
    runs = [run for g in groups for run in g.runs if not run.planned]
    unfinished = sum(not run.complete for run in runs)
    if unfinished:
        notes.append(f"unfinished and not averaged: {unfinished} of {len(runs)} runs")
    again = sum(len(g.complete) - len({run.seeds for run in g.complete}) for g in groups)
    if again:
        notes.append(f"seeds run more than once count each time: {again} of {len(runs)} runs")
    return notes


def _unrun(groups: list[Group]) -> list[str]:
    """The seeds of a recipe that are not there, of settings of which others are."""
    by_seeds: dict[str, list[str]] = {}
    for g in groups:
        if not g.runs[0].planned and (seeds := [str(run.config["seed"]) for run in g.runs if run.planned]):
            by_seeds.setdefault(f"seed{'s' * (len(seeds) > 1)} {' '.join(seeds)}", []).append(g.label)
    told = {seeds: "; ".join(of) if len(of) <= NAMED else f"{len(of)} rows" for seeds, of in by_seeds.items()}
    return [f"wanted and not run, {seeds}: {rows}" for seeds, rows in told.items()]


NAMED = 6  # rows that a note names


def _title(groups: list[Group]) -> tuple[str, list[str]]:
    """What is the same for all groups, and their scenes."""
    scenes = list(dict.fromkeys(g.scene for g in groups))
    if len(scenes) == 1:
        return scenes[0], scenes
    return groups[0].ground if groups else "", scenes


def _first_heads(scenes: list[str]) -> list[str]:
    return ["run"] if len(scenes) == 1 else ["setting", "run"]


def _first_cells(g: Group, scenes: list[str]) -> list[str]:
    return [g.name] if len(scenes) == 1 else [g.place or "–", g.name]


def cell(g: Group) -> paper.Setting | None:
    """Where a setting would stand in the paper's tables."""
    if g.complete:
        return paper.setting(g.complete[0].result)
    return paper.cell(g.config, g.config["tasks"]) if g.config.get("tasks") else None


def by_task(groups: list[Group], beside_paper: bool) -> Sheet:
    """The accuracy after each task on all, old and new classes, the paper's below ours; means over seeds."""
    shown = [g for g in groups if g.complete]
    title, scenes = _title(shown)
    last = max((len(g.complete[0].result["tasks"]) for g in shown), default=0)
    heads = [*_first_heads(scenes), "classes", "n", *map(str, range(1, last + 1)), "mean"]
    rows: list[list[str]] = []
    blocks: list[int] = []
    for g in shown:
        named = _first_cells(g, scenes)
        of: list[tuple[list[str], str, Curves, Mean]] = [(named, str(len(g.complete)), _curves(g), _mean)]
        theirs = paper.curve(cell(g)) if beside_paper else None
        if theirs is not None:
            curve = {k: _from_second(k, v) for k, v in theirs.items()}
            of.append(([*named[:-1], f"{labels.title(g.config)} (paper)"], "–", curve, paper.mean))
        blocks += [len(rows)] * bool(rows)
        for label, n, curve, mean in of:
            for kind in ("all", "old", "new"):
                values = curve[kind] + [None] * (last - len(curve[kind]))
                known = [v for v in values if v is not None]
                rows.append([*label, kind, n, *map(number, values), number(mean(known) if known else None)])
    judged = _judged(shown or groups, _readouts(groups))
    notes = [f"accuracy in percent ({judged}) after each task on the classes seen; means over n {_seeds(groups)}"]
    if unrun := [g.label for g in groups if g.runs[0].planned]:
        notes.append(f"not run: {'; '.join(unrun)}")
    return Sheet(title, heads, rows, notes + _warnings(groups), blocks)


def _mean(values: list[float]) -> float | None:
    return mean_std(values)[0]


def _curves(g: Group) -> Curves:
    of = [run.readouts[run.headline] for run in g.complete]
    tasks = list(itertools.zip_longest(*of, fillvalue={}))
    return {
        kind: [mean_std([v for row in rows if (v := row.get(kind)) is not None])[0] for rows in tasks]
        for kind in ("all", "old", "new")
    }


def _from_second(kind: str, values: list[float]) -> list[float | None]:
    """The paper's row for old classes begins with the second task."""
    return [None, *values] if kind == "old" else list(values)


def _readouts(groups: list[Group]) -> dict[str, str]:
    """Those of the runs, each with the one that is shown for it: itself, or another that it repeats wherever it is, as
    FOSTER's `boosted` its `cnn`."""
    names = dict.fromkeys(n for g in groups for run in g.runs for n in [run.headline, *run.readouts])

    def figures(name: str) -> list[list[float]]:
        return [g.figures(kind, name) for g in groups for kind in ("average", "last")]

    def repeats(name: str, other: str) -> bool:
        return any(figures(name)) and all(a in ([], b) for a, b in zip(figures(name), figures(other), strict=True))

    found: dict[str, str] = {}
    for name in names:
        found[name] = next((other for other in found.values() if repeats(name, other)), name)
    return found


def number(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.2f}"


def spread(values: list[float], sign: str = "") -> str:
    mean, std = mean_std(values)
    return number(mean, sign) if std is None else f"{number(mean, sign)} ± {std:.2f}"


def render(sheet: Sheet, form: str) -> str:
    """Markdown or LaTeX; text goes to the terminal through `console.table`."""
    if form == "markdown":
        return _markdown(sheet)
    if form == "latex":
        return _latex(sheet)
    raise unknown("value of --format", form, FORMATS)


def _markdown(sheet: Sheet) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(c.replace("\\", "\\\\").replace("|", "\\|") for c in cells) + " |"

    rule = "| " + " | ".join("---" if i < sheet.words else "---:" for i in range(len(sheet.heads))) + " |"
    title = [f"{sheet.title}", ""] if sheet.title else []
    return "\n".join([*title, line(sheet.heads), rule, *map(line, sheet.rows), "", *(f"- {n}" for n in sheet.notes)])


ESCAPED = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "…": r"\ldots{}",
}


def _latex(sheet: Sheet) -> str:
    """A tabular for booktabs."""

    def tex(text: str) -> str:
        signed = text[:1] in "+-" and text[1:2].isdigit()
        body = "".join(ESCAPED.get(c, c) for c in (text[1:] if signed else text))
        return f"${text[0]}${body}" if signed else body

    def line(cells: list[str]) -> str:
        return "  " + " & ".join(map(tex, cells)) + r" \\"

    columns = "l" * sheet.words + "r" * (len(sheet.heads) - sheet.words)
    notes = [f"% {note}" for note in [sheet.title, *sheet.notes] if note]
    body = [r"  \toprule", line(sheet.heads), r"  \midrule"]
    for i, row in enumerate(sheet.rows):
        body += [r"  \midrule"] * (i in sheet.blocks) + [line(row)]
    body.append(r"  \bottomrule")
    return "\n".join([*notes, rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])
