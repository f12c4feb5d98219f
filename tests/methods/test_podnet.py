"""PODNet against slow formulas, in float64."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from helpers.formulas import TASK, Y, close, method, numbers
from jioc.methods import podnet
from jioc.nets.heads import ProxyHead


def test_podnet_scores_by_proxies() -> None:
    head = ProxyHead(4, [1, 2]).double()
    frozen, fresh, f = numbers(10, 4), numbers(20, 4, seed=1), numbers(3, 4, seed=2)
    head.load_state_dict({"frozen": frozen, "weight": fresh, "sigma": torch.tensor(2.5, dtype=torch.float64)})
    rows = torch.cat([frozen, fresh])
    for i in range(3):
        cos = [(f[i] @ w / f[i].norm() / w.norm()).item() for w in rows]
        for k in range(3):
            s = cos[10 * k : 10 * k + 10]
            total = sum(map(math.exp, s))
            slow = 2.5 * sum(math.exp(v) / total * v for v in s)
            assert head(f)[i, k].item() == pytest.approx(slow, rel=1e-11)


def test_podnet_nca_has_the_margin_on_the_label_alone_and_no_label_below() -> None:
    s, sigma, margin = numbers(6, 7) / 3, 3.0, 0.6
    s[0, 0] = 2.0  # by far the best
    slow = []
    for row, y in zip(s.tolist(), Y.tolist(), strict=True):
        others = sum(math.exp(sigma * v) for k, v in enumerate(row) if k != y)
        slow.append(max(0.0, -math.log(math.exp(sigma * (row[y] - margin)) / others)))
    assert slow[0] == 0 and sum(v > 0 for v in slow) > 3
    close(podnet.nca(sigma * s, Y, sigma * margin), slow)


def test_podnet_nca_as_coded_cancels_the_margin() -> None:
    z = 2 * numbers(6, 7)
    slow = []
    for row, y in zip(z.tolist(), Y.tolist(), strict=True):
        shifted = [(v - 0.6) - max(w - 0.6 for w in row) for v in row]
        slow.append(-shifted[y] + math.log(1 + sum(math.exp(v) for k, v in enumerate(shifted) if k != y)))
    close(podnet.nca_as_coded(z, Y), slow)


def test_podnet_nca_of_one_class_is_nothing() -> None:
    z = numbers(3, 1).requires_grad_()
    for loss in (
        podnet.nca(z, torch.zeros(3, dtype=torch.long), 0.6),
        podnet.nca_as_coded(z, torch.zeros(3).long()),
    ):
        close(loss.detach(), [0.0, 0.0, 0.0])
        (gradient,) = torch.autograd.grad(loss.sum(), z)
        close(gradient, torch.zeros(3, 1))


def test_podnet_distils_energy_pooled_over_width_and_over_height() -> None:
    maps, teacher = ([numbers(2, 3, 4, 5, seed=s), numbers(2, 2, 3, 2, seed=s + 1)] for s in (0, 2))

    def vector(h: Tensor) -> np.ndarray:
        c, height, width = h.shape
        over_w = [sum(h[k, i, j].item() ** 2 for j in range(width)) for k in range(c) for i in range(height)]
        over_h = [sum(h[k, i, j].item() ** 2 for i in range(height)) for k in range(c) for j in range(width)]
        v = np.array(over_w + over_h)
        return v / np.sqrt((v**2).sum())

    slow = [
        sum(np.sqrt(((vector(a[i]) - vector(b[i])) ** 2).sum()) for a, b in zip(maps, teacher, strict=True))
        / 2
        for i in range(2)
    ]
    assert podnet.pooled_distance(maps, teacher).tolist() == pytest.approx(slow, rel=1e-5)  # in float32


def test_podnet_weighs_its_distillations_by_the_growth() -> None:
    factors = method("podnet").weights(TASK)
    assert factors == pytest.approx({"flat": math.sqrt(7 / 2), "spatial": 5 * math.sqrt(7 / 2)})
