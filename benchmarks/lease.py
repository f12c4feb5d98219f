"""Run what fits of a recipe into the time of a borrowed GPU: longest first, none begun that would not end.

    python benchmarks/lease.py columns --list
    python benchmarks/lease.py columns --minutes 26 --data-dir DATA --out RUNS
    python benchmarks/lease.py components --stop-after 6 --minutes 26 --data-dir DATA --out RUNS

The runs that are left form one queue, and several processes take from it (on an NVIDIA GPU start MPS first).
A run begins only if it would end in time, by the estimate of `minutes.py`, later at the pace of those that
have ended in its process; what overruns stops with a checkpoint. `columns` has the seeds that `minutes.py`
counts. What benchmarks/results or RUNS holds is not run again.

A run's checkpoints and model go when it ends: RUNS/NAME/result.json stays, for `keep.py`. Ctrl-C and SIGTERM
stop every process at its next step. (Under MPS a SIGKILL of one would break the others.)
"""

import argparse
import csv
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import minutes
import printing
from gains import RESULTS
from keep import BY_CLASS

from jioc.errors import Interrupted, fail_if, refuse_if, sentence
from jioc.events import Callback, Event, TaskEnd
from jioc.grid.local import run_here, stop_after
from jioc.grid.plan import Job, plan, tasks_learnt
from jioc.grid.progress import LearntEnough
from jioc.report import runs
from jioc.resolve import recipes
from jioc.stopping import signals
from jioc.text import counted

SPARE = 1.05  # a run may take so much longer than the pace of those before it says
Queue = list[tuple[float, Job]]  # with the minutes of each on the whole GPU


def left(args: argparse.Namespace) -> Queue:
    """The runs of a recipe of which nothing is kept, longest first."""
    recipe, seeds, wanted = recipes.find_recipe(args.recipe), args.seeds, None
    if args.recipe == "columns" and seeds is None:
        wanted = {f"{column.name(row)}-seed{seed}" for column, rows, seed in minutes.WANTED for row in rows}
        seeds = sorted({seed for _, _, seed in minutes.WANTED})
    flags = {"data_dir": args.data_dir, "checkpoint_every": 3600.0}
    scale = recipe.scale if args.scale is None else args.scale
    jobs = plan(recipe, seeds or recipe.seeds, args.only, scale, lambda spec: flags, args.out.absolute())
    kept = runs.counterparts(runs.read([RESULTS]), [runs.not_begun(job.folder, job.config) for job in jobs])
    lines = kept_lines()

    def learnt(job: Job) -> int:
        """Tasks of which a line or the run's own folder tells; on a held-out tail class by class."""
        tail = job.config.holdout and job.config.long_tail is not None
        told = [row.get(BY_CLASS if tail else "after each task") or "" for row in lines.get(job.name, [])]
        return max([tasks_learnt(job), *(len(figures.split()) for figures in told)])

    queue = [
        (minutes.minutes(job.config, args.stop_after), job)
        for job, result in zip(jobs, kept, strict=True)
        if (wanted is None or job.name in wanted)
        and result is None
        and learnt(job) < (args.stop_after or len(minutes.sizes(job.config)))
    ]
    return sorted(queue, key=lambda one: -one[0])


def kept_lines() -> dict[str, list[dict[str, str]]]:
    """The lines of every kept .csv, by the run."""
    lines: dict[str, list[dict[str, str]]] = {}
    for path in RESULTS.glob("*.csv"):
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            lines.setdefault(row.get("run") or "", []).append(row)
    return lines


class Worker:
    """A process of the lease: takes runs from the queue, in several threads.

    `at_once`: runs of all processes together.
    """

    def __init__(self, queue: Queue, end: float, at_once: int, tasks: int | None, stop: Callable[[], bool]):
        self.queue, self.end, self.at_once, self.tasks, self.stop = queue, end, at_once, tasks, stop
        self.paces: list[float] = []  # of each run that has ended, its minutes by the estimate a second
        self.failed = 0

    def work(self) -> None:
        """Run what fits, one after another."""
        for cost, job in self.queue:
            if self.stop() or not self.fits(cost) or not take(job):
                continue
            say(f"begins {job.name}")
            begun = time.time()
            watch = tell_tasks if self.tasks is None else stop_after(self.tasks, tell_tasks)
            (outcome,) = run_here([job], 1, self.stop, watch)
            seconds = time.time() - begun
            if isinstance(outcome, Exception) and not isinstance(outcome, LearntEnough):
                stopped = isinstance(outcome, Interrupted)
                self.failed += not stopped
                word = "stopped" if stopped else "FAILED"
                say(f"{word} {job.name}: {sentence(outcome)}")
            else:
                self.paces.append(cost / seconds)
                say(f"ended {job.name}, {seconds:.0f} s")
                tidy(job.folder)

    def fits(self, cost: float) -> bool:
        """Whether a run would end in time: at the pace of those before it, at first by the estimate alone."""
        pace = sum(self.paces) / len(self.paces) if self.paces else 1 / (60 * self.at_once)
        return time.time() + SPARE * cost / pace < self.end


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


def work_until(args: argparse.Namespace, end: float) -> None:
    """Be one of the processes; what overruns saves a checkpoint and stops."""
    with signals(end - time.time()) as stop:
        at_once = args.processes * args.at_once
        worker = Worker(left(args), end, at_once, args.stop_after, stop)
        threads = [threading.Thread(target=worker.work) for _ in range(args.at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    fail_if(worker.failed, f"{counted(worker.failed, 'run')} failed")


def run_processes(args: argparse.Namespace, argv: list[str]) -> None:
    """Start the processes, and wait for them; pass on what asks this one to stop."""
    refuse_if(args.minutes is None or args.data_dir is None, "give --minutes and --data-dir, or --list")
    left(args)  # refuses what is wrong, before any process starts
    for taken in args.out.glob("*.taken"):  # of an earlier lease, whose processes have ended
        taken.unlink()
    end = time.time() + 60 * args.minutes
    command = [sys.executable, __file__, *argv, "--until", str(end)]
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(args.processes)]
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
    parser.add_argument("recipe", help="a recipe of jioc grid, on data of the paper")
    parser.add_argument("--minutes", type=float, help="that the GPU is there for")
    parser.add_argument("--data-dir", help="where the official files lie")
    parser.add_argument("--out", type=Path, default=Path("runs/lease"))
    parser.add_argument("--only", nargs="+", metavar="WORD", help="as in jioc grid")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="S")
    parser.add_argument("--scale", type=float)
    parser.add_argument("--stop-after", type=int, metavar="TASKS")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=3, help="runs at once in each process")
    parser.add_argument("--list", action="store_true", help="print the queue and the minutes of each run")
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)

    def show() -> None:
        queue = left(args)
        for cost, job in queue:
            print(f"{cost:6.2f}  {job.name}")
        print(f"{sum(cost for cost, _ in queue):6.2f}  all {len(queue)}")

    if args.list:
        return printing.answered(show)
    if args.until is not None:
        return printing.answered(lambda: work_until(args, args.until))
    return printing.answered(lambda: run_processes(args, argv))


if __name__ == "__main__":
    sys.exit(main())
