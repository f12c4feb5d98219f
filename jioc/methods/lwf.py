"""LwF: new images alone, distillation on the old classes (Li and Hoiem, ECCV 2016).

    loss(x, y) = CE(z[new], y) + 3 KD_T(z[old], z'[old])

As in PyCIL: the old classes' softmax is one, the head is shared, no warm-up of the new rows.
"""

from torch import Tensor

from jioc.losses import cross_entropy, distill, only
from jioc.methods import LwFOptions, register
from jioc.methods.base import Method
from jioc.types import Batch, Output, Task, Terms, Weights


@register("lwf")
class LwF(Method):
    options: LwFOptions

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(self.cls_logits(out, task), batch.y)}
        if old is not None:
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits, self.options.kd_temperature)
        return terms

    def weights(self, task: Task) -> Weights:
        return {"kd": self.options.kd_weight}

    def cls_logits(self, out: Output, task: Task) -> Tensor:
        return only(out.logits, task.new)
