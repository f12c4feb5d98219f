"""What JIOC does inside each host of the comparison: a figure, and its figures as a table.

    python benchmarks/figures.py benchmarks/results/comparison docs/figures

pairs.svg: the paper's claims measured on each host without and with JIOC, as means over the tasks after the
first (weight norms: after the last task, and not of cosine heads, in which they have no part). A single seed
has no verdict: it is hollow and grey. A column of the comparison is a row of panels; what has not been run is
left out.
"""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import once
import printing
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator

from jioc.cli.console import table
from jioc.errors import Failed, Refused, exit_status
from jioc.files import write
from jioc.report import runs
from jioc.report.figures import PAGE, STYLE
from jioc.report.group import Group, Run, mean_std
from jioc.report.looks import COLOURS
from jioc.report.tables import number, spread
from jioc.resolve import recipes
from jioc.results import Diagnostics

Columns = dict[str, list[Group]]  # by place
COSINE = ("podnet", "coil")  # methods with heads in which weight norms have no part
GREY = "#5f6368"
Look = tuple[str, str, str]  # colour, mark, what fills the mark
NEARER, FARTHER = (COLOURS[0], "o", COLOURS[0]), (COLOURS[1], "s", COLOURS[1])
SAME, ALONE = (GREY, "D", GREY), (GREY, "D", "white")
VERDICTS = {
    NEARER: "with JIOC: nearer to the aim",
    FARTHER: "with JIOC: farther",
    SAME: "with JIOC: the same",
    ALONE: "with JIOC: one seed, no verdict",
}


# --- what is measured ---


@dataclass(frozen=True)
class Claim:
    """A figure of a run that coordination should bring nearer to its aim."""

    name: str
    unit: str
    aim: float
    measure: Callable[[Run], float | None]
    wide: bool = False  # figures of several orders of magnitude, zero among them


def diagnostics(run: Run) -> list[Diagnostics]:
    """Those of the tasks after the first."""
    return [row.diagnostics or Diagnostics() for row in run.result.tasks[1:]]


def diagnostic(name: str) -> Callable[[Run], float | None]:
    """Measure the mean of a diagnostic over the tasks after the first."""

    def measure(run: Run) -> float | None:
        return mean_std(measured[name] for measured in diagnostics(run))[0]

    return measure


def new_over_old(run: Run) -> float | None:
    """The mean weight norm of the new classes over that of the old classes, after the last task."""
    norms: Any = diagnostics(run)[-1].weight_norms
    first = run.result.tasks[-1].classes[0]
    if norms is None or run.config["method"] in COSINE:
        return None
    return (sum(norms[first:]) / len(norms[first:])) / (sum(norms[:first]) / first)


def many_less_few(run: Run) -> float | None:
    gaps = [d.many - d.few for d in diagnostics(run) if d.many is not None and d.few is not None]
    return mean_std(gaps)[0]


def new_less_old(run: Run) -> float | None:
    later = run.readouts[run.result.headline][1:]
    return mean_std(accuracy["new"] - accuracy["old"] for accuracy in later)[0]


CLAIMS = (
    Claim("Old images\non new heads", "probability", 0, diagnostic("old_mass_on_new")),
    Claim("Drift of\nold heads", "KL divergence (nats)", 0, diagnostic("drift_on_old"), wide=True),
    Claim("Weight norms,\nnew : old", "ratio", 1, new_over_old),
    Claim("Accuracy,\nnew − old", "points", 0, new_less_old),
    Claim("Accuracy,\nmany − few", "points", 0, many_less_few),
)


@dataclass(frozen=True)
class Pair:
    """A host and the same coordinated, by the seeds that both have; it has the name of the latter."""

    name: str
    runs: list[tuple[Run, Run]]

    def values(self, claim: Claim) -> tuple[list[float], list[float]]:
        """The figures without and with coordination, of the seeds of which both are known."""
        before, after = [], []
        for host, coordinated in self.runs:
            a, b = claim.measure(host), claim.measure(coordinated)
            if a is not None and b is not None:
                before.append(a)
                after.append(b)
        return before, after

    def look(self, claim: Claim) -> Look:
        """Whether JIOC brings the figure nearer to the aim.

        A change that is smaller than the seeds differ, or that two decimals do not show, is none. One seed
        says nothing.
        """
        both = zip(*self.values(claim), strict=True)
        change, std = mean_std([abs(after - claim.aim) - abs(before - claim.aim) for before, after in both])
        if change is None or std is None:
            return ALONE
        if abs(change) < max(0.005, std):
            return SAME
        return NEARER if change < 0 else FARTHER


def pairs(groups: list[Group], coordinations: tuple[str, ...] = ("jioc",)) -> list[Pair]:
    matched = []
    for g in groups:
        if g.coordinate in coordinations and g.base is not None:
            without = {run.seeds: run for run in g.base.complete}
            both = [(without[run.seeds], run) for run in g.complete if run.seeds in without]
            if both:
                matched.append(Pair(g.name, both))
    return matched


def columns(place: Path) -> Columns:
    """Read the finished runs by column, balanced first, each in the order of the recipe."""
    read = [run for run in once.read(place) if run.complete and len(run.result.tasks) > 1]
    ordered = [run for run in runs.planned(recipes.find_recipe("comparison"), read) if not run.missing]
    by_place: Columns = {}
    for g in sorted(runs.group(ordered), key=lambda g: g.config["long_tail"] is not None):
        by_place.setdefault(g.place, []).append(g)
    return by_place


# --- the drawings ---


def claims(by_place: Columns) -> Figure | None:
    shown = {title: of for title, groups in by_place.items() if (of := pairs(groups))}
    if not shown:
        return None
    measured = [claim for claim in CLAIMS if any(p.values(claim)[0] for of in shown.values() for p in of)]
    tallest = max(map(len, shown.values()))
    height = 0.95 + len(shown) * (0.5 + 0.2 * tallest)
    figure, axes = sheet(PAGE, height, len(shown), len(measured), sharex="col")
    for row, (title, of) in zip(axes, shown.items(), strict=True):
        for ax, claim in zip(row, measured, strict=True):
            dumbbells(ax, of, claim)
            ax.set_ylim(tallest - 0.5, -0.5)
            names = [f"{p.name} (n = {len(p.runs)})".replace(", ", ",\n") for p in of]
            ax.set_yticks(range(len(of)), names if ax is row[0] else [""] * len(of))
            ax.tick_params(axis="y", length=0)
        row[0].set_ylabel(title.replace(", ", "\n"))
    for top, bottom, claim in zip(axes[0], axes[-1], measured, strict=True):
        top.set_title(claim.name)
        bottom.set_xlabel(claim.unit)
    handles = [Line2D([], [], ls="", marker="o", mfc="white", mec=GREY, label="without JIOC")]
    for (colour, mark, fill), verdict in VERDICTS.items():
        handles.append(Line2D([], [], color=colour, marker=mark, mfc=fill, label=verdict))
    handles.append(Line2D([], [], color=GREY, ls=":", lw=1, label="the aim"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def dumbbells(ax: Axes, of: list[Pair], claim: Claim) -> None:
    """Draw a line for each host from its figure without JIOC to that with it; thin bars are deviations."""
    ax.axvline(claim.aim, color=GREY, ls=":", lw=1, zorder=1)
    if claim.wide:
        ax.set_xscale("symlog", linthresh=0.1)
        ax.xaxis.set_major_locator(FixedLocator([0, 0.1, 1, 10]))
        ax.xaxis.set_major_formatter("{x:g}")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.grid(False, axis="y")
    if claim.measure is many_less_few and not any(pair.values(claim)[0] for pair in of):
        look = {"ha": "center", "va": "center", "color": GREY}
        ax.text(0.5, 0.5, "classes of\nequal size", transform=ax.transAxes, **look)
        return
    for y, pair in enumerate(of):
        (before, std_before), (after, std_after) = map(mean_std, pair.values(claim))
        if before is None or after is None:
            ax.text(0.5, y, "–", transform=ax.get_yaxis_transform(), ha="center", va="center", color=GREY)
            continue
        colour, mark, fill = pair.look(claim)
        ax.plot([before, after], [y, y], color=colour, lw=1.6, zorder=2)
        ax.errorbar(before, y, xerr=std_before, fmt="none", ecolor=GREY, lw=0.7, zorder=3)
        ax.errorbar(after, y, xerr=std_after, fmt="none", ecolor=colour, lw=0.7, zorder=3)
        ax.plot(before, y, marker="o", ls="", mfc="white", mec=GREY, ms=4.2, zorder=5)
        ax.plot(after, y, marker=mark, ls="", color=colour, mfc=fill, ms=4.2, zorder=4)


def sheet(
    width: float, height: float, rows: int, count: int, **shared: Any
) -> tuple[Figure, list[list[Axes]]]:
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, count, squeeze=False, **shared).tolist()


# --- the command ---


def rows(by_place: Columns) -> list[list[str]]:
    """A row for each pair of each column: every claim without and with JIOC, and the change seed by seed."""
    lines = []
    for title, groups in by_place.items():
        for pair in pairs(groups):
            cells = []
            for claim in CLAIMS:
                before, after = pair.values(claim)
                change = [b - a for a, b in zip(before, after, strict=True)]
                means = f"{number(mean_std(before)[0])} → {number(mean_std(after)[0])}"
                cells.append(f"{means} ({spread(change, '+')})" if change else "–")
            lines.append([title, pair.name, str(len(pair.runs)), *cells])
    return lines


def draw(place: Path, target: Path) -> Path:
    """Draw the figure and print the table; return the file written."""
    by_place = columns(place)
    with matplotlib.rc_context(STYLE):
        figure = claims(by_place)
        if figure is None:
            raise Refused(f"{str(place)!r} holds no host with and without JIOC, finished")
        path = target / "pairs.svg"
        put(path, svg(figure))
    heads = ["column", "pair", "n", *(claim.name.replace("\n", " ") for claim in CLAIMS)]
    table(heads, rows(by_place))
    return path


def svg(figure: Figure, description: str | None = None) -> bytes:
    """The figure as a file; its description, in words, lets a test tell whether the file is current."""
    content = io.BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None, "Description": description})
    return content.getvalue()


def put(path: Path, picture: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, picture)
    except OSError as error:
        raise Failed(f"{str(path.parent)!r} cannot be written to: {error.strerror}") from None


def main() -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("target", type=Path, help="a folder for the figure")
    args = parser.parse_args()
    return exit_status(lambda: print(f"drawn: {draw(args.results, args.target)}"))


if __name__ == "__main__":
    sys.exit(main())
