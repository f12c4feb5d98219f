"""FOSTER against slow formulas, in float64."""

import math

from helpers.formulas import BATCH, TASK, Y, close, log_softmax, method, numbers
from jioc.coordination import JIOC
from jioc.methods import foster
from jioc.types import Output


def test_foster_class_weights_come_from_real_counts() -> None:
    counts, beta = [3, 3, 2, 40, 7], 0.96
    raw = [(1 - beta) / (1 - beta**n) for n in counts]
    close(foster.class_balance(counts, beta), [w * 5 / sum(raw) for w in raw])


def test_foster_balanced_distillation() -> None:
    student, teacher, w = numbers(6, 7), numbers(6, 7, seed=1), numbers(7, seed=2).abs()
    slow = []
    for z, z_teacher in zip(student.tolist(), teacher.tolist(), strict=True):
        q = [
            math.exp(v) * a for v, a in zip(log_softmax([v / 2 for v in z_teacher]), w.tolist(), strict=True)
        ]
        slow.append(-sum(a / sum(q) * b for a, b in zip(q, log_softmax([v / 2 for v in z]), strict=True)))
    close(foster.balanced_distill(student, teacher, w, 2.0), slow)


def test_foster_classifies_logits_divided_by_the_weights() -> None:
    host, z = method("foster"), numbers(6, 7)
    assert isinstance(host, foster.FOSTER)
    host.balance = foster.class_balance([4] * 5 + [20] * 2, 0.96)
    out = Output(z, z, extra={"aux": numbers(6, 7, seed=1)})
    terms = host.loss(BATCH, out, Output(numbers(6, 5), z), TASK)
    w = host.balance.tolist()
    slow = [
        -log_softmax([v / a for v, a in zip(row, w, strict=True)])[y]
        for row, y in zip(z.tolist(), Y, strict=True)
    ]
    close(terms["cls"], slow)
    weighed = JIOC(coordinate="ic", reading="printed")(
        terms, BATCH, out, None, TASK, host.cls_logits(out, TASK)
    )
    close(weighed["cls"], [(1 - math.exp(-v)) * v for v in slow])
    assert weighed["fe"] is terms["fe"] and weighed["kd"] is terms["kd"]
