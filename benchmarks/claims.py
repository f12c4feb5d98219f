"""What README.md claims, with the figures that kept results have.

python benchmarks/claims.py    prints its three points
"""

import sys
from pathlib import Path
from typing import Any

import cells
import once
import printing
import speeds
from gains import RESULTS

from jioc.report import coverage, runs
from jioc.report.group import Run

SPEED = RESULTS / "speed" / "resnet32.json"
OTHERS = RESULTS / "speed" / "resnet18-imagenet.json", RESULTS / "speed" / "photographs-resnet18.json"
ALONE, PACKED = "ours, graph bf16 compiled", "ours, 6 packed"  # rows of speed.py


def points(speed: Path = SPEED, table6: Path = RESULTS / "table6") -> str:
    measured = speeds.read(speed)
    rows = {row["variant"]: row for row in measured["rows"]}
    alone, packed = rows[ALONE], rows[PACKED]
    quickest = min(once.read(table6), key=seconds)
    device = measured["device"].removeprefix("NVIDIA ")
    stem, photographs = (speeds.variants(speeds.read(path)) for path in OTHERS)
    tasks, name = len(quickest.result.tasks), name_of(quickest)
    fast = (
        f"- **Fast.** On one {device}, ResNet32 trains with distillation at "
        f"{alone['images_per_second']:,.0f} images a second, {_times(alone)} a plain PyTorch loop (fp32, "
        f"eight loader workers) on the same GPU. Six runs at once reach {_times(packed)}; six of ResNet18 "
        f"with ImageNet's stem {_times(stem[PACKED])} its plain loop. On photographs of 224 pixels ResNet18 "
        f"trains {_times(photographs['ours, resident'])} as fast as in a tuned loop (bf16, 16 workers). Over "
        "five seeds of a first task accuracy shows no difference from fp32 training "
        f"([how](docs/performance.md)). The quickest run of {name} ({tasks} tasks of CIFAR-100, "
        f"{quickest.config['memory']:,} exemplars) took {seconds(quickest):.0f} s without compilation."
    )
    exact = (
        "- **Exact.** A run that was killed and is resumed on the same machine ends with the same weights, "
        "**bit for bit**; "
        "every result carries its command, commit, seed and machine."
    )
    checked = (
        "- **Reproduced in part.** Every table of the JIOC paper is a recipe. In its tables 2 and "
        f"3 {coverage.summary(cells.read())} "
        "([cell by cell](docs/coverage.md), [verdicts](docs/results.md))."
    )
    return "\n".join([fast, exact, checked])


def name_of(run: Run) -> str:
    (group,) = runs.group([run])
    return group.name


def _times(row: dict[str, Any]) -> str:
    return f"**{row['ratio']:.0f} times**"


def seconds(run: Run) -> float:
    """Seconds of all tasks: data and compilation not counted."""
    return sum(row.seconds or 0.0 for row in run.result.tasks)


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, points, argv)


if __name__ == "__main__":
    sys.exit(main())
