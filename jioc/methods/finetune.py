"""Finetune: train on the new images alone, with the new classes' logits alone. The floor.

loss(x, y) = CE(z[new], y)
"""

from torch import Tensor

from jioc.losses import cross_entropy, only
from jioc.methods import register
from jioc.methods.base import Method
from jioc.types import Batch, Output, Task, Terms


@register("finetune")
class Finetune(Method):
    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        return {"cls": cross_entropy(self.cls_logits(out, task), batch.y)}

    def cls_logits(self, out: Output, task: Task) -> Tensor:
        return only(out.logits, task.new)
