"""iCaRL: replay with distillation, and classification by the nearest class mean (Rebuffi et al., CVPR 2017).

    loss(x, y) = CE(z, y) + KD_T(z[old], z'[old])         z': logits of the network before this task
    nme(x)     = argmin_c || f(x) / |f(x)| - mu_c ||      mu_c: mean exemplar feature of class c, of norm 1

Departures, as in PyCIL: a softmax instead of a sigmoid per class; distillation at T = 2 on old and new images
alike; SGD at 0.1 for 170 epochs; no flipped copies in the class means. Both read-outs are reported: the JIOC
paper's figures are the head's (`cnn`), PyCIL's are `nme`.

`balance` (beta) is a control for JIOC's input coordination, off by default: w_y CE(z, y) after the first
task, with w_c = (1 - beta) / (1 - beta^n_c) scaled to sum to K (Cui et al., CVPR 2019); n_c: images of class
c, exemplars if old.
"""

from torch import Tensor

from jioc.data.loader import TaskData
from jioc.losses import class_balance, cross_entropy, distill
from jioc.methods import ICaRLOptions, register
from jioc.methods.base import Fit, Method
from jioc.types import Batch, Output, Task, Terms, Weights


@register("icarl")
class ICaRL(Method):
    options: ICaRLOptions
    class_weights: Tensor  # (K,), w of the task at hand

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        if old is not None:
            if self.options.balance:
                terms["cls"] = self.class_weights[batch.y] * terms["cls"]
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits, self.options.kd_temperature)
        return terms

    def weights(self, task: Task) -> Weights:
        return {"kd": self.options.kd_weight}

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        if self.options.balance:
            counts = [max(1, len(index)) for index in [*self.memory.classes, *data.classes]]  # none: as one
            self.class_weights = class_balance(counts, self.options.balance).to(self.net.head.weight)
        super().learn(task, data, fit)
