"""Keep the results of runs in the repository: small copies of result.json, or a line for each run.

    python benchmarks/keep.py runs/table6 benchmarks/results/table6
    python benchmarks/keep.py runs/study benchmarks/results/study.csv
    python benchmarks/keep.py runs/fast runs/eager benchmarks/results/parity.csv

A copy has no indent, no folder of the machine that ran it, and what is known class by class (weights, confusion, …) for
the last task alone: tables and the report need no more. The lines name the seed, every setting in which the runs
differ, and the failures that a grid noted.
"""

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from jioc.config import MACHINE
from jioc.errors import Refused, sentence
from jioc.files import write
from jioc.report import labels, runs
from jioc.report.page import BY_TASK

FOLDERS = dict.fromkeys(("data_dir", "data_cache"))


def slim(result: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for row in result["tasks"]:
        diagnosed = row.get("diagnostics") or {}
        if row is not result["tasks"][-1]:
            diagnosed = {name: value for name, value in diagnosed.items() if name in BY_TASK}
        rows.append(row | {"diagnostics": diagnosed})
    return result | {"config": result["config"] | FOLDERS, "tasks": rows}


def copies(sources: list[Path], target: Path) -> int:
    """Every finished run below the sources, under its name."""
    finished: dict[Path, runs.Run] = {}
    for source in sources:
        for run in runs.read([source]):
            place = target / run.path.parent.relative_to(source)
            if run.complete and finished.setdefault(place, run) is not run:
                raise Refused(f"two runs would be kept in {str(place)!r}")
    for folder, run in finished.items():
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / "result.json", (json.dumps(slim(run.result)) + "\n").encode())
    return len(finished)


def lines(sources: list[Path], target: Path) -> int:
    """A line for each run: its name, its settings, its figures; for a failure what was said."""
    found = runs.read(sources)
    differ = [n for n in labels.differing([run.config for run in found]) if n not in MACHINE and n not in runs.SEEDS]
    differ.insert(0, "seed")
    failures: dict[str, str] = {}
    for noted in (source / "failures.json" for source in sources):
        failures |= json.loads(noted.read_text()) if noted.exists() else {}
    text = io.StringIO()
    sheet = csv.writer(text, lineterminator="\n")
    figures = ["first task", "average", "last", "last, old", "last, new", "nme average"]
    sheet.writerow(["run", *differ, *figures, "seconds", "commit", "device", "outcome", "command"])
    for run in sorted(found, key=lambda run: run.path.parent.name):
        name, rows = run.path.parent.name, run.readouts[run.headline]
        outcome = "finished" if run.complete else failures.pop(name, f"stopped after task {len(rows)}")
        values = [rows[0]["all"], run.figure("average", run.headline), run.figure("last", run.headline)]
        values += [rows[-1]["old"], rows[-1]["new"]] if run.complete else [None, None]
        values.append(run.figure("average", "nme"))
        seconds = sum(row["seconds"] for row in run.result["tasks"])
        sheet.writerow(
            [name, *(labels.show(labels.at(run.config, n)) for n in differ)]
            + ["" if v is None else f"{v:.2f}" for v in values]
            + [f"{seconds:.0f}", run.result.get("commit"), run.result["environment"].get("device"), outcome]
            + [run.result.get("command")]
        )
    for name, told in sorted(failures.items()):
        sheet.writerow([name, *[""] * (len(differ) + len(figures) + 3), told, ""])
    target.parent.mkdir(parents=True, exist_ok=True)
    write(target, text.getvalue().encode())
    return len(found) + len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("target", type=Path, help="a folder for copies, or a .csv for lines")
    found = parser.parse_args()
    try:
        kept = (lines if found.target.suffix == ".csv" else copies)(found.runs, found.target)
    except Refused as error:
        print(sentence(error), file=sys.stderr)
        return error.status
    print(f"{kept} runs kept in {found.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
