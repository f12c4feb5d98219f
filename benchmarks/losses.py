"""Keep the losses with which every stage of training began and ended, from the runs' logs.

    python benchmarks/losses.py runs/comparison benchmarks/results/comparison-losses.csv

`first` and `last` are means over the images of the stage's first and last epoch. Only finished runs are
taken; those that are kept already and are not in the folder stay.
"""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import printing

from jioc.errors import Refused, exit_status
from jioc.files import read_json, write

HEADS = ["run", "task", "stage", "images", "epochs", "term", "first", "last"]
Lines = list[list[str]]


def of_run(folder: Path) -> Lines:
    """A line for each term of each stage of a run."""
    stages: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines():
        epoch = json.loads(line)
        stages.setdefault((epoch["task"], epoch["stage"]), []).append(epoch)
    lines = []
    for (task, stage), epochs in stages.items():
        first, last = epochs[0]["terms"], epochs[-1]["terms"]
        about = [folder.name, str(task), stage, str(epochs[-1]["images"]), str(len(epochs))]
        lines += [[*about, term, f"{first[term]:.4g}", f"{last[term]:.4g}"] for term in last]
    return lines


def keep(places: list[Path], target: Path) -> int:
    """Keep the losses of the finished runs; return how many there are."""
    finished = {}
    for place in places:
        for path in sorted(place.rglob("log.jsonl")):
            if (read_json(path.parent / "result.json") or {}).get("complete"):
                finished[path.parent.name] = path.parent
    if not finished:
        raise Refused(f"there is no log of a finished run at or below {', '.join(map(str, places))}")
    lines: dict[str, Lines] = {}
    if target.exists():
        for line in list(csv.reader(io.StringIO(target.read_text(encoding="utf-8"))))[1:]:
            lines.setdefault(line[0], []).append(line)
    lines |= {name: of_run(folder) for name, folder in finished.items()}
    text = io.StringIO()
    sheet = csv.writer(text, lineterminator="\n")
    sheet.writerow(HEADS)
    for name in sorted(lines):
        sheet.writerows(lines[name])
    write(target, text.getvalue().encode())
    return len(finished)


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("target", type=Path, help="a csv file")
    args = parser.parse_args(argv)
    return exit_status(lambda: print(f"{keep(args.runs, args.target)} runs kept in {args.target}"))


if __name__ == "__main__":
    sys.exit(main())
