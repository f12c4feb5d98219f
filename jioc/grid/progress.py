"""How far the runs of a grid are: bars on a terminal, a line for each event elsewhere. No torch here."""

import sys
import threading
from contextlib import suppress
from typing import Any, Self

from rich.console import Console as Rich
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from jioc import results
from jioc.config import total_epochs
from jioc.errors import Interrupted, Refused, sentence
from jioc.events import Callback, Epoch, Event, Note, Start, TaskEnd
from jioc.grid.plan import Job
from jioc.report.lines import percent, task_line
from jioc.results import Result, TaskRow
from jioc.text import TerminalOutput, counted, printable


class GridProgress:
    """Shows how far the runs are, and collects their failures. Launchers call it from any thread.

    `watch` gives the callback of a run in this process, `poll` looks into the folder of a run elsewhere,
    `ended` is called once for each run.
    """

    def __init__(self, jobs: list[Job]):
        self.failures: dict[str, str] = {}
        self.interrupted = False
        self._lock = threading.Lock()
        self._noted: set[str] = set()
        self._bar: dict[str, Any] = {}  # of each run in this process
        self._learnt: dict[str, int] = {}  # tasks shown of each run that is polled
        self._written: dict[str, int] = {}  # when its result was written, in nanoseconds
        self._width = max((len(job.name) for job in jobs), default=0)
        output: Any = TerminalOutput(sys.stderr)
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(), console=Rich(file=output, markup=False, highlight=False), transient=True,
        )  # fmt: skip
        self._bars.disable = not self._bars.console.is_terminal
        self._all = self._bars.add_task(counted(len(jobs), "run"), total=len(jobs), speed="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, job: Job, text: str) -> None:
        line = printable(f"{job.name:<{self._width}}  {text}")
        if self._bars.disable:
            print(line, flush=True)
        else:
            self._bars.print(line)

    def watch(self, job: Job) -> Callback:
        """Make the callback of a run."""
        tasks = 0

        def tell(event: Event) -> None:
            nonlocal tasks
            with self._lock:
                match event:
                    case Start(sizes=sizes, done=done):
                        tasks = len(sizes)
                        begins = f"goes on after task {done} of {tasks}" if done else "begins"
                        self.say(job, f"{begins} on {event.device} ({event.precision})")
                        epochs = [total_epochs(job.config, t) for t in range(tasks)]
                        self._bar[job.name] = self._bars.add_task(
                            job.name, total=sum(epochs), completed=sum(epochs[:done]), speed=""
                        )
                    case Epoch():
                        speed = f"task {event.task}/{tasks}  {event.images_per_second:,.0f} images/s"
                        self._bars.update(self._bar[job.name], advance=1, speed=speed)
                    case TaskEnd(row=row):
                        self.say(job, task_line(row, tasks))
                    case Note(text=text) if text not in self._noted:
                        self._noted.add(text)
                        self.say(job, f"note: {text}")

        return tell

    def ended(self, job: Job, outcome: Result | Exception) -> None:
        with self._lock:
            self._bars.update(self._all, advance=1)
            if job.name in self._bar:
                self._bars.remove_task(self._bar.pop(job.name))
            if isinstance(outcome, Interrupted):
                self.interrupted = True
            elif isinstance(outcome, Exception):
                self.failures[job.name] = sentence(outcome)
                self.say(job, f"failed: {sentence(outcome)}")
            else:
                average = percent(outcome.average.get(outcome.headline)).strip()
                self.say(job, f"finished: {outcome.headline} average {average}")

    def poll(self, job: Job) -> None:
        """Show the tasks that a run elsewhere has learnt since the last time."""
        path = job.folder / "result.json"
        written = path.stat().st_mtime_ns if path.exists() else 0
        if self._written.get(job.name) == written:
            return
        self._written[job.name] = written
        rows: list[TaskRow] = []
        with suppress(Refused):  # it may not be there yet
            rows = results.read(path).tasks
        with self._lock:
            shown = self._learnt.setdefault(job.name, len(rows))  # the first time, nothing is news
            for row in rows[shown:]:
                self.say(job, task_line(row, len(job.config.task_sizes or ()) or job.config.tasks or 0))
            self._learnt[job.name] = max(len(rows), shown)
