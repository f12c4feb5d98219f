"""The baselines on balanced CIFAR-100 beside the paper's figures and PyCIL's (pycil.json), and the line of each.

python benchmarks/baselines.py    prints the table of docs/reproduction.md from results/comparison
"""

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import printing
from gains import RESULTS, name_of

from jioc.errors import Refused
from jioc.report import paper, runs
from jioc.report.runs import Group
from jioc.report.tables import cell, provenance, spread
from jioc.resolve import recipes
from jioc.resolve.pycil import METHODS

TOLERANCE = 2.0  # points
READ = 0.5  # more, where a figure was read off a plot
HEADS = [
    "run",
    "read-out",
    "n",
    "ours",
    "paper",
    "difference",
    "within",
    "PyCIL",
    "difference",
    "within",
    "source",
]


@dataclass(frozen=True)
class Figure:
    """Of PyCIL: a method by one read-out."""

    method: str
    readout: str
    average: float | None
    last: float | None
    read: bool
    source: str


def table() -> str:
    found = json.loads((Path(__file__).parent / "pycil.json").read_text(encoding="utf-8"))
    return told(RESULTS / "comparison", [Figure(*row) for row in found["figures"]])


def told(place: Path, figures: list[Figure]) -> str:
    """Rows in the recipe's order; a method that neither the paper nor PyCIL has a figure of is left out."""
    recipe = recipes.find("comparison")
    wanted = [runs.setting(run) for run in runs.planned(recipe, []) if baseline(run.config)]
    ours = [run for run in runs.read([place]) if run.complete and runs.setting(run) in wanted]
    groups = runs.group(run for run in runs.planned(recipe, ours) if not run.missing)
    rows = {g: beside(g, [f for f in figures if coded(g.config, f.method)]) for g in groups}
    shown = [g for g in groups if rows[g]]
    if not shown:
        raise Refused(f"{str(place)!r} holds no finished baseline of the comparison's balanced column")
    notes = [
        "ours and PyCIL's: the average over the tasks, in brackets the accuracy after the last; paper: its average",
        f"within: no figure is more than {TOLERANCE:g} points away, {TOLERANCE + READ:g} where it was read off a plot",
        *provenance(shown),
    ]
    lines = [HEADS, ["---"] * 2 + ["---:"] * 8 + ["---"], *(row for g in shown for row in rows[g])]
    wide = max(len(repeated(g)) for g in shown)
    again = [f"{repeated(g):{wide}}  # {g.name}" for g in shown]
    return "\n".join(
        [
            *(f"| {' | '.join(line)} |" for line in lines),
            "",
            *(f"- {n}" for n in notes),
            "",
            "```",
            *again,
            "```",
        ]
    )


def baseline(config: dict[str, Any]) -> bool:
    return config["long_tail"] is None and config["coordination"]["coordinate"] == "none"


def coded(config: dict[str, Any], method: str) -> bool:
    """Whether it is the method as PyCIL has it in its code."""
    return config["method"] == method and all(
        config["options"][k] == v for k, v in METHODS[method].options.items()
    )


def beside(g: Group, figures: list[Figure]) -> list[list[str]]:
    """A line for each of PyCIL's figures; the paper's, which is of the head, stands in the first of the head's."""
    theirs, lines, shown = paper.average(cell(g)), list[list[str]](), ""
    if theirs is not None and not any(f.readout == "cnn" for f in figures):
        figures = [Figure(g.config["method"], "cnn", None, None, False, "–"), *figures]
    for f in figures:
        values = g.figures("average", f.readout), g.figures("last", f.readout)
        ours = [f.readout.upper(), str(len(values[0])), both(*map(spread, values))]
        ours += compared(values, (theirs if f.readout == "cnn" else None, None), TOLERANCE)
        pycil = compared(values, (f.average, f.last), TOLERANCE + READ * f.read)
        lines.append(
            [g.name * (not lines), *([""] * len(ours) if f.readout == shown else ours), *pycil, f.source]
        )
        shown = f.readout
    return lines


Values = tuple[list[float], list[float]]  # average and last, seed by seed
Theirs = tuple[float | None, float | None]


def compared(ours: Values, theirs: Theirs, tolerance: float) -> list[str]:
    """Their figures, ours less theirs, and whether none is farther away than the tolerance."""
    less = [None if b is None else statistics.fmean(a) - b for a, b in zip(ours, theirs, strict=True)]
    if less == [None, None]:
        return ["–"] * 3
    within = all(abs(points) <= tolerance for points in less if points is not None)
    told = [
        both(*(None if v is None else f"{v:{form}}" for v in of))
        for of, form in ((theirs, ""), (less, "+.2f"))
    ]
    return [*told, "yes" if within else "**no**"]


def both(average: str | None, last: str | None) -> str:
    return " ".join([average] * (average is not None) + [f"({last})"] * (last is not None))


def repeated(g: Group) -> str:
    seeds = sorted(run.config["seed"] for run in g.complete)
    said = "" if tuple(seeds) == recipes.find("comparison").seeds else f" --seeds {' '.join(map(str, seeds))}"
    return f"jioc grid comparison --only {name_of(g.runs[0])}{said}"


def main(words: list[str] | None = None) -> int:
    return printing.main(__doc__, table, words)


if __name__ == "__main__":
    sys.exit(main())
