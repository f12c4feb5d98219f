"""When a task is trained, balance its head: features fixed, equally many images of each class.

    head     W, b drawn anew, trained by CE(z, y)                                      (cRT)
    scale    z_c <- s_c (w_c f + b_c), only s trained, from 1, by CE(z, y)             (LWS)

It is a second `fit` of the engine. Where no class has twice the images of another, there is nothing to
balance, as in the first task of a balanced data set. JIOC and --adjust have no part in it.
Kang et al., ICLR 2020; 30 epochs and rates are those of DER's authors. They train CE(z / 5, y), which is the
softmax of u = z / 5 trained at 1/25 of the rate: too slow for a short run.
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


def schedule(epochs: int | None) -> Schedule:
    """The rates of DER's authors: 0.1, a tenth from the middle on."""
    milestones = (max(1, (epochs or 0) // 2),)
    return Schedule(epochs=epochs, lr=0.1, decay="steps", milestones=milestones, weight_decay=5e-4)


def rebalance(kind: str, method: Method, task: Task, data: TaskData, fit: Fit) -> None:
    """Train the head anew, or its scale, on balanced images."""
    counts = [len(index) for index in [*method.memory.classes, *data.classes]]
    if max(counts) < UNEQUAL * min(counts):
        return
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
