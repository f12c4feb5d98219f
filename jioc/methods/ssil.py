"""SS-IL: one softmax for old and one for new classes, distillation task by task (Ahn et al., ICCV 2021).

    loss(x, y) = CE(z[new], y) for a new image, CE(z[old], y) for an exemplar
                 + T² sum over past tasks s of KL_T(z'[s] || z[s])          on new images and exemplars alike

Each step takes 128 new images and 32 exemplars, so that their ratio is the same throughout; the prediction is
the plain argmax over all classes. Where the old or the new classes are a single one, a softmax of its own
says nothing: those images are classified among all classes seen, and a past task of one class is distilled
with its neighbour.

`kd` is JIOC's first output term already, with new images in it, so that `oc` adds `suppress` alone. JIOC
weighs an image by the joint softmax.

Departures from the authors' code: iCaRL's schedule (`--epochs 200 --milestones 80,120,160 --weight-decay
1e-3` is their advice for CIFAR-100) and herded exemplars; exemplars go round in shuffled passes.
"""

import torch
from torch import Tensor

from jioc.coordination import heads
from jioc.data.loader import TaskData
from jioc.losses import cross_entropy, distill
from jioc.methods import SSILOptions, register
from jioc.methods.base import Fit, Method
from jioc.types import Batch, Output, Task, Terms, Weights


@register("ssil")
class SSIL(Method):
    options: SSILOptions

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        if old is None:
            return {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        t = self.options.kd_temperature
        kd = torch.stack([distill(out.logits[:, s], old.logits[:, s], t) for s in heads(task.past)]).sum(0)
        return {
            "cls": cross_entropy(separated(self.adjusted(out.logits), batch.old, task), batch.y),
            "kd": t**2 * kd,
        }

    def weights(self, task: Task) -> Weights:
        return {"kd": self.options.kd_weight}

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        self.net.grow(task.n_new, self.generator)
        fit(self, task, data.beside_memory(self.memory, self.options.exemplar_share))
        self.remember(task, data)
        self.keep_teacher()


def separated(logits: Tensor, old: Tensor, task: Task) -> Tensor:
    """Rule out the other side's classes: the new ones for an exemplar, the old ones for a new image."""
    of_old = torch.arange(task.n_seen, device=logits.device) < task.n_old
    other = of_old != old[:, None]
    alone = (old & (task.n_old == 1)) | (~old & (task.n_new == 1))
    return logits.masked_fill(other & ~alone[:, None], -torch.inf)
