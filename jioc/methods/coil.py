"""COIL: old and new classes teach each other by optimal transport of weights (Zhou et al., ACM MM 2021).

    z            = sigma cos(f, w_k)
    loss(x, y)   = (1 - l) CE(z, y) + l KD_T(z[old], z'[old]) + a(t) forward + b(t) backward     l = K_old / K
    forward      = KD_T(z[new], cos(f, A)),        A = transport(W_old) along P from old to new class means
    backward     = KD_T(cos(f, B), z'[old]),       B = transport(W_new) along P from new to old class means
    transport(W) = P^T (W_k / |W_k|)_k, scaled to the mean norm of W
    P            = argmin <P, C> - eps H(P)        rows of equal mass, columns too; C: distance in the 3-norm

When a task arrives the new rows of the head start at A; B is computed again every 30 steps from the exemplars
and the new images. a = 0.001 in epoch 0 and 0 later, b = 0 in epoch 0 and 0.001 (epoch / epochs)² later. The
targets A and z' are constants. B's class means are computed in a step's arithmetic, all others in fp32.

PyCIL looks at the next task's images at the end of a task; here the transport waits until they arrive. There
the old classes' means for A are of every training image, here of the exemplars, since the others are gone;
A's target is differentiated, and B is computed in a step's midst. There, too, every entry of both marginals
is 1 / K_old, so that the second does not sum to 1; Sinkhorn ends on the rows, so that this only multiplies
P, and the scaling of the norms takes it away. PyCIL always keeps 2000 exemplars; here the memory is the
run's.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.data.loader import TaskData
from jioc.losses import cross_entropy, distill
from jioc.memory import class_means
from jioc.methods import COILOptions, register
from jioc.methods.base import Fit, Method, NetPlan
from jioc.nets.incremental import IncrementalNet
from jioc.types import Batch, Output, Task, Terms, Weights


@register("coil")
class COIL(Method):
    options: COILOptions
    net: IncrementalNet
    persistent = ("ahead", "back")

    ahead: Tensor | None = None  # A: (K_new, d)
    back: Tensor | None = None  # B: (K_old, d)
    timed: dict[str, Tensor] = {}  # a and b, changed in place as training goes on
    data: TaskData | None = None  # of the task at hand

    @staticmethod
    def plan(plan: NetPlan) -> NetPlan:
        return {**plan, "head": "cosine", "cosine": True}

    # --- the formula ---

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        if old is not None:
            assert self.ahead is not None and self.back is not None
            t, f = self.options.kd_temperature, out.features.float()
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits, t)
            terms["forward"] = distill(out.logits[:, task.new], cosines(f, self.ahead).detach(), t)
            terms["backward"] = distill(cosines(f, self.back), old.logits, t)
        return terms

    def weights(self, task: Task) -> Weights:
        return {**self.shares(task), **self.timed}

    def before_step(self, task: Task, epoch: int, epochs: int, step: int) -> None:
        if task.n_old == 0:
            return
        a, b = (1.0, 0.0) if epoch == 0 else (0.0, (epoch / epochs) ** 2)
        self.timed["forward"].fill_(self.options.transport_weight * a)
        self.timed["backward"].fill_(self.options.transport_weight * b)
        if epoch > 0 and step % self.options.transport_every == 0:
            self._look_back(task)

    # --- the order of events ---

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        if task.n_old:
            assert self.means is not None
            old_rows = self.net.head.rows().detach()
            new_means = means_of(data, partial(data.features, self.net))
            self.ahead = transported(old_rows, self.means, new_means, self.options.sinkhorn)
            self.back = torch.zeros_like(old_rows)
            self.timed = {name: old_rows.new_zeros(()) for name in ("forward", "backward")}
        self.net.grow(task.n_new, self.generator)
        if self.ahead is not None:
            self.net.head.weight.data[task.n_old :] = self.ahead
        self.data = data
        fit(self, task, data.with_memory(self.memory))
        self.data = None
        self.remember(task, data)
        self.keep_teacher()

    def _look_back(self, task: Task) -> None:
        assert self.data is not None and self.back is not None
        training, features = self.net.training, partial(self.data.features, self.net, as_trained=True)
        old_means = class_means(self.memory, features, self.net.width)
        rows = self.net.head.rows().detach()[task.n_old :]
        self.back.copy_(transported(rows, means_of(self.data, features), old_means, self.options.sinkhorn))
        self.net.train(training)


def means_of(data: TaskData, features: partial[Tensor]) -> Tensor:
    """Unit-norm mean of the unit-norm features of each arriving class: (K_new, d)."""
    parts = features(data.new).split([len(index) for index in data.classes])
    return F.normalize(torch.stack([part.mean(0) for part in parts]), dim=1)


def cosines(features: Tensor, rows: Tensor) -> Tensor:
    return F.linear(F.normalize(features, dim=1), F.normalize(rows, dim=1))


def transported(rows: Tensor, source: Tensor, target: Tensor, regularisation: float) -> Tensor:
    """Mix the rows (m, d) of the source's classes by transport into rows for the target's classes: (n, d)."""
    cost = torch.cdist(source.double(), target.double(), p=3)
    plan = sinkhorn(cost.cpu(), regularisation).to(cost)  # so small that launching it would cost more
    mixed = plan.T @ F.normalize(rows.double(), dim=1)
    return (mixed * rows.norm(dim=1).mean() / mixed.norm(dim=1).mean()).to(rows)


def sinkhorn(cost: Tensor, regularisation: float, iterations: int = 300) -> Tensor:
    """The entropic transport plan between uniform masses, rows 1 / m and columns 1 / n: (m, n).

    It is computed in the log domain.
    """
    m, n = cost.shape
    kernel, row, column = -cost / regularisation, -math.log(m), -math.log(n)
    u = torch.zeros_like(cost[:, 0])
    for _ in range(iterations):
        v, before = column - (kernel + u[:, None]).logsumexp(0), u
        u = row - (kernel + v).logsumexp(1)
        if torch.allclose(u, before, rtol=0, atol=1e-14):
            break
    return (kernel + u[:, None] + v).exp()
