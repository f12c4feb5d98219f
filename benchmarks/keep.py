"""Keep the results of runs in the repository: small copies of result.json, or a line for each run.

    python benchmarks/keep.py runs/table6 benchmarks/results/table6
    python benchmarks/keep.py runs/study benchmarks/results/study.csv
    python benchmarks/keep.py runs/lease benchmarks/results/lt-cil --only lt-cil

A copy has no indent, no folder of the machine that ran it, and what is known class by class (weights,
confusion, …) for the last task alone: tables and the report need no more. The lines name the seed, every
setting in which the runs that are kept at once differ, the accuracy after each task, and the failures that a
grid noted; of a run that is judged by a hold-out also the mean over classes, by the read-out that counts and
by the nearest class mean. What is kept already stays: the lines of other runs, and a finished result that
differs, which only --replace replaces. --only chooses among the runs of several recipes by their names, as in
jioc grid.
"""

import csv
import io
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import printing

from jioc.config import at
from jioc.config.index import MACHINE, SEEDS
from jioc.errors import Failed, Refused, exit_status
from jioc.files import read_json, write
from jioc.grid.plan import select
from jioc.report import labels, runs
from jioc.report.page import BY_TASK

FOLDERS = dict.fromkeys(("data_dir", "data_cache"))
FIGURES = ("first task", "average", "last", "last, old", "last, new", "nme average")
BY_CLASS = "by class, after each task"
BY_MEANS = "by class means, by class, after each task"  # of `nme`, the nearest class mean
TAIL = (*FIGURES, "after each task", BY_CLASS, BY_MEANS, "seconds", "commit", "device", "outcome", "command")


def slim(result: dict[str, Any]) -> dict[str, Any]:
    """Drop from a result, as its file holds it, what tables and the report do not need."""
    *earlier, last = [row | {"diagnostics": row.get("diagnostics") or {}} for row in result["tasks"]]
    for row in earlier:
        measured = row["diagnostics"].items()
        row["diagnostics"] = {name: value for name, value in measured if name in BY_TASK}
    return result | {"config": result["config"] | FOLDERS, "tasks": [*earlier, last]}


def copies(
    sources: list[Path], target: Path, replace: bool = False, only: list[str] | None = None
) -> tuple[int, int]:
    """Copy every finished run below the sources; return how many, and how many unfinished were left out."""
    refuse_runs(target)
    finished: dict[Path, runs.Run] = {}
    unfinished = 0
    read = [(source, run) for source in sources for run in runs.read([source])]
    wanted = chosen((name(run) for _, run in read), only)
    for source, run in read:
        if name(run) in wanted:
            root = source if source.is_dir() else source.parent
            place = target / run.path.parent.relative_to(root)
            unfinished += not run.complete
            if run.complete and finished.setdefault(place, run) is not run:
                raise Refused(f"two runs would be kept in {str(place)!r}")
    if not finished:
        raise Refused(f"none of the {unfinished} runs is finished; a .csv keeps a line of those too")
    kept = {place / "result.json": slim(read_json(run.path)) for place, run in finished.items()}
    lost = [path for path, result in kept.items() if path.exists() and read_json(path) != result]
    if lost and not replace:
        raise Refused(f"{str(lost[0])!r} holds another result ({len(lost)} such); --replace replaces it")
    for path, result in kept.items():
        put(path, json.dumps(result) + "\n")
    return len(kept), unfinished


def lines(
    sources: list[Path], target: Path, replace: bool = False, only: list[str] | None = None
) -> tuple[int, int]:
    """Write a line for each run, failures included; return how many, and that none was left out."""
    failures: dict[str, str] = {}
    for path in (source / "failures.json" for source in sources):
        failures |= json.loads(path.read_text()) if path.exists() else {}
    read = runs.read(sources)
    wanted = chosen([*map(name, read), *failures], only)
    kept = [run for run in read if name(run) in wanted]
    failures = {run: why for run, why in failures.items() if run in wanted}
    names = Counter(map(name, kept))
    if twice := [name for name, count in names.items() if count > 1]:
        raise Refused(f"two runs are called {twice[0]!r}")
    differing = labels.differing([run.config for run in kept])
    before = earlier(target)
    named = {path for path in differing if path not in MACHINE and path not in SEEDS}
    named |= {path for row in before.values() for path in row if path not in ("run", "seed", *TAIL)}
    settings = ["seed", *sorted(named)]
    heads, fresh = ["run", *settings, *TAIL], dict[str, list[Any]]()
    for run in kept:
        fresh[name(run)] = line(run, settings, failures.pop(name(run), None))
    for which, failure in failures.items():
        fresh[which] = [which, *[""] * (len(heads) - 3), failure, ""]
    changed = [
        which for which, row in before.items() if which in fresh and is_changed(row, fresh[which], heads)
    ]
    if changed and not replace:
        lost = f"the line of {changed[0]!r} would be changed ({len(changed)} such)"
        raise Refused(f"{str(target)!r}: {lost}; --replace does so")
    rows = {which: [row.get(head, "") for head in heads] for which, row in before.items()} | fresh
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *(rows[which] for which in sorted(rows))])
    put(target, text.getvalue())
    return len(fresh), 0


def name(run: runs.Run) -> str:
    return run.path.parent.name


def chosen(names: Iterable[str], only: list[str] | None) -> set[str]:
    return {*select({each: {} for each in names}, only)}


def earlier(target: Path) -> dict[str, dict[str, str]]:
    """The lines that are kept already, by the run."""
    if not target.is_file():
        return {}
    sheet = csv.DictReader(target.read_text(encoding="utf-8").splitlines())
    return {row.get("run") or "?": row for row in sheet}


def is_changed(before: dict[str, str], now: list[Any], heads: list[str]) -> bool:
    """Whether a finished run's line says something else; an empty cell says nothing.

    A run that had not finished may go on.
    """
    new = {head: "" if cell is None else str(cell) for head, cell in zip(heads, now, strict=True)}
    return before.get("outcome") == "finished" and any(
        v not in ("", new.get(k, v)) for k, v in before.items()
    )


def line(run: runs.Run, settings: list[str], failure: str | None) -> list[Any]:
    """The name of a run, its settings, its figures, where it was trained, and how it ended."""
    headline = run.result.headline
    rows = run.readouts[headline]
    figures = [rows[0].all, run.figure("average", headline), run.figure("last", headline)]
    figures += [rows[-1].old, rows[-1].new] if run.complete else [None, None]
    figures.append(run.figure("average", "nme"))
    seconds = [row.seconds for row in run.result.tasks]
    known = [each for each in seconds if each is not None]
    outcome = "finished" if run.complete else failure or f"stopped after task {len(rows)}"
    return [
        name(run),
        *(labels.show(at(run.config, path)) for path in settings),
        *("" if figure is None else f"{figure:.2f}" for figure in figures),
        " ".join(f"{row.all:.2f}" for row in rows),
        *(" ".join(f"{mean:.2f}" for mean in by_class(run, name)) for name in (headline, "nme")),
        f"{sum(known):.0f}" if len(known) == len(seconds) else "",
        run.commit,
        run.result.environment.device,
        outcome,
        run.result.command,
    ]


def by_class(run: runs.Run, readout: str) -> list[float]:
    """The mean over the classes after each task, of a run that is judged by a hold-out; else nothing.

    A hold-out of a long tail is long-tailed itself, the test set is not.
    """
    rows = run.readouts.get(readout) or []
    known = [[share for share in row.per_class if share is not None] for row in rows]
    judged = run.config.get("holdout") and run.config.get("judge_by", "holdout") == "holdout"
    return [*map(statistics.fmean, known)] if judged and all(known) else []


def refuse_runs(target: Path) -> None:
    """Refuse a folder of runs as the place for what is kept; a copy has no config.yaml."""
    if config := next(target.rglob("config.yaml"), None):
        raise Refused(
            f"{str(target)!r} is no place to keep results: {str(config.parent)!r} is a run's folder"
        )


def put(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, text.encode())
    except OSError as error:
        raise Failed(f"{str(path)!r} cannot be written: {error.strerror}") from None


def main() -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("target", type=Path, help="a folder for copies, or a .csv for lines")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="as in jioc grid")
    parser.add_argument("--replace", action="store_true", help="what is kept there under the same names")
    args = parser.parse_args()

    def keep() -> None:
        how = lines if args.target.suffix == ".csv" else copies
        kept, unfinished = how(args.runs, args.target, args.replace, args.only)
        left_out = f"; {unfinished} unfinished left out" if unfinished else ""
        print(f"{kept} runs kept in {args.target}{left_out}")

    return exit_status(keep)


if __name__ == "__main__":
    sys.exit(main())
