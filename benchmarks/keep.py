"""Keep the results of runs in the repository: small copies of result.json, or a line for each run.

    python benchmarks/keep.py runs/table6 benchmarks/results/table6
    python benchmarks/keep.py runs/study benchmarks/results/study.csv
    python benchmarks/keep.py runs/parity benchmarks/results/parity.csv

A copy has no indent, no folder of the machine that ran it, and what is known class by class (weights, confusion, …) for
the last task alone: tables and the report need no more. The lines name the seed, every setting in which the runs
differ, and the failures that a grid noted. What is kept already is not lost: a finished result that differs, or a line
that would vanish, is replaced only with --replace.
"""

import argparse
import csv
import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from jioc.config.index import MACHINE, SEEDS
from jioc.config.values import at
from jioc.errors import Failed, Refused, exit_status
from jioc.files import write
from jioc.grid.plan import read_json
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


def copies(sources: list[Path], target: Path, replace: bool = False) -> tuple[int, int]:
    """Every finished run below the sources, under its name: how many, and how many unfinished ones were left out."""
    refuse_runs(target)
    finished: dict[Path, runs.Run] = {}
    unfinished = 0
    for source in sources:
        for run in runs.read([source]):
            place = target / run.path.parent.relative_to(source if source.is_dir() else source.parent)
            unfinished += not run.complete
            if run.complete and finished.setdefault(place, run) is not run:
                raise Refused(f"two runs would be kept in {str(place)!r}")
    if not finished:
        raise Refused(f"none of the {unfinished} runs is finished; a .csv keeps a line of those too")
    small = {place / "result.json": slim(run.result) for place, run in finished.items()}
    lost = [path for path, result in small.items() if path.exists() and read_json(path) != result]
    if lost and not replace:
        raise Refused(f"{str(lost[0])!r} holds another result ({len(lost)} such); --replace replaces it")
    for path, result in small.items():
        put(path, json.dumps(result) + "\n")
    return len(small), unfinished


def lines(sources: list[Path], target: Path, replace: bool = False) -> tuple[int, int]:
    """A line for each run: its name, its settings, its figures; for a failure what was said. None is left out."""
    found = runs.read(sources)
    names = Counter(run.path.parent.name for run in found)
    if twice := [name for name, count in names.items() if count > 1]:
        raise Refused(f"two runs are called {twice[0]!r}")
    differ = [
        n for n in labels.differing([run.config for run in found]) if n not in MACHINE and n not in SEEDS
    ]
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
        told = failures.pop(name, f"stopped after task {len(rows)}")
        values = [rows[0]["all"], run.figure("average", run.headline), run.figure("last", run.headline)]
        values += [rows[-1]["old"], rows[-1]["new"]] if run.complete else [None, None]
        values.append(run.figure("average", "nme"))
        seconds = [row.get("seconds") for row in run.result["tasks"]]
        device = (run.result.get("environment") or {}).get("device")
        sheet.writerow(
            [name, *(labels.show(at(run.config, n)) for n in differ)]
            + ["" if v is None else f"{v:.2f}" for v in values]
            + ["" if None in seconds else f"{sum(seconds):.0f}", run.commit, device]
            + ["finished" if run.complete else told, run.result.get("command")]
        )
    for name, told in sorted(failures.items()):
        sheet.writerow([name, *[""] * (len(differ) + len(figures) + 3), told, ""])
    lost = missing(target, text.getvalue())
    if lost and not replace:
        which = f"the line of {lost[0]!r} would be lost or changed ({len(lost)} such)"
        raise Refused(f"{str(target)!r}: {which}; --replace does so")
    put(target, text.getvalue())
    return len(found) + len(failures), 0


def missing(target: Path, text: str) -> list[str]:
    """The lines kept already that the new ones lack, or tell otherwise; a run that had not finished may go on."""
    if not target.is_file():
        return []
    new = {row["run"]: row for row in csv.DictReader(text.splitlines())}
    lost = []
    for row in csv.DictReader(target.read_text(encoding="utf-8").splitlines()):
        name = row.get("run") or "?"
        same = name in new and all(new[name].get(key, value) == value for key, value in row.items())
        if not same and (name not in new or row.get("outcome") == "finished"):
            lost.append(name)
    return lost


def refuse_runs(target: Path) -> None:
    """A folder of runs is no place for what is kept; a copy has no config.yaml."""
    if found := next(target.rglob("config.yaml"), None):
        raise Refused(f"{str(target)!r} is no place to keep results: {str(found.parent)!r} is a run's folder")


def put(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, text.encode())
    except OSError as error:
        raise Failed(f"{str(path)!r} cannot be written: {error.strerror}") from None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("target", type=Path, help="a folder for copies, or a .csv for lines")
    parser.add_argument(
        "--replace", action="store_true", help="whatever else is kept there under the same names"
    )
    found = parser.parse_args()

    def keep() -> None:
        way = lines if found.target.suffix == ".csv" else copies
        kept, unfinished = way(found.runs, found.target, found.replace)
        print(
            f"{kept} runs kept in {found.target}"
            + (f"; {unfinished} unfinished left out" if unfinished else "")
        )

    return exit_status(keep)


if __name__ == "__main__":
    sys.exit(main())
