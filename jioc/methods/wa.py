"""WA: replay with distillation, then new classes' weights scaled to the old ones' (Zhao et al., CVPR 2020).

    loss(x, y) = (1 - l) CE(z, y) + l KD_T(z[old], z'[old])            l = K_old / K
    after training:   w_k <- gamma w_k,   gamma = mean |w_old| / mean |w_new|       for each new class k
    unaligned:        z_k = (z_k - b_k) / gamma + b_k                  the newest task's logits before that

The exemplars are chosen, and the teacher is kept, after the scaling. As in PyCIL weights are not clipped to
be positive while training, which the paper does; biases are not scaled.

`--adjust` and `--rebalance` balance old and new classes themselves: nothing is scaled then. Nor is it with
`--head cosine`, whose rows have no length.

Read-outs: `cnn` is the head after the scaling, `unaligned` before that of the newest task; earlier tasks'
rows keep theirs. In the first task nothing is scaled, and both are the same.
"""

import torch
from torch import Tensor

from jioc.data.loader import TaskData
from jioc.losses import cross_entropy, distill
from jioc.methods import Distilling, register
from jioc.methods.base import Fit, Method
from jioc.nets.heads import LinearHead
from jioc.types import Batch, Output, Task, Terms, Weights


class Aligned(Method):
    """A method whose new classes' weights are aligned once they are trained: WA, and DER."""

    persistent = ("gamma",)

    gamma: float = 1.0  # of the newest task

    def fit_and_align(self, task: Task, data: TaskData, fit: Fit) -> None:
        """Train on the new images and the exemplars, then scale the new classes' weights."""
        fit(self, task, data.with_memory(self.memory))
        balanced = self.prior is not None or self.rebalance is not None
        head = self.net.head
        self.gamma = head.align(task.n_old) if isinstance(head, LinearHead) and not balanced else 1.0

    def rehearsed(self, task: Task, data: TaskData) -> None:
        self.gamma = 1.0  # the rows as they are now were never scaled
        super().rehearsed(task, data)

    def extra_readouts(self, out: Output) -> dict[str, Tensor]:
        head = self.net.head
        if not isinstance(head, LinearHead):  # cosines, which no length of a row changes
            return {"unaligned": out.logits}
        n, bias = self.net.plan["sizes"][-1], head.bias
        new = out.logits[:, -n:] / self.gamma + (bias - bias / self.gamma)[-n:]  # exact where gamma is 1
        return {"unaligned": torch.cat([out.logits[:, :-n], new], dim=1)}


@register("wa")
class WA(Aligned):
    options: Distilling

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        if old is not None:
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits, self.options.kd_temperature)
        return terms

    def weights(self, task: Task) -> Weights:
        return self.shares(task)

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        self.net.grow(task.n_new, self.generator)
        self.fit_and_align(task, data, fit)
        self.remember(task, data)
        self.keep_teacher()
