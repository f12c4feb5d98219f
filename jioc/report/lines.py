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


def learnt_lines(row: TaskRow) -> list[str]:
    """Write the accuracies after a task that was learnt on: what it brought, and what it cost.

    Say which classes nothing is known about, for want of test images.
    """
    n_old, n_seen = row.classes
    old, new = row.tested[:n_old], row.tested[n_old:]
    images = (
        f"{counted(sum(old), 'test image')} of {counted(n_old, 'old class')} and {sum(new):,} of new ones"
    )
    lines = [f"task {row.task}: of {images}, right among all {n_seen} classes, in percent:"]
    for name, accuracy in row.by_readout.items():
        parts = {"all": accuracy.all, "old": accuracy.old, "new": accuracy.new}
        figures = [f"{part} {percent(value)}" for part, value in parts.items()]
        if accuracy.before is not None:
            figures[1] += f" (before {percent(accuracy.before)})"
        lines.append("   ".join([f"  {name}", *figures]))
    helps = "jioc evaluate MODEL FOLDER measures that"
    if not any(old):
        lines.append(
            f"the model keeps no test image of old classes, so what it has forgotten is not known; {helps}"
        )
    elif missing := sum(n == 0 for n in old):
        lines.append(
            f"of {counted(missing, 'old class')} there is no test image, so they are left out; {helps}"
        )
    if missing := sum(n == 0 for n in new):
        lines.append(f"of {counted(missing, 'new class')} there is no test image, so they are left out")
    return lines
