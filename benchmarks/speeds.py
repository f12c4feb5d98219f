"""The table of speeds that `speed.py --json` measured: images a second, and the ratio to the usual loop.

    python benchmarks/speeds.py benchmarks/results/speed/*.json

A file is a backbone's: two columns each.
"""

import json
import sys
from pathlib import Path
from typing import Any

import printing

from jioc.errors import Refused


def table(measured: list[dict[str, Any]]) -> str:
    variants = list(dict.fromkeys(row["variant"] for one in measured for row in one["rows"]))
    heads = [word for one in measured for word in (f"{one['backbone']}, images/s", "ratio")]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for variant in variants:
        cells = []
        for one in measured:
            row = next((row for row in one["rows"] if row["variant"] == variant), None)
            cells += [f"{row['images_per_second']:,.0f}", f"{row['ratio']:.1f}"] if row else ["–", "–"]
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    where = {f"{one['device']}, torch {one['torch']}, commit {one['commit']}" for one in measured}
    return "\n".join([*lines, "", f"{'; '.join(sorted(where))}."])


def read(path: Path) -> dict[str, Any]:
    try:
        measured: dict[str, Any] = json.loads(path.read_text())
        table([measured])
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(f"{str(path)!r} is not what speed.py --json writes") from None
    return measured


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    files = parser.parse_args(argv).files
    return printing.answered(lambda: print(table([read(path) for path in files])))


if __name__ == "__main__":
    sys.exit(main())
