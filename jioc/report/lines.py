"""A task of result.json as a line for a person."""

from jioc.results import TaskRow
from jioc.text import counted


def percent(value: float | None) -> str:
    return "    –" if value is None else f"{value:5.2f}"


def task_line(row: TaskRow, tasks: int) -> str:
    """Write the accuracies after a task; `tasks`: how many there are, 0 where that is not known."""
    figures = [
        f"{name} {percent(accuracy.all)} (old {percent(accuracy.old)}, new {percent(accuracy.new)})"
        for name, accuracy in row.by_readout.items()
    ]
    task = f"task {row.task:>2}" + (f"/{tasks}" if tasks else "")
    return f"{task}  {counted(row.classes[1], 'class'):>11}  {'   '.join(figures)}   {row.seconds or 0:.0f} s"
