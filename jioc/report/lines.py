"""A task of result.json as a line for a person."""

from jioc.results import Accuracy, TaskRow
from jioc.text import counted

LONGEST = len("100.00") - len("99.99")  # what a figure of another task may be longer: all lines tell as much


def percent(value: float | None) -> str:
    return "    –" if value is None else f"{value:5.2f}"


def task_line(row: TaskRow, tasks: int, width: int | None = None) -> str:
    """Write the accuracies after a task; `tasks`: how many there are, 0 where that is not known.

    Where the line would be wider than `width`, read-outs after the first tell no old and new classes; then
    the last read-outs are left out.
    """
    task = f"task {row.task:>2}" + (f"/{tasks}" if tasks else "")
    head, seconds = f"{task}  {counted(row.classes[1], 'class'):>11}  ", f"{row.seconds or 0:.0f}"
    accuracies = list(row.by_readout.items())
    first, *others = (_figures(*one) for one in accuracies)
    short = [f"{name} {percent(accuracy.all)}" for name, accuracy in accuracies[1:]]
    forms = [[first, *others], *([first, *short[:n]] for n in range(len(short), -1, -1))]
    for figures in forms:
        line = f"{head}{'  '.join(figures)}  {seconds} s"
        longer = LONGEST * line.count(".") - line.count("100.00") + max(0, len("9999") - len(seconds))
        if width is None or len(line) + longer <= width:
            return line
    return f"{task}  {accuracies[0][0]} {percent(accuracies[0][1].all)}"


def _figures(name: str, accuracy: Accuracy) -> str:
    return f"{name} {percent(accuracy.all)} (old {percent(accuracy.old)}, new {percent(accuracy.new)})"
