"""What each component adds to DER and iCaRL on a hold-out, from results/components.csv and readings.csv.

    python benchmarks/components.py             prints the table of docs/results/components.md
    python benchmarks/components.py --choose    chooses `best` by that page's rule: prints a recipe
    python benchmarks/components.py --tested    prints what `best` reaches on the test set, from results/best

A gain is the mean over the first six tasks, so that all rows are of the same tasks, and in square brackets
over all ten where every run has learnt them; with fewer than six, their number is in brackets. The first row
has the averages of the hosts themselves. Behind a slash is the gain of the same runs by the nearest class
mean, over the host's head, where that was kept. Each class counts alike where both runs have figures by
class. Where one has not, both count by image, which a dagger marks on the long tail: its hold-out is
long-tailed, too. In a balanced one both are the same.
"""

import csv
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import once
import printing
import yaml
from gains import folder_of
from keep import BY_CLASS, BY_MEANS
from minutes import FEWER
from readings_on_hosts import over_shared_tasks

from jioc.config import Values, index
from jioc.errors import refuse_if
from jioc.methods import SPECS
from jioc.report import leaderboard
from jioc.report.group import Group
from jioc.report.runs import group
from jioc.report.tables import seeds_figure
from jioc.resolve import columns, components

RESULTS = Path(__file__).parent / "results"
PLACES = {"balanced": columns.RES32_LARGE, "long tail": columns.RES32_TAIL}
BY_IMAGE = " †"
JUDGES = {"cnn": "the head", "nme": "class means"}


@dataclass
class Line:
    """A kept run: its accuracy after each task, by image and, if kept, by class, also of the class means."""

    by_image: list[float]
    by_class: list[float]
    by_means: list[float]

    def of(self, readout: str) -> list[float]:
        """The figures of a read-out by class."""
        return self.by_means if readout == "nme" else self.by_class


@dataclass
class Pair:
    """A run and its host, in one measure."""

    ours: list[float]
    theirs: list[float]
    by_class: bool

    @property
    def worth(self) -> tuple[bool, int]:
        return self.by_class, min(len(self.ours), len(self.theirs))


Runs = dict[str, list[Line]]  # by name and seed; a run of both studies has a line in each


def read(results: Path = RESULTS) -> Runs:
    """The runs of the study, and of the readings' study, which has the hosts and adjusted logits."""
    found: Runs = {}
    for path in (results / "readings.csv", results / "components.csv"):
        rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
        for row in rows:
            by_image, by_class, by_means = (
                [float(word) for word in (row.get(head) or "").split()]
                for head in ("after each task", BY_CLASS, BY_MEANS)
            )
            if by_image:
                found.setdefault(row["run"], []).append(Line(by_image, by_class, by_means))
    return found


def cell(runs: Runs, column: columns.Column, host: str, name: str) -> str:
    """What a component adds to a host, over the seeds that both have; `none`: the host's own average."""
    place = f"{column.prefix}-{host}"
    hosts = of(runs, f"{place}-none")
    changed = of(runs, f"{place}-none-{name}") | of(runs, f"{place}-{name}")
    if name == "none":
        pairs = [own(lines) for lines in hosts.values()]
    else:  # in the readings' study a host has no coordination
        pairs = [compared(lines, hosts[seed]) for seed, lines in changed.items() if seed in hosts]
    best = [pair for pair in pairs if pair.by_class] or pairs  # no mean of both measures
    shared = min((pair.worth[1] for pair in best), default=0)  # nor of both lengths
    sign = "" if name == "none" else "+"

    def over(tasks: int) -> str:
        gains, _ = over_shared_tasks([(pair.ours[:tasks], pair.theirs[:tasks]) for pair in best])
        return f"{fmean(gains):{sign}.2f}" if gains else "–"

    figure = over(min(FEWER, shared)) + (f" ({shared})" if 0 < shared < FEWER else "")
    figure += f" [{over(shared)}]" if shared == column.tasks else ""
    figure += BY_IMAGE if column.tail and best and not best[0].by_class else ""
    return figure + ("" if name == "none" else by_means(changed, hosts, column.tail))


def by_means(changed: dict[str, list[Line]], hosts: dict[str, list[Line]], tail: object) -> str:
    """What the runs gain by the nearest class mean over the heads of the hosts, if that was kept."""
    pairs = [
        (line.by_means, host.by_class or host.by_image)
        for seed, lines in changed.items()
        for line, host in itertools.product(lines, hosts.get(seed, []))
        if line.by_means and (host.by_class or not tail)
    ]
    shared = min((min(map(len, pair)) for pair in pairs), default=0)
    if shared < FEWER:
        return ""
    return f" / {fmean(fmean(ours[:FEWER]) - fmean(theirs[:FEWER]) for ours, theirs in pairs):+.2f}"


def of(runs: Runs, name: str) -> dict[str, list[Line]]:
    """The lines of that name, by seed."""
    split = {run: run.rpartition("-seed") for run in runs}
    return {seed: runs[run] for run, (start, _, seed) in split.items() if start == name}


def compared(ours: list[Line], theirs: list[Line]) -> Pair:
    """A line of each: by class if that can be, and then the pair that shares most tasks."""
    pairs = [
        Pair(a.by_class, b.by_class, True)
        if a.by_class and b.by_class
        else Pair(a.by_image, b.by_image, False)
        for a, b in itertools.product(ours, theirs)
    ]
    return max(pairs, key=lambda pair: pair.worth)


def own(lines: list[Line]) -> Pair:
    """A host beside nothing."""
    return compared(
        lines, [Line([0.0] * len(line.by_image), [0.0] * len(line.by_class), []) for line in lines]
    )


def flags(change: Values) -> str:
    return " ".join(f"{index.setting(path).flag} {value}" for path, value in change.items())


def table(results: Path = RESULTS) -> str:
    runs = read(results)
    places = list(itertools.product(PLACES, components.HOSTS))
    heads = ["component", *(f"{SPECS[host].title}, {place}" for place, host in places), "flags"]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * len(places) + "---|"]
    for name, change in components.CHANGES.items():
        cells = [cell(runs, PLACES[place], host, name) for place, host in places]
        lines.append(f"| {' | '.join([name, *cells, f'`{flags(change)}`' if change else ''])} |")
    return "\n".join(lines)


# --- the choice of `best`, and what it reaches ---


def choose(results: Path = RESULTS) -> str:
    """Choose the settings of `best`; make the recipe that runs them on the test set, with what decided."""
    runs = read(results)
    places = itertools.product(components.CANDIDATES.items(), JUDGES)
    means = {(row, readout): reached(runs, row, readout) for (row, _), readout in places}
    row, readout = max(means, key=lambda place: means[place])
    settings: Values = {"method": "der"} | components.CANDIDATES[row]
    if readout != SPECS["der"].headline:
        settings["headline"] = readout
    reasons = [
        f"# {flags(components.CANDIDATES[row])}, by {JUDGES[readout]}: {mean:.2f}"
        for (row, readout), mean in means.items()
    ]
    made = components.best(settings, {}) | components.best(settings, components.AUTO)
    return "\n".join([*reasons, yaml.safe_dump({"runs": made}, sort_keys=False)])


def reached(runs: Runs, row: str, readout: str) -> float:
    """The accuracy of a row of DER with seed 1: the mean over both columns and the first tasks."""
    figures = []
    for column in PLACES.values():
        name = f"{column.prefix}-der-{row}"
        lines = of(runs, name).get("1", [])
        tasks = max((line.of(readout) for line in lines), key=len, default=[])
        refuse_if(len(tasks) < FEWER, f"{name}-seed1 is not kept with {FEWER} tasks")
        figures.append(fmean(tasks[:FEWER]))
    return round(fmean(figures), 2)


def tested(results: Path = RESULTS) -> str:
    """`best` and DER as it is on the test set, by each read-out, beside the highest public figure."""
    hosts = [f"{column.prefix}-der-none-seed*" for column in PLACES.values()]
    places = [results / "best", *(path for host in hosts for path in results.rglob(host))]
    heads = [
        "",
        "highest public figure",
        *(f"{name}, by {how}" for name in ("DER", "`best`") for how in JUDGES.values()),
    ]
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|" * 4]
    for sheet in leaderboard.boards(group(once.read(*places))):
        ours = [line.group for line in sheet.lines if line.n]
        winner = next((g for g in ours if folder_of(g) == "best"), None)
        if winner is None:
            continue
        host = next((g for g in ours if g is not winner), None)
        others = [
            f"{line.figures[0].text} ({'; '.join(line.names[1:])})" for line in sheet.lines if not line.n
        ]
        cells = [sheet.title, *(others[:1] or ["–"])]
        cells += [averages(g, readout) if g else "–" for g in (host, winner) for readout in JUDGES]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def averages(g: Group, readout: str) -> str:
    return seeds_figure(g.figures("average", readout)).text


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("--choose", dest="told", action="store_const", const=choose, default=table)
    parser.add_argument("--tested", dest="told", action="store_const", const=tested)
    told = parser.parse_args(argv).told
    return printing.answered(lambda: print(told()))


if __name__ == "__main__":
    sys.exit(main())
