"""WA: replay with distillation, then new classes' weights scaled to the old ones' (Zhao et al., CVPR 2020).

    loss(x, y) = (1 - l) CE(z, y) + l KD_T(z[old], z'[old])           l = K_old / K
    after training:   w_k <- w_k * mean |w_old| / mean |w_new|         for each new class k, see `aligned.py`

The exemplars are chosen, and the teacher is kept, after the scaling. As in PyCIL weights are not clipped to
be positive while training, which the paper does; biases are not scaled. `unaligned` reads out the head before
the scaling.
"""

from jioc.data.loader import TaskData
from jioc.losses import cross_entropy, distill
from jioc.methods.aligned import Aligned
from jioc.methods.base import Fit
from jioc.methods.options import Distilling
from jioc.methods.registry import register
from jioc.types import Batch, Output, Task, Terms, Weights


@register("wa")
class WA(Aligned):
    options: Distilling

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(out.logits, batch.y)}
        if old is not None:
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits, self.options.kd_temperature)
        return terms

    def weights(self, task: Task) -> Weights:
        return {"cls": 1 - task.old_share, "kd": task.old_share}

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        self.net.grow(task.n_new, self.generator)
        fit(self, task, data.with_memory(self.memory))
        self.align(task)
        self.remember(task, data)
        self.keep_teacher()
