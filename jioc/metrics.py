"""From predictions to the figures of a task, and from tasks to the figures of a run. Percentages, unrounded."""

from typing import Any

from torch import Tensor

Row = dict[str, Any]


def judge(ranked: Tensor, y: Tensor, sizes: tuple[int, ...]) -> Row:
    """Accuracies from each image's classes, best first (n, k), and label (n,); `sizes`: classes of each task so far."""
    ranked, y = ranked.cpu(), y.cpu()
    right = ranked[:, 0] == y
    old = sum(sizes[:-1])
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return {
        "all": _percent(right),
        "new": _percent(right[y >= old]),
        "old": _percent(right[y < old]),
        "top5": _percent((ranked == y[:, None]).any(1)) if ranked.shape[1] == 5 else None,
        "per_task": [_percent(right[(y >= end - n) & (y < end)]) for end, n in zip(ends, sizes, strict=True)],
        "per_class": [_percent(right[y == c]) for c in range(sum(sizes))],
    }


def _percent(right: Tensor) -> float | None:
    return 100 * right.double().mean().item() if len(right) else None


def summary(rows: list[Row], readouts: list[str]) -> Row:
    """`average`: mean of `all` over the tasks, the first included; `forgetting`: best minus final over past tasks.

    Of those read-outs, and of what else the tasks have; None of one that some lack.
    """
    figures: Row = {"average": {}, "last": {}, "forgetting": {}}
    for name in dict.fromkeys([*readouts, *(name for row in rows for name in row["readouts"])]):
        of = [row["readouts"][name] if name in row["readouts"] else row.get(name) for row in rows]
        every = [r["all"] for r in of if r is not None]
        whole = len(every) == len(rows) and bool(rows)
        figures["average"][name] = sum(every) / len(every) if whole else None
        figures["last"][name] = every[-1] if whole else None
        figures["forgetting"][name] = _forgetting([r["per_task"] for r in of if r]) if whole and len(rows) > 1 else None
    return figures


def _forgetting(matrix: list[list[float]]) -> float:
    """matrix[t][s]: accuracy on task s after learning task t."""
    final, past = matrix[-1], range(len(matrix) - 1)
    return sum(max(matrix[t][s] for t in range(s, len(matrix))) - final[s] for s in past) / len(past)
