"""WA against its formula, in float64."""

import math

import pytest
import torch

from helpers.formulas import close, numbers
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
