"""`jioc grid`: many runs, a folder each. What is finished is skipped, what was begun goes on. No torch here.

    jioc grid table6 --pack 6 --data-dir DATA --out runs/table6

Killed anywhere and started again with the same words, it ends as if it had never been: the folders are the only state.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path

from jioc.cli.console import table
from jioc.cli.flags import Parser, add_config, add_fields, said
from jioc.errors import Failed, Interrupted, Refused
from jioc.files import write
from jioc.grid import options as launch
from jioc.grid.plan import FINISHED, Job, plan, read_json, refuse_earlier, refuse_other_images, standing
from jioc.grid.progress import Board
from jioc.methods.specs import Spec, find
from jioc.report import paper, runs, tables
from jioc.resolve import recipes
from jioc.resolve import repeat as command
from jioc.resolve.recipes import Values
from jioc.stopping import Stop, duration, until
from jioc.text import counted

ONLY = "the runs of that whole name (* stands for anything), or, where no name is that, those whose names hold it"
OWN = ("seeds", "only", "scale", "out", "resume", "dry_run", *launch.Where.model_fields)


def main(words: list[str], stop: Callable[[], bool]) -> int:
    if not words or words[0].startswith("-"):
        _parser(find("icarl")).parse(words)  # --help, or a wrong word
        raise Refused(f"jioc grid needs a recipe ({', '.join(recipes.RECIPES)}) or a YAML file, as its first word")
    recipe = recipes.find(words[0])
    found = _parser(find("icarl")).parse_known_args(words[1:])[0]
    seeds = _seeds(found.seeds) if found.seeds else recipe.seeds
    scale = recipe.scale if found.scale is None else found.scale
    if not 0 < scale < math.inf:
        raise Refused(f"--scale: {scale:g} is refused: it should be above 0")
    where = launch.make(**{k: v for k in launch.Where.model_fields if (v := getattr(found, k)) is not None})
    out = found.out or Path("runs") / recipe.name
    todo = plan(recipe, seeds, found.only, scale, lambda spec: _said(words[1:], spec), out.absolute())
    if not todo:
        raise Refused(f"{recipe.name} has no seeds, so there is nothing to run")
    states = {job.name: standing(job) for job in todo}
    for job in todo:
        refuse_earlier(job)
    if found.dry_run:
        table(["run", "", "alone"], [[job.name, states[job.name], command.line(job.config)] for job in todo])
        return 0
    refuse_other_images([job for job in todo if states[job.name] == FINISHED], until(stop))
    over = Stop(duration(where.time_limit) if where.time_limit and where.on != "slurm" else None)
    left = [job for job in todo if states[job.name] != FINISHED]
    print(f"{recipe.name}: {counted(len(todo), 'run')} in {out}, {len(todo) - len(left)} finished before", flush=True)
    with Board(left) as board:
        if left:
            launch.find(where)(left, where, board, lambda: stop() or over())
    return close(todo, board, out)


# --- the words ---


def _parser(spec: Spec) -> Parser:
    parser = Parser("jioc grid", description="Many runs, a folder each. Flags of jioc run hold for every run.")
    own = parser.add_argument_group("the grid")
    own.add_argument("--seeds", nargs="+", metavar="S", help="seeds of each setting (the recipe's)")
    own.add_argument("--only", nargs="+", metavar="WORD", help=ONLY)
    own.add_argument("--scale", type=float, help="length of the schedules, such as 0.1 (the recipe's)")
    own.add_argument("--out", type=Path, metavar="DIR", help="for the runs' folders (runs/RECIPE)")
    own.add_argument("--resume", action="store_true", help="a grid always goes on where DIR holds some of its runs")
    own.add_argument("--dry-run", action="store_true", help="list the runs and how they stand")
    add_fields(parser.add_argument_group("where the runs go"), launch.Where.model_fields, launch.Where)
    add_config(parser, spec)
    parser.usage = "jioc grid RECIPE|FILE [options]"
    return parser


def _said(words: list[str], spec: Spec) -> Values:
    """What the command says over every run of a method."""
    found = _parser(spec).parse(words)
    if found.seed is not None:
        raise Refused("a grid takes --seeds, not --seed")
    for name in OWN:
        delattr(found, name)
    return said(found, spec)


def _seeds(given: list[str]) -> tuple[int, ...]:
    seeds = [word for part in given for word in part.replace(",", " ").split()]
    if not all(word.isdecimal() for word in seeds):
        raise Refused(f"--seeds: {' '.join(seeds)!r} is refused: seeds are whole numbers")
    return tuple(dict.fromkeys(map(int, seeds)))


def close(jobs: list[Job], board: Board, out: Path) -> int:
    """What came of it all: the table, the failures (kept in failures.json too), and the status."""
    finished = [job for job in jobs if standing(job) == FINISHED]
    groups = runs.group(runs.read([job.folder for job in finished])) if finished else []
    if finished:
        sheet = tables.summarise(groups, beside_paper=False)
        table(sheet.heads, sheet.rows, sheet.title or None, sheet.words, sheet.blocks)
    try:
        keep_failures(out, board.failures, [job.name for job in finished])
    except OSError as error:
        print(f"note: {str(out / 'failures.json')!r} cannot be brought up to date: {error.strerror}")
    if board.interrupted:
        raise Interrupted(f"stopped; {len(finished)} of {len(jobs)} runs are finished, and the same command goes on")
    for name, told in board.failures.items():
        print(f"failed: {name}: {told}")
    if board.failures:
        raise Failed(f"{len(board.failures)} of {len(jobs)} runs failed; the same command tries them again")
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
