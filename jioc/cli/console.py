"""Progress and results for people: bars on a terminal, plain lines elsewhere. No torch here."""

import shlex
import sys
import time
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from jioc.config import Config
from jioc.events import Decoding, Epoch, Event, Note, Start, TaskEnd, Training
from jioc.methods import find_method
from jioc.report.lines import percent, task_line
from jioc.results import SUMMARIES, Result, TaskRow
from jioc.terminal import Bars, table, width
from jioc.text import BYTES, coordinated, counted, exemplars, printable, shortened, timed
from jioc.training.workload import Workload


def counts_table(classes: list[str], counts: list[int], sizes: list[int]) -> None:
    """Print the training images of each class, a line for each task."""
    rows = []
    for t, (first, end) in enumerate(pairwise(accumulate(sizes, initial=0)), 1):
        each = ", ".join(f"{classes[c]} {counts[c]:,}" for c in range(first, end))
        rows.append([str(t), f"{sum(counts[first:end]):,}", each])
    table(["task", "images", "of each class"], rows)


def print_note(event: Event) -> None:
    """The callback of work that may only have something to note: print it on stderr."""
    if isinstance(event, Note):
        print(f"note: {printable(shortened(event.text))}", file=sys.stderr)


def print_next(*commands: str) -> None:
    """Print what a person may want to do next, a command a line."""
    for i, command in enumerate(commands):
        print(("next: " if i == 0 else "      ") + printable(command, keep=BYTES), flush=True)


class Progress(Bars):
    """The callback of work before a run: notes on stderr, and a bar on a terminal."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Decoding):
            self.on_decoding(event)
        else:
            print_note(event)

    def on_decoding(self, event: Decoding) -> None:
        if event.done == 0:
            self.decoding = self.add_task("decoding images", total=event.total)
        parts, visible = [f"{event.done:,} of {event.total:,}"], event.done < event.total
        self.move(self.decoding, completed=event.done, parts=parts, visible=visible)


PLAIN_EVERY = 30.0  # seconds between two lines within a task where there is no terminal


class Console(Progress):
    """The callback of `jioc run`: prints its events."""

    def __init__(self, config: Config, folder: Path):
        super().__init__()
        self.config, self.folder, self.spec = config, folder, find_method(config.method)
        self.printed = time.monotonic()
        self.terms: list[str] = []  # of the last epoch

    def __call__(self, event: Event) -> None:
        match event:
            case Start():
                self.on_start(event)
            case Epoch() | Training():
                self.on_progress(event)
            case TaskEnd(row=row):
                self.on_task(row)
            case _:
                super().__call__(event)

    def on_decoding(self, event: Decoding) -> None:
        if event.done == 0 and not self.on_terminal:
            print(f"decoding {counted(event.total, 'image')}, once", flush=True)
        super().on_decoding(event)

    def on_start(self, event: Start) -> None:
        c = self.config
        title = coordinated(self.spec.title, c.coordination.coordinate)
        print(printable(f"{title} on {c.data}, {c.backbone}, {event.device} ({event.precision})"))
        print(scenario_line(event.sizes, event.counts, c))
        if c.long_tail is not None:
            counts_table(event.classes, event.counts, event.sizes)
        if event.done:
            print(f"going on after task {event.done} of {len(event.sizes)}")
        self.begin(event)

    def begin(self, event: Start) -> None:
        """Begin the bar, whose length is the images that the run trains on."""
        self.sizes, self.work = event.sizes, Workload(self.config, self.spec, event)
        done, left = self.work.done, self.work.left
        self.bar = self.add_task("", completed=int(done), total=done + left)

    def on_progress(self, event: Epoch | Training) -> None:
        self.work.update(event)
        done, left = self.work.done, self.work.left
        self.update(self.bar, completed=done, total=done + left)
        if isinstance(event, Epoch):
            self.terms = [f"{name} {value:.3f}" for name, value in event.terms.items()]
        parts = [f"epoch {event.epoch}/{event.epochs}", *self._speed(event), *self.terms]
        task = f"task {event.task}/{len(self.sizes)}"
        if not self.on_terminal and time.monotonic() - self.printed >= PLAIN_EVERY:
            self.printed = time.monotonic()
            print("  ".join([f"task {event.task:>2}/{len(self.sizes)}", *parts, *self._left()]), flush=True)
        self.move(self.bar, description=task, parts=parts)

    def _speed(self, event: Epoch | Training) -> list[str]:
        if isinstance(event, Epoch):
            return [f"{event.images_per_second:,.0f} images/s"]
        return [f"{speed:,.0f} images/s"] if (speed := self._task().speed) else []

    def _left(self) -> list[str]:
        seconds = self._task().time_remaining
        return [] if seconds is None else [f"{self._task().percentage:.0f} %, {timed(seconds)} left"]

    def _task(self) -> Any:
        return next(task for task in self.tasks if task.id == self.bar)

    def on_task(self, row: TaskRow) -> None:
        headline = self.config.headline or self.spec.headline
        print(task_line(row, len(self.sizes), width(sys.stdout), headline), flush=True)

    def finish(self, result: Result) -> None:
        self.stop()
        names = [name for name, value in result.average.items() if value is not None]
        names.sort(key=lambda name: name != result.headline)
        rows = [[name, *(percent(result[kind].get(name)) for kind in SUMMARIES)] for name in names]
        table(["read-out", *SUMMARIES], rows, text_columns=1)
        print(f"kept in {printable(str(self.folder), keep=BYTES)}")
        folder = shlex.quote(str(self.folder))
        print_next(f"jioc report {folder}", f"jioc predict {folder} IMAGE")


def scenario_line(sizes: list[int], counts: list[int], config: Config) -> str:
    """50,000 training images; 10 tasks of 10 classes; 2,000 exemplars."""
    per_task = f"{sizes[0]}" if len(set(sizes)) == 1 else "+".join(map(str, sizes))
    tail = "" if min(counts) == max(counts) else f", from {max(counts):,} to {min(counts):,} a class"
    kept = exemplars(config.memory or 0, config.memory_per_class, config.memory_bytes)
    memory = {"exemplars": kept, "none": "no exemplars", "all": "every image kept"}
    images, tasks = counted(sum(counts), "training image"), counted(len(sizes), "task")
    classes = f"{per_task} {'class' if per_task == '1' else 'classes'}"
    return f"{images}{tail}; {tasks} of {classes}; {memory[find_method(config.method).memory]}"
