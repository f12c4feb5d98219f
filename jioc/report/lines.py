"""A task of result.json as a line for a person."""

from jioc.results import Accuracy, TaskRow
from jioc.text import counted


def percent(value: float | None) -> str:
    return "    –" if value is None else f"{value:5.2f}"


def task_line(row: TaskRow, tasks: int) -> str:
    """Write the accuracies after a task; `tasks`: how many there are, 0 where that is not known."""
    figures = "   ".join(f"{name} {_figures(accuracy)}" for name, accuracy in row.by_readout.items())
    of_tasks = f"/{tasks}" if tasks else ""
    classes = counted(row.classes[1], "class")
    return f"task {row.task:>2}{of_tasks}  {classes:>11}  {figures}   {row.seconds or 0:.0f} s"


def _figures(accuracy: Accuracy) -> str:
    return f"{percent(accuracy.all)} (old {percent(accuracy.old)}, new {percent(accuracy.new)})"
