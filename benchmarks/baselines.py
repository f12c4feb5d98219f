"""The baselines on balanced CIFAR-100 beside the paper's figures and PyCIL's (pycil.json).

python benchmarks/baselines.py    prints the table of docs/results/baselines.md from results/comparison
"""

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import once
import printing
from gains import RESULTS, name_of

from jioc.errors import Refused
from jioc.report import paper, runs
from jioc.report.group import Group
from jioc.report.notes import provenance
from jioc.report.tables import cell, spread
from jioc.resolve import recipes
from jioc.resolve.pycil import METHODS

TOLERANCE = 2.0  # points
READ_OFF = 0.5  # points more, for a figure that was read off a plot
OURS = ["run", "read-out", "n", "ours"]
THEIRS = ["paper", "difference", "within", "PyCIL", "difference", "within", "source"]
NOTES = [
    "ours and PyCIL's: the average over the tasks, in brackets the accuracy after the last; "
    "paper: its average",
    f"within: no figure is more than {TOLERANCE:g} points away, "
    f"{TOLERANCE + READ_OFF:g} where it was read off a plot",
]
Values = tuple[list[float], list[float]]  # average and last, seed by seed
Theirs = tuple[float | None, float | None]


@dataclass(frozen=True)
class Figure:
    """PyCIL's figures of a method by one read-out."""

    method: str
    readout: str
    average: float | None
    last: float | None
    read_off: bool
    source: str


def pycil_figures() -> list[Figure]:
    content = json.loads((Path(__file__).parent / "pycil.json").read_text(encoding="utf-8"))
    return [Figure(*row) for row in content["figures"]]


def table(results: Path = RESULTS / "comparison", figures: list[Figure] | None = None) -> str:
    """Rows in the recipe's order; a method of which neither the paper nor PyCIL has a figure is left out."""
    figures = pycil_figures() if figures is None else figures
    recipe = recipes.find_recipe("comparison")
    wanted = [runs.setting(run) for run in runs.planned(recipe, []) if is_baseline(run.config)]
    ours = [run for run in once.read(results) if run.complete and runs.setting(run) in wanted]
    groups = runs.group(run for run in runs.planned(recipe, ours) if not run.missing)
    rows = {g: compared_rows(g, [f for f in figures if as_in_pycil(g.config, f.method)]) for g in groups}
    shown = [g for g in groups if rows[g]]
    if not shown:
        raise Refused(f"{str(results)!r} holds no finished baseline of the comparison's balanced column")
    cells = [OURS + THEIRS, ["---"] * 2 + ["---:"] * 8 + ["---"]]
    for g in shown:
        cells += rows[g]
    lines = [f"| {' | '.join(line)} |" for line in cells]
    notes = [f"- {note}" for note in [*NOTES, *provenance(shown)]]
    width = max(len(command(g)) for g in shown)
    commands = [f"{command(g):{width}}  # {g.name}" for g in shown]
    return "\n".join([*lines, "", *notes, "", "```", *commands, "```"])


def is_baseline(config: dict[str, Any]) -> bool:
    return config["long_tail"] is None and config["coordination"]["coordinate"] == "none"


def as_in_pycil(config: dict[str, Any], method: str) -> bool:
    """Whether it is the method in the form that PyCIL's code has."""
    options = METHODS[method].options.items()
    return config["method"] == method and all(config["options"][name] == value for name, value in options)


def compared_rows(g: Group, figures: list[Figure]) -> list[list[str]]:
    """A row for each of PyCIL's figures; the paper's, which is the head's, stands in the head's first row."""
    theirs = paper.average(cell(g))
    if theirs is not None and not any(figure.readout == "cnn" for figure in figures):
        figures = [Figure(g.config["method"], "cnn", None, None, False, "–"), *figures]
    rows: list[list[str]] = []
    above = ""  # the read-out of the row above
    for figure in figures:
        values = g.figures("average", figure.readout), g.figures("last", figure.readout)
        ours = [""] * 6
        if figure.readout != above:
            ours = [figure.readout.upper(), str(len(values[0])), with_last(*map(spread, values))]
            ours += compared(values, (theirs if figure.readout == "cnn" else None, None), TOLERANCE)
        tolerance = TOLERANCE + (READ_OFF if figure.read_off else 0)
        pycil = compared(values, (figure.average, figure.last), tolerance)
        rows.append(["" if rows else g.name, *ours, *pycil, figure.source])
        above = figure.readout
    return rows


def compared(ours: Values, theirs: Theirs, tolerance: float) -> list[str]:
    """Their figures, ours minus theirs, and whether none is farther away than the tolerance."""
    apart = [None if b is None else statistics.fmean(a) - b for a, b in zip(ours, theirs, strict=True)]
    if apart == [None, None]:
        return ["–"] * 3
    within = all(abs(points) <= tolerance for points in apart if points is not None)
    shown = [None if value is None else f"{value}" for value in theirs]
    differences = [None if points is None else f"{points:+.2f}" for points in apart]
    return [with_last(*shown), with_last(*differences), "yes" if within else "**no**"]


def with_last(average: str | None, last: str | None) -> str:
    """55.00 (35.00): the average, and in brackets the accuracy after the last task, where they are known."""
    return " ".join([average] * (average is not None) + [f"({last})"] * (last is not None))


def command(g: Group) -> str:
    """The command that repeats the group."""
    seeds = sorted(run.config["seed"] for run in g.complete)
    usual = tuple(seeds) == recipes.find_recipe("comparison").seeds
    given = "" if usual else f" --seeds {' '.join(map(str, seeds))}"
    return f"jioc grid comparison --only {name_of(g.runs[0])}{given}"


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, table, argv)


if __name__ == "__main__":
    sys.exit(main())
