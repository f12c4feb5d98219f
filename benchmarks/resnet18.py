"""Tables 4 and 5, iCaRL's losses with ResNet18, beside the paper.

    python benchmarks/resnet18.py            CE + KD after each task
    python benchmarks/resnet18.py --gains    what each loss, reading and change of training adds
    python benchmarks/resnet18.py --nearest  how far each run is from each row of the paper

Each prints a table of docs/results/tables4-5.md from results/.
"""

import statistics
import sys
from pathlib import Path

import once
import printing
from gains import FIGURES, RESULTS, Tasks, differences, paper_differences

from jioc.report import paper, runs
from jioc.report.group import Group
from jioc.report.tables import cell, number
from jioc.resolve import columns

TABLES = {"4": columns.RES18_TAIL, "5": columns.RES18}
PAPER_ROWS = {"none": "CE + KD", "ic": "IC", "oc": "OC", "jioc": "JIOC"}


def groups_of(table: str, results: Path) -> list[Group]:
    """The kept runs of a table's setting, however they were trained; those as published first."""
    column = TABLES[table]
    own = column.values("icarl") | {"long_tail": "paper" if column.tail else None}
    del own["tasks"]  # a result tells their sizes
    found = runs.group(run for run in once.read(results) if run.complete)
    fitting = [
        g
        for g in found
        if all(g.config.get(name) == value for name, value in own.items()) and not g.config.get("holdout")
    ]
    return sorted(fitting, key=lambda g: cell(g) is None)


def by_task(results: Path = RESULTS) -> str:
    """CE + KD after each task, and how far it is from the paper after the first."""
    tasks = range(1, 11)
    heads = ["table", "CE + KD", *map(str, tasks), "average", "mean distance, tasks 2 to 10"]
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|" * (len(tasks) + 2)]
    for table, column in TABLES.items():
        where = (*column.place, "icarl", "none")
        curve = paper.curve(where)
        assert curve is not None, "tables 4 and 5 have it"
        theirs = curve["all"]
        rows = {"paper": theirs}
        if plain := next((g for g in groups_of(table, results) if cell(g) == where), None):
            every = [[row["cnn"]["all"] for row in run.result.tasks] for run in plain.complete]
            rows[f"ours, n = {len(every)}"] = [statistics.fmean(task) for task in zip(*every, strict=True)]
        for name, values in rows.items():
            distance = "–" if values is theirs else number(apart(values[1:], theirs[1:]))
            average = paper.mean(values) if values is theirs else statistics.fmean(values)
            cells = [table, name, *map(number, values), number(average), distance]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def apart(ours: list[float], theirs: list[float]) -> float:
    """The mean absolute difference."""
    return statistics.fmean(abs(a - b) for a, b in zip(ours, theirs, strict=True))


def nearest(results: Path = RESULTS) -> str:
    """How far the runs are from each row of the paper over tasks 2 to 10: all classes, then the new ones."""
    heads = ["table", "run", "n", *PAPER_ROWS.values(), *(f"new: {name}" for name in PAPER_ROWS.values())]
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|" * (len(heads) - 2)]
    for table, column in TABLES.items():
        curves = [paper.curve((*column.place, "icarl", loss)) for loss in PAPER_ROWS]
        for g in groups_of(table, results):
            cells = [table, g.name, str(len(g.complete))]
            for part in ("all", "new"):
                every = [[row["cnn"][part] for row in run.result.tasks[1:]] for run in g.complete]
                ours = [statistics.fmean(task) for task in zip(*every, strict=True)]
                distances = [apart(ours, curve[part][1:]) for curve in curves if curve is not None]
                least = min(distances)
                cells += [f"**{number(d)}**" if d == least else number(d) for d in distances]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def gains(results: Path = RESULTS) -> str:
    """What a run adds to CE + KD trained in the same way and, where that differs, to CE + KD as published."""
    heads = ["table", "run", "against", "n", *FIGURES, "paper: average", "old", "new", "last"]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|" + "---:|" * (len(heads) - 3)]
    for table, column in TABLES.items():
        groups, where = groups_of(table, results), (*column.place, "icarl")
        plain = next((g for g in groups if cell(g) == (*where, "none")), None)
        for g in groups:
            theirs = paper_differences(g.coordinate, where)
            bases = [g.base] if g.base is plain else [g.base, plain]
            for base in bases:
                if base is not None and base is not g and (pairs := paired(g, base)):
                    cells = [table, g.name, base.name, str(len(pairs)), *differences(pairs), *theirs]
                    lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else "Not run yet."


def paired(g: Group, base: Group) -> list[tuple[Tasks, Tasks]]:
    """The tasks of the runs of both that have a seed in common."""
    without = {run.config["seed"]: run.result.tasks for run in base.complete}
    return [
        (run.result.tasks, without[run.config["seed"]]) for run in g.complete if run.config["seed"] in without
    ]


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--gains", dest="make", action="store_const", const=gains, default=by_task)
    which.add_argument("--nearest", dest="make", action="store_const", const=nearest)
    make = parser.parse_args(argv).make
    return printing.answered(lambda: print(make()))


if __name__ == "__main__":
    sys.exit(main())
