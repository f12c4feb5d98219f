"""`jioc grid`: many runs, a folder each. What is finished is skipped, what was begun goes on. No torch here.

    jioc grid table6 --pack 6 --data-dir DATA --out runs/table6

Killed anywhere and started again with the same words, it ends as if it had never been: the folders are the only state.
"""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

from jioc.cli.console import table
from jioc.cli.flags import Parser, add_fields, add_settings, given_values, usual_values, wants_help
from jioc.config.values import Values
from jioc.errors import Failed, Interrupted, Refused
from jioc.files import write
from jioc.grid import options as launch
from jioc.grid.options import LaunchOptions
from jioc.grid.plan import FINISHED, Job, plan, read_json, refuse_changed_method, refuse_other_images, status
from jioc.grid.progress import GridProgress
from jioc.methods.registry import find
from jioc.methods.specs import Spec
from jioc.report import paper, runs, tables
from jioc.resolve import recipes, repeat
from jioc.stopping import Stop, duration, signals, until
from jioc.text import counted

ONLY = "the runs of that whole name (* stands for anything), or, where no name is that, those whose names hold it"


def main(argv: list[str]) -> int:
    with signals() as stop:
        return _main(argv, stop)


def _main(argv: list[str], stop: Callable[[], bool]) -> int:
    parser = _parser(find("icarl"), wants_help(argv))
    if not argv or argv[0].startswith("-"):
        parser.parse(argv)  # --help, or a wrong word
        raise Refused(
            f"jioc grid needs a recipe ({', '.join(recipes.RECIPES)}) or a YAML file, as its first word"
        )
    recipe = recipes.find(argv[0])
    found = parser.parse_known_args(argv[1:])[0]
    seeds = _seeds(found.seeds) if found.seeds else recipe.seeds
    scale = recipe.scale if found.scale is None else found.scale
    if not 0 < scale < math.inf:
        raise Refused(f"--scale: {scale:g} is refused: it should be above 0")
    options = launch.make(
        **{k: v for k in LaunchOptions.model_fields if (v := getattr(found, k)) is not None}
    )
    out = found.out or Path("runs") / recipe.name

    @cache
    def flags(spec: Spec) -> Values:
        return _flags(argv[1:], spec)

    jobs = plan(recipe, seeds, found.only, scale, flags, out.absolute())
    if not jobs:
        raise Refused(f"{recipe.name} has no seeds, so there is nothing to run")
    states = {job.name: status(job) for job in jobs}
    for job in jobs:
        refuse_changed_method(job)
    if found.dry_run:
        table(["run", "", "alone"], [[job.name, states[job.name], repeat.line(job.config)] for job in jobs])
        return 0
    refuse_other_images([job for job in jobs if states[job.name] == FINISHED], until(stop))
    over = Stop(duration(options.time_limit) if options.time_limit and options.on != "slurm" else None)
    left = [job for job in jobs if states[job.name] != FINISHED]
    print(
        f"{recipe.name}: {counted(len(jobs), 'run')} in {out}, {len(jobs) - len(left)} finished before",
        flush=True,
    )
    with GridProgress(left) as progress:
        if left:
            launch.launcher(options)(left, options, progress, lambda: stop() or over())
    return close(jobs, progress, out)


# --- the words ---


def _parser(spec: Spec, help: bool) -> Parser:
    about = "Many runs, a folder each. What is finished is skipped, what was begun goes on. "
    about += "Flags of jioc run hold for every run."
    parser = Parser("jioc grid", usage="jioc grid RECIPE|FILE [options]", description=about)
    add = parser.add_argument_group("the grid").add_argument
    add("--seeds", nargs="+", metavar="S", help="seeds of each setting (the recipe's)")
    add("--only", nargs="+", metavar="WORD", help=ONLY)
    add("--scale", type=float, help="length of the schedules, such as 0.1 (the recipe's)")
    add("--out", type=Path, metavar="DIR", help="for the runs' folders (runs/RECIPE)")
    add("--dry-run", action="store_true", help="list the runs and how far they are")
    add_fields(parser.add_argument_group("where the runs go"), LaunchOptions.model_fields)
    add_settings(parser, spec, usual_values(spec) if help else None)
    return parser


def _flags(argv: list[str], spec: Spec) -> Values:
    """What the command gives for every run of a method."""
    found = _parser(spec, help=False).parse(argv)
    if found.seed is not None:
        raise Refused("a grid takes --seeds, not --seed")
    return given_values(found, spec.options)


def _seeds(given: list[str]) -> tuple[int, ...]:
    seeds = [word for part in given for word in part.replace(",", " ").split()]
    if not all(word.isdecimal() for word in seeds):
        raise Refused(f"--seeds: {' '.join(seeds)!r} is refused: seeds are whole numbers")
    return tuple(dict.fromkeys(map(int, seeds)))


def close(jobs: list[Job], progress: GridProgress, out: Path) -> int:
    """What came of it all: the table, the failures (kept in failures.json too), and the status."""
    finished = [job for job in jobs if status(job) == FINISHED]
    groups = runs.group(runs.read([job.folder for job in finished])) if finished else []
    if finished:
        sheet = tables.summarise(groups, beside_paper=False)
        table(sheet.heads, sheet.rows, sheet.title or None, sheet.words, sheet.blocks)
    try:
        keep_failures(out, progress.failures, [job.name for job in finished])
    except OSError as error:
        print(f"note: {str(out / 'failures.json')!r} cannot be brought up to date: {error.strerror}")
    if progress.interrupted:
        raise Interrupted(
            f"stopped; {len(finished)} of {len(jobs)} runs are finished, and the same command goes on"
        )
    for name, told in progress.failures.items():
        print(f"failed: {name}: {told}")
    if progress.failures:
        raise Failed(
            f"{len(progress.failures)} of {len(jobs)} runs failed; the same command tries them again"
        )
    in_paper = any(paper.average(tables.cell(g)) is not None for g in groups)
    hint = f"; jioc table {out} --paper puts them beside the paper" if in_paper else ""
    print(("the run is" if len(jobs) == 1 else f"all {len(jobs)} runs are") + f" finished{hint}")
    return 0


def keep_failures(out: Path, failures: dict[str, str], finished: list[str]) -> None:
    """failures.json: a run's name and what stopped it, until it finishes."""
    path = out / "failures.json"
    before = read_json(path) or {}
    kept = {name: told for name, told in (before | failures).items() if name not in finished}
    if kept:
        out.mkdir(parents=True, exist_ok=True)
        write(path, (json.dumps(kept, indent=1) + "\n").encode())
    elif path.exists():  # on a read-only disk it cannot even be asked to go
        path.unlink()
