"""iCaRL: replay with distillation, and classification by the nearest class mean (Rebuffi et al., CVPR 2017).

    loss(x, y) = CE(z, y) + KD_T(z[old], z'[old])             z': logits of the network before this task
    nme(x)     = argmin_c || f(x) / |f(x)| - mu_c ||          mu_c: mean exemplar feature of class c, of norm 1

Departures, as in PyCIL: a softmax instead of a sigmoid per class; distillation at T = 2 on old and new images alike;
SGD at 0.1 for 170 epochs; no flipped copies in the class means. Both read-outs are reported: the JIOC paper's figures
are the head's (`cnn`), PyCIL's are `nme`.
"""

from ..losses import cross_entropy, distill
from ..types import Batch, Output, Task, Terms, Weights
from .base import Method
from .specs import ICaRLOptions, register


@register("icarl")
class ICaRL(Method):
    options: ICaRLOptions

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        terms = {"cls": cross_entropy(out.logits, batch.y)}
        if old is not None:
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits, self.options.kd_temperature)
        return terms

    def weights(self, task: Task) -> Weights:
        return {"kd": self.options.kd_weight}
