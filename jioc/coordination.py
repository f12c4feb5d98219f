"""JIOC (Wang et al., IJCAI 2024): a map from loss terms to loss terms, for any method that keeps exemplars.

    input    cls      <- (1 - p_y) cls                                     eq. 6 and 7, the weight a constant
    output   kd       <- gamma1 * sum over past tasks of KL_T(teacher || student) on that task's logits  eq. 8
             suppress <- gamma2 * p(new classes) of an old image * (N_old + n_new) / n_new               eq. 9

p is the softmax over all classes seen. The engine takes each term's mean over the batch, so the factor of
`suppress` turns it into the paper's sum over old images per new image. In the first task, and with everything
switched off, the terms are returned as they came.

These are the formulas as printed. By default 1 - p_y is divided by its batch mean, or, in methods that add a
backbone for each task, the sum of `kd` is a mean (`config.schema.READINGS`). What else the paper leaves open
is an option of `config.schema.Coordination`; `docs/decisions.md` says why the defaults are what they are.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Self

import torch
from pydantic import ValidationError, model_validator
from torch import Tensor

from jioc.config import READING, READINGS, Coordinate, Coordination, HostKD, Reading, refusal
from jioc.errors import Failed, fail_if, unknown
from jioc.losses import check_terms, distill, label_score, mass
from jioc.text import counted
from jioc.types import Batch, Output, Task, Terms


def checked(formula: Callable[..., Terms]) -> Callable[..., Terms]:
    """Refuse what the formula cannot coordinate: summed terms, logits of other classes, a missing teacher."""

    @wraps(formula)
    def coordinate(
        jioc: "JIOC",
        terms: Terms,
        batch: Batch,
        out: Output,
        old: Output | None,
        task: Task,
        *more: Any,
        **named: Any,
    ) -> Terms:
        check_terms(terms, batch.y)
        for name, given in (("out", out), ("old", old)):
            fail_if(isinstance(given, Tensor), f"{name!r} is a Tensor; Output(logits) is needed")
        width, n = out.logits.shape[1], task.n_seen
        hint = "; out.logits[:, : task.n_seen] leaves out those to come" if width > n else ""
        fail_if(
            jioc.coordinate != "none" and width != n,
            f"the logits are of {width} classes, and the task has seen {n}{hint}",
        )
        if jioc.needs_teacher and old is not None and (width := old.logits.shape[1]) < task.n_old:
            raise Failed(f"the teacher's logits are of {width} classes, and {task.n_old} are old")
        fail_if(
            jioc.inputs and "cls" not in terms,
            f"input coordination weighs the term 'cls', and this loss has only {', '.join(terms)}",
        )
        fail_if(
            jioc.needs_teacher and old is None and task.n_old > 0,
            "output coordination needs the teacher's outputs and got none; in a method of your own "
            "self.keep_teacher() ends a task",
        )
        fail_if(
            jioc.suppresses and task.n_old > 0 and not isinstance(batch.old, Tensor),
            "batch.old says of each image whether it is of an old class; it is batch.y < task.n_old",
        )
        fail_if(
            jioc.suppresses and task.n_old > 0 and jioc.suppress_scale == "task" and task.new_images < 1,
            f"the task has {task.new_images} new images; by their number the suppression is divided",
        )
        if batch.y.device.type == "cpu" and len(batch.y):  # a GPU would have to wait for it
            wrong = next((y for y in (int(batch.y.min()), int(batch.y.max())) if not 0 <= y < n), None)
            fail_if(
                wrong is not None,
                f"a label is {wrong}, and the task has seen {counted(n, 'class')}; "
                "labels are numbered from 0 in the order in which classes arrive",
            )
            fail_if(
                jioc.suppresses
                and task.n_old > 0
                and batch.other is None
                and not batch.old.equal(batch.y < task.n_old),
                f"batch.old does not fit batch.y: labels below {task.n_old} are of old classes",
            )
        return formula(jioc, terms, batch, out, old, task, *more, **named)

    return coordinate


Mean = Callable[[Tensor], Tensor]


class JIOC(Coordination):
    """The options with the formula: `JIOC()` has both parts, `JIOC(coordinate="oc", gamma1=0.5)` one."""

    coordinate: Coordinate = "jioc"
    reading: Reading = READING
    host_kd: HostKD = "replace"

    @model_validator(mode="wrap")
    @classmethod
    def _in_a_sentence(cls, given: Any, check: Callable[[Any], Self]) -> Self:
        try:
            filled = check(given)
            missing = {k: v for k, v in READINGS[filled.reading].items() if getattr(filled, k) is None}
            return check({**filled.model_dump(), **missing}) if missing else filled
        except ValidationError as error:
            if (first := error.errors()[0])["type"] == "extra_forbidden":
                raise unknown("option of JIOC", str(first["loc"][0]), cls.model_fields) from None
            raise refusal(error, prefix="") from None

    @property
    def inputs(self) -> bool:
        return self.coordinate in ("ic", "jioc")

    @property
    def distils(self) -> bool:
        """Whether the outputs on past heads are coordinated."""
        return self.coordinate in ("oc", "jioc") and self.gamma1 > 0

    @property
    def suppresses(self) -> bool:
        """Whether old images are kept off the new heads."""
        return self.coordinate in ("oc", "jioc") and self.gamma2 > 0

    @property
    def averages(self) -> bool:
        """Whether the input weights depend on their mean over the batch."""
        return self.inputs and self.delta_scale == "mean1"

    @property
    def balances(self) -> bool:
        """Whether gamma1 takes the place of the shares by which the host weighs its terms."""
        return self.host_factors == "drop" and self.distils and self.host_kd == "replace"

    @property
    def needs_teacher(self) -> bool:
        return self.distils and self.host_kd in ("replace", "add")

    @checked
    def __call__(
        self,
        terms: Terms,
        batch: Batch,
        out: Output,
        old: Output | None,
        task: Task,
        cls_logits: Tensor | None = None,
        mean: Mean = torch.mean,
    ) -> Terms:
        """Coordinate the terms. `cls_logits`: what the host's `cls` normalises, if not `out.logits`.

        `mean`: averages input weights over the whole batch, if these images are only a part of it.
        """
        if task.n_old == 0:
            return terms
        terms = dict(terms)
        if self.inputs:
            delta = self._scaled(self.weight(batch, out, cls_logits), batch.y, task, mean)
            terms["cls"] = delta * terms["cls"]
        if self.distils:
            host = terms.pop("kd", None)
            if self.host_kd in ("keep", "add") and host is not None:
                terms["kd"] = host
            if self.host_kd in ("replace", "add"):
                kd = self._distilled(out, old, batch, task)
                terms["kd"] = terms["kd"] + kd if "kd" in terms else kd
        if self.suppresses:
            on_new = batch.old * mass(out.logits, task.new)
            terms["suppress"] = self.gamma2 * on_new * self._suppress_factor(batch, task)
        return terms

    def weight(self, batch: Batch, out: Output, cls_logits: Tensor | None) -> Tensor:
        """1 - p_y of each image; of a mixture 1 - share p_y - (1 - share) p_other: (n,)."""
        if cls_logits is None:
            cls_logits = out.logits
        p = label_score(cls_logits, batch.y)
        if batch.other is not None and batch.share is not None:
            p = batch.share * p + (1 - batch.share) * label_score(cls_logits, batch.other)
        return 1 - p

    def _scaled(self, delta: Tensor, y: Tensor, task: Task, mean: Mean) -> Tensor:
        if self.delta == "detached":
            delta = delta.detach()
        if self.delta_scale == "mean1":
            return delta / mean(delta.detach()).clamp_min(1e-12)
        if self.delta_scale == "per-class":
            zeros = delta.new_zeros(task.n_seen)
            counts = zeros.index_add(0, y, torch.ones_like(delta))
            return (zeros.index_add(0, y, delta) / counts.clamp_min(1))[y]
        return delta

    def _distilled(self, out: Output, old: Output | None, batch: Batch, task: Task) -> Tensor:
        assert old is not None and self.oc_reduce is not None
        slices = heads(task.past) if self.oc_heads == "task" else [slice(0, task.n_old)]
        student, teacher = out.logits[:, : task.n_old], old.logits[:, : task.n_old]
        kd = distill_heads(student, teacher, slices, self.temperature, self.oc_reduce)
        if self.oc_data != "all":
            kd = kd * (batch.old if self.oc_data == "old" else ~batch.old)
        return self.gamma1 * (self.temperature**2 if self.kd_t2 else 1.0) * kd

    def _suppress_factor(self, batch: Batch, task: Task) -> Tensor | float:
        if self.suppress_scale == "task":
            return (task.old_images + task.new_images) / task.new_images
        old = batch.old if batch.whole_old is None else batch.whole_old
        among = old if self.suppress_scale == "old-mean" else ~old
        return len(among) / among.sum().clamp_min(1)


def distill_heads(
    logits: Tensor, teacher: Tensor, slices: list[slice], temperature: float, reduce: str = "sum"
) -> Tensor:
    """Distil on slices that cover the logits, and add up or average: (n,). Heads of one size go together."""
    sizes = [s.stop - s.start for s in slices]
    if len(set(sizes)) == 1:
        shape = (len(sizes), sizes[0])
        every = distill(logits.unflatten(1, shape), teacher.unflatten(1, shape), temperature)
    else:
        parts = zip(logits.split(sizes, 1), teacher.split(sizes, 1), strict=True)
        every = torch.stack([distill(a, b, temperature) for a, b in parts], 1)
    return every.sum(1) if reduce == "sum" else every.mean(1)


def heads(past: list[slice]) -> list[slice]:
    """Turn past tasks into heads: a task of one class has no softmax of its own and joins a neighbour."""
    merged: list[slice] = []
    for s in past:
        if merged and (s.stop - s.start == 1 or merged[-1].stop - merged[-1].start == 1):
            merged[-1] = slice(merged[-1].start, s.stop)
        else:
            merged.append(s)
    return merged
