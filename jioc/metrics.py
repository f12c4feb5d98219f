"""From predictions to the accuracies of a task, and from tasks to the figures of a run.

Percentages, unrounded.
"""

from torch import Tensor

from jioc.results import SUMMARIES, Accuracy, Figures, TaskRow


def accuracy(ranked: Tensor, y: Tensor, sizes: tuple[int, ...]) -> Accuracy:
    """Compute accuracies from each image's classes, best first (n, k), and its label (n,).

    `sizes`: the number of classes of each task so far.
    """
    ranked, y = ranked.cpu(), y.cpu()
    right = ranked[:, 0] == y
    old = sum(sizes[:-1])
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return Accuracy(
        all=_percent(right),
        new=_percent(right[y >= old]),
        old=_percent(right[y < old]),
        top5=_percent((ranked == y[:, None]).any(1)) if ranked.shape[1] == 5 else None,
        per_task=[_percent(right[(y >= end - n) & (y < end)]) for end, n in zip(ends, sizes, strict=True)],
        per_class=[_percent(right[y == c]) for c in range(sum(sizes))],
    )


def _percent(right: Tensor) -> float | None:
    return 100 * right.double().mean().item() if len(right) else None


def summary(rows: list[TaskRow], readouts: list[str]) -> dict[str, Figures]:
    """Summarise the tasks for these read-outs and any others they have; None for one that some task lacks.

    `average`: mean of `all` over the tasks, the first included; `forgetting`: best minus final of past tasks.
    """
    figures: dict[str, Figures] = {kind: {} for kind in SUMMARIES}
    for name in dict.fromkeys([*readouts, *(name for row in rows for name in row.readouts)]):
        accuracies = [row.by_readout[name] for row in rows if name in row.by_readout]
        every = [accuracy.all for accuracy in accuracies if accuracy.all is not None]
        whole = len(every) == len(rows) and bool(rows)
        figures["average"][name] = sum(every) / len(every) if whole else None
        figures["last"][name] = every[-1] if whole else None
        figures["forgetting"][name] = _forgetting(accuracies) if whole and len(rows) > 1 else None
    return figures


def _forgetting(after: list[Accuracy]) -> float | None:
    """Mean drop from the best to the final accuracy of past tasks; after[t]: accuracies after task t.

    None if a task has no final one: its test images may have become training images of a model.
    """
    columns = [[row.per_task[s] for row in after[s:]] for s in range(len(after) - 1)]
    known = [[value for value in column if value is not None] for column in columns]
    if any(column[-1] is None for column in columns):
        return None
    return sum(max(column) - column[-1] for column in known) / len(known)
