"""Keep what every stage of training began and ended with: a line for each term of the loss, from the runs' logs.

    python benchmarks/losses.py runs/comparison benchmarks/results/comparison-losses.csv

`first` and `last` are means over the images of the stage's first and last epoch. Only finished runs are taken; those
that are kept already and are not in the folder stay.
"""

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from jioc.errors import Refused, exit_status
from jioc.files import write
from jioc.grid.plan import read_json

HEADS = ["run", "task", "stage", "images", "epochs", "term", "first", "last"]
Lines = list[list[str]]


def of_run(folder: Path) -> Lines:
    stages: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines():
        epoch = json.loads(line)
        stages.setdefault((epoch["task"], epoch["stage"]), []).append(epoch)
    return [
        [
            folder.name,
            str(task),
            stage,
            str(of[-1]["images"]),
            str(len(of)),
            term,
            *(f"{e[term]:.4g}" for e in ends),
        ]
        for (task, stage), of in stages.items()
        for ends in [(of[0]["terms"], of[-1]["terms"])]
        for term in ends[-1]
    ]


def keep(places: list[Path], target: Path) -> int:
    """The number of runs that were taken."""
    folders = {path.parent.name: path.parent for place in places for path in sorted(place.rglob("log.jsonl"))}
    finished = {n: f for n, f in folders.items() if (read_json(f / "result.json") or {}).get("complete")}
    if not finished:
        raise Refused(f"there is no log of a finished run at or below {', '.join(map(str, places))}")
    lines: dict[str, Lines] = {}
    if target.exists():
        for line in list(csv.reader(io.StringIO(target.read_text(encoding="utf-8"))))[1:]:
            lines.setdefault(line[0], []).append(line)
    lines |= {name: of_run(folder) for name, folder in finished.items()}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [HEADS, *(line for name in sorted(lines) for line in lines[name])]
    )
    write(target, text.getvalue().encode())
    return len(finished)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("target", type=Path, help="a csv file")
    found = parser.parse_args(words)
    return exit_status(lambda: print(f"{keep(found.runs, found.target)} runs kept in {found.target}"))


if __name__ == "__main__":
    sys.exit(main())
