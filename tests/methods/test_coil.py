"""COIL's transport against POT, in float64."""

import math
import warnings

import numpy as np
import pytest
import torch

from helpers.formulas import BATCH, TASK, close, method, numbers
from jioc.methods import coil
from jioc.types import Output

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ot = pytest.importorskip("ot", reason="POT is the oracle of COIL's transport")


@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 1), (1, 4), (10, 10)])
def test_coil_plan_is_pots(m: int, n: int) -> None:
    cost = numbers(m, n).abs()
    plan = coil.sinkhorn(cost, 0.464)
    oracle = ot.sinkhorn(
        np.full(m, 1 / m), np.full(n, 1 / n), cost.numpy(), 0.464, stopThr=1e-15, numItermax=5000
    )
    torch.testing.assert_close(plan, torch.from_numpy(oracle), rtol=1e-9, atol=1e-12)


def test_coil_plan_becomes_the_exact_one_as_the_regularisation_vanishes() -> None:
    cost = numbers(6, 4).abs()
    masses = np.full(6, 1 / 6), np.full(4, 1 / 4)
    best = ot.emd2(*masses, cost.numpy())
    gaps = [(coil.sinkhorn(cost, eps, 2000) * cost).sum().item() - best for eps in (0.3, 0.1, 0.03)]
    assert gaps[0] > gaps[1] > gaps[2] > 0 and gaps[2] < 0.03 * math.log(6 * 4)
    clear = 1 - torch.eye(5).roll(2, 0).double() + numbers(5, 5) / 10
    exact = torch.from_numpy(ot.emd(np.full(5, 1 / 5), np.full(5, 1 / 5), clear.numpy()))
    torch.testing.assert_close(coil.sinkhorn(clear, 0.02), exact, rtol=0, atol=1e-9)


def test_coil_pycils_marginals_give_the_same_weights() -> None:
    source, target, rows = (torch.nn.functional.normalize(numbers(k, 4, seed=k), dim=1) for k in (6, 3, 6))
    rows = 3 * rows + 0.1
    cost = torch.cdist(source, target, p=3).numpy()
    each = np.full(6, 1 / 6), np.full(3, 1 / 6)  # the second sums to a half
    plan = torch.from_numpy(ot.sinkhorn(*each, cost, 0.464, numItermax=1000, warn=False))
    mixed = plan.T @ (rows / rows.norm(dim=1, keepdim=True)) * 6
    slow = mixed * (rows.norm(dim=1).mean() / mixed.norm(dim=1).mean())
    torch.testing.assert_close(coil.transported(rows, source, target, 0.464), slow, rtol=1e-8, atol=1e-10)


def test_coil_a_lone_class_passes_its_weights_on() -> None:
    row = numbers(1, 4)
    ahead = coil.transported(row, numbers(1, 4, seed=1), numbers(3, 4, seed=2), 0.464)
    close(ahead, row.expand(3, 4))


def test_coil_the_targets_of_its_distillations_are_constants() -> None:
    host, z, f = method("coil"), numbers(6, 7).requires_grad_(), numbers(6, 8).float().requires_grad_()
    assert isinstance(host, coil.COIL)
    host.ahead, host.back = numbers(2, 8).float(), numbers(5, 8).float()
    terms = host.loss(BATCH, Output(z, f, []), Output(numbers(6, 5, seed=1), f, []), TASK)
    for name, given in {"kd": z, "forward": z, "backward": f}.items():
        grads = torch.autograd.grad(terms[name].sum(), (z, f), allow_unused=True, retain_graph=True)
        assert [g is None for g in grads] == [given is not z, given is not f]
