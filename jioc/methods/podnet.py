"""PODNet: distil pooled feature maps; a cosine head with ten proxies a class (Douillard et al., ECCV 2020).

    z_k     = sigma s_k,   s_k = sum_j softmax_j(c_kj) c_kj,   c_kj = cos(f, w_kj)        old proxies frozen
    cls     = [ -sigma (s_y - margin) + log sum_{k != y} exp(sigma s_k) ]_+
    flat    = 1 - cos(f, f')
    spatial = mean over stages of | n(h) - n(h') |     n: squares summed over width and over height, to norm 1
    loss    = cls + sqrt(K / K_new) (flat + 5 spatial)                                f', h': of the teacher

After each task but the first the network, old proxies aside, is trained for 20 more epochs with the same loss
on as many images of each class, M / K_old: the exemplars, and new images chosen likewise.

The authors' code and PyCIL subtract the margin from every similarity, so that it cancels, do not cut the loss
at 0, and leave a 1 in the denominator: `--nca pycil`. Departures, as in PyCIL: new proxies are drawn, not
placed by k-means; gradients are not clipped. In the margin sigma is a constant: differentiated, the margin
drives sigma below 0 within a few steps, while the similarities are still small, and nothing is learnt. With a
single class there is no other to be told from: `cls` is 0, as of a softmax over one.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.data.loader import TaskData
from jioc.device.compile import maybe_compiled
from jioc.methods import PODNetOptions, register
from jioc.methods.base import Fit, Method, NetPlan
from jioc.nets.heads import PROXIES, ProxyHead
from jioc.types import Batch, Output, Task, Terms, Weights


@register("podnet")
class PODNet(Method):
    options: PODNetOptions

    @staticmethod
    def plan(plan: NetPlan) -> NetPlan:
        return {**plan, "head": "proxies", "cosine": True, "maps": True}

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        assert isinstance(self.net.head, ProxyHead)
        z = self.adjusted(out.logits)
        if self.options.nca == "pycil":
            cls = nca_as_coded(z, batch.y)
        else:
            cls = nca(z, batch.y, self.net.head.sigma.detach() * self.options.margin)
        if old is None:
            return {"cls": cls}
        flat = 1 - F.cosine_similarity(out.features.float(), old.features.float())
        spatial = maybe_compiled(pooled_distance, len(batch.y))(out.maps, old.maps)
        return {"cls": cls, "flat": flat, "spatial": spatial}

    def weights(self, task: Task) -> Weights:
        factor = math.sqrt(task.n_seen / task.n_new)
        return {"flat": factor * self.options.flat, "spatial": factor * self.options.spatial}

    def head_weight(self) -> Tensor:
        return self.net.head.rows().unflatten(0, (-1, PROXIES))

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        self.net.grow(task.n_new, self.generator)
        fit(self, task, data.with_memory(self.memory))
        if task.n_old:
            balanced, features = self.memory.on_trial(), partial(data.features, self.net)
            balanced.update(data.classes, features, data.generator, classes=task.n_old)
            if len(balanced):
                self.prior = None  # as many images of each class
                fit(self, task, data.of(balanced.index), stage="second")
        self.remember(task, data)
        self.keep_teacher()


def nca(logits: Tensor, y: Tensor, margin: Tensor | float) -> Tensor:
    """How far the label's logit, less the margin, falls short of all others together, at least 0: (n,)."""
    label = y[:, None]
    if logits.shape[1] == 1:
        return logits.sum(1) * 0
    others = logits.scatter(1, label, -torch.inf).logsumexp(1)
    return F.relu(others - logits.gather(1, label).squeeze(1) + margin)


def nca_as_coded(logits: Tensor, y: Tensor) -> Tensor:
    """-z_y + log(1 + sum_{k != y} exp z_k) after z is shifted to a maximum of 0: (n,)."""
    z, label = logits - logits.amax(1, keepdim=True), y[:, None]
    return z.scatter(1, label, 0.0).logsumexp(1) - z.gather(1, label).squeeze(1)


def pooled_distance(maps: list[Tensor], teacher: list[Tensor]) -> Tensor:
    """Distance of the pooled maps (n, c, h, w), averaged over the stages: (n,)."""
    return torch.stack(
        [(pooled(a) - pooled(b)).norm(dim=1) for a, b in zip(maps, teacher, strict=True)]
    ).mean(0)


def pooled(h: Tensor) -> Tensor:
    """The squares summed over the width and over the height, side by side, to norm 1: (n, c h + c w)."""
    energy = h.float().square()
    return F.normalize(torch.cat([energy.sum(3).flatten(1), energy.sum(2).flatten(1)], dim=1), dim=1)
