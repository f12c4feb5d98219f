"""What `jioc table --paper --coverage` leaves to a page: the baselines that are far off.

python benchmarks/cells.py    prints the table of docs/coverage.md

A baseline is far off where it is more than 3 points from the paper, and from PyCIL's figures of that form of
the method where there are any (pycil.json). Each has a line on what was checked (checked.yaml).
"""

import sys
from pathlib import Path

import once
import printing
import yaml
from baselines import Figure, as_in_pycil, pycil_figures
from gains import RESULTS

from jioc.methods import SPECS
from jioc.report import coverage, paper, runs
from jioc.report.coverage import Cell
from jioc.report.group import Group, mean_std
from jioc.report.tables import number, spread

FAR = 3.0  # points
PYCILS = ("cifar100", "resnet32", 10, 2000)  # where PyCIL's figures stand
CHECKED: dict[str, str] = yaml.safe_load(Path(__file__).with_name("checked.yaml").read_text(encoding="utf-8"))
NOT_YET = "not yet checked"


def far(cells: list[Cell], figures: list[Figure]) -> list[tuple[Cell, str]]:
    """The baselines that are far from the paper and from PyCIL, with their form."""
    baselines = [(one, form) for one in cells if one.where[5] == "none" for form in one.groups]
    return [
        (one, form)
        for one, form in baselines
        if abs(one.difference(form) or 0.0) > FAR and not near_pycil(one, one.groups[form], figures)
    ]


def near_pycil(one: Cell, g: Group, figures: list[Figure]) -> bool:
    """Whether an average of PyCIL's, by the read-out that it is of, is not far from ours."""
    if one.where[:4] != PYCILS:
        return False
    theirs = [f for f in figures if f.average is not None and as_in_pycil(g.config, f.method)]
    ours = {f: mean_std(g.figures("average", f.readout))[0] for f in theirs}
    return any(mean is not None and abs(mean - (f.average or 0.0)) <= FAR for f, mean in ours.items())


def key(one: Cell, form: str) -> str:
    data, backbone, _, memory, method, _ = one.where
    return " ".join([data, backbone, str(memory), method, *([form] if form else [])])


def table(cells: list[Cell]) -> str:
    lines = [
        "| column | run | n | ours | paper | difference | by another read-out | what was checked |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for one, form in far(cells, pycil_figures()):
        name = SPECS[one.where[4]].title + (f", {form}" if form else "")
        figures = [str(len(one.ours(form))), spread(one.ours(form)), number(one.theirs)]
        figures += [number(one.difference(form), "+"), others(one.groups[form])]
        place = f"{one.where[0]}, {one.where[1]}, {one.where[3]:,} exemplars"
        lines.append(f"| {' | '.join([place, name, *figures, CHECKED.get(key(one, form), NOT_YET)])} |")
    return "\n".join(lines)


def others(g: Group) -> str:
    """The average by each read-out but the one that the method is judged by."""
    first = g.complete[0]
    names = [name for name in first.readouts if name != first.result.headline]
    figures = {name: g.figures("average", name) for name in names}
    means = {name: mean_std(of)[0] for name, of in figures.items() if len(of) == len(g.complete)}
    return ", ".join(f"{name} {number(mean)}" for name, mean in means.items()) or "–"


def read(place: Path = RESULTS) -> list[Cell]:
    return coverage.cells(runs.group(run for run in once.read(place) if paper.setting(run.result)))


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, lambda: table(read()), argv)


if __name__ == "__main__":
    sys.exit(main())
