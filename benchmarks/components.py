"""What each component adds to DER and iCaRL on a hold-out, from results/components.csv and readings.csv.

    python benchmarks/components.py    prints the table of docs/results/components.md

A gain is the mean over the tasks that both runs have learnt; with fewer than ten, their number is in
brackets. The first row has the averages of the hosts themselves.
"""

import csv
import itertools
import sys
from pathlib import Path

import printing
from readings_on_hosts import over_shared_tasks, shown

from jioc.config import Values, index
from jioc.methods import SPECS
from jioc.resolve import columns, components

RESULTS = Path(__file__).parent / "results"
PLACES = {"balanced": columns.RES32_LARGE, "long tail": columns.RES32_TAIL}
Runs = dict[str, list[float]]  # by name and seed: the accuracy after each task


def read(results: Path = RESULTS) -> Runs:
    """The runs of the study, and of the readings' study, which has the hosts and adjusted logits."""
    found: Runs = {}
    for path in (results / "readings.csv", results / "components.csv"):
        rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
        for row in rows:
            tasks = [float(word) for word in row["after each task"].split()]
            if len(tasks) > len(found.get(row["run"], [])):
                found[row["run"]] = tasks
    return found


def cell(runs: Runs, column: columns.Column, host: str, name: str) -> str:
    """What a component adds to a host, over the seeds that both have; `none`: the host's own average."""
    place = f"{column.prefix}-{host}"
    plain = {seed: tasks for run, tasks in runs.items() if (seed := seed_of(run, f"{place}-none"))}
    if name == "none":
        return shown(*over_shared_tasks([(tasks, [0.0] * len(tasks)) for tasks in plain.values()]), sign="")
    names = (f"{place}-{name}", f"{place}-none-{name}")  # in the readings' study a host has no coordination
    pairs = [
        (tasks, plain[seed])
        for run, tasks in runs.items()
        if (seed := seed_of(run, *names)) and seed in plain
    ]
    return shown(*over_shared_tasks(pairs))


def seed_of(run: str, *names: str) -> str:
    """The seed in the name of a run that has one of these names; nothing if it has another."""
    name, _, seed = run.rpartition("-seed")
    return seed if name in names else ""


def flags(change: Values) -> str:
    return " ".join(f"{index.setting(path).flag} {value}" for path, value in change.items())


def table(results: Path = RESULTS) -> str:
    runs = read(results)
    places = list(itertools.product(PLACES, components.HOSTS))
    heads = ["component", "flags", *(f"{SPECS[host].title}, {place}" for place, host in places)]
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|" * len(places)]
    for name, change in (components.SINGLE | components.TOGETHER | components.EXTRA).items():
        cells = [cell(runs, PLACES[place], host, name) for place, host in places]
        lines.append(f"| {' | '.join([name, f'`{flags(change)}`' if change else '', *cells])} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, table, argv)


if __name__ == "__main__":
    sys.exit(main())
