"""`jioc table`: mean ± standard deviation over seeds, beside the paper's figures."""

import csv
import io
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from jioc.report import labels, paper
from jioc.report.runs import Group, mean_std, shown_readouts
from jioc.results import Environment
from jioc.text import counted, printable

FORMATS = ("text", "markdown", "latex", "csv")

Curves = dict[str, list[float | None]]
Mean = Callable[[list[float]], float | None]


@dataclass(frozen=True)
class Number:
    """A figure that is rounded where it is shown, and nowhere before."""

    value: float | None
    sign: str = ""

    def __str__(self) -> str:
        return number(self.value, self.sign)

    def fields(self) -> dict[str, float | int | None]:
        """The columns of a csv that hold it, by what is added to its head."""
        return {"": self.value}


@dataclass(frozen=True)
class Spread:
    """A figure of several seeds. `instead`: what is said where there is none; `counted`: whether their number is told,
    None where it is that of the line."""

    values: list[float]
    sign: str = ""
    instead: str = ""
    counted: bool | None = None

    def __str__(self) -> str:
        return self.instead or spread(self.values, self.sign) + f" ({len(self.values)})" * bool(self.counted)

    def fields(self) -> dict[str, float | int | None]:
        mean, std = mean_std(self.values)
        return {"": mean, " std": std} | ({} if self.counted is None else {" n": len(self.values)})


@dataclass
class Line:
    """A row. `place`: those parts of its scene in which the scenes differ."""

    scene: str
    place: str
    words: list[str]
    n: int | None
    figures: list[Number | Spread]
    outcome: str | None = None


@dataclass
class Sheet:
    """A table. `named` and `measured`: the heads of words and of figures; `blocks`: lines that begin another part;
    `placed`: whether the places have a column."""

    title: str
    named: list[str]
    measured: list[str]
    lines: list[Line]
    notes: list[str]
    blocks: list[int]
    placed: bool
    once: bool = False  # a place is told by the first of its lines alone

    @property
    def words(self) -> int:
        """How many columns hold words."""
        return self.placed + len(self.named)

    @property
    def heads(self) -> list[str]:
        return ["setting"] * self.placed + [*self.named, "n", *self.measured]

    @property
    def rows(self) -> list[list[str]]:
        return [self._row(i, line) for i, line in enumerate(self.lines)]

    def _row(self, i: int, line: Line) -> list[str]:
        place = "" if self.once and i and i not in self.blocks else line.place or "–"
        n = "–" if line.n is None else str(line.n)
        return [place] * self.placed + [*line.words, n, *map(str, line.figures)]


def summarise(
    groups: list[Group], beside_paper: bool, forgetting: bool = False, bracketed: bool = True
) -> Sheet:
    """A row for each setting; the read-out by which methods are judged comes first. `bracketed`: whether seeds,
    where they are not all n, stand in brackets, so that a note tells of them; a csv has a column of them."""
    shown = shown_readouts(groups)
    names = list(dict.fromkeys(shown.values()))
    kinds = ("average", "last", *["forgetting"] * forgetting)
    title, placed = _title(groups)
    heads = [*(f"{n.upper()} {kind}" for n in names for kind in kinds), "gain"]
    heads += ["paper", "difference", "paper's gain"] if beside_paper else []
    some = {of for of in itertools.product(names, kinds) if any(_lacking(g, *of) for g in groups)}
    lines, unmatched = [], 0
    for g in groups:
        judged = shown[g.runs[0].headline]
        figures: list[Number | Spread] = []
        for n, kind in itertools.product(names, kinds):
            without = "" if g.complete or (n, kind) != (judged, "average") else outcome(g)
            lacking = _lacking(g, n, kind) if (n, kind) in some else None
            figures.append(Spread(g.figures(kind, n), instead=without, counted=lacking))
        figures.append(_gain(g, judged))
        if beside_paper:
            where = cell(g)
            theirs, ours = paper.average(where), mean_std(g.figures("average", judged))[0]
            unmatched += theirs is None
            figures += [
                Number(theirs),
                Number(None if theirs is None or ours is None else ours - theirs, "+"),
            ]
            figures.append(Number(paper.gain(where), "+"))
        lines.append(Line(g.scene, g.place, [g.name], len(g.complete), figures, outcome(g)))
    blocks = [i for i in range(1, len(groups)) if groups[i].scene != groups[i - 1].scene]
    over = f"mean ± standard deviation over n {_seeds(groups)}"
    notes = [f"accuracy in percent; {over}; average: over the tasks, the first included"]
    hidden = {n.upper(): of.upper() for n, of in shown.items() if n != of}
    notes += [f"{name} has no columns: in every run that has it, it is {of}" for name, of in hidden.items()]
    if forgetting:
        notes.append("forgetting: best accuracy on a past task minus the final one, mean over the past tasks")
    if some and bracketed:
        notes.append("in brackets: the number of seeds that have the figure, where others of the n have not")
    if any(g.base for g in groups):
        fewer = bracketed and any(str(line.figures[heads.index("gain")]).endswith(")") for line in lines)
        notes.append("gain: average minus that of the same setting without coordination, seed by seed")
        notes[-1] += "; in brackets: the number of seeds that both have, where one has more" * fewer
    if beside_paper and unmatched < len(lines):
        notes.append(
            f"paper: its average accuracy; difference: ours ({_judged(groups, shown)}) minus the paper's"
        )
    if beside_paper and unmatched:
        notes.append(f"{unmatched} of {len(lines)} rows have no counterpart in the paper")
    notes += [*_warnings(groups), *provenance(groups)]
    return Sheet(title, ["run"], heads, lines, notes, blocks, placed, once=True)


def outcome(g: Group) -> str:
    return "finished" if g.complete else "not run" if g.runs[0].planned else "unfinished"


def _lacking(g: Group, readout: str, kind: str) -> bool:
    """Whether some of the finished runs have the figure and others, say of an earlier version, have not."""
    return 0 < len(g.figures(kind, readout)) < len(g.complete)


def _gain(g: Group, readout: str) -> Spread:
    """With the number of seeds where the host has others, so that the columns do not give it."""
    gains, seeds = g.gains(readout), {run.seeds for run in g.complete}
    told = gains and g.base is not None and seeds != {run.seeds for run in g.base.complete}
    return Spread(gains, "+", counted=bool(told))


def _seeds(groups: list[Group]) -> str:
    return "seeds or class orders" if any(run.over_orders for g in groups for run in g.runs) else "seeds"


def _judged(groups: list[Group], shown: dict[str, str]) -> str:
    names = dict.fromkeys(shown[g.runs[0].headline].upper() for g in groups)
    return " or ".join(names) + (", whichever the method is judged by" if len(names) > 1 else "")


def _warnings(groups: list[Group]) -> list[str]:
    notes = _unrun(groups)
    if sets := {g.places[0]: g.runs[0].config.get("data") for g in labels.changed(groups)}:
        told = "; ".join(f"{name} from {place}" for name, place in sets.items())
        told = told if len(sets) <= NAMED else f"{len(sets)} sets"
        notes.append(
            printable(f"not averaged together, other images (data.fingerprint in result.json): {told}")
        )
    runs = [run for g in groups for run in g.runs if not run.planned]
    unfinished = sum(not run.complete for run in runs)
    if unfinished:
        notes.append(f"unfinished and not averaged: {unfinished} of {len(runs)} runs")
    again = sum(len(g.complete) - len({run.seeds for run in g.complete}) for g in groups)
    if again:
        notes.append(f"seeds run more than once count each time: {again} of {len(runs)} runs")
    return notes


def provenance(groups: list[Group]) -> list[str]:
    """Where the averaged runs come from; each result.json says more."""
    runs = [run for g in groups for run in g.complete]
    machines = [_machine(run.result.environment) for run in runs]
    commits = [run.commit for run in runs]
    several = len(set(commits)) > 1 or any(" then " in commit for commit in commits)
    told = [f"on {' or '.join(_numbered(machines))}"] * any(machines)
    told += [f"at commit{'s' * several} {', '.join(_numbered(commits))}"] * any(commits)
    return [printable(f"{counted(len(runs), 'run')} {', '.join(told)}")] if told else []


def _machine(ran: Environment) -> str:
    device = ran.device or ""
    return f"{device or 'an unknown device'}, torch {ran.torch}" if ran.torch else device


def _numbered(words: list[str]) -> list[str]:
    """Each once, with how often it is there, where there are several."""
    of = Counter(word or "unknown" for word in words)
    return [f"{word} ({n})" if len(of) > 1 else word for word, n in sorted(of.items())]


def _unrun(groups: list[Group]) -> list[str]:
    """The seeds of a recipe that are not there, of settings of which others are."""
    by_seeds: dict[str, list[str]] = {}
    for g in groups:
        if not g.runs[0].planned and (seeds := [str(run.config["seed"]) for run in g.runs if run.planned]):
            by_seeds.setdefault(f"seed{'s' * (len(seeds) > 1)} {' '.join(seeds)}", []).append(g.label)
    told = {seeds: "; ".join(of) if len(of) <= NAMED else f"{len(of)} rows" for seeds, of in by_seeds.items()}
    return [f"wanted and not run, {seeds}: {rows}" for seeds, rows in told.items()]


NAMED = 6  # rows that a note names


def _title(groups: list[Group]) -> tuple[str, bool]:
    """What is the same for all groups, and whether their places differ."""
    scenes = list(dict.fromkeys(g.scene for g in groups))
    if len(scenes) == 1:
        return scenes[0], False
    return groups[0].ground if groups else "", True


def cell(g: Group) -> paper.Setting | None:
    """Where a setting would stand in the paper's tables."""
    if g.complete:
        return paper.setting(g.complete[0].result)
    return paper.cell(g.config, g.config["tasks"]) if g.config.get("tasks") else None


def by_task(groups: list[Group], beside_paper: bool) -> Sheet:
    """The accuracy after each task on all, old and new classes, the paper's below ours; means over seeds."""
    shown = [g for g in groups if g.complete]
    title, placed = _title(shown)
    last = max((len(g.complete[0].result.tasks) for g in shown), default=0)
    heads = [*map(str, range(1, last + 1)), "mean"]
    lines: list[Line] = []
    blocks: list[int] = []
    for g in shown:
        of: list[tuple[str, int | None, Curves, Mean]] = [(g.name, len(g.complete), _curves(g), _mean)]
        theirs = paper.curve(cell(g)) if beside_paper else None
        if theirs is not None:
            curve = {k: _from_second(k, v) for k, v in theirs.items()}
            of.append((f"{labels.title(g)} (paper)", None, curve, paper.mean))
        blocks += [len(lines)] * bool(lines)
        for name, n, curve, mean in of:
            for kind in ("all", "old", "new"):
                values = curve[kind] + [None] * (last - len(curve[kind]))
                known = [v for v in values if v is not None]
                figures = [*map(Number, values), Number(mean(known) if known else None)]
                lines.append(Line(g.scene, g.place, [name, kind], n, [*figures]))
    judged = _judged(shown or groups, shown_readouts(groups))
    notes = [
        f"accuracy in percent ({judged}) after each task on the classes seen; means over n {_seeds(groups)}"
    ]
    if unrun := [g.label for g in groups if g.runs[0].planned]:
        notes.append(f"not run: {'; '.join(unrun)}")
    notes += [*_warnings(groups), *provenance(groups)]
    return Sheet(title, ["run", "classes"], heads, lines, notes, blocks, placed)


def _mean(values: list[float]) -> float | None:
    return mean_std(values)[0]


def _curves(g: Group) -> Curves:
    of = [run.readouts[run.headline] for run in g.complete]
    tasks = list(itertools.zip_longest(*of))
    return {
        kind: [mean_std([v for row in rows if row and (v := row[kind]) is not None])[0] for rows in tasks]
        for kind in ("all", "old", "new")
    }


def _from_second(kind: str, values: list[float]) -> list[float | None]:
    """The paper's row for old classes begins with the second task."""
    return [None, *values] if kind == "old" else list(values)


def number(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.2f}"


def spread(values: list[float], sign: str = "") -> str:
    mean, std = mean_std(values)
    return number(mean, sign) if std is None else f"{number(mean, sign)} ± {std:.2f}"


def render(sheet: Sheet, form: str) -> str:
    """Markdown, LaTeX or csv; text goes to the terminal through `console.table`."""
    return {"markdown": _markdown, "latex": _latex, "csv": _csv}[form](sheet)


def _csv(sheet: Sheet) -> str:
    """For programs: figures unrounded, each in a cell of its own, every line with its whole setting; no notes."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    fields = [[f.fields() for f in line.figures] for line in sheet.lines]
    kinds = [[*of] for of in fields[0]] if fields else [[""]] * len(sheet.measured)
    heads = [head + kind for head, of in zip(sheet.measured, kinds, strict=True) for kind in of]
    ended = any(line.outcome for line in sheet.lines)
    out.writerow(["setting", *sheet.named, "n", *heads, *["outcome"] * ended])
    for line, of in zip(sheet.lines, fields, strict=True):
        figures = [value for one in of for value in one.values()]
        out.writerow([line.scene, *line.words, line.n, *figures, *[line.outcome] * ended])
    return text.getvalue().removesuffix("\n")


def _markdown(sheet: Sheet) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(c.replace("\\", "\\\\").replace("|", "\\|") for c in cells) + " |"

    rule = "| " + " | ".join("---" if i < sheet.words else "---:" for i in range(len(sheet.heads))) + " |"
    title = [f"{sheet.title}", ""] if sheet.title else []
    return "\n".join(
        [*title, line(sheet.heads), rule, *map(line, sheet.rows), "", *(f"- {n}" for n in sheet.notes)]
    )


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
