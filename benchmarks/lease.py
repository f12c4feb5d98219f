"""Run what fits into the time of a borrowed GPU: longest runs first, none begun that would not end.

    python benchmarks/lease.py list columns > QUEUE
    python benchmarks/lease.py list components --stop-after 6 >> QUEUE
    python benchmarks/lease.py run QUEUE --minutes 26 --data-dir DATA --out RUNS

`list` prints the runs of a recipe of which benchmarks/results holds nothing yet: minutes, recipe, name, and
the tasks after which to stop. `columns` has the seeds that `minutes.py` counts.

`run` needs no results. Several processes take runs from the queue (on an NVIDIA GPU start MPS first). A run
begins only if it would end in time, by the estimate of `minutes.py`, later at the pace of those that have
ended in its process. The last minute is for saving what overruns. When a run ends, its checkpoints and model
go, and RUNS/NAME/result.json stays, for `keep.py`. Ctrl-C and SIGTERM stop every process at its next step.
(Under MPS a SIGKILL of one would break the others.)
"""

import argparse
import csv
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import minutes
import printing
from gains import RESULTS
from keep import BY_CLASS

from jioc.errors import Interrupted, Refused, fail_if, os_errors, sentence
from jioc.events import Callback, Event, TaskEnd
from jioc.grid.local import run_here, stop_after
from jioc.grid.plan import Job, plan, tasks_learnt
from jioc.grid.progress import LearntEnough
from jioc.report import runs
from jioc.resolve import recipes
from jioc.stopping import signals
from jioc.text import counted

SPARE = 1.05  # a run may take so much longer than the pace of those before it says


@dataclass(frozen=True)
class Entry:
    """A run in the queue."""

    minutes: float  # on the whole GPU, by the estimate
    job: Job
    tasks: int | None  # after which to stop; None: all

    @property
    def learnt(self) -> bool:
        """Whether the run's folder holds all that is wanted of it."""
        return tasks_learnt(self.job) >= (self.tasks or len(minutes.sizes(self.job.config)))


# --- what is left ---


def left(recipe: str, only: list[str] | None, seeds: list[int] | None, tasks: int | None) -> list[str]:
    """The lines of the runs of a recipe of which nothing is kept."""
    known, wanted = recipes.find_recipe(recipe), None
    if recipe == "columns" and seeds is None:
        wanted = {f"{column.name(row)}-seed{seed}" for column, rows, seed in minutes.WANTED for row in rows}
        seeds = sorted({seed for _, _, seed in minutes.WANTED})
    jobs = plan(known, seeds or known.seeds, only, known.scale, lambda spec: {}, Path())
    kept = runs.counterparts(runs.read([RESULTS]), [runs.not_begun(job.folder, job.config) for job in jobs])
    lines = kept_lines()
    return [
        f"{minutes.minutes(job.config, tasks):6.2f}  {recipe}  {job.name}" + (f"  {tasks}" if tasks else "")
        for job, result in zip(jobs, kept, strict=True)
        if (wanted is None or job.name in wanted)
        and result is None
        and tasks_kept(job, lines) < (tasks or len(minutes.sizes(job.config)))
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
    """The queue of a file, longest first, without what has been learnt."""
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
        entries.append(Entry(float(match["minutes"]), job, tasks))
    return sorted((e for e in entries if not e.learnt), key=lambda e: -e.minutes)


LINE = re.compile(
    r"(?P<minutes>\d+\.\d+)\s+(?P<recipe>\S+)\s+(?P<name>\S+)-seed(?P<seed>\d+)(\s+(?P<tasks>\d+))?"
)


class Worker:
    """A process of the lease: takes runs from the queue, in several threads.

    `end`: when runs are stopped, by the monotonic clock. `at_once`: runs of all processes together.
    """

    def __init__(self, queue: list[Entry], end: float, at_once: int, stop: Callable[[], bool]):
        self.queue, self.end, self.at_once, self.stop = queue, end, at_once, stop
        self.paces: list[float] = []  # of each run that has ended, its minutes by the estimate a second
        self.failed = 0

    def work(self) -> None:
        """Run what fits, one after another."""
        for entry in self.queue:
            job = entry.job
            if self.stop() or not self.fits(entry.minutes) or not take(job):
                continue
            say(f"begins {job.name}")
            begun = time.time()
            watch = tell_tasks if entry.tasks is None else stop_after(entry.tasks, tell_tasks)
            (outcome,) = run_here([job], 1, self.stop, watch)
            seconds = time.time() - begun
            if isinstance(outcome, Exception) and not isinstance(outcome, LearntEnough):
                stopped = isinstance(outcome, Interrupted)
                self.failed += not stopped
                say(f"{'stopped' if stopped else 'FAILED'} {job.name}: {sentence(outcome)}")
            else:
                self.paces.append(entry.minutes / seconds)
                say(f"ended {job.name}, {seconds:.0f} s")
                tidy(job.folder)

    def fits(self, cost: float) -> bool:
        """Whether a run would end in time: at the pace of those before it, at first by the estimate alone."""
        pace = sum(self.paces) / len(self.paces) if self.paces else 1 / (60 * self.at_once)
        return time.monotonic() + SPARE * cost / pace < self.end


def take(job: Job) -> bool:
    """Take a run for this process; false if another has it."""
    try:
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        (job.folder.parent / f"{job.name}.taken").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def tell_tasks(job: Job) -> Callback:
    """The callback of a run: a line for each task."""

    def tell(event: Event) -> None:
        if isinstance(event, TaskEnd):
            say(f"{job.name}, task {event.row.task}: {event.row.cnn.all:.2f}")

    return tell


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, flush=True)


def tidy(folder: Path) -> None:
    """Remove what only a run that goes on needs, and the model: where GPUs are lent, disks are small."""
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    for path in [*folder.glob("*.safetensors"), folder / "model.json"]:
        path.unlink(missing_ok=True)


# --- the processes ---


def work_until(queue: list[Entry], processes: int, at_once: int, end: float) -> None:
    """Be one of the processes; what overruns saves a checkpoint and stops, a while before the end."""
    with signals(end - time.time()) as stop:
        assert stop.until is not None
        worker = Worker(queue, stop.until, processes * at_once, stop)
        threads = [threading.Thread(target=worker.work) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    fail_if(worker.failed, f"{counted(worker.failed, 'run')} failed")


def run_processes(argv: list[str], number: int, out: Path, end: float) -> None:
    """Start the processes, and wait for them; pass on what asks this one to stop."""
    for taken in out.glob("*.taken"):  # of an earlier lease, whose processes have ended
        taken.unlink()
    command = [sys.executable, __file__, *argv, "--until", str(end)]
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(number)]
    with signals() as stop:
        while any(process.poll() is None for process in processes):
            time.sleep(0.2)
            if stop():
                for process in processes:
                    process.send_signal(signal.SIGINT)
                break
        codes = [process.wait() for process in processes]
        if stop():
            raise Interrupted("stopped; the same command goes on")
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
    taken = commands.add_parser("run", help="run what fits of a queue")
    taken.add_argument("queue", type=Path)
    taken.add_argument("--minutes", type=float, required=True, help="that the GPU is there for")
    taken.add_argument("--data-dir", required=True, help="where the official files lie")
    taken.add_argument("--out", type=Path, required=True)
    taken.add_argument("--processes", type=int, default=5)
    taken.add_argument("--at-once", type=int, default=3, help="runs at once in each process")
    taken.add_argument("--scale", type=float, help="length of the schedules, to try it out")
    taken.add_argument("--until", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)

    def work() -> None:
        if args.command == "list":
            print("\n".join(left(args.recipe, args.only, args.seeds, args.stop_after)))
            return
        queue = read(args.queue, args.scale, args.data_dir, args.out)
        if args.until is None:
            run_processes(argv, args.processes, args.out, time.time() + 60 * args.minutes)
        else:
            work_until(queue, args.processes, args.at_once, args.until)

    return printing.answered(work)


if __name__ == "__main__":
    sys.exit(main())
