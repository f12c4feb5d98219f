"""How far the runs of a grid are: a bar for each on a terminal, a line for each that ends. No torch here."""

import sys
import threading
import time
from contextlib import suppress
from typing import Any, Self

from jioc import results
from jioc.data.catalogue import task_sizes, tasks_by_default
from jioc.errors import Interrupted, Refused, sentence
from jioc.events import Callback, Epoch, Event, Note, Start, Training
from jioc.grid.plan import Job
from jioc.methods import find_method
from jioc.report.lines import percent
from jioc.results import Result
from jioc.terminal import Bars, width
from jioc.text import counted, middle_out, printable, timed
from jioc.training.workload import Workload

PLAIN_EVERY = 60.0  # seconds between two lines on how far the grid is, where there is no terminal
NAMED = 6  # runs in such a line, at most; of more it tells the number
LONGEST_LINE = len("  finished: cnn average 100.00, last 100.00, 9999 min")  # what a line has beside the name


class LearntEnough(Interrupted):
    """A run has learnt as many tasks as --stop-after names."""


class GridProgress:
    """Shows how far the runs are, and collects their failures. Launchers call it from any thread.

    `watch` gives the callback of a run in this process, `poll` looks into the folder of a run elsewhere,
    `ended` is called once for each run.
    """

    def __init__(self, jobs: list[Job]):
        self.failures: dict[str, str] = {}
        self.interrupted = False
        self._lock = threading.RLock()
        self._noted: set[str] = set()
        self._bars, self._ended, self._runs = Bars(), 0, len(jobs)
        self._bar: dict[str, Any] = {}  # of each run that is at work
        self._share: dict[str, float] = {}  # how far each of them is, from 0 to 1
        self._where: dict[str, str] = {}  # task 3/10
        self._written: dict[str, int] = {}  # when the result of a run elsewhere was written, in nanoseconds
        self._told = time.monotonic()
        columns = width(sys.stdout)
        self._longest = max((len(job.name) for job in jobs), default=0)
        if columns is not None:
            self._longest = min(self._longest, max(16, columns - LONGEST_LINE))
        self._all = self._bars.add_task(counted(len(jobs), "run"), total=len(jobs))

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, job: Job, text: str) -> None:
        with self._lock:
            name = middle_out(job.name, self._longest)
            print(printable(f"{name:<{self._longest}}  {text}"), flush=True)

    def watch(self, job: Job) -> Callback:
        """Make the callback of a run."""
        work: Workload | None = None
        tasks = 0

        def tell(event: Event) -> None:
            nonlocal work, tasks
            with self._lock:
                match event:
                    case Start(sizes=sizes, done=done):
                        work, tasks = Workload(job.config, find_method(job.config.method), event), len(sizes)
                        self._show(job, work.done, work.left, [f"task {done + 1}/{tasks}"])
                        if done:
                            self.say(job, f"goes on after task {done} of {tasks}")
                    case Epoch() | Training() if work is not None:
                        work.update(event)
                        at = [f"task {event.task}/{tasks}", f"epoch {event.epoch}/{event.epochs}"]
                        self._show(job, work.done, work.left, at)
                    case Note(text=text) if text not in self._noted:
                        self._noted.add(text)
                        self.say(job, f"note: {text}")

        return tell

    def _show(self, job: Job, done: float, left: float, parts: list[str]) -> None:
        """Move the bar of a run and that of all; where there are no bars, print a line now and then."""
        bars = self._bars
        if job.name not in self._bar:
            name = middle_out(job.name, max(16, bars.console.width // 3))
            self._bar[job.name] = bars.add_task(name, completed=int(done), total=done + left)
        self._share[job.name], self._where[job.name] = done / max(done + left, 1), parts[0]
        bars.update(self._bar[job.name], completed=done, total=done + left, parts=parts)
        self._show_all()
        if not bars.on_terminal and time.monotonic() - self._told >= PLAIN_EVERY:
            self._told = time.monotonic()
            at = "; ".join(f"{name} at {where}" for name, where in self._where.items())
            at = at if len(self._where) <= NAMED else f"{len(self._where)} at work"
            (whole,) = (task for task in bars.tasks if task.id == self._all)
            time_left = [] if whole.time_remaining is None else [f"{timed(whole.time_remaining)} left"]
            line = "; ".join([f"{self._ended} of {counted(self._runs, 'run')} ended", *time_left, at])
            print(printable(line), flush=True)

    def _show_all(self) -> None:
        failed = [f"{len(self.failures)} failed"] * bool(self.failures)
        parts = [f"{self._ended} of {self._runs} ended", *failed]
        self._bars.move(self._all, completed=self._ended + sum(self._share.values()), parts=parts)

    def ended(self, job: Job, outcome: Result | Exception) -> None:
        with self._lock:
            self._ended += 1
            self._share.pop(job.name, None)
            self._where.pop(job.name, None)
            if job.name in self._bar:
                self._bars.remove_task(self._bar.pop(job.name))
            if isinstance(outcome, LearntEnough):
                so_far = results.read(job.folder / "result.json")
                self.say(job, f"stopped: {_figures(so_far)}")
            elif isinstance(outcome, Interrupted):
                self.interrupted = True
            elif isinstance(outcome, Exception):
                self.failures[job.name] = sentence(outcome)
                self.say(job, f"failed: {sentence(outcome)}")
            else:
                self.say(job, f"finished: {_figures(outcome)}")
            self._show_all()

    def poll(self, job: Job) -> None:
        """Show how many tasks a run elsewhere has learnt, where there is news."""
        path = job.folder / "result.json"
        written = path.stat().st_mtime_ns if path.exists() else 0
        if self._written.get(job.name, 0) == written:
            return
        self._written[job.name] = written
        with suppress(Refused), self._lock:  # it may not be there yet
            result, c = results.read(path), job.config
            learnt, classes = len(result.tasks), len(result.classes)
            usual = c.tasks or tasks_by_default(c.data, classes)
            tasks = len(task_sizes(classes, usual, c.base, c.increment, c.task_sizes))
            self._show(job, learnt, tasks - learnt, [f"task {min(learnt + 1, tasks)}/{tasks}"])


def _figures(result: Result) -> str:
    """cnn average 61.20, last 48.30, 13 min: of the tasks learnt so far."""
    name, seconds = result.headline, sum(row.seconds or 0 for row in result.tasks)
    average, last = (percent(kind.get(name)).strip() for kind in (result.average, result.last))
    return f"{name} average {average}, last {last}, {timed(seconds)}"
