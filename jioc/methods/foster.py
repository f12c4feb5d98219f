"""FOSTER: boost a second backbone on the first one's errors, then compress both (Wang et al., ECCV 2022).

    w_c = (1 - beta) / (1 - beta^n_c), scaled to sum to K    n_c: training images of class c, exemplars if old
    boost      f = [f_1, f_2], f_1 frozen;  z = W f + b
               loss(x, y) = CE(z / w, y) + CE(fe(f_2), y) + lambda KD_T(z[old], z')    w with beta1
    compress   loss(x) = CE(q, softmax(z_student / T)),  q ~ w softmax(z_boosted / T)  w with beta2; no labels

z' is the head before the task on the frozen f_1: the previous network exactly, at no forward. Between tasks a
network of one backbone goes on, the student: f_1 is its backbone, f_2 starts as a copy, and the next student
starts from it too. W grows as in DER.

Read-outs: `boosted` is the network of two backbones, which the paper and PyCIL report, hence `cnn` and `nme`
too; `compressed` is the student. In the first task there is one network and all are the same. Exemplars are
chosen with the boosted features. A saved model holds both networks: it answers as it was judged, and the
student learns on.

Departures: the counts are those of the data (PyCIL takes 500 for each new class). As in PyCIL, 130 epochs of
compression without weight decay, constant betas, no AutoAugment and Cutout: `--augment autoaugment+cutout`.
"""

from functools import partial

import torch
from torch import Tensor

from jioc.data.loader import TaskData
from jioc.losses import class_balance, cross_entropy, distill
from jioc.memory import class_means
from jioc.methods import FOSTEROptions, register
from jioc.methods.base import Fit, Method, nearest_mean
from jioc.nets.incremental import ExpandingNet, IncrementalNet
from jioc.types import Batch, Output, Task, Terms, Weights


@register("foster")
class FOSTER(Method):
    options: FOSTEROptions
    net: IncrementalNet
    persistent = ("boosted", "boosted_means")

    boosted: ExpandingNet | None = None
    boosted_means: Tensor | None = None
    balance: Tensor  # (K,), w of the stage at hand
    compressing = False

    # --- the formula ---

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        if old is None:
            return {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        return {
            "cls": cross_entropy(self.adjusted(self.cls_logits(out, task)), batch.y),
            "fe": cross_entropy(out.extra["aux"], batch.y),
            "kd": distill(out.logits[:, : task.n_old], old.logits, self.options.kd_temperature),
        }

    def weights(self, task: Task) -> Weights:
        return {"kd": self.options.lambda_okd}

    def cls_logits(self, out: Output, task: Task) -> Tensor:
        return out.logits / self.balance if task.n_old and self.prior is None else out.logits

    def compression(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        assert old is not None
        return {
            "compress": balanced_distill(out.logits, old.logits, self.balance, self.options.kd_temperature)
        }

    def teacher_output(self, x: Tensor) -> Output | None:
        return self.boosted(x) if self.boosted is not None and self.compressing else None

    def old_output(self, out: Output, teacher_out: Output | None) -> Output | None:
        return teacher_out if self.boosted is None or self.compressing else self.boosted.previous(out)

    # --- the order of events ---

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        visits = data.with_memory(self.memory)
        if task.n_old == 0:
            self.net.grow(task.n_new, self.generator)
            fit(self, task, visits)
        else:
            counts = [len(index) for index in [*self.memory.classes, *data.classes]]
            self._boost(task, counts, partial(fit, self, task, visits))
            self._compress(task, counts, partial(fit, self, task, visits))
        self.remember(task, data)

    def _boost(self, task: Task, counts: list[int], fit: Fit) -> None:
        self.balance = class_balance(counts, self.options.beta1).to(self.net.head.weight)
        self.boosted = ExpandingNet.over(self.net)
        self.boosted.grow(task.n_new, self.generator, task.n_seen)
        if self.options.oofc == "az":
            hold_at_zero(self.boosted.head.weight, slice(task.n_old, None), slice(0, self.net.width))
        fit(net=self.boosted)
        self.boosted.eval().requires_grad_(False)

    def _compress(self, task: Task, counts: list[int], fit: Fit) -> None:
        beta2 = 0.0 if self.prior is not None else self.options.beta2  # 0: all alike, as they were learnt
        self.balance = class_balance(counts, beta2).to(self.net.head.weight)
        self.net.grow(task.n_new, self.generator)
        self.compressing = True
        fit(stage="second", loss=self.compression)
        self.compressing = False

    def remember(self, task: Task, data: TaskData) -> None:
        wide = self.boosted or self.net
        features = partial(data.features, wide)
        self.memory.update(data.classes, features, data.generator)
        self.boosted_means = class_means(self.memory, features, wide.width)

    def keep_teacher(self) -> None:
        """None: `old_output` is the previous network, and compression asks the boosted one."""

    def rehearsed(self, task: Task, data: TaskData) -> None:
        self.boosted = None  # the compressed network has seen more
        super().rehearsed(task, data)

    def head_weight(self) -> Tensor:
        return (self.boosted or self.net).head.rows()

    def readouts(self, x: Tensor) -> dict[str, Tensor]:
        student = self.net(x)
        boosted = student if self.boosted is None else self.boosted.eval()(x)
        scores = {"cnn": boosted.logits, "boosted": boosted.logits, "compressed": student.logits}
        if self.boosted_means is not None:
            scores["nme"] = nearest_mean(boosted.features, self.boosted_means)
        return scores


def balanced_distill(logits: Tensor, teacher: Tensor, w: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of the student's softmax with the teacher's, weighed by class and normalised: (n,)."""
    q = (teacher / temperature).softmax(1) * w
    q = q / q.sum(1, keepdim=True)
    return -(q * (logits / temperature).log_softmax(1)).sum(1)


@torch.no_grad()
def hold_at_zero(weight: Tensor, rows: slice, columns: slice) -> None:
    mask = torch.ones_like(weight)
    mask[rows, columns] = 0
    weight.mul_(mask)
    weight.register_hook(lambda gradient: gradient * mask)
