"""BiC: replay with distillation, then a linear correction of the new classes' logits (Wu et al., CVPR 2019).

    z_k        = alpha_s o_k + beta_s                              o: the head's output; k a class of task s
    loss(x, y) = (1 - l) CE(z, y) + l KD_T(z[old], z'[old])        l = K_old / K; every (alpha, beta) fixed
    then the newest task's (alpha, beta) alone:   CE(z, y) on images that the first stage did not see

Of every class seen, v = int(0.1 M / K_old) images are held out for the second stage (0.1 of the exemplars of
a class where their number is fixed), at least one and never all. They are candidates for exemplars again
afterwards. Where no old class has an image to spare, nothing can be balanced: every image trains and the pair
stays (1, 0).

Read-outs: `cnn` is z; `uncorrected` has the newest task's pair taken as (1, 0), earlier ones as they are.

Departures: from the paper, 170 epochs for each stage as in PyCIL. From PyCIL, whose second stage takes the
softmax twice and lets the BN statistics drift on the few held-out images: `--bias-loss pycil` does so too. In
both, the held-out images are augmented as any others.
"""

import torch
from torch import Tensor

from jioc.data.loader import Sampler, TaskData
from jioc.losses import cross_entropy, distill
from jioc.methods import BiCOptions, register
from jioc.methods.base import Fit, Method, NetPlan
from jioc.nets.heads import CorrectedHead
from jioc.types import Batch, Output, Task, Terms, Weights


@register("bic")
class BiC(Method):
    options: BiCOptions

    @staticmethod
    def plan(plan: NetPlan) -> NetPlan:
        return {**plan, "head": "corrected"}

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        if old is not None:
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits, self.options.kd_temperature)
        return terms

    def weights(self, task: Task) -> Weights:
        return self.shares(task)

    def bias_loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        corrected: Tensor = out.logits.softmax(1) if self.options.bias_loss == "pycil" else out.logits
        return {"bias": cross_entropy(corrected, batch.y)}

    def extra_readouts(self, out: Output) -> dict[str, Tensor]:
        assert isinstance(self.net.head, CorrectedHead)
        return {"uncorrected": self.net.head.uncorrected(out.features)}

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        self.net.grow(task.n_new, self.generator)
        if task.n_old == 0:
            fit(self, task, data.alone())
        else:
            most, held = data.split(self.memory, self.memory.held_out(task.n_old, self.options.held_share))
            fit(self, task, most)
            if held is not None:
                self._fit_bias(task, data.of(torch.cat(held)), fit)
        self.remember(task, data)
        self.keep_teacher()

    def _fit_bias(self, task: Task, held: Sampler, fit: Fit) -> None:
        assert isinstance(self.net.head, CorrectedHead)
        rest, pair = [p for p in self.net.parameters() if p.requires_grad], self.net.head.pairs[-1]
        self.net.requires_grad_(False)
        pair.requires_grad_(True)
        adrift = self.options.bias_loss == "pycil"
        fit(self, task, held, stage="second", params=[pair], loss=self.bias_loss, train_mode=adrift)
        pair.requires_grad_(False)
        for p in rest:
            p.requires_grad_(True)
