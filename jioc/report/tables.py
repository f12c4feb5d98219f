"""The tables of `jioc table`: mean ± standard deviation over seeds, beside the paper's figures."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from jioc.report import labels, notes, paper
from jioc.report.group import Group, mean_std, shown_readouts

Curves = dict[str, list[float | None]]  # on all, old and new classes: the accuracy after each task
Mean = Callable[[list[float]], float | None]
KINDS = ("all", "old", "new")


def number(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.2f}"


def spread(values: list[float], sign: str = "") -> str:
    mean, std = mean_std(values)
    return number(mean, sign) if std is None else f"{number(mean, sign)} ± {std:.2f}"


@dataclass(frozen=True)
class Number:
    """A figure. It is rounded where it is shown, and nowhere before."""

    value: float | None
    sign: str = ""

    def __str__(self) -> str:
        return number(self.value, self.sign)

    def fields(self) -> dict[str, float | int | None]:
        """The cells of a csv that hold it, by what is added to its head."""
        return {"": self.value}


@dataclass(frozen=True)
class Spread:
    """A figure of several seeds."""

    values: list[float]
    sign: str = ""
    instead: str = ""  # what stands in its place where there is none
    counted: bool | None = None  # whether its number of seeds is shown; None: it is the n of the line

    def __str__(self) -> str:
        seeds = f" ({len(self.values)})" if self.counted else ""
        return self.instead or spread(self.values, self.sign) + seeds

    def fields(self) -> dict[str, float | int | None]:
        mean, std = mean_std(self.values)
        seeds = {} if self.counted is None else {" n": len(self.values)}
        return {"": mean, " std": std} | seeds


@dataclass
class Line:
    """A row of a table."""

    place: str
    own_place: str  # the part of the place in which the groups differ
    names: list[str]
    n: int | None  # seeds
    figures: list[Number | Spread]
    outcome: str | None = None


@dataclass
class Sheet:
    """A table."""

    title: str
    name_heads: list[str]
    figure_heads: list[str]
    lines: list[Line]
    notes: list[str]
    blocks: list[int]  # the lines before which a rule is drawn
    with_place: bool  # whether the places have a column
    place_once: bool = False  # whether only the first line of a block tells its place

    @property
    def words(self) -> int:
        """How many columns hold words."""
        return self.with_place + len(self.name_heads)

    @property
    def heads(self) -> list[str]:
        return ["setting"] * self.with_place + [*self.name_heads, "n", *self.figure_heads]

    @property
    def rows(self) -> list[list[str]]:
        return [self._row(i, line) for i, line in enumerate(self.lines)]

    def _row(self, i: int, line: Line) -> list[str]:
        above = self.place_once and i > 0 and i not in self.blocks
        place = "" if above else line.own_place or "–"
        n = "–" if line.n is None else str(line.n)
        return [place] * self.with_place + [*line.names, n, *map(str, line.figures)]


# --- a row for each setting ---


def summarise(
    groups: list[Group], beside_paper: bool, forgetting: bool = False, bracketed: bool = True
) -> Sheet:
    """Make a row for each setting; the read-out by which methods are judged comes first.

    `bracketed`: a figure that fewer than n seeds have tells their number in brackets, and a note says so.
    A csv has a column for that number instead.
    """
    shown = shown_readouts(groups)
    kinds = ("average", "last", "forgetting") if forgetting else ("average", "last")
    columns = list(itertools.product(dict.fromkeys(shown.values()), kinds))
    partial = [column for column in columns if any(_partial(g, *column) for g in groups)]
    heads = [f"{readout.upper()} {kind}" for readout, kind in columns] + ["gain"]
    heads += ["paper", "difference", "paper's gain"] if beside_paper else []
    lines = []
    for g in groups:
        headline = shown[g.runs[0].headline]
        figures: list[Number | Spread] = []
        for readout, kind in columns:
            instead = outcome(g) if not g.complete and (readout, kind) == (headline, "average") else ""
            counted = _partial(g, readout, kind) if (readout, kind) in partial else None
            figures.append(Spread(g.figures(kind, readout), instead=instead, counted=counted))
        figures.append(_gain(g, headline))
        figures += _paper_figures(g, headline) if beside_paper else []
        lines.append(Line(g.place, g.own_place, [g.name], len(g.complete), figures, outcome(g)))

    remarks = [
        f"accuracy in percent; mean ± standard deviation over n {notes.seeds(groups)}; "
        "average: over the tasks, the first included"
    ]
    for readout, other in shown.items():
        if readout != other:
            repeated = f"in every run that has it, it is {other.upper()}"
            remarks.append(f"{readout.upper()} has no columns: {repeated}")
    if forgetting:
        remarks.append(
            "forgetting: best accuracy on a past task minus the final one, mean over the past tasks"
        )
    if partial and bracketed:
        remarks.append(
            "in brackets: the number of seeds that have the figure, where others of the n have not"
        )
    if any(g.base for g in groups):
        fewer = any(str(line.figures[len(columns)]).endswith(")") for line in lines)
        seeds = "; in brackets: the number of seeds that both have, where one has more"
        gain = "gain: average minus that of the same setting without coordination, seed by seed"
        remarks.append(gain + (seeds if bracketed and fewer else ""))
    if beside_paper:
        remarks += _paper_notes(groups, notes.headlines(groups, shown))
    blocks = [i for i in range(1, len(groups)) if groups[i].place != groups[i - 1].place]
    title, with_place = _title(groups)
    remarks += notes.closing(groups)
    return Sheet(title, ["run"], heads, lines, remarks, blocks, with_place, place_once=True)


def outcome(g: Group) -> str:
    if g.complete:
        return "finished"
    return "not run" if g.runs[0].missing else "unfinished"


def _partial(g: Group, readout: str, kind: str) -> bool:
    """Whether some of the finished runs have the figure and others have not."""
    return 0 < len(g.figures(kind, readout)) < len(g.complete)


def _gain(g: Group, readout: str) -> Spread:
    """The gain over the host. Its number of seeds is shown where group and host have different ones."""
    gains, seeds = g.gains(readout), {run.seeds for run in g.complete}
    others = g.base is not None and seeds != {run.seeds for run in g.base.complete}
    return Spread(gains, "+", counted=bool(gains) and others)


def _paper_figures(g: Group, headline: str) -> list[Number]:
    """The paper's average, ours minus it, and the paper's gain."""
    where = cell(g)
    theirs, ours = paper.average(where), mean_std(g.figures("average", headline))[0]
    difference = None if theirs is None or ours is None else ours - theirs
    return [Number(theirs), Number(difference, "+"), Number(paper.gain(where), "+")]


def _paper_notes(groups: list[Group], headlines: str) -> list[str]:
    unmatched = sum(paper.average(cell(g)) is None for g in groups)
    remarks = []
    if unmatched < len(groups):
        remarks.append(f"paper: its average accuracy; difference: ours ({headlines}) minus the paper's")
    if unmatched:
        remarks.append(f"{unmatched} of {len(groups)} rows have no counterpart in the paper")
    return remarks


def _title(groups: list[Group]) -> tuple[str, bool]:
    """What all groups have in common, and whether their places differ."""
    places = {g.place for g in groups}
    if len(places) == 1:
        return groups[0].place, False
    return groups[0].common_place if groups else "", True


def cell(g: Group) -> paper.Setting | None:
    """Where a setting would stand in the paper's tables."""
    if g.complete:
        return paper.setting(g.complete[0].result)
    return paper.cell(g.config, g.config["tasks"]) if g.config.get("tasks") else None


# --- three rows for each setting, a column for each task ---


def by_task(groups: list[Group], beside_paper: bool) -> Sheet:
    """Make rows of the accuracy after each task on all, old and new classes, the paper's below ours."""
    finished = [g for g in groups if g.complete]
    tasks = max((len(g.complete[0].result.tasks) for g in finished), default=0)
    lines: list[Line] = []
    blocks: list[int] = []
    for g in finished:
        if lines:
            blocks.append(len(lines))
        lines += _curve_lines(g, g.name, len(g.complete), _curves(g), _mean, tasks)
        theirs = paper.curve(cell(g)) if beside_paper else None
        if theirs is not None:
            name = f"{labels.title(g)} (paper)"
            lines += _curve_lines(g, name, None, _paper_curves(theirs), paper.mean, tasks)
    headlines = notes.headlines(finished or groups, shown_readouts(groups))
    seeds = notes.seeds(groups)
    remarks = [f"accuracy in percent ({headlines}) after each task on the classes seen; means over n {seeds}"]
    if not_run := [g.label for g in groups if g.runs[0].missing]:
        remarks.append(f"not run: {'; '.join(not_run)}")
    heads = [*map(str, range(1, tasks + 1)), "mean"]
    title, with_place = _title(finished)
    return Sheet(title, ["run", "classes"], heads, lines, remarks + notes.closing(groups), blocks, with_place)


def _curve_lines(g: Group, name: str, n: int | None, curves: Curves, mean: Mean, tasks: int) -> list[Line]:
    """A line each for all, old and new classes: the accuracy after each task, and the mean over the tasks."""
    lines = []
    for kind in KINDS:
        values = curves[kind] + [None] * (tasks - len(curves[kind]))
        known = [value for value in values if value is not None]
        figures: list[Number | Spread] = [Number(value) for value in values]
        figures.append(Number(mean(known) if known else None))
        lines.append(Line(g.place, g.own_place, [name, kind], n, figures))
    return lines


def _mean(values: list[float]) -> float | None:
    return mean_std(values)[0]


def _curves(g: Group) -> Curves:
    """The means over the seeds, by the read-out of which each run is judged."""
    curves: Curves = {kind: [] for kind in KINDS}
    for accuracies in itertools.zip_longest(*(run.readouts[run.headline] for run in g.complete)):
        for kind in KINDS:
            values = [accuracy[kind] for accuracy in accuracies if accuracy is not None]
            curves[kind].append(_mean([value for value in values if value is not None]))
    return curves


def _paper_curves(theirs: dict[str, list[float]]) -> Curves:
    """The paper's curves, whose row for old classes begins with the second task."""
    return {kind: [None, *values] if kind == "old" else [*values] for kind, values in theirs.items()}
