"""What a person sees: a progress bar on a terminal, plain lines elsewhere. No torch here."""

import sys
import time
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console as Rich
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from jioc.config.schema import Config
from jioc.methods.specs import find
from jioc.resolve.derive import total_epochs
from jioc.text import coordinated, counted
from jioc.training.store import readouts

WHOLE = 10**6  # characters: no line is as long


def table(
    heads: list[str],
    rows: list[list[str]],
    title: str | None = None,
    words: int | None = None,
    blocks: Collection[int] = (),
) -> None:
    """Aligned columns; the whole width of what they hold where the output is not a terminal. `words`: so many columns
    hold words, the others figures; `blocks`: the rows above which a line is left free."""
    fitted = sys.stdout.isatty()
    rich = Rich(markup=False, width=None if fitted else WHOLE)
    sheet = Table(box=SIMPLE_HEAD, title=title if fitted else None, title_justify="left", pad_edge=False)
    if title and not fitted:
        print(title)  # a table would break it at its own width
    for i, head in enumerate(heads):
        sheet.add_column(head, justify="left" if words is None or i < words else "right")
    for i, row in enumerate(rows):
        if i in blocks:
            sheet.add_section()
        sheet.add_row(*map(printable, row))
    rich.print(sheet)


def printable(text: str) -> str:
    """A name may hold anything; what moves the cursor becomes a space."""
    return "".join(c if c.isprintable() else " " for c in text)


def _figures(of: dict[str, Any]) -> str:
    return f"{percent(of['all'])} (old {percent(of['old'])}, new {percent(of['new'])})"


def task_line(row: dict[str, Any], tasks: int) -> str:
    """The figures after a task; `tasks`: how many there are, 0 where that is not known."""
    figures = "   ".join(f"{name} {_figures(of)}" for name, of in readouts(row).items())
    of = f"/{tasks}" if tasks else ""
    return f"task {row['task']:>2}{of}  {counted(row['classes'][1], 'class'):>11}  {figures}   {row['seconds']:.0f} s"


def counts_table(classes: list[str], counts: list[int], sizes: list[int]) -> None:
    """Training images of each class, a line for each task."""
    rows, first = [], 0
    for t, size in enumerate(sizes, 1):
        here = range(first, first + size)
        held = ", ".join(f"{classes[c]} {counts[c]:,}" for c in here)
        rows.append([str(t), f"{sum(counts[c] for c in here):,}", held])
        first += size
    table(["task", "images", "of each class"], rows)


def percent(value: float | None) -> str:
    return "    –" if value is None else f"{value:5.2f}"


PLAIN_EVERY = 30.0  # seconds between two lines within a task where there is no terminal


class Console:
    """The callback of `jioc run`."""

    def __init__(self, config: Config, folder: Path):
        self.config, self.folder, self.spec = config, folder, find(config.method)
        self.live = sys.stderr.isatty()
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeRemainingColumn(),
            console=Rich(stderr=True), transient=True, disable=not self.live,
        )  # fmt: skip
        self.sizes: list[int] = []
        self.bar: Any = None
        self.said = time.monotonic()
        self.decoding: Any = None

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def __call__(self, kind: str, what: dict[str, Any]) -> None:
        getattr(self, kind)(what)

    def decode(self, what: dict[str, Any]) -> None:
        if self.decoding is None:
            self.decoding = self.bars.add_task("decoding images", total=what["total"], told="")
            if not self.live:
                print(f"decoding {counted(what['total'], 'image')}, once", flush=True)
        self.bars.update(self.decoding, completed=what["done"], told=f"{what['done']:,} of {what['total']:,}")
        if what["done"] == what["total"]:
            self.bars.remove_task(self.decoding)
            self.decoding = None

    def start(self, what: dict[str, Any]) -> None:
        c = self.config
        self.sizes = what["sizes"]
        title = coordinated(self.spec.title, c.coordination.coordinate)
        print(f"{title} on {c.data}, {c.backbone}, {what['device']} ({what['precision']})")
        print(scenario_line(what["sizes"], what["counts"], c))
        if c.long_tail is not None:
            counts_table(what["classes"], what["counts"], what["sizes"])
        if what["done"]:
            print(f"going on after task {what['done']} of {len(self.sizes)}")
        epochs = sum(total_epochs(c, self.spec, t) for t in range(len(self.sizes)))
        done = sum(total_epochs(c, self.spec, t) for t in range(what["done"]))
        self.bar = self.bars.add_task("", total=epochs, completed=done, told="")

    def epoch(self, what: dict[str, Any]) -> None:
        terms = "  ".join(f"{name} {value:.3f}" for name, value in what["terms"].items())
        told = f"epoch {what['epoch']}/{what['epochs']}  {terms}  {what['images_per_second']:,.0f} images/s"
        if not self.live and time.monotonic() - self.said >= PLAIN_EVERY:
            self.said = time.monotonic()
            print(f"task {what['task']:>2}/{len(self.sizes)}  {told}", flush=True)
        self.bars.update(self.bar, advance=1, description=f"task {what['task']}/{len(self.sizes)}", told=told)

    def task(self, row: dict[str, Any]) -> None:
        print(task_line(row, len(self.sizes)), flush=True)

    def note(self, what: dict[str, Any]) -> None:
        print(f"note: {what['text']}", file=sys.stderr)

    def finish(self, result: dict[str, Any]) -> None:
        self.bars.stop()
        names = [n for n, value in result["average"].items() if value is not None]
        table(
            ["read-out", "average", "last", "forgetting"],
            [[n, *(percent(result[kind][n]) for kind in ("average", "last", "forgetting"))] for n in names],
        )
        print(f"kept in {self.folder}")


def scenario_line(sizes: list[int], counts: list[int], config: Config) -> str:
    per_task = f"{sizes[0]}" if len(set(sizes)) == 1 else "+".join(map(str, sizes))
    tail = "" if min(counts) == max(counts) else f", from {max(counts):,} to {min(counts):,} a class"
    if find(config.method).memory == "exemplars":
        memory = (
            f"{counted(config.memory_per_class, 'exemplar')} a class"
            if config.memory_per_class
            else counted(config.memory, "exemplar")
        )
    else:
        memory = {"none": "no exemplars", "all": "every image kept"}[find(config.method).memory]
    images, tasks = counted(sum(counts), "training image"), counted(len(sizes), "task")
    return f"{images}{tail}; {tasks} of {per_task} {'class' if per_task == '1' else 'classes'}; {memory}"
