"""What README.md claims, with the figures that kept results have.

python benchmarks/claims.py    prints its three points
"""

import sys
from pathlib import Path
from typing import Any

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
    fast = (
        f"- **Fast.** On one {device} ResNet32 trains, distilling from the network before it, at "
        f"{_speed(alone)} a plain PyTorch loop on the same GPU; six runs at once make {_speed(packed)}. "
        f"ResNet18 with ImageNet's stem: {_speed(stem[ALONE])}, six at once {_speed(stem[PACKED])}. "
        f"ResNet18 on photographs of 224 pixels: {_speed(photographs['ours, resident'])} a tuned loop. "
        "On CIFAR-100 five seeds show no difference to plain fp32 ([how](docs/performance.md)). "
        f"The {len(quickest.result.tasks)} tasks of {name_of(quickest)} on CIFAR-100 "
        f"take {seconds(quickest):.0f} s."
    )
    exact = (
        "- **Exact.** A run that was killed and is resumed ends with the same weights, **bit for bit**; "
        "every result carries its command, commit, seed and machine."
    )
    checked = (
        "- **Checked.** Every table of the JIOC paper is a recipe that you can run. What was run stands "
        "beside the paper's figure, and disagreements are listed ([verdicts](docs/results.md), "
        "[cell by cell](docs/coverage.md))."
    )
    return "\n".join([fast, exact, checked])


def name_of(run: Run) -> str:
    (group,) = runs.group([run])
    return group.name


def _speed(row: dict[str, Any]) -> str:
    return f"{row['images_per_second']:,.0f} images a second, **{row['ratio']:.0f} times**"


def seconds(run: Run) -> float:
    """Seconds of all tasks: data and compilation not counted."""
    return sum(row.seconds or 0.0 for row in run.result.tasks)


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, points, argv)


if __name__ == "__main__":
    sys.exit(main())
