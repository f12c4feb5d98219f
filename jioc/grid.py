"""`jioc grid`: many runs, a folder each. What is finished is skipped, what was begun goes on. No torch here.

    jioc grid table6 --pack 6 --data-dir DATA --out runs/table6

Killed anywhere and started again with the same words, it ends as if it had never been: the folders are the only state.
"""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console as Rich
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from . import command, recipes
from . import config as settings
from .config import MACHINE, Config
from .console import percent, table, task_line
from .errors import Failed, Interrupted, Refused, sentence, unknown
from .files import write
from .flags import Parser, add_config, said
from .methods.specs import Spec, find
from .recipes import Recipe, Values
from .report import runs, tables
from .resolve import merged, resolve, total_epochs

Stop = Callable[[], bool]


@dataclass(frozen=True)
class Job:
    """One run of a grid."""

    name: str
    config: Config
    folder: Path


def main(words: list[str], stop: Stop) -> int:
    if not words or words[0].startswith("-"):
        _parser(find("icarl")).parse(words)  # --help, or a wrong word
        raise Refused(f"jioc grid needs a recipe ({', '.join(recipes.RECIPES)}) or a YAML file, as its first word")
    recipe = recipes.find(words[0])
    found = _parser(find("icarl")).parse_known_args(words[1:])[0]
    seeds = _seeds(found.seeds) if found.seeds else recipe.seeds
    scale = recipe.scale if found.scale is None else found.scale
    if scale <= 0:
        raise Refused(f"--scale: {scale:g} is refused: it should be above 0")
    if found.pack < 1:
        raise Refused(f"--pack: {found.pack} is refused: it should be at least 1")
    out = found.out or Path("runs") / recipe.name
    todo = plan(recipe, seeds, found.only, scale, lambda spec: _said(words[1:], spec), out)
    states = {job.name: standing(job) for job in todo}
    if found.dry_run:
        table(["run", "", "alone"], [[job.name, states[job.name], command.line(job.config)] for job in todo])
        return 0
    left = [job for job in todo if states[job.name] != FINISHED]
    print(f"{recipe.name}: {len(todo)} runs in {out}, {len(todo) - len(left)} finished before", flush=True)
    with Board(left) as board:
        if left:
            local(left, found.pack, board, stop)
    return close(todo, board, out)


# --- which runs ---


def plan(
    recipe: Recipe,
    seeds: Iterable[int],
    only: list[str] | None,
    scale: float,
    over: Callable[[Spec], Values],
    out: Path,
) -> list[Job]:
    """The runs of a recipe, seed after seed. `over(spec)` is what the command says over every run of a method."""
    wanted = select(recipe.make(), only)
    jobs = []
    for seed in seeds:
        for name, values in wanted.items():
            spec = find(str(values["method"]))
            said = merged(scaled(values, spec, scale), over(spec)) | {"seed": seed}
            folder = out / f"{name}-seed{seed}"
            jobs.append(Job(folder.name, resolve(settings.make(**said)), folder))
    return jobs


def select(named: dict[str, Values], only: list[str] | None) -> dict[str, Values]:
    """The runs that a word names whole, or else those whose name holds it; * stands for anything."""
    if not only:
        return named
    chosen: set[str] = set()
    for word in only:
        hits = {word} if word in named else {name for name in named if fnmatchcase(name, f"*{word}*")}
        if not hits:
            raise Refused(f"--only: no run's name holds {word!r}; without it, --dry-run lists them")
        chosen |= hits
    return {name: values for name, values in named.items() if name in chosen}


def scaled(values: Values, spec: Spec, scale: float) -> Values:
    """The schedule that much as long; what is not given follows the tasks after the first."""
    if scale == 1:
        return values
    found = dict(values)
    for section, usual in (("later", spec.later.epochs), ("first", None), ("second", None)):
        part = dict(values.get(section) or {})
        epochs = part.get("epochs") or usual
        if epochs is not None:
            part["epochs"] = max(1, round(epochs * scale))
            if part.get("milestones"):
                part["milestones"] = [max(1, round(m * scale)) for m in part["milestones"]]
            found[section] = part
    return found


FINISHED, NEW = "finished", "not begun"


def standing(job: Job) -> str:
    """Whether the run is finished, begun, or not; a folder that holds another run is refused."""
    result = _json(job.folder / "result.json")
    kept = job.folder / "config.yaml"
    if isinstance(result, dict) and isinstance(result.get("config"), dict):
        _must_be_the_same(job, result["config"])
        if result.get("complete"):
            return FINISHED
        return f"{len(result.get('tasks') or [])} tasks learnt"
    if kept.exists():
        _must_be_the_same(job, settings.read(kept))
        return "begun"
    return NEW


def _must_be_the_same(job: Job, before: Values) -> None:
    was, wanted = settings.plain(resolve(settings.make(**before))), settings.plain(job.config)
    differs = [name for name in settings.differences(was, wanted) if name not in MACHINE]
    if differs:
        raise Refused(f"{str(job.folder)!r} holds another run: {', '.join(differs)} differ; choose another --out")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


# --- the words ---


def _parser(spec: Spec) -> Parser:
    parser = Parser("jioc grid", description="Many runs, a folder each. Flags of jioc run hold for every run.")
    own = parser.add_argument_group("the grid")
    own.add_argument("--seeds", nargs="+", metavar="S", help="seeds of each setting (the recipe's)")
    own.add_argument("--only", nargs="+", metavar="WORD", help="the runs so named, or whose names hold a word")
    own.add_argument("--scale", type=float, help="length of the schedules, such as 0.1 (the recipe's)")
    own.add_argument("--pack", type=int, default=1, metavar="N", help="runs at once on one device (1)")
    own.add_argument("--out", type=Path, metavar="DIR", help="for the runs' folders (runs/RECIPE)")
    own.add_argument("--resume", action="store_true", help="a grid always goes on where DIR holds some of its runs")
    own.add_argument("--dry-run", action="store_true", help="list the runs and how they stand")
    own.add_argument("--on", default="local", type=_place, metavar="{local}", help="where the runs go (local)")
    add_config(parser, spec)
    parser.usage = "jioc grid RECIPE|FILE [options]"
    return parser


def _place(word: str) -> str:
    if word != "local":
        raise unknown("value of --on", word, ["local"])
    return word


def _said(words: list[str], spec: Spec) -> Values:
    """What the command says over every run of a method."""
    found = _parser(spec).parse(words)
    if found.seed is not None:
        raise Refused("a grid takes --seeds, not --seed")
    for name in ("seeds", "only", "scale", "pack", "out", "resume", "dry_run", "on"):
        delattr(found, name)
    return said(found, spec)


def _seeds(given: list[str]) -> tuple[int, ...]:
    seeds = [word for part in given for word in part.replace(",", " ").split()]
    if not all(word.isdecimal() for word in seeds):
        raise Refused(f"--seeds: {' '.join(seeds)!r} is refused: seeds are whole numbers")
    return tuple(dict.fromkeys(map(int, seeds)))


# --- running them ---


def local(jobs: list[Job], at_once: int, board: "Board", stop: Stop) -> None:
    """In this process, so many at once."""
    from .pack import pack

    pack(
        [job.config for job in jobs],
        at_once,
        outs=[job.folder for job in jobs],
        resume=True,
        callback=lambda i: board.watch(jobs[i]),
        ended=lambda i, outcome: board.ended(jobs[i], outcome),
        stop=stop,
    )


class Board:
    """How the runs stand, for a person: bars on a terminal, a line for each event elsewhere. Called by many threads."""

    def __init__(self, jobs: list[Job]):
        self.failures: dict[str, str] = {}
        self.interrupted = False
        self._lock = threading.Lock()
        self._noted: set[str] = set()
        self._width = max((len(job.name) for job in jobs), default=0)
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeRemainingColumn(),
            console=Rich(stderr=True, markup=False, highlight=False), transient=True,
        )  # fmt: skip
        self._bars.disable = not self._bars.console.is_terminal
        self._all = self._bars.add_task(f"{len(jobs)} runs", total=len(jobs), told="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def say(self, job: Job, text: str) -> None:
        line = f"{job.name:<{self._width}}  {text}"
        if self._bars.disable:
            print(line, flush=True)
        else:
            self._bars.print(line)

    def watch(self, job: Job) -> Callable[[str, dict[str, Any]], None]:
        """The callback of that run."""
        spec, sizes = find(job.config.method), [0]
        bar: list[Any] = []

        def tell(kind: str, what: dict[str, Any]) -> None:
            with self._lock:
                if kind == "start":
                    sizes[:] = what["sizes"]
                    at = f"goes on after task {what['done']} of {len(sizes)}" if what["done"] else "begins"
                    self.say(job, f"{at} on {what['device']} ({what['precision']})")
                    epochs = [total_epochs(job.config, spec, t) for t in range(len(sizes))]
                    bar.append(
                        self._bars.add_task(job.name, total=sum(epochs), completed=sum(epochs[: what["done"]]), told="")
                    )
                elif kind == "epoch" and bar:
                    told = f"task {what['task']}/{len(sizes)}  {what['images_per_second']:,.0f} images/s"
                    self._bars.update(bar[0], advance=1, told=told)
                elif kind == "task":
                    self.say(job, task_line(what, len(sizes)))
                    if bar and what["task"] == len(sizes):
                        self._bars.remove_task(bar.pop())
                elif kind == "note" and what["text"] not in self._noted:
                    self._noted.add(what["text"])
                    self.say(job, f"note: {what['text']}")

        return tell

    def ended(self, job: Job, outcome: dict[str, Any] | Exception) -> None:
        with self._lock:
            self._bars.update(self._all, advance=1)
            if isinstance(outcome, Interrupted):
                self.interrupted = True
            elif isinstance(outcome, Exception):
                self.failures[job.name] = sentence(outcome)
                self.say(job, f"failed: {sentence(outcome)}")
            else:
                judged = outcome["headline"]
                self.say(job, f"finished: {judged} average {percent(outcome['average'][judged]).strip()}")


def close(jobs: list[Job], board: Board, out: Path) -> int:
    """What came of it all: the table, the failures (kept in failures.json too), and the status."""
    finished = [job for job in jobs if standing(job) == FINISHED]
    if finished:
        sheet = tables.summarise(runs.group(runs.read([job.folder for job in finished])), beside_paper=False)
        table(sheet.heads, sheet.rows, sheet.title or None)
    keep_failures(out, board.failures, [job.name for job in finished])
    if board.interrupted:
        raise Interrupted(f"stopped; {len(finished)} of {len(jobs)} runs are finished, and the same command goes on")
    for name, told in board.failures.items():
        print(f"failed: {name}: {told}")
    if board.failures:
        raise Failed(f"{len(board.failures)} of {len(jobs)} runs failed; the same command tries them again")
    print(f"all {len(jobs)} runs are finished; jioc table {out} --paper puts them beside the paper")
    return 0


def keep_failures(out: Path, failures: dict[str, str], finished: list[str]) -> None:
    """failures.json: a run's name and what stopped it, until it finishes."""
    path = out / "failures.json"
    before = _json(path) or {}
    kept = {name: told for name, told in (before | failures).items() if name not in finished}
    if kept:
        out.mkdir(parents=True, exist_ok=True)
        write(path, (json.dumps(kept, indent=1) + "\n").encode())
    else:
        path.unlink(missing_ok=True)
