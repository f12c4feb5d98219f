"""The tables of `jioc table`: mean ± standard deviation over seeds, beside the paper's figures."""

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jioc.report import labels, notes, paper
from jioc.report.group import Group, mean_std, shown_readouts

KINDS = ("all", "old", "new")


def number(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.2f}"


def spread(values: list[float], sign: str = "") -> str:
    mean, std = mean_std(values)
    return number(mean, sign) if std is None else f"{number(mean, sign)} ± {std:.2f}"


@dataclass(frozen=True)
class Figure:
    """A figure as text, and unrounded as the cells of a csv, by what is added to its head."""

    text: str
    fields: dict[str, float | int | None]


def one_figure(value: float | None, sign: str = "") -> Figure:
    return Figure(number(value, sign), {"": value})


def seeds_figure(
    values: list[float], sign: str = "", counted: bool | None = None, instead: str = ""
) -> Figure:
    """A figure of several seeds. `counted`: whether their number is shown; None: it is the n of the line.

    `instead`: the text in its place where there is none.
    """
    (mean, std), n = mean_std(values), len(values)
    text = instead or spread(values, sign) + (f" ({n})" if counted else "")
    return Figure(text, {"": mean, " std": std, **({} if counted is None else {" n": n})})


@dataclass
class Line:
    """A row of a table."""

    group: Group
    names: list[str]
    n: int | None  # seeds
    figures: list[Figure]
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
        rows = []
        for i, line in enumerate(self.lines):
            above = self.place_once and i > 0 and i not in self.blocks
            place = "" if above else line.group.own_place or "–"
            cells = [*line.names, "–" if line.n is None else str(line.n), *(f.text for f in line.figures)]
            rows.append([place] * self.with_place + cells)
        return rows

    def without_empty(self) -> "Sheet":
        """The table without the columns of figures in which no line has one."""
        kept = [
            i
            for i in range(len(self.figure_heads))
            if not self.lines or any(line.figures[i].text != number(None) for line in self.lines)
        ]
        lines = [replace(line, figures=[line.figures[i] for i in kept]) for line in self.lines]
        return replace(self, figure_heads=[self.figure_heads[i] for i in kept], lines=lines)


# --- a row for each setting ---


def summarise(
    groups: list[Group],
    beside_paper: bool,
    forgetting: bool = False,
    bracketed: bool = True,
    wide: bool = True,
    task_mean: bool = False,
) -> Sheet:
    """Make a row for each setting; the read-out by which runs are judged comes first.

    `wide`: columns for every read-out; without, for the one by which each run is judged.
    `bracketed`: a figure that fewer than n seeds have tells their number in brackets, and a note says so.
    A csv has a column for that number instead.
    """
    shown = shown_readouts(groups)
    kinds = ("average", *["task mean"] * task_mean, "last", *["forgetting"] * forgetting)
    headlines = dict.fromkeys(shown[g.runs[0].result.headline] for g in groups)
    others = [name for name in dict.fromkeys(shown.values()) if len(headlines) > 1 or name not in headlines]
    readouts = [*dict.fromkeys(shown.values())] if wide else [*headlines] if len(headlines) == 1 else [""]
    columns = list(itertools.product(readouts, kinds))  # "": whichever the run is judged by
    partial = [column for column in columns if any(_partial(g, *column, shown) for g in groups)]
    heads = [f"{readout.upper()} {kind}".strip() for readout, kind in columns] + ["gain"]
    heads += ["paper", "difference", "paper's gain"] if beside_paper else []
    lines = []
    for g in groups:
        headline = shown[g.runs[0].result.headline]
        figures = [
            seeds_figure(
                g.figures(kind, readout or headline),
                counted=_partial(g, readout, kind, shown) if (readout, kind) in partial else None,
                instead=outcome(g)
                if not g.complete and (readout or headline, kind) == (headline, "average")
                else "",
            )
            for readout, kind in columns
        ]
        figures += [_gain(g, headline), *(_paper_figures(g, headline) if beside_paper else ())]
        lines.append(Line(g, [g.name], len(g.complete), figures, outcome(g)))

    gain = "gain: average minus that of the same setting without coordination, seed by seed"
    if bracketed and any(line.figures[len(columns)].text.endswith(")") for line in lines):
        gain += "; in brackets: the number of seeds that both have, where one has more"
    where_it_holds = {
        "task mean: after each task the mean of all tasks' accuracies, a large one counted as a small one; "
        "averaged over the run": task_mean,
        "forgetting: best accuracy on a past task minus the final one, mean over the past tasks": forgetting,
        "in brackets: the number of seeds that have the figure, where others of the n have not": (
            partial and bracketed
        ),
        gain: any(g.base for g in groups),
    }
    remarks = [
        f"accuracy in percent; mean ± standard deviation over n {notes.seeds(groups)}; "
        "average: over the tasks, the first included",
        *_narrow_notes(groups, shown, others if not wide else []),
        *(
            f"{name.upper()} has no columns: in every run that has it, it is {other.upper()}"
            for name, other in shown.items()
            if wide and name != other
        ),
        *(remark for remark, holds in where_it_holds.items() if holds),
        *(_paper_notes(groups, shown) if beside_paper else ()),
        *notes.closing(groups),
    ]
    blocks = [i for i in range(1, len(groups)) if groups[i].place != groups[i - 1].place]
    title, with_place = _title(groups)
    return Sheet(title, ["run"], heads, lines, remarks, blocks, with_place, place_once=True)


def outcome(g: Group) -> str:
    return "finished" if g.complete else "not run" if g.runs[0].missing else "unfinished"


def _partial(g: Group, readout: str, kind: str, shown: dict[str, str]) -> bool:
    """Whether some of the finished runs have the figure and others have not."""
    return 0 < len(g.figures(kind, readout or shown[g.runs[0].result.headline])) < len(g.complete)


def _narrow_notes(groups: list[Group], shown: dict[str, str], others: list[str]) -> list[str]:
    """Say which read-out the columns show where runs are judged by several, and how to see the others."""
    if not others:
        return []
    judged = notes.headlines(groups, shown)
    legend = [f"average and last: of {judged}"] if " or " in judged else []
    return [*legend, f"--wide adds columns for {', '.join(name.upper() for name in others)}"]


def _gain(g: Group, readout: str) -> Figure:
    """The gain over the host. Its number of seeds is shown where group and host have different ones."""
    gains, seeds = g.gains(readout), {run.seeds for run in g.complete}
    others = g.base is not None and seeds != {run.seeds for run in g.base.complete}
    return seeds_figure(gains, "+", counted=bool(gains) and others)


def _paper_figures(g: Group, headline: str) -> list[Figure]:
    """The paper's average, ours minus it, and the paper's gain."""
    where = cell(g)
    theirs, ours = paper.average(where), mean_std(g.figures("average", headline))[0]
    difference = None if theirs is None or ours is None else ours - theirs
    return [one_figure(theirs), one_figure(difference, "+"), one_figure(paper.gain(where), "+")]


def _paper_notes(groups: list[Group], shown: dict[str, str]) -> list[str]:
    unmatched = sum(paper.average(cell(g)) is None for g in groups)
    ours = f"ours ({notes.headlines(groups, shown)})"
    matched = f"paper: its average accuracy; difference: {ours} minus the paper's"
    others = f"{unmatched} of {len(groups)} rows have no counterpart in the paper"
    return [matched] * (unmatched < len(groups)) + [others] * (unmatched > 0)


def _title(groups: list[Group]) -> tuple[str, bool]:
    """What all groups have in common, and whether their places differ."""
    if len({g.place for g in groups}) == 1:
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
        blocks.append(len(lines))
        lines += _curve_lines(g, g.name, len(g.complete), _curves(g), statistics.fmean, tasks)
        if theirs := paper.curve(cell(g)) if beside_paper else None:
            curves = theirs | {"old": [None, *theirs["old"]]}  # from the second task on
            lines += _curve_lines(g, f"{labels.title(g)} (paper)", None, curves, paper.mean, tasks)
    headlines = notes.headlines(finished or groups, shown_readouts(groups))
    seeds = notes.seeds(groups)
    remarks = [f"accuracy in percent ({headlines}) after each task on the classes seen; means over n {seeds}"]
    if not_run := [g.label for g in groups if g.runs[0].missing]:
        remarks.append(f"not run: {'; '.join(not_run)}")
    heads = [*map(str, range(1, tasks + 1)), "mean"]
    title, with_place = _title(finished)
    remarks += notes.closing(groups)
    return Sheet(title, ["run", "classes"], heads, lines, remarks, blocks[1:], with_place)


def _curve_lines(
    g: Group,
    name: str,
    n: int | None,
    curves: Mapping[str, Sequence[float | None]],
    mean: Callable[[list[float]], float],
    tasks: int,
) -> list[Line]:
    """A line each for all, old and new classes: the accuracy after each task, and the mean over the tasks."""
    lines = []
    for kind in KINDS:
        known = [value for value in curves[kind] if value is not None]
        later = [None] * (tasks - len(curves[kind]))
        figures = map(one_figure, [*curves[kind], *later, mean(known) if known else None])
        lines.append(Line(g, [name, kind], n, [*figures]))
    return lines


def _curves(g: Group) -> dict[str, list[float | None]]:
    """The means over the seeds, by the read-out of which each run is judged."""
    by_task = list(itertools.zip_longest(*(run.readouts[run.result.headline] for run in g.complete)))
    return {kind: [mean_std([a[kind] for a in some if a])[0] for some in by_task] for kind in KINDS}
