"""Estimates of GPU minutes, against sums written out."""

import pytest

from helpers.scripts import script
from jioc.config import make
from jioc.resolve import recipes
from jioc.resolve.derive import resolve


def test_minutes_count_backbones_the_head_and_the_tasks_that_are_learnt() -> None:
    told = script("minutes")
    every = {run: resolve(make(**values)) for run, values in recipes.find_recipe("components").make().items()}

    def steps(name: str, tasks: int | None = None) -> float:
        return told.steps(every[f"cifar100-resnet32-2000-{name}"], tasks)

    first = 4500 * 200 * 3  # images, epochs, passes; a tenth is held out
    trained = [4500 + min(2000, 4500 * t) for t in range(1, 10)]
    assert steps("der-none", 1) * 4 == first
    assert steps("der-none") * 4 == first + sum(n * 170 * (3 + t) for t, n in enumerate(trained, 1))
    assert steps("der-none", 6) * 4 == first + sum(n * 170 * (3 + t) for t, n in enumerate(trained[:5], 1))
    head = [n * 30 for n in trained]
    more = [(steps(f"{host}-rebalance-head") - steps(f"{host}-none")) * 4 for host in ("icarl", "der")]
    assert more == pytest.approx([sum(head), sum(n * (t + 1) for t, n in enumerate(head, 1))])
    bytes_hold = [4500 + min(8000, 4500 * t) for t in range(1, 10)]
    assert steps("icarl-half-size") * 4 == first + sum(n * 170 * 4 for n in bytes_hold)
    lines, tail = told.components().splitlines(), recipes.find_recipe("components-long-tail").make()
    assert len(lines) == 2 + len(every) + 1 + len(tail) + 1
    assert lines[2 + len(every)].startswith(f"| all {len(every)} of components |")


def test_minutes_know_a_larger_first_task_and_exemplars_of_each_class() -> None:
    told = script("minutes")
    values = {"method": "icarl", "data": "cifar100", "base": 50, "increment": 25, "memory_per_class": 20}
    config = resolve(make(**values))
    first = 25_000 * 200 * 3
    assert told.steps(config) * 4 == first + (12_500 + 1000 + 12_500 + 1500) * 170 * 4
