"""ResNet18's first task under each stem, from results/stems.csv; the paper does not say which stem it used.

python benchmarks/stems.py    prints the table of docs/results/tables4-5.md
"""

import csv
import sys
from pathlib import Path

import printing

from jioc.errors import Refused
from jioc.report import paper

RESULTS = Path(__file__).parent / "results" / "stems.csv"


def table(path: Path = RESULTS) -> str:
    if not path.exists():
        raise Refused(f"there is no {str(path)!r}; keep.py makes it from the runs of `jioc grid stems`")
    lines = ["| data | stem | seed | first task | paper | difference |", "|---|---|---:|---:|---:|---:|"]
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        if row["outcome"] != "finished":
            continue
        data = "cifar100-lt" if row["long_tail"] == "paper" else "cifar100"
        curve = paper.curve((data, "resnet18", 10, 1000, "icarl", "none"))
        assert curve is not None, "tables 4 and 5 have it"
        ours, theirs = float(row["first task"]), curve["all"][0]
        figures = f"{ours:.2f} | {theirs:.2f} | {ours - theirs:+.2f}"
        lines.append(f"| {data} | {row['stem']} | {row['seed']} | {figures} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, table, argv)


if __name__ == "__main__":
    sys.exit(main())
