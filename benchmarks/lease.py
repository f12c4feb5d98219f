"""Run what fits of a recipe into the time of a borrowed GPU: longest first, none begun that would not end.

    python benchmarks/lease.py columns --list
    python benchmarks/lease.py columns --minutes 26 --data-dir DATA --out RUNS
    python benchmarks/lease.py components --stop-after 6 --minutes 26 --data-dir DATA --out RUNS

The runs that are left form one queue, and several processes take from it (on an NVIDIA GPU start MPS first).
A run begins only if it would end in time, at the pace of those that have ended in its process. `columns` has
the seeds that `minutes.py` counts. What benchmarks/results holds is not run again.

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

from jioc.errors import Failed, Interrupted, refuse_if, sentence
from jioc.events import Callback, Event, TaskEnd
from jioc.grid.local import run_here, stop_after
from jioc.grid.plan import Job, plan
from jioc.grid.progress import LearntEnough
from jioc.report import runs
from jioc.resolve import recipes
from jioc.stopping import signals

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
    learnt = tasks_in_lines()
    queue = [
        (minutes.minutes(job.config, args.stop_after), job)
        for job, result in zip(jobs, kept, strict=True)
        if (wanted is None or job.name in wanted)
        and result is None
        and learnt.get(job.name, 0) < (args.stop_after or len(minutes.sizes(job.config)))
    ]
    return sorted(queue, key=lambda one: -one[0])


def tasks_in_lines() -> dict[str, int]:
    """How many tasks each run has learnt of which a .csv keeps a line."""
    rows: list[dict[str, str]] = []
    for path in RESULTS.glob("*.csv"):
        rows += csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return {row["run"]: len(row["after each task"].split()) for row in rows if row.get("after each task")}


class Worker:
    """A process of the lease: takes runs from the queue, in several threads."""

    def __init__(self, queue: Queue, end: float, tasks: int | None, stop: Callable[[], bool]):
        self.queue, self.end, self.tasks, self.stop = queue, end, tasks, stop
        self.paces: list[float] = []  # of each run that has ended, its minutes by the estimate a second

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
                word = "stopped" if isinstance(outcome, Interrupted) else "FAILED"
                say(f"{word} {job.name}: {sentence(outcome)}")
            else:
                self.paces.append(cost / seconds)
                say(f"ended {job.name}, {seconds:.0f} s")
                tidy(job.folder)

    def fits(self, cost: float) -> bool:
        """Whether a run would end in time. Before any has ended in this process, all are taken to."""
        expected = SPARE * cost * len(self.paces) / sum(self.paces) if self.paces else 0.0
        return time.time() + expected < self.end


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
    """Be one of the processes."""
    with signals() as stop:
        worker = Worker(left(args), end, args.stop_after, stop)
        threads = [threading.Thread(target=worker.work) for _ in range(args.at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def lend(args: argparse.Namespace, argv: list[str]) -> None:
    """Start the processes, and wait for them; pass on what asks this one to stop."""
    refuse_if(args.minutes is None or args.data_dir is None, "give --minutes and --data-dir, or --list")
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
    if any(codes):
        raise Failed(f"{sum(map(bool, codes))} of {len(codes)} processes failed")


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    parser = printing.parser(__doc__)
    parser.add_argument("recipe", help="a recipe of jioc grid, or a .yaml")
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
    return printing.answered(lambda: lend(args, argv))


if __name__ == "__main__":
    sys.exit(main())
