"""What the paper claims happens inside a network, measured after every task.

All test images of the classes seen are used: K classes, n images. p is the softmax of the `cnn` read-out over
those classes. A figure without a meaning (old classes in the first task, a diverged network) is None.

    old_mass_on_new     mean p(new classes) of the images of old classes              bias between tasks
    new_mass_on_old     mean p(old classes) of the images of new classes              interference
    drift_on_old        mean over the images of new classes of the sum over past tasks of KL(before || now) on
                        that task's logits at T = 2, in nats; before: when the task arrived    interference
    weight_norms        |w_c| of the head, None where the head has no rows of weights
    mean_logits         mean of z_c over all n images
    trained_on          images of the class that the task trained on: all of a new class, else exemplars
    delta_by_class      mean of 1 - p_y over the images of the class                  bias within tasks
    calibration_error   sum over 15 bins of confidence of (share) |accuracy - confidence|, in percent
    confusion           images of class r taken for class c, see `confusion`
    many, medium, few   accuracy of the third of the classes with the most training images, and so on

`delta_by_class` uses test images: they cost nothing here, and on exemplars that a network knows by heart,
delta is near zero however little the class was learnt.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from jioc.config import TEMPERATURE
from jioc.coordination import distill_heads, heads
from jioc.types import Task

BINS = 15  # of the calibration error
DENSE = 20  # classes up to which the confusion matrix is written in full


@torch.no_grad()
def diagnose(
    logits: Tensor,
    y: Tensor,
    task: Task,
    before: Tensor | None,
    weight: Tensor | None,
    trained_on: Sequence[int],
) -> dict[str, Any]:
    """Measure the figures above, but for the thirds.

    `before`: the scores (m, K_old) of the new classes' images when the task arrived.
    """
    logits = logits.float()
    p = logits.softmax(1)
    confidence, predicted = p.max(1)
    old, on_new = y < task.n_old, p[:, task.new].sum(1)
    figures = {
        "old_mass_on_new": mean(on_new[old]),
        "new_mass_on_old": mean(1 - on_new[~old]) if task.n_old else None,
        "drift_on_old": None if before is None else mean(drift(logits[~old], before.float(), task)),
        "weight_norms": None if weight is None else weight_norms(weight),
        "mean_logits": logits.mean(0).tolist(),
        "trained_on": list(trained_on),
        "delta_by_class": mean_by_class(1 - p.gather(1, y[:, None]).squeeze(1), y, task.n_seen),
        "calibration_error": calibration_error(confidence, predicted == y),
        "confusion": confusion(y, predicted, task.n_seen),
    }
    return {name: finite(value) for name, value in figures.items()}


def finite(value: Any) -> Any:
    """Replace by None what JSON cannot hold."""
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def drift(now: Tensor, before: Tensor, task: Task) -> Tensor:
    """Sum KL(before || now) on each past task's logits; a task of one class joins its neighbour: (m,)."""
    return distill_heads(now[:, : task.n_old], before[:, : task.n_old], heads(task.past), TEMPERATURE)


def weight_norms(weight: Tensor) -> list[float]:
    """Norms of the rows (K, d); with several proxies a class (K, r, d), the mean of their norms."""
    norms = weight.float().norm(dim=-1)
    return (norms.mean(1) if norms.dim() == 2 else norms).tolist()


def mean(values: Tensor) -> float | None:
    return values.double().mean().item() if len(values) else None


def mean_by_class(values: Tensor, y: Tensor, classes: int) -> list[float | None]:
    values, y = values.double().cpu(), y.cpu()  # where sums repeat bit for bit
    sums = torch.zeros(classes, dtype=torch.double).index_add(0, y, values)
    counts = torch.bincount(y, minlength=classes)
    return [s / n if n else None for s, n in zip(sums.tolist(), counts.tolist(), strict=True)]


def calibration_error(confidence: Tensor, right: Tensor) -> float:
    """Expected calibration error over bins of equal width, (0, 1/15], (1/15, 2/15], ..."""
    if not len(right):
        return 0.0
    bins = bin_of(confidence)
    gap = (right.double() - confidence.double()).cpu()
    sums = torch.zeros(BINS, dtype=torch.double).index_add(0, bins.cpu(), gap)
    return 100 * sums.abs().sum().item() / len(right)


def bin_of(confidence: Tensor) -> Tensor:
    """The bin of the calibration error in which each confidence lies, from 0: (n,)."""
    return (confidence.double() * BINS).ceil().long().clamp(1, BINS) - 1


def confusion(y: Tensor, predicted: Tensor, classes: int) -> list[Any]:
    """Count predictions, a row for each true class; beyond 20 classes a line of "class:count" above zero."""
    counts = torch.bincount(y * classes + predicted, minlength=classes**2).view(classes, classes).tolist()
    if classes <= DENSE:
        return counts
    return [" ".join(f"{c}:{n}" for c, n in enumerate(row) if n) for row in counts]


def thirds(per_class: Sequence[float | None], counts: Sequence[int]) -> dict[str, float | None]:
    """Average the accuracy of many-, medium- and few-shot classes: a third each, ranked by training images.

    The usual bounds of 100 and 20 images fit only the tail of ImageNet-LT. Classes of equal count go by order
    of learning; a remainder goes to the many, then the medium. Empty if all counts are equal.
    """
    if len(counts) < 3 or min(counts) == max(counts):
        return {}
    ranked = sorted(range(len(counts)), key=lambda c: -counts[c])
    size, more = divmod(len(ranked), 3)
    first, second = size + (more > 0), 2 * size + more
    parts = {"many": ranked[:first], "medium": ranked[first:second], "few": ranked[second:]}
    known = {name: [a for c in part if (a := per_class[c]) is not None] for name, part in parts.items()}
    return {name: sum(values) / len(values) if values else None for name, values in known.items()}
