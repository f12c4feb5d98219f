"""The table of speeds: images a second of a step with a teacher, and the ratio to the loop beside it.

    python benchmarks/speeds.py benchmarks/results/speed/resnet32.json

A line for each file that `speed.py --json` or `photographs.py --json` wrote.
"""

import json
import sys
from pathlib import Path
from typing import Any

import printing

from jioc.errors import Refused

USUAL = "the usual loop"
COLUMNS = {  # of the table: the variant of speed.py, and of photographs.py
    "ours": ("ours, graph bf16 compiled", "ours, resident"),
    "with JIOC": ("ours, graph bf16 compiled, JIOC", None),
    "six packed": ("ours, 6 packed", None),
    "six packed, with JIOC": ("ours, 6 packed, JIOC", None),
    "streamed": (None, "ours, streamed"),
}
NAMES = {"resnet18": "ResNet18", "resnet32": "ResNet32", "resnet50": "ResNet50"}


def table(measured: list[dict[str, Any]]) -> str:
    lines = [
        f"| images/s (ratio) | usual loop | {' | '.join(COLUMNS)} |",
        f"|---|---:|{'---:|' * len(COLUMNS)}",
    ]
    for one in measured:
        found = variants(one)
        cells = [f"{found[USUAL]['images_per_second']:,.0f}"]
        for names in COLUMNS.values():
            row = next((found[name] for name in names if name in found), None)
            cells.append(f"{row['images_per_second']:,.0f} ({row['ratio']:.1f}x)" if row else "–")
        lines.append(f"| {title(one)} | {' | '.join(cells)} |")
    where = dict.fromkeys(
        f"{one['device']}, torch {one['torch']}, commit {one['commit']}" for one in measured
    )
    return "\n".join([*lines, "", f"{'; '.join(where)}."])


def variants(one: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What was measured, by name."""
    return {row["variant"]: row for row in one["rows"]} if "rows" in one else one


def title(one: dict[str, Any]) -> str:
    name = NAMES.get(one["backbone"], one["backbone"])
    if "image_size" in one:
        return f"{name}, photographs of {one['image_size']} pixels"
    stem = {"imagenet": ", ImageNet's stem", "cifar": ", 3x3 stem" if name == "ResNet18" else ""}
    return name + stem[one.get("stem", "cifar")] + ", 32 pixels"


def is_speed(path: Path) -> bool:
    """Whether a file has a usual loop to compare with; a second start, say, has none."""
    try:
        found = json.loads(path.read_text())
        return USUAL in variants(found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def read(path: Path) -> dict[str, Any]:
    if not is_speed(path):
        raise Refused(f"{str(path)!r} is not what speed.py --json or photographs.py --json writes")
    measured: dict[str, Any] = json.loads(path.read_text())
    return measured


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    files = parser.parse_args(argv).files
    return printing.answered(lambda: print(table([read(path) for path in files])))


if __name__ == "__main__":
    sys.exit(main())
