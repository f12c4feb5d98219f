"""The fast engine beside the eager one in full precision: means over seeds, standard errors, their difference.

python benchmarks/parity.py    prints the table of docs/performance.md from results/parity.csv
"""

import csv
import math
import statistics
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "parity.csv"
ENGINES = {"fast": "one graph, bf16", "eager": "op by op, fp32"}
FIGURES = {"first task": "first task, 200 epochs", "last": "second task, one epoch"}


def mean_error(values: list[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def difference(one: list[float], other: list[float]) -> tuple[float, float]:
    """Of the means, with its standard error."""
    (a, e), (b, f) = mean_error(one), mean_error(other)
    return a - b, math.hypot(e, f)


def read(figure: str) -> dict[str, list[float]]:
    """Each engine's figures, in the order of seeds."""
    found: dict[str, list[float]] = {name: [] for name in ENGINES}
    for row in csv.DictReader(RESULTS.read_text(encoding="utf-8").splitlines()):
        found[row["run"].partition("-")[0]].append(float(row[figure]))
    return found


def main() -> None:
    print("| CNN accuracy after | engine | seeds 1 to 5 | mean ± standard error |\n|---|---|---|---:|")
    for figure, title in FIGURES.items():
        found = read(figure)
        for name, values in found.items():
            mean, error = mean_error(values)
            each = " ".join(f"{v:.1f}" for v in values)
            print(f"| {title} | {ENGINES[name]} | {each} | {mean:.2f} ± {error:.2f} |")
        gap, error = difference(*found.values())
        pairs = " ".join(f"{a - b:+.1f}" for a, b in zip(*found.values(), strict=True))
        print(f"| | difference | {pairs} | {gap:+.2f} ± {error:.2f} |")


if __name__ == "__main__":
    main()
