"""Exemplars: herding against the slow double loop, quotas, trimming."""

import pytest
import torch
from torch import Tensor

from jioc.memory import Memory, class_means, herd


def slow_herd(features: Tensor, m: int) -> list[int]:
    mean, chosen = features.mean(0), []
    for k in range(1, min(m, len(features)) + 1):
        best = min(
            (i for i in range(len(features)) if i not in chosen),
            key=lambda i: float((mean - features[[*chosen, i]].sum(0) / k).norm()),  # noqa: B023
        )
        chosen.append(best)
    return chosen


@pytest.mark.parametrize("seed", range(10))
def test_herding_is_the_double_loop(seed: int) -> None:
    f = torch.nn.functional.normalize(
        torch.randn(25, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1
    )
    assert herd(f, 10).tolist() == slow_herd(f, 10)
    assert sorted(herd(f, 99).tolist()) == list(range(25))  # a class smaller than its quota is kept whole


def features_of(index: Tensor) -> Tensor:
    f = torch.randn(400, 8, generator=torch.Generator().manual_seed(5))
    return torch.nn.functional.normalize(f, dim=1)[index]


@pytest.mark.parametrize("select", ["herding", "random", "first"])
def test_the_total_is_shared_and_trimming_keeps_the_first_choices(select: str) -> None:
    memory, g = Memory(total=50, select=select), torch.Generator().manual_seed(0)
    memory.update([torch.arange(0, 100), torch.arange(100, 103)], features_of, g)
    assert [len(c) for c in memory.classes] == [25, 3]  # three images and a quota of 25
    before = memory.classes[0]
    memory.update([torch.arange(200, 300)], features_of, g)
    assert [len(c) for c in memory.classes] == [16, 3, 16]  # 50 // 3, the rest unused
    assert memory.classes[0].equal(before[:16])
    assert len(memory) == 35 and memory.index.unique().numel() == 35


def test_exemplars_per_class_do_not_shrink() -> None:
    memory, g = Memory(per_class=7), torch.Generator()
    memory.update([torch.arange(0, 50)], features_of, g)
    memory.update([torch.arange(50, 100), torch.arange(100, 150)], features_of, g)
    assert [len(c) for c in memory.classes] == [7, 7, 7]


def test_no_limit_keeps_every_image() -> None:
    memory = Memory()
    memory.update([torch.arange(0, 50), torch.arange(60, 61)], features_of, torch.Generator())
    assert memory.index.tolist() == [*range(50), 60]


def test_class_means_have_norm_one_and_mark_a_class_without_exemplars() -> None:
    memory = Memory(total=10)
    memory.classes = [torch.tensor([3, 5]), torch.tensor([], dtype=torch.long)]
    means = class_means(memory, features_of, 8)
    expected = features_of(torch.tensor([3, 5])).mean(0)
    assert torch.allclose(means[0], expected / expected.norm()) and means[1].isnan().all()
