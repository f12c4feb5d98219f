"""What README.md claims, with the figures that kept results have.

python benchmarks/claims.py    prints its three points
"""

import sys
from pathlib import Path

import printing
import speeds
from gains import RESULTS

from jioc.report import runs
from jioc.report.group import Run

SPEED = RESULTS / "speed" / "resnet32.json"
OTHERS = RESULTS / "speed" / "resnet18-imagenet.json", RESULTS / "speed" / "photographs-resnet18.json"
ALONE, PACKED = "ours, graph bf16 compiled", "ours, 6 packed"  # rows of speed.py


def points(speed: Path = SPEED, table6: Path = RESULTS / "table6") -> str:
    measured = speeds.read(speed)
    rows = {row["variant"]: row for row in measured["rows"]}
    alone, packed = rows[ALONE], rows[PACKED]
    quickest = min(runs.read([table6]), key=seconds)
    device = measured["device"].removeprefix("NVIDIA ")
    stem, photographs = (speeds.variants(speeds.read(path)) for path in OTHERS)
    once, six = (f"{row['images_per_second']:,.0f}" for row in (alone, packed))
    fast = (
        f"- **Fast.** On one {device} ResNet32 trains, beside its teacher, at {once} images a second, "
        f"{alone['ratio']:.0f} times the usual PyTorch loop; six runs packed on the GPU at {six}, "
        f"**{packed['ratio']:.0f} times**; ResNet18 with ImageNet's stem {stem[PACKED]['ratio']:.0f} times, on photographs "
        f"{photographs['ours, resident']['ratio']:.0f} times a good loop ([how](docs/performance.md)). "
        f"The {len(quickest.result.tasks)} tasks of a full CIFAR-100 run take {seconds(quickest):.0f} s."
    )
    exact = (
        "- **Exact.** A run that is killed at any moment goes on to the same weights, **bit for bit**; "
        "every result carries its command, commit, seed and machine."
    )
    checked = (
        "- **Checked.** The paper's tables are recipes, every cell is compared with what was run, and what "
        "does not agree is said ([verdicts](docs/results.md), [cell by cell](docs/coverage.md))."
    )
    return "\n".join([fast, exact, checked])


def seconds(run: Run) -> float:
    """Seconds of all tasks: data and compilation not counted."""
    return sum(row.seconds or 0.0 for row in run.result.tasks)


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, points, argv)


if __name__ == "__main__":
    sys.exit(main())
