"""Tables and progress for people: bars on a terminal, plain lines elsewhere. No torch here."""

import sys
import time
from collections.abc import Collection
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console as Rich
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from jioc.config import Config, total_epochs
from jioc.events import Decoding, Epoch, Event, Note, Start, TaskEnd
from jioc.methods import find_method
from jioc.report.lines import percent, task_line
from jioc.results import SUMMARIES, Result, TaskRow
from jioc.text import BYTES, TerminalOutput, coordinated, counted, exemplars, printable, shortened

WHOLE = 10**6  # characters: no line is as long


def table(
    heads: list[str],
    rows: list[list[str]],
    title: str | None = None,
    text_columns: int | None = None,
    blocks: Collection[int] = (),
) -> None:
    """Print aligned columns; where the output is no terminal, as wide as their content.

    `text_columns`: how many columns hold text, the others figures; `blocks`: rows above which a line is free.
    """
    terminal = sys.stdout.isatty()
    title = printable(title) if title else None
    sheet = Table(box=SIMPLE_HEAD, title=title if terminal else None, title_justify="left", pad_edge=False)
    if title and not terminal:
        print(title)  # a table would break it at its own width
    for i, head in enumerate(heads):
        sheet.add_column(
            printable(head), justify="left" if text_columns is None or i < text_columns else "right"
        )
    for i, row in enumerate(rows, 1):
        sheet.add_row(*map(printable, row), end_section=i in blocks)
    output: Any = TerminalOutput(sys.stdout)
    Rich(file=output, markup=False, width=None if terminal else WHOLE).print(sheet)


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


class Progress(Bars):
    """The callback of work before a run: notes on stderr, and a bar on a terminal."""

    def __init__(self) -> None:
        self.on_terminal = sys.stderr.isatty()
        output: Any = TerminalOutput(sys.stderr)
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=Rich(file=output),
            transient=True,
            disable=not self.on_terminal,
        )

    def __call__(self, event: Event) -> None:
        if isinstance(event, Decoding):
            self.on_decoding(event)
        else:
            print_note(event)

    def on_decoding(self, event: Decoding) -> None:
        if event.done == 0:
            self.decoding = self.add_task("decoding images", total=event.total, status="")
        status, visible = f"{event.done:,} of {event.total:,}", event.done < event.total
        self.update(self.decoding, completed=event.done, status=status, visible=visible)


PLAIN_EVERY = 30.0  # seconds between two lines within a task where there is no terminal


class Console(Progress):
    """The callback of `jioc run`: prints its events."""

    def __init__(self, config: Config, folder: Path):
        super().__init__()
        self.config, self.folder, self.spec = config, folder, find_method(config.method)
        self.printed = time.monotonic()

    def __call__(self, event: Event) -> None:
        match event:
            case Start():
                self.on_start(event)
            case Epoch():
                self.on_epoch(event)
            case TaskEnd(row=row):
                self.on_task(row)
            case _:
                super().__call__(event)

    def on_decoding(self, event: Decoding) -> None:
        if event.done == 0 and not self.on_terminal:
            print(f"decoding {counted(event.total, 'image')}, once", flush=True)
        super().on_decoding(event)

    def on_start(self, event: Start) -> None:
        c, self.sizes = self.config, event.sizes
        title = coordinated(self.spec.title, c.coordination.coordinate)
        print(printable(f"{title} on {c.data}, {c.backbone}, {event.device} ({event.precision})"))
        print(scenario_line(event.sizes, event.counts, c))
        if c.long_tail is not None:
            counts_table(event.classes, event.counts, event.sizes)
        if event.done:
            print(f"going on after task {event.done} of {len(self.sizes)}")
        epochs = [total_epochs(c, t) for t in range(len(self.sizes))]
        self.bar = self.add_task("", total=sum(epochs), completed=sum(epochs[: event.done]), status="")

    def on_epoch(self, event: Epoch) -> None:
        terms = "  ".join(f"{name} {value:.3f}" for name, value in event.terms.items())
        status = f"epoch {event.epoch}/{event.epochs}  {terms}  {event.images_per_second:,.0f} images/s"
        if not self.on_terminal and time.monotonic() - self.printed >= PLAIN_EVERY:
            self.printed = time.monotonic()
            print(f"task {event.task:>2}/{len(self.sizes)}  {status}", flush=True)
        self.update(self.bar, advance=1, description=f"task {event.task}/{len(self.sizes)}", status=status)

    def on_task(self, row: TaskRow) -> None:
        print(task_line(row, len(self.sizes)), flush=True)

    def finish(self, result: Result) -> None:
        self.stop()
        names = [name for name, value in result.average.items() if value is not None]
        rows = [[name, *(percent(result[kind].get(name)) for kind in SUMMARIES)] for name in names]
        table(["read-out", *SUMMARIES], rows)
        print(f"kept in {printable(str(self.folder), keep=BYTES)}")


def scenario_line(sizes: list[int], counts: list[int], config: Config) -> str:
    """50,000 training images; 10 tasks of 10 classes; 2,000 exemplars."""
    per_task = f"{sizes[0]}" if len(set(sizes)) == 1 else "+".join(map(str, sizes))
    tail = "" if min(counts) == max(counts) else f", from {max(counts):,} to {min(counts):,} a class"
    kept = exemplars(config.memory, config.memory_per_class, config.memory_bytes)
    memory = {"exemplars": kept, "none": "no exemplars", "all": "every image kept"}
    images, tasks = counted(sum(counts), "training image"), counted(len(sizes), "task")
    classes = f"{per_task} {'class' if per_task == '1' else 'classes'}"
    return f"{images}{tail}; {tasks} of {classes}; {memory[find_method(config.method).memory]}"
