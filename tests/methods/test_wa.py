"""WA against its formula, in float64."""

import math

import pytest
import torch

from helpers.formulas import close, log_softmax, numbers
from jioc.methods.wa import fit_pair
from jioc.nets.heads import LinearHead


def test_wa_scales_new_rows_by_the_ratio_of_mean_norms() -> None:
    head = LinearHead(4, [3, 2]).double()
    before = numbers(5, 4)
    head.load_state_dict({"weight": before, "bias": numbers(5)})
    gamma = head.align(3)
    norms = [math.sqrt(sum(v * v for v in row)) for row in before.tolist()]
    factor = (sum(norms[:3]) / 3) / (sum(norms[3:]) / 2)
    close(head.weight.detach(), torch.cat([before[:3], before[3:] * factor]))
    close(head.bias.detach(), numbers(5))
    assert gamma == pytest.approx(factor) and head.align(0) == 1
    close(head.weight.detach()[3:], before[3:] * factor)


def test_a_pair_replaces_every_new_logit_and_no_other() -> None:
    head, f = LinearHead(4, [3, 2]).double(), numbers(6, 4, seed=1)
    head.load_state_dict({"weight": numbers(5, 4), "bias": numbers(5)})
    z = head(f).detach()
    head.correct(3, 0.5, -2.0)
    close(head(f).detach(), torch.cat([z[:, :3], 0.5 * z[:, 3:] - 2], dim=1))


def test_the_pair_is_where_its_cross_entropy_is_least() -> None:
    z, y = 3 * numbers(200, 7), torch.randint(7, (200,), generator=torch.Generator().manual_seed(2))
    z[torch.arange(200), y] += 2
    z[:, 5:] = 4 * z[:, 5:] + 3  # new classes that are too loud

    def loss(alpha: float, beta: float) -> float:
        """Image by image."""
        rows = [[*row[:5], *(alpha * v + beta for v in row[5:])] for row in z.tolist()]
        return -sum(log_softmax(row)[int(label)] for row, label in zip(rows, y, strict=True)) / len(rows)

    alpha, beta = fit_pair(z, y, 5)
    around = [(alpha + a, beta + b) for a in (-1e-3, 0, 1e-3) for b in (-1e-3, 0, 1e-3)]
    assert min(around, key=lambda pair: loss(*pair)) == (alpha, beta)
    assert loss(alpha, beta) < loss(1, 0) - 0.5 and 0 < alpha < 1
