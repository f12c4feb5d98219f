"""Tables 4 and 5, iCaRL's losses with ResNet18, beside the paper.

    python benchmarks/resnet18.py            CE + KD after each task
    python benchmarks/resnet18.py --gains    what each loss, reading and change of training adds

Both print a table of docs/results/tables4-5.md from results/.
"""

import statistics
import sys
from pathlib import Path

import printing
from gains import FIGURES, RESULTS, Tasks, differences, paper_differences
from verdicts import place

from jioc.report import paper, runs
from jioc.report.group import Group
from jioc.report.tables import cell, number
from jioc.resolve import columns

TABLES = {"4": columns.RES18_TAIL, "5": columns.RES18}


def groups_of(table: str, results: Path) -> list[Group]:
    """The kept runs of a table's setting, however they were trained; those as published first."""
    column = TABLES[table]
    own = column.values("icarl") | {"long_tail": "paper" if column.tail else None}
    del own["tasks"]  # a result tells their sizes
    found = runs.group(run for run in runs.read([results]) if run.complete)
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
        where = (*place(column), "icarl", "none")
        curve = paper.curve(where)
        assert curve is not None, "tables 4 and 5 have it"
        theirs = curve["all"]
        rows = {"paper": theirs}
        if plain := next((g for g in groups_of(table, results) if cell(g) == where), None):
            every = [[row["cnn"]["all"] for row in run.result.tasks] for run in plain.complete]
            rows[f"ours, n = {len(every)}"] = [statistics.fmean(task) for task in zip(*every, strict=True)]
        for name, values in rows.items():
            apart = [abs(a - b) for a, b in zip(values[1:], theirs[1:], strict=True)]
            distance = "–" if values is theirs else number(statistics.fmean(apart))
            cells = [table, name, *map(number, values), number(statistics.fmean(values)), distance]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def gains(results: Path = RESULTS) -> str:
    """What a run adds to CE + KD trained in the same way and, where that differs, to CE + KD as published."""
    heads = ["table", "run", "against", "n", *FIGURES, "paper: average", "old", "new", "last"]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|" + "---:|" * (len(heads) - 3)]
    for table, column in TABLES.items():
        groups, where = groups_of(table, results), (*place(column), "icarl")
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
    parser.add_argument("--gains", action="store_true")
    make = gains if parser.parse_args(argv).gains else by_task
    return printing.answered(lambda: print(make()))


if __name__ == "__main__":
    sys.exit(main())
