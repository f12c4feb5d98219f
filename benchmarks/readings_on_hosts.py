"""Readings of JIOC on six hosts, on a hold-out: what each gains over its host, from results/readings.csv.

    python benchmarks/readings_on_hosts.py             prints the table of docs/results/readings.md
    python benchmarks/readings_on_hosts.py --others    prints controls and other options, a line each
    python benchmarks/readings_on_hosts.py --adjusted  prints what JIOC adds to logit adjustment

A gain is the mean over the tasks that both runs have learnt; with fewer than ten, their number is in
brackets, after a mean the fewest of its row. A run stands in each row whose options have the same effect on
its host: only WA and BiC have factors to drop. The row `default` has each host's own reading.
"""

import csv
import itertools
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import printing

from jioc.config import READINGS
from jioc.errors import Refused
from jioc.methods import SPECS
from jioc.resolve.derive import usual_reading

KEPT = Path(__file__).parent / "results" / "readings.csv"
TASKS = 10
HOSTS = ("icarl", "wa", "bic", "podnet", "der", "foster")
READ = tuple(READINGS["printed"])  # the options of a row of the table
NAMED = {tuple(options.values()): word for word, options in READINGS.items()}
PRINTED = tuple(READINGS["printed"].values())
COLUMNS = {"cifar100-lt-resnet32-1000": "long tail", "cifar100-resnet32-2000": "balanced"}
WORDS = {
    "delta_scale": {"plain": "as printed", "mean1": "mean 1"},
    "oc_reduce": {"sum": "added up", "mean": "averaged"},
    "host_factors": {"keep": "kept", "drop": "dropped"},
}
OTHERS = {  # changes beside a reading, by column of the file: its usual value
    "adjust": "0",
    "coordination.delta_softmax": "host",  # of FOSTER: its classification loss has z / w, not z
    "coordination.ic_terms": "cls",
    "coordination.gamma1": "1",
    "coordination.gamma2": "1",
    "options.correction": "norms",
    "options.new_columns": "zero",
    "options.beta1": "0.96",
}
ADJUSTED = ("adjust 1",)  # as `Line.others` has it
IDLE = ("", "–")  # a setting that a run does not have
Key = tuple[str, ...]


@dataclass
class Line:
    """A run of the study."""

    column: str
    host: str
    seed: str
    coordinated: bool
    reading: Key  # as far as it has an effect on the host
    others: Key  # words of what else was changed
    tasks: list[float]
    commit: str

    @property
    def place(self) -> Key:
        return self.column, self.host, self.seed


def read(path: Path = KEPT) -> list[Line]:
    rows = [*csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    if not rows or "coordination.oc_reduce" not in rows[0]:
        raise Refused(f"{str(path)!r} has no readings that keep.py has kept")
    return [_line(row) for row in rows if row["after each task"]]


def _line(row: dict[str, str]) -> Line:
    titles = [title for prefix, title in COLUMNS.items() if row["run"].startswith(prefix)]
    if not titles:
        raise Refused(f"run {row['run']!r} is of another column than {' and '.join(COLUMNS)}")
    host = row["method"]
    coordinate = row["coordination.coordinate"]
    coordinated = coordinate not in ("none", *IDLE)
    given = tuple(
        usual if (value := row.get(f"coordination.{name}", "")) in IDLE else value
        for name, usual in zip(READ, PRINTED, strict=True)
    )
    changed = [
        f"{name.rpartition('.')[2].replace('_', '-')} {row[name]}"
        for name, usual in OTHERS.items()
        if row.get(name, "") not in (usual, *IDLE) and (host == "foster" or "softmax" not in name)
    ]
    if coordinated and coordinate != "jioc":
        changed.append(f"coordinate {coordinate}")
    return Line(
        column=titles[0],
        host=host,
        seed=row["seed"],
        coordinated=coordinated,
        reading=effective(host, given) if coordinated else (),
        others=tuple(changed),
        tasks=[float(word) for word in row["after each task"].split()],
        commit=row["commit"],
    )


def effective(host: str, reading: Key) -> Key:
    """The reading with what has no effect on the host as printed; shares of equal tasks are their mean."""
    scale, reduce, factors = reading
    return scale, "mean" if reduce == "share" else reduce, factors if SPECS[host].shares else "keep"


def gains(lines: Iterable[Line], hosts: dict[Key, Line]) -> tuple[list[float], int]:
    """What each seed gains over its host on the tasks both have, and the fewest tasks of them."""
    longest = {line.place: line for line in sorted(lines, key=lambda line: len(line.tasks))}
    return over_shared_tasks(
        [(line.tasks, hosts[line.place].tasks) for line in longest.values() if line.place in hosts]
    )


def over_shared_tasks(pairs: list[tuple[list[float], list[float]]]) -> tuple[list[float], int]:
    """The mean difference of each pair on the tasks both have, and the fewest tasks of them."""
    shared = [min(map(len, pair)) for pair in pairs]
    found = [
        statistics.fmean(ours[:n]) - statistics.fmean(theirs[:n])
        for (ours, theirs), n in zip(pairs, shared, strict=True)
    ]
    return found, min(shared, default=0)


def cell(lines: list[Line], hosts: dict[Key, Line]) -> str:
    return shown(*gains(lines, hosts))


def shown(found: list[float], tasks: int, sign: str = "+") -> str:
    """The mean over the seeds, and in brackets the tasks, if they are fewer than a whole run has."""
    if not found:
        return "–"
    return f"{statistics.fmean(found):{sign}.2f}" + (f" ({tasks})" if tasks < TASKS else "")


def plain_hosts(lines: list[Line]) -> dict[Key, Line]:
    """Each host without JIOC or anything changed, by column, method and seed."""
    return {line.place: line for line in lines if not line.coordinated and not line.others}


def table(path: Path = KEPT) -> str:
    lines = read(path)
    hosts, plain = plain_hosts(lines), [line for line in lines if line.coordinated and not line.others]
    titles = [SPECS[host].title for host in HOSTS]
    heads = ["column", "reading", "input weights", "past heads", "host's factors", *titles, "mean"]
    out = [f"| {' | '.join(heads)} |", "|---" * 5 + "|" + "---:|" * (len(titles) + 1)]
    default = {host: default_reading(host) for host in HOSTS}
    for column in dict.fromkeys(line.column for line in lines):
        here = [line for line in plain if line.column == column]
        rows = [(["default", *["by host"] * len(READ)], default)]
        for reading in _rows(here):
            words = [WORDS[name][value] for name, value in zip(READ, reading, strict=True)]
            rows.append(([NAMED.get(reading, "–"), *words], dict.fromkeys(HOSTS, reading)))
        for words, by_host in rows:
            alike = {
                host: [line for line in here if (line.host, line.reading) == (host, effective(host, reading))]
                for host, reading in by_host.items()
            }
            cells = [cell(some, hosts) for some in alike.values()]
            out.append(f"| {' | '.join([column, *words, *cells, _mean([*alike.values()], hosts)])} |")
    return "\n".join([*out, "", _about(lines)])


def default_reading(host: str) -> Key:
    return tuple(READINGS[usual_reading(SPECS[host])].values())


def _mean(cells: list[list[Line]], hosts: dict[Key, Line]) -> str:
    """The mean of a row, if every host has run."""
    found = [gains(lines, hosts) for lines in cells]
    if not all(values for values, _ in found):
        return "–"
    mean, fewest = statistics.fmean(statistics.fmean(values) for values, _ in found), min(n for _, n in found)
    return f"{mean:+.2f}" + (f" ({fewest})" if fewest < TASKS else "")


def _rows(lines: list[Line]) -> list[Key]:
    """Every reading that some host was run with."""
    pairs = dict.fromkeys(line.reading[:2] for line in lines)
    rows = []
    for pair in sorted(pairs, key=lambda p: (p[0] != "plain", p[1] != "sum")):
        mine = [line for line in lines if line.reading[:2] == pair]
        factors = {line.reading[2] for line in mine if SPECS[line.host].shares} or {"keep"}
        rows += [(*pair, word) for word in ("keep", "drop") if word in factors]
    return rows


def others(path: Path = KEPT) -> str:
    """Controls without JIOC, and readings with another option changed: a line each."""
    lines = read(path)
    hosts = plain_hosts(lines)
    heads = ["column", "host", "with JIOC", "changed", "gain over the host", "gain without the change"]
    out = [f"| {' | '.join(heads)} |", "|---|---|---|---|---:|---:|"]
    groups: dict[Key, list[Line]] = {}
    for line in lines:
        if line.others:
            jioc = ", ".join(
                WORDS[name][value]
                for name, value, usual in zip(READ, line.reading, PRINTED, strict=False)
                if value != usual
            )
            reading = (jioc or "as printed") if line.coordinated else "no"
            key = (line.column, SPECS[line.host].title, reading, ", ".join(line.others))
            groups.setdefault(key, []).append(line)
    for key, some in sorted(groups.items()):
        figures = [cell(some, hosts), cell(_unchanged(some[0], lines), hosts)]
        out.append(f"| {' | '.join([*key, *figures])} |")
    return "\n".join(out)


def adjusted(path: Path = KEPT) -> str:
    """What logit adjustment, JIOC by default, and both gain, and what JIOC adds to adjustment."""
    lines = read(path)
    hosts = plain_hosts(lines)
    heads = ["column", "host", "`--adjust 1`", "JIOC", "both", "JIOC adds to `--adjust 1`"]
    out = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|" * 4]
    for column, host in itertools.product(dict.fromkeys(line.column for line in lines), HOSTS):
        here = [line for line in lines if (line.column, line.host) == (column, host)]
        jioc = [line for line in here if line.reading == effective(host, default_reading(host))]
        alone = [line for line in here if not line.coordinated and line.others == ADJUSTED]
        both = [line for line in jioc if line.others == ADJUSTED]
        if alone or both:
            figures = [cell(some, hosts) for some in (alone, [j for j in jioc if not j.others], both)]
            figures.append(cell(both, {line.place: line for line in alone}))
            out.append(f"| {' | '.join([column, SPECS[host].title, *figures])} |")
    return "\n".join(out)


def _unchanged(line: Line, lines: list[Line]) -> list[Line]:
    """The runs of the same host and reading without the change, as far as this one came."""
    if not line.coordinated:
        return []
    same = [other for other in lines if (other.place, other.reading) == (line.place, line.reading)]
    alike = [other for other in same if other.coordinated and not other.others]
    return [replace(other, tasks=other.tasks[: len(line.tasks)]) for other in alike]


def _about(lines: list[Line]) -> str:
    commits = ", ".join(sorted({line.commit for line in lines}))
    return f"{len(lines)} runs at commits {commits}; a run stands in every row that is the same for its host."


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--others", dest="chosen", action="store_const", const=others, default=table)
    which.add_argument("--adjusted", dest="chosen", action="store_const", const=adjusted)
    chosen = parser.parse_args(argv).chosen
    return printing.answered(lambda: print(chosen()))


if __name__ == "__main__":
    sys.exit(main())
