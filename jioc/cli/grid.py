"""`jioc grid`: many runs, a folder each. Finished runs are skipped, begun ones go on. No torch here.

    jioc grid table6 --pack 6 --data-dir DATA --out runs/table6

The folders are the only state: killed anywhere and started again with the same command, a grid goes on.
"""

import json
import sys
from functools import cache, partial
from pathlib import Path

from jioc.cli.console import print_note
from jioc.cli.flags import (
    Parser,
    add_fields,
    add_settings,
    given_values,
    named_path,
    split_list,
    wants_help,
)
from jioc.config import Values
from jioc.errors import Interrupted, Refused, fail_if, refuse_if
from jioc.files import read_json, write
from jioc.grid import options as launch
from jioc.grid.plan import (
    FINISHED,
    Job,
    is_record,
    plan,
    refuse_changed_method,
    refuse_other_images,
    status,
    tasks_learnt,
)
from jioc.grid.progress import GridProgress
from jioc.methods import Spec, find_method
from jioc.resolve import recipes, repeat
from jioc.resolve.recipe_file import MOST_SCALE as MOST
from jioc.stopping import Stop, duration, signals, until
from jioc.terminal import table, width, wrapped
from jioc.text import counted, middle_out

KEPT = "kept"
ONLY = "runs of that whole name (* stands for anything), or, where there is none, names that contain it"

COMMON = (
    *("--seeds", "--only", "--scale", "--out", "--dry-run", "--on", "--pack", "--time-limit", "--stop-after"),
    *("--data-dir", "--memory", "--epochs", "--device"),
)


def main(argv: list[str]) -> int:
    if not argv or argv[0].startswith("-") or wants_help(argv):
        build_parser(find_method("icarl")).parse(argv)  # prints the help, or refuses a wrong flag
        names = ", ".join(recipes.RECIPES)
        raise Refused(f"jioc grid needs a recipe ({names}) or a YAML file, as its first word")
    recipe = recipes.find_recipe(argv[0], print_note)
    args = build_parser(None).parse_known_args(argv[1:])[0]
    seeds = _seeds(args.seeds) if args.seeds else recipe.seeds
    scale = recipe.scale if args.scale is None else args.scale
    refuse_if(not 0 < scale <= MOST, f"--scale: {scale:g} is refused: it should be above 0, at most {MOST}")
    given = {name: getattr(args, name) for name in launch.LaunchOptions.model_fields}
    options = launch.make(**{name: value for name, value in given.items() if value is not None})
    out = args.out or Path("runs") / recipe.name
    flags = cache(partial(_flags, argv[1:]))
    jobs = plan(recipe, seeds, args.only, scale, flags, out.absolute())
    refuse_if(not jobs, f"{recipe.name} has no seeds, so there is nothing to run")
    states = {job.name: status(job) for job in jobs}
    for job in jobs:
        refuse_changed_method(job)
    states |= {name: KEPT for name in _kept(jobs, args.kept) if states[name] != FINISHED}
    if args.dry_run:
        _show(jobs, states)
        if options.stop_after is not None:
            print("that is the time of all tasks; --stop-after makes it less")
        return 0
    kept = sum(state == KEPT for state in states.values())
    jobs = [job for job in jobs if states[job.name] != KEPT]
    if not jobs:
        print(f"{recipe.name}: nothing to run, {counted(kept, 'run')} kept elsewhere")
        return 0
    over = Stop(duration(options.time_limit) if options.time_limit and options.on != "slurm" else None)
    learnt = [job.name for job in jobs if _has_learnt(job, options.stop_after)]
    left = [job for job in jobs if states[job.name] != FINISHED and job.name not in learnt]
    with signals() as stop:  # not before: until here there is nothing to save, and a signal ends the command
        refuse_other_images([job for job in jobs if states[job.name] == FINISHED], until(stop))
        done = sum(states[job.name] == FINISHED for job in jobs)
        before = f"{done} finished before" + f", {kept} more kept elsewhere" * (kept > 0)
        print(f"{recipe.name}: {counted(len(jobs), 'run')} in {out}, {before}", flush=True)
        with GridProgress(left) as progress:
            if left:
                launch.launcher(options)(left, options, progress, lambda: stop() or over())
        return close(jobs, progress, out, options.stop_after)


def _has_learnt(job: Job, tasks: int | None) -> bool:
    """Whether a run that is not finished has learnt as many tasks as --stop-after names."""
    return tasks is not None and tasks_learnt(job) >= tasks and status(job) != FINISHED


def _show(jobs: list[Job], states: dict[str, str]) -> None:
    """List the runs and how far they are, with the line that repeats each, and the time of those left."""
    rows = [[job.name, states[job.name], repeat.line(job.config)] for job in jobs]
    columns = width(sys.stdout)
    if columns is None or max(sum(map(len, row)) + 4 for row in rows) <= columns:
        table(["run", "", "alone"], rows)
    else:
        state = max(len(row[1]) for row in rows)
        room = max(16, columns - state - 2)
        table(["run", ""], [[middle_out(name, room), status] for name, status, _ in rows])
        print(wrapped("the line that repeats each run alone: this command with | cat at its end", sys.stdout))
    left = [job.config for job in jobs if states[job.name] not in (FINISHED, KEPT)]
    if left:
        from jioc.cli.dry_run import total_time

        print(wrapped(total_time(left), sys.stdout))


# --- the command line ---


def build_parser(spec: Spec | None) -> Parser:
    """The flags of a grid; with a method, also those of its runs."""
    parser = Parser(
        "jioc grid",
        "Many runs, a folder each. What is finished is skipped, what was begun goes on. "
        "Flags of jioc run hold for every run.",
        usage="jioc grid RECIPE|FILE [options]",
        common=COMMON,
        examples={
            "jioc grid table6 --dry-run": "what runs, how far it is, and the total time",
            "jioc grid table6 --data-dir DATA --pack 6": "the paper's table 6, six runs at once on one GPU",
            "jioc grid own.yaml --seeds 1 2 3": "a recipe of your own (docs/grid.md)",
        },
        add_help=spec is not None,
    )
    add = parser.add_argument_group("the grid").add_argument
    add("--seeds", nargs="+", metavar="S", help="seeds of each setting (the recipe's)")
    add("--only", nargs="+", metavar="WORD", help=ONLY)
    add("--scale", type=float, metavar="FACTOR", help="length of the schedules, such as 0.1 (the recipe's)")
    add("--out", type=named_path, metavar="DIR", help="for the runs' folders (runs/RECIPE)")
    add(
        "--kept",
        nargs="+",
        type=named_path,
        metavar="DIR",
        help="results that count: what they hold is not run",
    )
    add("--dry-run", action="store_true", help="list the runs, how far they are, and the total time")
    add_fields(parser.add_argument_group("where the runs go"), launch.LaunchOptions.model_fields)
    if spec is not None:
        add_settings(parser, spec)
    return parser


def _flags(argv: list[str], spec: Spec) -> Values:
    """The settings that the command gives for every run of a method."""
    args = build_parser(spec).parse(argv)
    refuse_if(args.seed is not None, "a grid takes --seeds, not --seed")
    return given_values(args, spec.options)


def _kept(jobs: list[Job], places: list[Path] | None) -> list[str]:
    """The names of the runs of which the places hold a finished result, of the same setting and seed."""
    from jioc.report import runs

    if not places:
        return []
    wanted = [runs.not_begun(job.folder, job.config) for job in jobs]
    found = runs.counterparts(runs.read(places), wanted)
    return [job.name for job, result in zip(jobs, found, strict=True) if result is not None]


def _seeds(given: list[str]) -> tuple[int, ...]:
    seeds = [word for part in given for word in split_list(part)]
    numbers = all(word.isdecimal() and len(word) <= 10 for word in seeds)
    refuse_if(not numbers, f"--seeds: {' '.join(seeds)!r} is refused: seeds are whole numbers below 2**32")
    return tuple(dict.fromkeys(map(int, seeds)))


# --- the end ---


def close(jobs: list[Job], progress: GridProgress, out: Path, stop_after: int | None = None) -> int:
    """Print the table of finished runs and the failures, and return the exit status."""
    from jioc.report import paper, runs, tables

    finished = [job for job in jobs if status(job) == FINISHED]
    stopped = [job for job in jobs if _has_learnt(job, stop_after)]
    left_out: list[str] = []
    read = runs.read([job.folder for job in finished], leave_out=left_out.append) if finished else []
    groups = runs.group(read)
    for text in left_out:
        print(f"note: {text}")
    if groups:
        sheet = tables.summarise(groups, beside_paper=False, wide=False).without_empty()
        table(sheet.heads, sheet.rows, sheet.title or None, sheet.words, sheet.blocks)
    try:
        keep_failures(out, progress.failures, [job.name for job in [*finished, *stopped]])
    except OSError as error:
        print(f"note: {str(out / 'failures.json')!r} cannot be brought up to date: {error.strerror or error}")
    if progress.interrupted:
        raise Interrupted(
            f"stopped; {len(finished)} of {len(jobs)} runs are finished, and the same command goes on"
        )
    by_reason: dict[str, list[str]] = {}
    for name, why in progress.failures.items():
        by_reason.setdefault(why, []).append(name)
    for why, (name, *others) in by_reason.items():
        print(f"failed: {name}" + (f" and {len(others)} more" if others else "") + f": {why}")
    failed = f"{len(progress.failures)} of {len(jobs)} runs failed; the same command tries them again"
    fail_if(progress.failures, failed)
    if stopped:
        asked = f"{counted(len(stopped), 'run')} stopped as --stop-after asks"
        print(f"{asked}, {len(finished)} finished; jioc report {out} shows them; without it the grid goes on")
        return 0
    in_paper = any(paper.average(tables.cell(g)) is not None for g in groups)
    hint = f"; jioc table {out} --paper puts them beside the paper" if in_paper else ""
    print(("the run is" if len(jobs) == 1 else f"all {len(jobs)} runs are") + f" finished{hint}")
    return 0


def keep_failures(out: Path, failures: dict[str, str], ended: list[str]) -> None:
    """Write failures.json: the name of each failed run and what stopped it, until the run ends well."""
    path = out / "failures.json"
    if not is_record(before := read_json(path) if path.exists() else {}):
        raise OSError("jioc did not write it")
    known = before | failures
    if left := {name: why for name, why in known.items() if name not in ended}:
        out.mkdir(parents=True, exist_ok=True)
        write(path, (json.dumps(left, indent=1) + "\n").encode())
    elif path.exists():  # a read-only disk refuses to remove even a file that is not there
        path.unlink()
