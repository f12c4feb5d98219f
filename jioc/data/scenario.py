"""Which classes arrive when: the class order, the split into tasks, the long tail, the hold-out."""

import re
from dataclasses import dataclass

import numpy as np

from jioc.config import Config
from jioc.data import catalogue
from jioc.data.dataset import Dataset
from jioc.data.images.listing import normalise_name
from jioc.errors import Refused, refuse_if, unknown
from jioc.text import counted


@dataclass(frozen=True)
class Scenario:
    """The classes in the order in which they are learnt, their tasks and their images."""

    classes: list[str]
    sizes: tuple[int, ...]  # classes of each task
    train: list[np.ndarray]  # for each class, indices of its training images
    test: list[np.ndarray]  # for each class, indices of the images that evaluate it
    held_out: bool  # training images evaluate; the test set is not used

    @property
    def counts(self) -> list[int]:
        return [len(index) for index in self.train]


class NothingToJudge(Refused):
    """There is no test image at all."""


def make(dataset: Dataset, config: Config) -> Scenario:
    """Make the scenario of a configuration; refuse a class or a task without the images that it needs."""
    order = class_order(dataset, config)
    sizes = task_sizes(len(order), dataset.tasks, config)
    train = _thin_out([np.flatnonzero(dataset.train_y == c) for c in order], order, dataset, config)
    if empty := [dataset.classes[c] for c, index in zip(order, train, strict=True) if not len(index)]:
        raise Refused(f"class {empty[0]!r} has no training image")
    fewest = 1 if config.judged_by_holdout else 0
    held = [min(len(i) - 1, max(fewest, round(config.holdout * len(i)))) for i in train]
    if config.judged_by_holdout:
        test = [index[len(index) - k :] for index, k in zip(train, held, strict=True)]
    else:
        test = [np.flatnonzero(dataset.test_y == c) for c in order]
    if config.holdout:
        train = [index[: len(index) - k] for index, k in zip(train, held, strict=True)]
    if not sum(map(len, test)):
        raise NothingToJudge(
            "there is no image to judge by: the test set is empty, or no class has two images to split"
        )
    for t in range(len(sizes)):
        refuse_if(
            not sum(map(len, test[sum(sizes[:t]) : sum(sizes[: t + 1])])),
            f"no class of task {t + 1} has an image to judge by; fewer --tasks would mend that",
        )
    return Scenario([dataset.classes[c] for c in order], sizes, train, test, config.judged_by_holdout)


def class_order(dataset: Dataset, config: Config) -> list[int]:
    """Original labels in the order in which they are learnt; seed 1993 is the field's usual order."""
    n = len(dataset.classes)
    if config.order is None:
        return np.random.RandomState(config.order_seed).permutation(n).tolist()
    if config.order == "original":
        return list(range(n))
    known = {str(c): c for c in range(n)} | {name: c for c, name in enumerate(dataset.classes)}
    order: list[int] = []
    numbered = any(map(str.isdecimal, dataset.classes)) and any(isinstance(one, str) for one in config.order)
    for text in config.order:  # an original label; or a name, which may have spaces, or several names
        if isinstance(text, int):
            in_quotes = f", and a class called {text} stands in quotes" * (str(text) in known)
            refuse_if(not 0 <= text < n, f"--order: {text} is no label; they are 0 to {n - 1}{in_quotes}")
            order.append(text)
            continue
        line = normalise_name(str(text))
        names = [line] if line in known else re.split(r"[\s,]+", line)
        if wrong := [name for name in names if name not in known]:
            raise unknown("class in --order", line if wrong == names else wrong[0], dataset.classes)
        order += [known[name] for name in names]
    refuse_if(
        sorted(order) != list(range(n)),
        f"--order names {counted(len(set(order)), 'class')} in {counted(len(order), 'place')}; "
        f"{dataset.name} has {n}, each to be named once"
        + "; a number in a file or in quotes is the name of one"
        * numbered,
    )
    return order


def task_sizes(classes: int, usual: int, config: Config) -> tuple[int, ...]:
    """The number of classes of each task; refuse a split that is impossible."""
    tasks, base, increment, given = config.tasks, config.base, config.increment, config.task_sizes
    has = f"the {counted(classes, 'class')} of {config.data}"
    refuse_if(
        given is not None and sum(given) != classes,
        f"--task-sizes add up to {counted(sum(given or ()), 'class')}; {config.data} has {classes}",
    )
    refuse_if(base is not None and increment is None, "--base needs --increment")
    first = (base or increment) if increment is not None else 0
    refuse_if(first > classes, f"--base {first} is more than {has}")
    even = given is None and increment is None
    refuse_if(even and (tasks or usual) > classes, f"--tasks {tasks or usual} is more than {has}")
    return catalogue.task_sizes(classes, tasks or usual, base, increment, given)


# --- the long tail ---

PAPER = {"cifar10": 13, "cifar100": 500}
"""The denominator of the paper's counts, int(most * 0.01 ** (i / denominator)).

They are 16,271 and 32,775 images in all, 206 and 200 in the rarest class."""


def _thin_out(
    train: list[np.ndarray], order: list[int], dataset: Dataset, config: Config
) -> list[np.ndarray]:
    """Keep the first n images of each class in file order, n from the long tail; all without one."""
    if config.long_tail is None:
        return train
    positions = list(range(len(order)))  # positions in the learnt order, most frequent class first
    if config.long_tail_order == "original":
        positions.sort(key=order.__getitem__)
    elif config.long_tail_order == "shuffled":
        positions = np.random.RandomState([config.order_seed, 1]).permutation(len(order)).tolist()
    counts = tail_counts([len(train[p]) for p in positions], config.long_tail, dataset.name)
    count = dict(zip(positions, counts, strict=True))
    return [index[: count[p]] for p, index in enumerate(train)]


def tail_counts(available: list[int], rule: float | str, dataset: str) -> list[int]:
    """The number of images of each class, of those available; both in the order of the tail."""
    most, classes = max(available), len(available)
    if rule == "paper":
        refuse_if(
            dataset not in PAPER,
            f"--long-tail paper is for {' and '.join(PAPER)}; give a factor for {dataset}",
        )
        wanted = [int(most * 0.01 ** (i / PAPER[dataset])) for i in range(classes)]
    else:
        wanted = [int(most * float(rule) ** (-i / max(classes - 1, 1))) for i in range(classes)]
    return [max(1, min(n, a)) for n, a in zip(wanted, available, strict=True)]
