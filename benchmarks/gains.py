"""Table 6's setting, the full schedule: what each loss, control and reading changes against CE + KD, seed by seed.

python benchmarks/gains.py    prints the table of docs/reproduction.md from results/table6*
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jioc import recipes
from jioc.errors import Refused, answered
from jioc.report import paper, runs
from jioc.report.tables import number, spread

RESULTS = Path(__file__).parent / "results"
PLACE = ("cifar100", "resnet32", 10, 1000, "icarl")  # table 6 among the paper's settings
GRIDS = {  # what gave the runs of a folder
    "table6": "table6",
    "table6-controls": "table6-controls",
    "table6-old-mean": "table6 --quiet-scale old-mean --out runs/old-mean",
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
    found = runs.group([r for r in runs.read([RESULTS / name for name in GRIDS]) if r.complete])
    plain = next((g for g in found if name_of(g.runs[0]).endswith("-none")), None)
    if plain is None:
        raise Refused(f"{str(RESULTS)!r} holds no finished CE + KD of table 6")
    without = {run.config["seed"]: run.result["tasks"] for run in plain.runs}
    lines = [f"| run | n | {' | '.join(FIGURES)} | paper's average, old, new | repeated by |"]
    lines.append("|---|---:|" + "---:|" * len(FIGURES) + "---:|---|")
    for group in found:
        if group is plain:
            continue
        pairs = [(run.result["tasks"], without[run.config["seed"]]) for run in group.runs]
        cells = [spread([figure(ours) - figure(bare) for ours, bare in pairs], "+") for figure in FIGURES.values()]
        cells = [group.name, str(len(pairs)), *cells, theirs(group)]
        lines.append(f"| {' | '.join(cells)} | `{repeated(group)}` |")
    return "\n".join(lines)


def theirs(group: runs.Group) -> str:
    """The paper's own differences, by its table 6."""
    loss, bare = (paper.curve((*PLACE, word)) for word in (group.coordinate, "none"))
    if group.coordinate == "none" or loss is None or bare is None:
        return "–"
    parts = {"all": 0, "old": 0, "new": 1}  # its old classes begin with the second task
    apart = (paper.mean(loss[part][first:]) - paper.mean(bare[part][first:]) for part, first in parts.items())
    return ", ".join(number(value, "+") for value in apart)


def name_of(run: runs.Run) -> str:
    return run.path.parent.name.removesuffix(f"-seed{run.config['seed']}")


def repeated(group: runs.Group) -> str:
    recipe, *flags = GRIDS[group.runs[0].path.parent.parent.name].split()
    seeds = [run.config["seed"] for run in group.runs]
    said = [] if {*seeds} == {*recipes.find(recipe).seeds} else ["--seeds", *map(str, sorted(seeds))]
    return " ".join(["jioc grid", recipe, "--only", name_of(group.runs[0]), *said, *flags])


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(words)
    return answered(lambda: print(table()))


if __name__ == "__main__":
    sys.exit(main())
