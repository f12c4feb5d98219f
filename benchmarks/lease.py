"""Run what fits into the time of a borrowed GPU: longest runs first, none begun that would not end.

    python benchmarks/lease.py list columns > QUEUE
    python benchmarks/lease.py list components --stop-after 6 >> QUEUE
    python benchmarks/lease.py run QUEUE --minutes 26 --data-dir DATA --out RUNS

`list` prints the runs of a recipe of which benchmarks/results holds nothing yet (`--again`: all): minutes,
recipe, name, and the tasks after which to stop. `columns` has the seeds that `minutes.py` counts.

`run` needs no results. Several processes take runs from the queue (on an NVIDIA GPU start MPS first). A run
begins only if it and all that are at work would end in time: what is left of each, by the estimate of
`minutes.py`, at the pace of the lease so far. The last minute is for saving what overruns. When a run is
finished, its checkpoints and model go, and RUNS/NAME/result.json stays, for `keep.py`. Ctrl-C and SIGTERM
stop every process at its next step. (Under MPS a SIGKILL of one would break the others.)
"""

import argparse
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import minutes
import once
import printing
from gains import RESULTS
from keep import BY_CLASS

from jioc.errors import Interrupted, Refused, fail_if, os_errors, sentence
from jioc.events import Callback, Epoch, Event, Start, TaskEnd
from jioc.files import write
from jioc.grid.local import run_here, stop_after
from jioc.grid.plan import Job, plan, tasks_learnt
from jioc.grid.progress import LearntEnough
from jioc.methods import find_method
from jioc.report import runs
from jioc.resolve import recipes
from jioc.stopping import Stop, signals
from jioc.text import counted
from jioc.training.workload import Workload

TRUST = 2.0  # minutes of the lease that the estimate weighs as much as, beside what has been seen
EVERY = 5.0  # seconds between two notes of what is left of a run, and two looks at whether one fits now
FAILED = "failed"  # the note of a run that did


@dataclass(frozen=True)
class Entry:
    """A run in the queue."""

    minutes: float  # on the whole GPU, by the estimate
    job: Job
    tasks: int | None  # after which to stop; None: all

    @property
    def of(self) -> int:
        """The tasks that are wanted."""
        return self.tasks or len(minutes.sizes(self.job.config))

    @property
    def learnt(self) -> bool:
        """Whether the run's folder holds all that is wanted of it."""
        return tasks_learnt(self.job) >= self.of

    def left(self, tasks: float) -> float:
        """The minutes that are left after so many tasks."""
        whole, part = int(tasks), tasks % 1
        behind = [
            minutes.minutes(self.job.config, task) if task else 0.0 for task in (whole, whole + 1, self.of)
        ]
        return self.minutes * (1 - (behind[0] + part * (behind[1] - behind[0])) / behind[2])


# --- what is left ---


def left(
    recipe: str, only: list[str] | None, seeds: list[int] | None, tasks: int | None, again: bool = False
) -> list[str]:
    """The lines of the runs of a recipe of which nothing is kept; `again`: of all."""
    known, wanted = recipes.find_recipe(recipe), None
    if recipe == "columns" and seeds is None:
        wanted = {f"{column.name(row)}-seed{seed}" for column, rows, seed in minutes.WANTED for row in rows}
        seeds = sorted({seed for _, _, seed in minutes.WANTED})
    jobs = plan(known, seeds or known.seeds, only, known.scale, lambda spec: {}, Path())
    results = once.read(RESULTS) if any(RESULTS.rglob("result.json")) else []  # a bare copy has none
    kept = runs.counterparts(results, [runs.not_begun(job.folder, job.config) for job in jobs])
    lines = kept_lines()
    return [
        f"{minutes.minutes(job.config, tasks):6.2f}  {recipe}  {job.name}" + (f"  {tasks}" if tasks else "")
        for job, result in zip(jobs, kept, strict=True)
        if (wanted is None or job.name in wanted)
        and (again or (result is None and tasks_kept(job, lines) < (tasks or len(minutes.sizes(job.config)))))
    ]


def kept_lines() -> dict[str, list[dict[str, str]]]:
    """The lines of every kept .csv, by the run."""
    lines: dict[str, list[dict[str, str]]] = {}
    for path in RESULTS.glob("*.csv"):
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            lines.setdefault(row.get("run") or "", []).append(row)
    return lines


def tasks_kept(job: Job, lines: dict[str, list[dict[str, str]]]) -> int:
    """The tasks of which a line tells; on a held-out long tail class by class."""
    tail = job.config.holdout and job.config.long_tail is not None
    told = [row.get(BY_CLASS if tail else "after each task") or "" for row in lines.get(job.name, [])]
    return max((len(figures.split()) for figures in told), default=0)


# --- the queue ---


def read(path: Path, scale: float | None, data_dir: str, out: Path) -> list[Entry]:
    """The queue of a file without what has been learnt: what has begun, then the rest, longest first."""
    flags = {"data_dir": data_dir, "checkpoint_every": 3600.0}
    entries = []
    with os_errors(f"{str(path)!r} cannot be read"):
        lines = path.read_text(encoding="utf-8").splitlines()
    for line in filter(str.strip, lines):
        match = LINE.fullmatch(line.strip())
        if match is None:
            raise Refused(f"{str(path)!r}: {line!r} is no line of `list`")
        recipe = recipes.find_recipe(match["recipe"])
        length = recipe.scale if scale is None else scale
        seed, tasks = int(match["seed"]), match["tasks"] and int(match["tasks"])
        (job,) = plan(recipe, [seed], [match["name"]], length, lambda spec: flags, out.absolute())
        if any(job.folder == entry.job.folder for entry in entries):
            raise Refused(f"{str(path)!r} has {job.name} twice")
        entries.append(Entry(float(match["minutes"]), job, tasks))
    return sorted((e for e in entries if not e.learnt), key=lambda e: (not tasks_learnt(e.job), -e.minutes))


LINE = re.compile(
    r"(?P<minutes>\d+\.\d+)\s+(?P<recipe>\S+)\s+(?P<name>\S+)-seed(?P<seed>\d+)(\s+(?P<tasks>\d+))?"
)


class Worker:
    """A process of the lease: takes runs from the queue, in several threads.

    `begun`, `end`: of the lease, by the clock on the wall; at its end runs are stopped.
    """

    def __init__(self, queue: list[Entry], begun: float, end: float, stop: Stop):
        self.queue, self.begun, self.end, self.stop = queue, begun, end, stop
        self.failed, self.stopped = 0, False

    def work(self) -> None:
        """Run what fits, one after another, until a signal comes or a run is stopped.

        To call `stop` is for the steps of a run: it expects the next step to last as long as the ones before,
        and between two calls of this thread lies a whole run.
        """
        while not (self.stopped or self.stop.signal) and ((entry := self.take()) or self.may_fit_later()):
            if entry is None:
                time.sleep(EVERY)
            else:
                self.run(entry)

    def run(self, entry: Entry) -> None:
        """Run one; whatever ends it otherwise, nobody waits for it."""
        try:
            self._run(entry)
        except BaseException:
            with suppress(OSError):
                taken(entry).write_text(FAILED)
            raise

    def _run(self, entry: Entry) -> None:
        job = entry.job
        say(f"begins {job.name}")
        begun = time.time()
        watch = follow(entry) if entry.tasks is None else stop_after(entry.tasks, follow(entry))
        (outcome,) = run_here([job], 1, self.stop, watch)
        if isinstance(outcome, Exception) and not isinstance(outcome, LearntEnough):
            failed = not isinstance(outcome, Interrupted)
            self.stopped = self.stopped or not failed
            say(f"{FAILED.upper() if failed else 'stopped'} {job.name}: {sentence(outcome)}")
            if failed:
                self.failed += 1
                write(taken(entry), FAILED.encode())
            return
        say(f"ended {job.name}, {time.time() - begun:.0f} s")
        if not isinstance(outcome, LearntEnough):
            tidy(job.folder)
        note(entry, 0.0, (rest(entry) or (0.0, 0.0))[1])

    def may_fit_later(self) -> bool:
        """Whether some run is left, and others are at work, which may end sooner than expected."""
        at_work = any(left for left, _ in filter(None, map(rest, self.queue)))
        return at_work and not all(taken(entry).exists() for entry in self.queue)

    def take(self) -> Entry | None:
        """Take the first run of the queue that no process has and that fits, for this one."""
        for entry in self.queue:
            place = taken(entry)
            if place.exists() or not self.fits(entry):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process was quicker
                place.touch(exist_ok=False)
                note(entry, *[entry.left(tasks_learnt(entry.job))] * 2)
                return entry
        return None

    def fits(self, entry: Entry) -> bool:
        """Whether a run, and all that are at work beside it, would end in time."""
        known = [left for each in self.queue if (left := rest(each)) is not None]
        at_work = [now for now, _ in known if now]
        done = sum(at_first - now for now, at_first in known)
        pace = (done + TRUST) / ((time.time() - self.begun) / 60 + TRUST)
        ends = until_all_end([*at_work, entry.left(tasks_learnt(entry.job))]) / pace
        return time.time() + 60 * ends < self.end


def until_all_end(minutes_left: list[float]) -> float:
    """Minutes until runs that share a GPU alike have all ended.

    `minutes_left`: of each on a whole GPU. Six runs or more use all of one, one alone half of it
    (docs/performance.md).
    """
    passed = before = 0.0
    for at_work, left in zip(range(len(minutes_left), 0, -1), sorted(minutes_left), strict=True):
        passed += (left - before) * at_work / min(1.0, 0.4 + 0.1 * at_work)
        before = left
    return passed


# --- what is left of each run: a file beside its folder, which every process reads ---


def taken(entry: Entry) -> Path:
    return entry.job.folder.parent / f"{entry.job.name}.taken"


def note(entry: Entry, left: float, at_first: float) -> None:
    """Note what is left of a run that this process has taken, and what was when this lease began it."""
    write(taken(entry), f"{left:.4f} {at_first:.4f} {os.getpid()}\n".encode())


def rest(entry: Entry) -> tuple[float, float] | None:
    """What is left of a run, and what was at first; None if nobody has taken it, or it failed or died."""
    try:
        text = taken(entry).read_text()
    except FileNotFoundError:
        return None
    if text == FAILED:
        return None
    left, at_first, process = text.split() or (entry.minutes, entry.minutes, os.getpid())
    return (float(left), float(at_first)) if is_alive(int(process)) else None


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def follow(entry: Entry) -> Callable[[Job], Callback]:
    """Make the callback of a run: a line for each task, a note of what is left now and then."""

    def watch(job: Job) -> Callback:
        config, last = job.config, 0.0
        work: Workload | None = None
        at_first: float | None = None

        def tell(event: Event) -> None:
            nonlocal work, last, at_first
            match event:
                case Start():
                    work = Workload(config, find_method(config.method), event)
                case TaskEnd(row=row):
                    say(f"{job.name}, task {row.task}: {row.by_readout[str(config.headline)].all:.2f}")
                case Epoch(task=task) if work is not None:
                    work.update(event)
                    if time.time() > last + EVERY:
                        left = entry.left(task - 1 + work.share(task))
                        at_first = left if at_first is None else at_first
                        note(entry, left, at_first)
                        last = time.time()

        return tell

    return watch


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, flush=True)


def tidy(folder: Path) -> None:
    """Remove what only a run that goes on needs, and the model: where GPUs are lent, disks are small."""
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    for path in [*folder.glob("*.safetensors"), folder / "model.json"]:
        path.unlink(missing_ok=True)


# --- the processes ---


def work_until(queue: list[Entry], at_once: int, begun: float, end: float) -> None:
    """Be one of the processes; what overruns saves a checkpoint and stops, a while before the end."""
    with signals(end - time.time()) as stop:
        assert stop.until is not None
        worker = Worker(queue, begun, time.time() + stop.until - time.monotonic(), stop)
        with ThreadPoolExecutor(at_once) as pool:
            workers = [pool.submit(worker.work) for _ in range(at_once)]
        for each in workers:
            each.result()
    fail_if(worker.failed, f"{counted(worker.failed, 'run')} failed")


def run_processes(argv: list[str], number: int, out: Path, lease: tuple[float, float]) -> None:
    """Start the processes, and wait for them; pass on what asks this one to stop."""
    for path in out.glob("*.taken"):  # of an earlier lease, whose processes have ended
        path.unlink()
    command = [sys.executable, __file__, *argv, "--lease", *map(str, lease)]
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(number)]
    with signals() as stop:
        while any([process.poll() is None for process in processes]):  # each, or one that died would stay
            time.sleep(0.2)
            if stop():
                for process in processes:
                    process.send_signal(signal.SIGINT)
                break
        codes = [process.wait() for process in processes]
        if stop():
            raise Interrupted("stopped; the same command goes on")
    if not [*out.glob("*.taken")]:
        say("no run of the queue fits")
    fail_if(any(codes), f"runs failed in {sum(map(bool, codes))} of {len(codes)} processes")


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    parser = printing.parser(__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    listed = commands.add_parser("list", help="print what is left of a recipe")
    listed.add_argument("recipe", help="a recipe of jioc grid, on data of the paper")
    listed.add_argument("--only", nargs="+", metavar="WORD", help="as in jioc grid")
    listed.add_argument("--seeds", nargs="+", type=int, metavar="S")
    listed.add_argument("--stop-after", type=int, metavar="TASKS")
    listed.add_argument("--again", action="store_true", help="also the runs that are kept")
    work = commands.add_parser("run", help="run what fits of a queue")
    work.add_argument("queue", type=Path)
    work.add_argument("--minutes", type=float, required=True, help="that the GPU is there for")
    work.add_argument("--data-dir", required=True, help="where the official files lie")
    work.add_argument("--out", type=Path, required=True)
    work.add_argument("--processes", type=int, default=5)
    work.add_argument("--at-once", type=int, default=3, help="runs at once in each process")
    work.add_argument("--scale", type=float, help="length of the schedules, to try it out")
    work.add_argument("--lease", nargs=2, type=float, metavar=("BEGUN", "END"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)

    def answer() -> None:
        if args.command == "list":
            print("\n".join(left(args.recipe, args.only, args.seeds, args.stop_after, args.again)))
            return
        queue = read(args.queue, args.scale, args.data_dir, args.out)
        if not queue:
            say("every run of the queue is there")
        elif args.lease is None:
            now = time.time()
            run_processes(argv, args.processes, args.out, (now, now + 60 * args.minutes))
        else:
            work_until(queue, args.at_once, *args.lease)

    return printing.answered(answer)


if __name__ == "__main__":
    sys.exit(main())
