"""What a terminal shows: bars that leave nothing behind, tables that fit its width. No torch here.

Nothing shortens a number: text wraps, a bar says less, and columns that have no room stand in a block below.
"""

import os
import sys
import textwrap
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console as Rich
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from jioc.text import TerminalOutput, printable

WHOLE = 10**6  # characters: no line is as long
REFRESH = 0.1  # seconds between two drawings of the bars
WINDOW = 120.0  # seconds over which the speed of a bar is taken
GAP = 2  # between two columns of a table
LONGEST = 28  # characters of a word that is not broken, where there is too little room


def width(stream: TextIO) -> int | None:
    """The columns of the terminal behind a stream; None where there is no terminal."""
    stream = getattr(stream, "rich_proxied_file", stream)  # while bars are drawn
    if not stream.isatty():
        return None
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def fitting(parts: Sequence[str], room: int, gap: str = "  ") -> str:
    """Join the parts for which there is room, the first ones first."""
    line = ""
    for part in parts:
        longer = line + gap * bool(line) + part
        if cell_len(longer) > room:
            break
        line = longer
    return line


def wrapped(text: str, stream: TextIO) -> str:
    """The text in lines that fit a stream's terminal; elsewhere in one."""
    columns = width(stream)
    return text if columns is None else textwrap.fill(text, columns, break_on_hyphens=False)


# --- bars ---


class LockedConsole(Rich):
    """A console that lets one thread print at a time.

    Rich moves the cursor by what it believes to be on the screen. Two threads that print at once would write
    over each other's lines, or leave a bar behind.
    """

    def __init__(self, **options: Any):
        self.lock = threading.RLock()
        super().__init__(**options)

    def __enter__(self) -> "LockedConsole":
        self.lock.acquire()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            super().__exit__(*error)
        finally:
            self.lock.release()


class Bars(Progress):
    """Bars on standard error where that is a terminal. What is printed meanwhile stands above them.

    They vanish in the end, and are drawn when something moves, not by a thread of their own. A bar's field
    `parts` is what it tells beside its time left, as far as there is room.
    """

    def __init__(self) -> None:
        self.on_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        output: Any = TerminalOutput(sys.stderr)
        console = LockedConsole(file=output, markup=False, highlight=False)
        self.lock, self._drawn = console.lock, 0.0
        self.bar_width = min(40, max(8, console.width // 6))
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(self.bar_width),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            _Parts(self),
            console=console,
            auto_refresh=False,
            transient=True,
            disable=not self.on_terminal,
            redirect_stdout=sys.stdout.isatty(),  # a file gets its lines itself
            speed_estimate_period=WINDOW,
        )

    def start(self) -> None:
        with self.lock:
            super().start()

    def stop(self) -> None:
        with self.lock:
            for task in self.tasks:
                self.update(task.id, visible=False)  # more bars than the screen has lines would leave some
            super().stop()

    def refresh(self) -> None:
        with self.lock:
            self._drawn = time.monotonic()
            super().refresh()

    def move(self, bar: Any, **values: Any) -> None:
        """Update a bar, and draw all if they have not been drawn just now."""
        self.update(bar, **values)
        if time.monotonic() - self._drawn >= REFRESH:
            self.refresh()

    def room(self) -> int:
        """Columns beside description, bar, percentage and time left."""
        described = max((cell_len(task.description) for task in self.tasks if task.visible), default=0)
        return self.console.width - described - self.bar_width - len(" 100% 100:00:00 ") - 2


class _Parts(ProgressColumn):
    def __init__(self, bars: Bars):
        self.bars = bars
        super().__init__()

    def render(self, task: Task) -> Text:
        return Text(fitting(task.fields.get("parts", ()), self.bars.room()), no_wrap=True)


# --- tables ---


def table(
    heads: list[str],
    rows: list[list[str]],
    title: str | None = None,
    text_columns: int | None = None,
    blocks: Collection[int] = (),
) -> None:
    """Print aligned columns; where the output is no terminal, as wide as their content.

    `text_columns`: how many columns hold text, the others figures; `blocks`: rows above which a line is free.
    On a terminal text wraps and figures do not: those that have no room follow in a table of their own.
    """
    columns = width(sys.stdout)
    cells = [[printable(cell) for cell in row] for row in [heads, *rows]]
    if title:
        print(printable(title))
    text = len(heads) if text_columns is None else text_columns
    if columns is None:
        return _print(cells, [None] * len(heads), text, blocks, WHOLE)
    for chosen, widths in _parted(cells, text, columns):
        _print([[row[i] for i in chosen] for row in cells], widths, text, blocks, columns)


def _print(
    cells: list[list[str]], widths: Sequence[int | None], text: int, blocks: Collection[int], columns: int
) -> None:
    sheet = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for i, (head, room) in enumerate(zip(cells[0], widths, strict=True)):
        side: Any = "left" if i < text else "right"
        sheet.add_column(head, justify=side, width=room, overflow="fold", no_wrap=i >= text)
    for i, row in enumerate(cells[1:], 1):
        sheet.add_row(*row, end_section=i in blocks)
    output: Any = TerminalOutput(sys.stdout)
    print()
    sys.stdout.flush()
    Rich(file=output, markup=False, highlight=False, width=columns).print(sheet)
    print()


def _parted(cells: list[list[str]], text: int, columns: int) -> list[tuple[list[int], list[int]]]:
    """Divide the columns into tables that fit, each with the columns of text, and give all their widths."""
    whole = [max(cell_len(row[i]) for row in cells) for i in range(len(cells[0]))]
    words = [
        max((cell_len(word) for row in cells for word in row[i].split()), default=0) for i in range(text)
    ]
    least = [min(word, LONGEST) for word in words]
    tables: list[list[int]] = [[]]
    for i in range(text, len(whole)):
        if tables[-1] and _sum([*least, *(whole[j] for j in tables[-1]), whole[i]]) > columns:
            tables.append([])
        tables[-1].append(i)
    parted = []
    for figures in tables:
        room = columns - sum(whole[i] + GAP for i in figures) - GAP * (text - 1)
        shared = _shared(whole[:text], words, room)
        parted.append(([*range(text), *figures], shared + [whole[i] for i in figures]))
    return parted


def _sum(widths: list[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _shared(whole: list[int], words: list[int], room: int) -> list[int]:
    """Share the room among columns of text.

    Each gets what its longest word needs, if all of these fit, and the wider ones part of what is left.
    """
    given = words if sum(words) <= room else [1] * len(words)
    left = room - sum(given)
    while left > 0 and (open_ := [i for i, n in enumerate(given) if n < whole[i]]):
        narrowest = min(open_, key=lambda i: (given[i], whole[i]))
        given = [n + (i == narrowest) for i, n in enumerate(given)]
        left -= 1
    return given
