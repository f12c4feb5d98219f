"""Class order, tasks, long tails, hold-out: the figures that the field and the paper print."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jioc.config import values as settings
from jioc.data import scenario
from jioc.data.augment.basic import Augment
from jioc.data.dataset import Dataset
from jioc.errors import Refused

ORDER_1993 = [68, 56, 78, 8, 23, 84, 90, 65, 74, 76, 40, 89, 3, 92, 55, 9, 26, 80, 43, 38]


def made(name: str, classes: int, each: int, test_each: int = 2) -> Dataset:
    y = np.tile(np.arange(classes), each)
    test_y = np.tile(np.arange(classes), test_each)
    blank = np.zeros((1, 1, 1, 1), np.uint8)
    names = [f"class {c}" for c in range(classes)]
    return Dataset(name, names, blank, y, blank, test_y, (0.5,), (0.5,), Augment())


def make(dataset: Dataset, **values: object) -> scenario.Scenario:
    return scenario.make(dataset, settings.make(method="icarl", data=dataset.name, **values))


def test_seed_1993_gives_the_usual_order() -> None:
    names = make(made("cifar100", 100, 3)).classes
    assert names[:20] == [f"class {c}" for c in ORDER_1993]
    assert make(made("cifar10", 10, 3)).classes == [f"class {c}" for c in [4, 2, 7, 6, 0, 3, 5, 8, 9, 1]]


def test_an_order_by_name_or_label() -> None:
    data = made("digits", 4, 3)
    assert make(data, tasks=2, order=("class 3", "0", 2, "class 1")).classes == [
        "class 3",
        "class 0",
        "class 2",
        "class 1",
    ]
    with pytest.raises(Refused, match="did you mean 'class 1'"):
        make(data, tasks=2, order=("clas-1", "0", "2", "3"))
    assert make(data, tasks=2, order=("class 3", "0, 2 1")).classes == [
        "class 3",
        "class 0",
        "class 2",
        "class 1",
    ]
    with pytest.raises(Refused, match="each to be named once"):
        make(data, tasks=2, order=("0", "0", "2", "3"))


def test_a_number_is_an_original_label_whatever_classes_are_called() -> None:
    data = replace(made("digits", 4, 3), classes=["1", "2", "3", "4"])
    assert make(data, tasks=2, order=(3, 0, 1, 2)).classes == ["4", "1", "2", "3"]
    assert make(data, tasks=2, order=("3", "4", "1", "2")).classes == ["3", "4", "1", "2"]
    with pytest.raises(
        Refused, match="4 is no label; they are 0 to 3, and a class called 4 stands in quotes"
    ):
        make(data, tasks=2, order=(3, 1, 2, 4))


@pytest.mark.parametrize(
    ("message", "sizes"),
    [
        ({}, (2, 2, 2, 2, 2)),
        ({"tasks": 3}, (4, 3, 3)),
        ({"tasks": 10}, (1,) * 10),
        ({"base": 4, "increment": 4}, (4, 4, 2)),
        ({"base": 9, "increment": 5}, (9, 1)),
        ({"increment": 3}, (3, 3, 3, 1)),
        ({"task_sizes": (1, 2, 7)}, (1, 2, 7)),
        ({"base": 10, "increment": 1}, (10,)),
    ],
)
def test_task_sizes(message: dict[str, object], sizes: tuple[int, ...]) -> None:
    assert make(made("digits", 10, 2), **message).sizes == sizes


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ({"tasks": 11}, "more than the 10 classes"),
        ({"base": 11, "increment": 1}, "more than the 10 classes"),
        ({"base": 5}, "needs --increment"),
        ({"task_sizes": (4, 4)}, "add up to 8"),
        ({"long_tail": "paper"}, "give a factor for digits"),
    ],
)
def test_impossible_splits_are_refused(message: dict[str, object], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        make(made("digits", 10, 2), **message)


@pytest.mark.parametrize(
    ("name", "classes", "most", "total", "fewest"),
    [("cifar10", 10, 5000, 16_271, 206), ("cifar100", 100, 500, 32_775, 200)],
)
def test_the_papers_long_tails(name: str, classes: int, most: int, total: int, fewest: int) -> None:
    s = make(made(name, classes, most), long_tail="paper")
    assert (sum(s.counts), max(s.counts), min(s.counts)) == (total, most, fewest)
    by_label = {int(c.split()[1]): n for c, n in zip(s.classes, s.counts, strict=True)}
    assert [by_label[c] for c in range(classes)] == sorted(
        s.counts, reverse=True
    )  # by original label, before the order


def test_a_long_tail_by_factor_in_each_order() -> None:
    data = made("digits", 10, 100)
    expected = [int(100 * 20 ** (-i / 9)) for i in range(10)]
    assert expected[0] == 100 and expected[-1] == 5
    learnt = make(data, long_tail=20, long_tail_order="learnt")
    assert learnt.counts == expected
    shuffled = make(data, long_tail=20, long_tail_order="shuffled")
    assert sorted(shuffled.counts, reverse=True) == expected
    assert shuffled.counts not in (learnt.counts, make(data, long_tail=20).counts)
    label = int(learnt.classes[3].split()[1])
    assert (
        learnt.train[3].tolist() == np.flatnonzero(data.train_y == label)[: expected[3]].tolist()
    )  # the first, in file order
    assert all(len(t) == 2 for t in learnt.test)  # the test set stays whole


def test_a_small_class_is_never_emptied() -> None:
    assert scenario.tail_counts([100, 3, 1], 1000.0, "digits") == [100, 3, 1]
    assert scenario.tail_counts([1], 10.0, "digits") == [1]


def test_a_holdout_takes_its_share_of_each_class_and_leaves_the_test_set() -> None:
    data = made("digits", 10, 100)
    s = make(data, holdout=0.1, long_tail=10)
    whole = make(data, long_tail=10)
    for train, test, both in zip(s.train, s.test, whole.train, strict=True):
        assert len(test) == max(1, round(0.1 * len(both)))
        assert sorted([*train, *test]) == both.tolist()
    assert s.held_out


def test_another_order_seed_changes_the_class_order_only(tmp_path: Path) -> None:
    data = made("digits", 10, 30)
    a, b = make(data, long_tail=5), make(data, long_tail=5, order_seed=7)
    assert a.classes != b.classes
    of = dict(zip(a.classes, a.train, strict=True))
    assert all(of[name].tolist() == index.tolist() for name, index in zip(b.classes, b.train, strict=True))


def test_what_is_held_out_may_be_left_aside_and_the_test_set_judge() -> None:
    """LT-CIL's way: a tenth of each class, rounded, so that a class of four keeps all."""
    rows = [np.full(n, c) for c, n in enumerate((40, 16, 4))]
    y = np.concatenate(rows)
    x = np.zeros((len(y), 1, 8, 8), np.uint8)
    dataset = Dataset("toy", list("abc"), x, y, x, y, (0.5,), (0.5,), None, tasks=1)
    config = settings.make(method="icarl", data="digits", tasks=1, holdout=0.1, judge_by="test")
    made = scenario.make(dataset, config)
    assert sorted(made.counts) == [4, 14, 36] and not made.held_out
    assert sorted(map(len, made.test)) == [4, 16, 40]


def test_the_counts_of_lt_cil() -> None:
    counts = scenario.tail_counts([500] * 100, 100, "cifar100")
    assert counts == [int(500 * 0.01 ** (i / 99)) for i in range(100)]
    assert (counts[0], counts[-1], sum(counts)) == (500, 5, 10847)
