"""When a task is trained, balance its head: features fixed, equally many images of each class.

    head     W, b drawn anew, trained by CE(z, y)                                      (cRT, official DER)
    scale    z_c <- s_c (w_c f + b_c), only s trained, from 1, by CE(z, y)             (LWS)

It is a second `fit` of the engine. Where no class has twice the images of another, there is nothing to
balance, as in the first task of a balanced data set. JIOC and --adjust have no part in it.
Kang et al., ICLR 2020. For `head` the rest is that of DER's authors, who train CE(z / 5, y) with a weight
decay of 5e-4. It is written in u = z / 5, whose decay is 25 times that: the same objective, at a rate that
does not depend on the 5. (Theirs, 1/25 of it, is too slow for a short run.)
"""

import torch
from torch import nn

from jioc.config import Schedule
from jioc.data.loader import TaskData
from jioc.losses import cross_entropy
from jioc.methods.base import Fit, Method
from jioc.nets.heads import LinearHead
from jioc.types import Batch, Output, Task, Terms

UNEQUAL = 2  # most images of a class / fewest, from which there is something to balance
DECAY = {"head": 5**2 * 5e-4, "scale": 5e-4}


def is_unequal(counts: list[int]) -> bool:
    """Whether there is something to balance, given the images of each class."""
    return max(counts) >= UNEQUAL * min(counts)


def schedule(kind: str, epochs: int | None) -> Schedule:
    """The rates of DER's authors: 0.1, a tenth from the middle on."""
    milestones = (max(1, (epochs or 0) // 2),)
    decay = DECAY.get(kind)
    return Schedule(epochs=epochs, lr=0.1, decay="steps", milestones=milestones, weight_decay=decay)


def rebalance(kind: str, method: Method, task: Task, data: TaskData, fit: Fit) -> None:
    """Train the head anew, or its scale, on balanced images."""
    head = method.net.head
    assert isinstance(head, LinearHead)
    frozen = [p for p in method.net.parameters() if p.requires_grad]
    method.net.requires_grad_(False)
    if kind == "head":
        head.draw_anew(method.generator)
        trained = [head.weight, head.bias]
    else:
        head.scale = nn.Parameter(torch.ones_like(head.bias))
        trained = [head.scale]
    for p in trained:
        p.requires_grad_(True)

    def loss(batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        return {"balanced": cross_entropy(out.logits, batch.y)}

    how = {"params": trained, "loss": loss, "coordination": None, "train_mode": False}
    fit(method, task, data.balanced(method.memory), stage="rebalance", **how)
    head.fold_scale()
    for p in frozen:
        p.requires_grad_(True)
