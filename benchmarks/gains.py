"""Table 6's setting, the full schedule: what each loss, control and reading changes against CE + KD.

python benchmarks/gains.py    prints the table of docs/results/table6.md from results/table6*
"""

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import once
import printing
from readings import PLACE

from jioc.errors import Refused
from jioc.report import paper, runs
from jioc.report.group import Group, Run
from jioc.report.tables import number, spread
from jioc.resolve import recipes
from jioc.results import TaskRow

RESULTS = Path(__file__).parent / "results"
GRIDS = {  # by folder of results, in the order of the rows: the grid that gave its runs
    "table6": "table6",
    "table6-old-mean": "table6 --reading printed --suppress-scale old-mean --out runs/old-mean",
    "table6-controls": "table6-controls",
}

Tasks = list[TaskRow]
Figure = Callable[[Tasks], float]


def over_tasks(readout: str, part: str) -> Figure:
    """The mean over the tasks; for old and new classes, over those after the first."""
    first = 0 if part == "all" else 1
    return lambda tasks: statistics.fmean([task[readout][part] for task in tasks[first:]])


FIGURES: dict[str, Figure] = {
    "average": over_tasks("cnn", "all"),
    "old": over_tasks("cnn", "old"),
    "new": over_tasks("cnn", "new"),
    "last": lambda tasks: tasks[-1]["cnn"]["all"],
    "NME": over_tasks("nme", "all"),
}


def differences(pairs: list[tuple[Tasks, Tasks]]) -> list[str]:
    """Every figure of the first minus that of the second, as mean ± standard deviation over the pairs."""
    return [spread([figure(a) - figure(b) for a, b in pairs], "+") for figure in FIGURES.values()]


def table() -> str:
    """The differences, losses first and controls last, and below them the command that repeats each row."""
    groups = runs.group([run for run in once.read(*(RESULTS / name for name in GRIDS)) if run.complete])
    plain = next((g for g in groups if name_of(g.runs[0]).endswith("-none")), None)
    if plain is None:
        raise Refused(f"{str(RESULTS)!r} holds no finished CE + KD of table 6")
    without = {run.config["seed"]: run.result.tasks for run in plain.runs}
    others = sorted((g for g in groups if g is not plain), key=lambda g: list(GRIDS).index(folder_of(g)))
    lines = [f"| run | n | {' | '.join(FIGURES)} | paper: average | old | new | last |"]
    lines.append("|---|---:|" + "---:|" * (len(FIGURES) + 4))
    for g in others:
        pairs = [(run.result.tasks, without[run.config["seed"]]) for run in g.runs]
        in_paper = g.coordinate if folder_of(g) != "table6-controls" else "none"
        cells = [g.name, str(len(pairs)), *differences(pairs), *paper_differences(in_paper, PLACE)]
        lines.append(f"| {' | '.join(cells)} |")
    commands = {command(g): g.name for g in (plain, *others)}
    width = max(map(len, commands))
    named = [f"{line:{width}}  # {name}" for line, name in commands.items()]
    return "\n".join([*lines, "", "```", *named, "```"])


def paper_differences(coordinate: str, place: tuple[Any, ...]) -> list[str]:
    """The paper's own differences of a loss from CE + KD; its old classes begin with the second task."""
    loss, plain = (paper.curve((*place, word)) for word in (coordinate, "none"))
    if coordinate == "none" or loss is None or plain is None:
        return ["–"] * 4
    parts = [("all", slice(None)), ("old", slice(None)), ("new", slice(1, None)), ("all", slice(-1, None))]
    return [number(paper.mean(loss[part][of]) - paper.mean(plain[part][of]), "+") for part, of in parts]


def folder_of(g: Group) -> str:
    return g.runs[0].path.parent.parent.name


def name_of(run: Run) -> str:
    """The name of the run in its recipe."""
    return run.path.parent.name.removesuffix(f"-seed{run.config['seed']}")


def command(g: Group) -> str:
    """The command that repeats the group."""
    recipe, *flags = GRIDS[folder_of(g)].split()
    seeds = sorted(run.config["seed"] for run in g.runs)
    given = [] if {*seeds} == {*recipes.find_recipe(recipe).seeds} else ["--seeds", *map(str, seeds)]
    return " ".join(["jioc grid", recipe, "--only", name_of(g.runs[0]), *given, *flags])


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, table, argv)


if __name__ == "__main__":
    sys.exit(main())
