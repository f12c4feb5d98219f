"""Which classes arrive when: the class order, the split into tasks, the long tail, the hold-out."""

import re
from dataclasses import dataclass

import numpy as np

from jioc.config import Config
from jioc.data import catalogue, longtail
from jioc.data.dataset import Dataset
from jioc.data.images.files import normalise_name
from jioc.errors import Refused, unknown
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


def make(dataset: Dataset, config: Config) -> Scenario:
    """Make the scenario of a configuration; refuse a class or a task without the images that it needs."""
    order = class_order(dataset, config)
    sizes = task_sizes(len(order), dataset.tasks, config)
    train = [np.flatnonzero(dataset.train_y == c) for c in order]
    if config.long_tail is not None:
        train = _thin_out(train, order, dataset, config)
    empty = [dataset.classes[c] for c, index in zip(order, train, strict=True) if not len(index)]
    if empty:
        raise Refused(f"class {empty[0]!r} has no training image")
    if config.holdout:
        held = [min(len(index) - 1, max(1, round(config.holdout * len(index)))) for index in train]
        test = [index[len(index) - k :] for index, k in zip(train, held, strict=True)]
        train = [index[: len(index) - k] for index, k in zip(train, held, strict=True)]
    else:
        test = [np.flatnonzero(dataset.test_y == c) for c in order]
    if not sum(map(len, test)):
        raise Refused(
            "there is no image to judge by: the test set is empty, or no class has two images to split"
        )
    for t, size in enumerate(sizes):
        first = sum(sizes[:t])
        if not sum(map(len, test[first : first + size])):
            raise Refused(f"no class of task {t + 1} has an image to judge by; fewer --tasks would mend that")
    return Scenario([dataset.classes[c] for c in order], sizes, train, test, bool(config.holdout))


def class_order(dataset: Dataset, config: Config) -> list[int]:
    """Original labels in the order in which they are learnt; seed 1993 is the field's usual order."""
    n = len(dataset.classes)
    if config.order is None:
        return np.random.RandomState(config.order_seed).permutation(n).tolist()
    known = {str(c): c for c in range(n)} | {name: c for c, name in enumerate(dataset.classes)}
    order = []
    for text in config.order:  # a name, which may have spaces, or several names
        line = normalise_name(str(text))
        names = [line] if line in known else re.split(r"[\s,]+", line)
        wrong = [name for name in names if name not in known]
        if wrong:
            raise unknown("class in --order", line if wrong == names else wrong[0], dataset.classes)
        order += [known[name] for name in names]
    if sorted(order) != list(range(n)):
        raise Refused(
            f"--order names {counted(len(set(order)), 'class')} in {counted(len(order), 'place')}; "
            f"{dataset.name} has {n}, each to be named once"
        )
    return order


def task_sizes(classes: int, usual: int, config: Config) -> tuple[int, ...]:
    """The number of classes of each task; refuse a split that is impossible or given twice."""
    ways = [
        config.tasks is not None,
        config.base is not None or config.increment is not None,
        config.task_sizes is not None,
    ]
    if sum(ways) > 1:
        raise Refused(
            "say how classes are split in one way: --tasks, or --base and --increment, or --task-sizes"
        )
    tasks, base, increment, given = config.tasks or usual, config.base, config.increment, config.task_sizes
    if given is not None and sum(given) != classes:
        raise Refused(f"--task-sizes add up to {counted(sum(given), 'class')}; {config.data} has {classes}")
    if base is not None and increment is None:
        raise Refused("--base needs --increment")
    if increment is not None and (first := base or increment) > classes:
        raise Refused(f"--base {first} is more than the {counted(classes, 'class')} of {config.data}")
    if given is None and increment is None and tasks > classes:
        raise Refused(f"--tasks {tasks} is more than the {counted(classes, 'class')} of {config.data}")
    return catalogue.task_sizes(classes, tasks, base, increment, given)


def _thin_out(
    train: list[np.ndarray], order: list[int], dataset: Dataset, config: Config
) -> list[np.ndarray]:
    """Keep the first n images of each class in file order, n from the long tail."""
    assert config.long_tail is not None
    positions = list(range(len(order)))  # positions in the learnt order, most frequent class first
    if config.long_tail_order == "original":
        positions.sort(key=order.__getitem__)
    elif config.long_tail_order == "shuffled":
        positions = np.random.RandomState([config.order_seed, 1]).permutation(len(order)).tolist()
    counts = longtail.counts([len(train[p]) for p in positions], config.long_tail, dataset.name)
    thin = list(train)
    for p, n in zip(positions, counts, strict=True):
        thin[p] = train[p][:n]
    return thin
