"""The fast engine beside the eager one in full precision: means over seeds, and their difference.

python benchmarks/parity.py    prints the table of docs/performance.md from results/parity.csv
"""

import csv
import math
import statistics
import sys
from pathlib import Path

import printing

from jioc.errors import Refused

RESULTS = Path(__file__).parent / "results" / "parity.csv"
ENGINES = {"fast": "one graph, bf16", "eager": "op by op, fp32"}
FIGURES = {
    "first task": "first task, 200 epochs",
    "last": "second task, one epoch",
}

NETWORKS = {"": "ResNet32", "imagenet-stem": "ResNet18, ImageNet's stem"}

Rows = dict[str, dict[str, dict[int, dict[str, str]]]]  # by network, engine and seed


def mean_error(values: list[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def read(path: Path = RESULTS) -> Rows:
    """Read the finished runs."""
    if not path.exists():
        raise Refused(f"there is no {str(path)!r}; keep.py makes it from the runs of `jioc grid parity`")
    rows: Rows = {network: {engine: {} for engine in ENGINES} for network in NETWORKS}
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        engine, _, network = row["run"].rpartition("-seed")[0].partition("-")
        by_seed = rows.get(network, {}).get(engine)
        if by_seed is None or row["outcome"] != "finished":
            continue
        if int(row["seed"]) in by_seed:
            raise Refused(f"{str(path)!r} has two lines of {row['run']!r}")
        by_seed[int(row["seed"])] = row
    return rows


def table(rows: Rows) -> str:
    """Compare every figure of both engines on the seeds that both have, network by network."""
    tables = [_table(NETWORKS[name], engines) for name, engines in rows.items() if any(engines.values())]
    return "\n\n".join(tables)


def _table(network: str, engines: dict[str, dict[int, dict[str, str]]]) -> str:
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in engines.values())))
    if len(seeds) < 2:
        raise Refused(f"{network}: both engines finished with {len(seeds)} seeds; a standard error needs two")
    lines = [
        f"| {network}, accuracy after | engine | seeds {', '.join(map(str, seeds))} | mean ± standard error |"
    ]
    lines.append("|---|---|---|---:|")
    for figure, title in FIGURES.items():
        fast, eager = ([float(by_seed[seed][figure]) for seed in seeds] for by_seed in engines.values())
        for name, values in zip(ENGINES.values(), (fast, eager), strict=True):
            lines.append(_line(title, name, values, ".1f", ".2f"))
        differences = [a - b for a, b in zip(fast, eager, strict=True)]
        lines.append(_line("", "difference", differences, "+.1f", "+.2f"))
    return "\n".join(lines)


def _line(title: str, name: str, values: list[float], each: str, whole: str) -> str:
    mean, error = mean_error(values)
    by_seed = " ".join(f"{value:{each}}" for value in values)
    return f"| {title} | {name} | {by_seed} | {mean:{whole}} ± {error:.2f} |"


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, lambda: table(read()), argv)


if __name__ == "__main__":
    sys.exit(main())
