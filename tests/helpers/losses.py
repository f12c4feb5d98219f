"""Losses written out, number by number."""

import math

from torch import Tensor


def softmax(row: list[float], temperature: float = 1.0) -> list[float]:
    top = max(row)
    e = [math.exp((v - top) / temperature) for v in row]
    return [v / sum(e) for v in e]


def slow_cross_entropy(z: Tensor, y: Tensor) -> list[float]:
    return [-math.log(softmax(row)[int(c)]) for row, c in zip(z.tolist(), y, strict=True)]


def slow_distill(z: Tensor, t: Tensor, temperature: float) -> list[float]:
    losses = []
    for a, b in zip(z.tolist(), t.tolist(), strict=True):
        p, q = softmax(a, temperature), softmax(b, temperature)
        losses.append(sum(qi * math.log(qi / pi) for pi, qi in zip(p, q, strict=True)))
    return losses
