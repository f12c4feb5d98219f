"""Replay: cross-entropy on the new images and the exemplars, mixed.

loss(x, y) = CE(z, y)
"""

from jioc.losses import cross_entropy
from jioc.methods import register
from jioc.methods.base import Method
from jioc.types import Batch, Output, Task, Terms


@register("replay")
class Replay(Method):
    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        return {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
