"""Table 6's setting, the full schedule: what each loss, control and reading changes against CE + KD, seed by seed.

python benchmarks/gains.py    prints the table of docs/reproduction.md from results/table6*
"""

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import printing
from readings import PLACE

from jioc.errors import Refused
from jioc.report import paper, runs
from jioc.report.tables import number, spread
from jioc.resolve import recipes

RESULTS = Path(__file__).parent / "results"
GRIDS = {  # what gave the runs of a folder, in the order of the rows
    "table6": "table6",
    "table6-old-mean": "table6 --suppress-scale old-mean --out runs/old-mean",
    "table6-mean1": "table6 --delta-scale mean1 --out runs/mean1",
    "table6-controls": "table6-controls",
}

Figure = Callable[[list[dict[str, Any]]], float]  # of a run's tasks


def over_tasks(readout: str, part: str) -> Figure:
    """The mean over the tasks; of old and of new classes, over those after the first."""
    return lambda tasks: statistics.fmean([t[readout][part] for t in tasks[1 if part != "all" else 0 :]])


FIGURES: dict[str, Figure] = {
    "average": over_tasks("cnn", "all"),
    "old": over_tasks("cnn", "old"),
    "new": over_tasks("cnn", "new"),
    "last": lambda tasks: tasks[-1]["cnn"]["all"],
    "NME": over_tasks("nme", "all"),
}


def table() -> str:
    """The differences, losses first and controls last, and below them the line that repeats each row."""
    found = runs.group([r for r in runs.read([RESULTS / name for name in GRIDS]) if r.complete])
    plain = next((g for g in found if name_of(g.runs[0]).endswith("-none")), None)
    if plain is None:
        raise Refused(f"{str(RESULTS)!r} holds no finished CE + KD of table 6")
    without = {run.config["seed"]: run.result["tasks"] for run in plain.runs}
    groups = sorted((g for g in found if g is not plain), key=lambda g: list(GRIDS).index(folder_of(g)))
    lines = [f"| run | n | {' | '.join(FIGURES)} | paper: average | old | new | last |"]
    lines.append("|---|---:|" + "---:|" * (len(FIGURES) + 4))
    for group in groups:
        pairs = [(run.result["tasks"], without[run.config["seed"]]) for run in group.runs]
        cells = [
            spread([figure(ours) - figure(bare) for ours, bare in pairs], "+") for figure in FIGURES.values()
        ]
        lines.append(f"| {' | '.join([group.name, str(len(pairs)), *cells, *theirs(group)])} |")
    again = {repeated(group): group.name for group in (plain, *groups)}
    wide = max(map(len, again))
    return "\n".join(
        [*lines, "", "```", *(f"{line:{wide}}  # {name}" for line, name in again.items()), "```"]
    )


def theirs(group: runs.Group) -> list[str]:
    """The paper's own differences, by its table 6; its old classes begin with the second task."""
    loss, bare = (paper.curve((*PLACE, word)) for word in (group.coordinate, "none"))
    if group.coordinate == "none" or folder_of(group) == "table6-controls" or loss is None or bare is None:
        return ["–"] * 4
    parts = [("all", slice(None)), ("old", slice(None)), ("new", slice(1, None)), ("all", slice(-1, None))]
    return [number(paper.mean(loss[part][of]) - paper.mean(bare[part][of]), "+") for part, of in parts]


def folder_of(group: runs.Group) -> str:
    return group.runs[0].path.parent.parent.name


def name_of(run: runs.Run) -> str:
    return run.path.parent.name.removesuffix(f"-seed{run.config['seed']}")


def repeated(group: runs.Group) -> str:
    recipe, *flags = GRIDS[folder_of(group)].split()
    seeds = [run.config["seed"] for run in group.runs]
    said = [] if {*seeds} == {*recipes.find(recipe).seeds} else ["--seeds", *map(str, sorted(seeds))]
    return " ".join(["jioc grid", recipe, "--only", name_of(group.runs[0]), *said, *flags])


def main(words: list[str] | None = None) -> int:
    return printing.main(__doc__, table, words)


if __name__ == "__main__":
    sys.exit(main())
