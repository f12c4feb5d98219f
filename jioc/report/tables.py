"""`jioc table`: mean ± standard deviation over seeds, beside the paper's figures."""

from dataclasses import dataclass

from ..errors import unknown
from . import paper
from .runs import Group, mean_std, scene

FORMATS = ("text", "markdown", "latex")


@dataclass
class Sheet:
    title: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str]


def summarise(groups: list[Group], beside_paper: bool) -> Sheet:
    """A row for each setting; the read-out by which methods are judged comes first."""
    names = dict.fromkeys(n for g in groups for run in g.runs for n in [run.headline, *run.readouts])
    scenes = list(dict.fromkeys(map(scene, groups)))
    heads = ["run"] if len(scenes) == 1 else ["setting", "run"]
    heads += ["n", *(f"{n.upper()} {kind}" for n in names for kind in ("average", "last")), "gain"]
    heads += ["paper", "difference", "paper's gain"] if beside_paper else []
    rows, unfinished, unmatched = [], 0, 0
    for where in scenes:
        for g in (g for g in groups if scene(g) == where):
            judged = g.runs[0].headline
            row = [g.label] if len(scenes) == 1 else [where, g.name]
            row += [str(len(g.complete)), *(spread(g.figures(k, n)) for n in names for k in ("average", "last"))]
            row.append(spread(g.gains(judged), "+"))
            if beside_paper:
                cell = paper.setting(g.complete[0].result) if g.complete else None
                theirs, ours = paper.average(cell), mean_std(g.figures("average", judged))[0]
                unmatched += theirs is None
                row += [number(theirs), number(None if theirs is None or ours is None else ours - theirs, "+")]
                row.append(number(paper.gain(cell), "+"))
            rows.append(row)
            unfinished += len(g.runs) - len(g.complete)
    notes = ["accuracy in percent; mean ± standard deviation over n seeds; average: over the tasks, the first included"]
    if any(g.base for g in groups):
        notes.append("gain: average minus that of the same method without coordination, seed by seed")
    if beside_paper and unmatched:
        notes.append(f"{unmatched} of {len(rows)} rows have no counterpart in the paper")
    if unfinished:
        notes.append(f"unfinished and not averaged: {unfinished} of {sum(len(g.runs) for g in groups)} runs")
    return Sheet(scenes[0] if len(scenes) == 1 else "", heads, rows, notes)


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

    words = sheet.heads.index("n")
    rule = "| " + " | ".join("---" if i < words else "---:" for i in range(len(sheet.heads))) + " |"
    title = [f"{sheet.title}", ""] if sheet.title else []
    return "\n".join([*title, line(sheet.heads), rule, *map(line, sheet.rows), "", *(f"{n}  " for n in sheet.notes)])


ESCAPED = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "±": r"$\pm$",
}


def _latex(sheet: Sheet) -> str:
    """A tabular for booktabs."""

    def tex(text: str) -> str:
        signed = text[:1] in "+-" and text[1:2].isdigit()
        body = "".join(ESCAPED.get(c, c) for c in (text[1:] if signed else text))
        return f"${text[0]}${body}" if signed else body

    def line(cells: list[str]) -> str:
        return "  " + " & ".join(map(tex, cells)) + r" \\"

    words = sheet.heads.index("n")
    columns = "l" * words + "r" * (len(sheet.heads) - words)
    notes = [f"% {note}" for note in [sheet.title, *sheet.notes] if note]
    body = [r"  \toprule", line(sheet.heads), r"  \midrule", *map(line, sheet.rows), r"  \bottomrule"]
    return "\n".join([*notes, rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])
