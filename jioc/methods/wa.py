"""WA: replay with distillation, then new classes' weights scaled to the old ones' (Zhao et al., CVPR 2020).

    loss(x, y) = (1 - l) CE(z, y) + l KD_T(z[old], z'[old])            l = K_old / K
    after training:   w_k <- gamma w_k,   gamma = mean |w_old| / mean |w_new|       for each new class k
    unaligned:        z_k = (z_k - b_k) / gamma + b_k                  the newest task's logits before that

The exemplars are chosen, and the teacher is kept, after the scaling. As in PyCIL weights are not clipped to
be positive while training, which the paper does; biases are not scaled.

The ratio of norms suits what WA's own loss leaves. `--correction pair` fits what any loss leaves: z_k <-
gamma z_k + beta for the new classes, by cross-entropy on images that training did not see, held out as BiC
does, the rest fixed. `--correction none`, `--adjust` and `--rebalance` leave the new classes as they were
trained.

Read-outs: `cnn` is the head after the correction, `unaligned` before that of the newest task; earlier tasks'
rows keep theirs. In the first task nothing is corrected, and both are the same.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.data.loader import TaskData
from jioc.losses import cross_entropy, distill
from jioc.methods import Correcting, WAOptions, register
from jioc.methods.base import Fit, Method
from jioc.nets.heads import LinearHead
from jioc.types import Batch, Output, Task, Terms, Weights

HELD_SHARE = 0.1  # of a class's exemplars, held out to fit a pair: BiC's


class Corrected(Method):
    """A method whose new classes are corrected once they are trained: WA, and DER."""

    options: Correcting
    persistent = ("gamma", "beta")

    gamma: float = 1.0  # of the newest task
    beta: float = 0.0

    def fit_and_correct(self, task: Task, data: TaskData, fit: Fit) -> None:
        """Train on the new images and the exemplars, then correct the new classes."""
        others = self.prior is not None or self.rebalance is not None  # that balance old and new classes
        correction = self.options.correction if task.n_old and not others else "none"
        self.gamma, self.beta, held, sampler = 1.0, 0.0, None, data.with_memory(self.memory)
        if correction == "pair":
            sampler, held = data.split(self.memory, self.memory.held_out(task.n_old, HELD_SHARE))
        fit(self, task, sampler)
        if correction == "norms":
            self.gamma = self.linear_head.align(task.n_old)
        if held is not None:
            y = torch.arange(len(held)).repeat_interleave(torch.tensor([len(index) for index in held]))
            self.gamma, self.beta = fit_pair(data.logits(self.net, torch.cat(held)), y, task.n_old)
            self.linear_head.correct(task.n_old, self.gamma, self.beta)

    def rehearsed(self, task: Task, data: TaskData) -> None:
        self.gamma, self.beta = 1.0, 0.0  # the rows as they are now were never corrected
        super().rehearsed(task, data)

    def extra_readouts(self, out: Output) -> dict[str, Tensor]:
        n, bias = self.net.plan["sizes"][-1], self.linear_head.bias
        unscaled = bias if self.options.correction == "norms" else torch.zeros_like(bias)
        shift = unscaled - (unscaled + self.beta) / self.gamma
        new = out.logits[:, -n:] / self.gamma + shift[-n:]  # exact where gamma is 1
        return {"unaligned": torch.cat([out.logits[:, :-n], new], dim=1)}

    @property
    def linear_head(self) -> LinearHead:
        assert isinstance(self.net.head, LinearHead)
        return self.net.head


def fit_pair(logits: Tensor, y: Tensor, n_old: int) -> tuple[float, float]:
    """Fit (alpha, beta) of z_k <- alpha z_k + beta, k >= n_old, by cross-entropy; a convex problem of two."""
    z, y = logits.double().cpu(), y.cpu()
    pair = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([pair], max_iter=200, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(torch.cat([z[:, :n_old], pair[0] * z[:, n_old:] + pair[1]], dim=1), y)
        loss.backward()
        return loss

    with torch.enable_grad():
        optimiser.step(closure)
    alpha, beta = pair.tolist()
    return alpha, beta


@register("wa")
class WA(Corrected):
    options: WAOptions

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        if old is not None:
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits, self.options.kd_temperature)
        return terms

    def weights(self, task: Task) -> Weights:
        return {"cls": 1 - task.old_share, "kd": task.old_share}

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        self.net.grow(task.n_new, self.generator)
        self.fit_and_correct(task, data, fit)
        self.remember(task, data)
        self.keep_teacher()
