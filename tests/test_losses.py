"""Each loss against a slow formula in float64, and its gradient against finite differences."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from helpers.losses import slow_cross_entropy, slow_distill, softmax
from jioc.losses import cross_entropy, distill, label_score, mass, only

N, K = 6, 5


@pytest.fixture
def z() -> Tensor:
    return torch.randn(N, K, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3


@pytest.fixture
def teacher() -> Tensor:
    return torch.randn(N, K, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3


Y = torch.tensor([0, 4, 2, 2, 1, 3])


def gradient_is_right(function: Callable[[Tensor], Tensor], z: Tensor) -> bool:
    return torch.autograd.gradcheck(
        lambda v: function(v).sum(), (z.clone().requires_grad_(),), eps=1e-6, atol=1e-6
    )


def test_cross_entropy(z: Tensor) -> None:
    assert cross_entropy(z, Y).tolist() == pytest.approx(slow_cross_entropy(z, Y), abs=1e-6)
    assert gradient_is_right(lambda v: cross_entropy(v, Y), z)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_distill(z: Tensor, teacher: Tensor, temperature: float) -> None:
    assert distill(z, teacher, temperature).tolist() == pytest.approx(
        slow_distill(z, teacher, temperature), abs=1e-6
    )
    assert gradient_is_right(lambda v: distill(v, teacher, temperature), z)


def test_distilling_oneself_costs_nothing(z: Tensor) -> None:
    assert distill(z, z).abs().max() < 1e-12


def test_distillation_ignores_a_shift_of_all_logits(z: Tensor, teacher: Tensor) -> None:
    assert torch.allclose(distill(z + 7, teacher), distill(z, teacher - 3))


def test_label_score_and_mass(z: Tensor) -> None:
    rows = [softmax(row) for row in z.tolist()]
    assert label_score(z, Y).tolist() == pytest.approx(
        [row[int(c)] for row, c in zip(rows, Y, strict=True)], abs=1e-6
    )
    assert mass(z, slice(3, 5)).tolist() == pytest.approx([row[3] + row[4] for row in rows], abs=1e-6)
    assert gradient_is_right(lambda v: label_score(v, Y), z)
    assert gradient_is_right(lambda v: mass(v, slice(3, 5)), z)


def test_a_softmax_over_some_classes_is_that_of_their_logits(z: Tensor) -> None:
    y = torch.tensor([2, 4, 2, 2, 3, 3])
    assert torch.allclose(cross_entropy(only(z, slice(2, 5)), y), cross_entropy(z[:, 2:], y - 2))
    v = z.clone().requires_grad_()
    cross_entropy(only(v, slice(2, 5)), y).sum().backward()
    assert v.grad is not None and v.grad[:, :2].eq(0).all() and v.grad.isfinite().all()
