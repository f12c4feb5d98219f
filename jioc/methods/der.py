"""DER: a new backbone for each task, next to the frozen earlier ones (Yan et al., CVPR 2021).

    f          = [f_1, ..., f_t]                               f_1 .. f_{t-1} frozen, in eval mode
    loss(x, y) = CE(W f + b, y) + CE(aux(f_t), a(y))           a(y) = 0 for an old class, 1.. for the new ones
    after training: the new rows of W are scaled as in WA; `unaligned` reads out the head before that

The new backbone starts as a copy of the newest; W's old block is kept and trained on, and its columns for f_t
start at 0, so that growing changes no old logit (PyCIL draws them; of `--head cosine` see
`nets.heads.ScaledCosineHead`); aux is fresh for each task, and there is none in the first.

Departures, as in PyCIL: no masks and no pruning (no released code has them), no warm-up, no second training
of the head.

JIOC needs a teacher, which DER has not: the head as it was before the task, on the frozen features that are
there already. It is the previous network exactly and costs no backbone forward.
"""

from torch import Tensor

from jioc.data.loader import TaskData
from jioc.losses import cross_entropy
from jioc.methods import DEROptions, register
from jioc.methods.base import Fit, NetPlan
from jioc.methods.wa import Aligned
from jioc.nets.incremental import ExpandingNet
from jioc.types import Batch, Output, Task, Terms, Weights


@register("der")
class DER(Aligned):
    options: DEROptions
    net: ExpandingNet

    @staticmethod
    def plan(plan: NetPlan) -> NetPlan:
        return {**plan, "kind": "expanding", "backbones": 1, "aux": 0}

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        if task.n_old:
            terms["aux"] = cross_entropy(out.extra["aux"], aux_targets(batch.y, task))
        return terms

    def weights(self, task: Task) -> Weights:
        return {"aux": self.options.aux_weight}

    def old_output(self, out: Output, teacher_out: Output | None) -> Output | None:
        wanted = self.coordination is not None and self.coordination.needs_teacher
        return self.net.previous(out) if wanted and self.net.before is not None else None

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        self.net.grow(task.n_new, self.generator, task.n_new + 1)
        self.fit_and_align(task, data, fit)
        self.remember(task, data)

    def keep_teacher(self) -> None:
        """None: `old_output` is the previous network."""


def aux_targets(y: Tensor, task: Task) -> Tensor:
    """0 for any old class, 1 .. n_new for the new ones."""
    return (y - task.n_old + 1).clamp(min=0)
