"""A task of result.json as a line for a person."""

from collections.abc import Callable

from jioc.results import Accuracy, TaskRow
from jioc.text import counted

LONGEST, LONG = "100.00", "9999"  # a figure, and seconds


def percent(value: float | None) -> str:
    return "    –" if value is None else f"{value:5.2f}"


def task_line(row: TaskRow, tasks: int, width: int | None = None) -> str:
    """Write the accuracies after a task; `tasks`: how many there are, 0 where that is not known.

    Where the line of some task would be wider than `width`, read-outs after the first tell no old and new
    classes; then the last read-outs are left out.
    """
    task, seconds = f"task {row.task:>2}" + (f"/{tasks}" if tasks else ""), f"{row.seconds or 0:.0f}"
    head, accuracies = f"{task}  {counted(row.classes[1], 'class'):>11}", list(row.by_readout.items())
    told, longest = (_forms(accuracies, show) for show in (percent, lambda _: LONGEST))
    for figures, longer in zip(told, longest, strict=True):
        if width is None or len("  ".join([head, *longer, max(seconds, LONG, key=len), ""])) <= width:
            return "  ".join([head, *figures, f"{seconds} s"])
    return f"{task}  {accuracies[0][0]} {percent(accuracies[0][1].all)}"


def _forms(accuracies: list[tuple[str, Accuracy]], show: Callable[[float | None], str]) -> list[list[str]]:
    """The figures of the read-outs: all with old and new classes, then fewer and fewer."""
    whole = [f"{name} {show(a.all)} (old {show(a.old)}, new {show(a.new)})" for name, a in accuracies]
    short = [f"{name} {show(a.all)}" for name, a in accuracies[1:]]
    return [whole, *([whole[0], *short[:n]] for n in range(len(short), -1, -1))]
