"""Exemplars and new images as one data set, from which a learner learns its next task."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from jioc.data.dataset import Dataset
from jioc.data.scenario import Scenario
from jioc.errors import Refused
from jioc.training.classifier import Classifier


def joined(learnt: Classifier, dataset: Dataset, known: str) -> tuple[Dataset, Scenario]:
    """Join the exemplars, class after class, and the new images; and the tasks so far with the new one.

    `known`: what to do about classes that were learnt already (refuse, add), or `rehearse`: there are no
    others.
    """
    assert learnt.exemplars is not None
    new = _new_classes(learnt, dataset, known)
    label = {name: c for c, name in enumerate(dataset.classes)}
    old = [label.get(name, -1) for name in learnt.classes]  # -1: no image has that label
    held = np.cumsum([0, *map(len, learnt.exemplars)])
    train = [held[-1] + index for index in rows(dataset.train_y, [*old, *new])]
    for c, exemplars in enumerate(learnt.exemplars):
        fresh = ~among(dataset.train_x[train[c] - held[-1]], exemplars)
        train[c] = np.concatenate([np.arange(held[c], held[c + 1]), train[c][fresh]])
    classes = [*learnt.classes, *(dataset.classes[c] for c in new)]
    sizes = (*learnt.sizes, *([len(new)] if new else []))
    scenario = Scenario(classes, sizes, train, rows(dataset.test_y, [*old, *new]), False)
    refuse_empty(scenario, len(old))
    whole = replace(
        dataset,
        train_x=np.concatenate([*learnt.exemplars, dataset.train_x]),
        train_y=np.concatenate([np.full(held[-1], -1, np.int64), dataset.train_y]),
        mean=learnt.preprocessing.mean,
        std=learnt.preprocessing.std,
        size=learnt.preprocessing.size,
        augment=learnt.preprocessing.augment,
    )
    return whole, scenario


def _new_classes(learnt: Classifier, dataset: Dataset, known: str) -> list[int]:
    """The labels of the data set that are new; refuse images, or classes, that cannot be learnt."""
    shape = learnt.preprocessing.shape
    if dataset.train_x.shape[1:] != shape:
        wanted, got = ("x".join(map(str, one)) for one in (shape, dataset.train_x.shape[1:]))
        raise Refused(f"this model learnt images of {wanted} (channels, height, width), not of {got}")
    again = [name for name in dataset.classes if name in set(learnt.classes)]
    if again and known == "refuse":
        raise Refused(f"already learnt: {', '.join(map(repr, again))}; --known add uses their new images too")
    if again and known == "add" and learnt.method.spec.memory == "none":
        raise Refused(
            f"{learnt.method.spec.name} keeps no exemplars, so new images of old classes have no place"
        )
    new = [label for label, name in enumerate(dataset.classes) if name not in set(learnt.classes)]
    if not new and known != "rehearse":
        raise Refused(f"there is no new class among {', '.join(map(repr, dataset.classes))}")
    return new


def two_labels(learnt: Classifier, dataset: Dataset) -> str | None:
    """Warn of an image of one class that is an exemplar of another."""
    held: dict[bytes, str] = {}
    for name, images in zip(learnt.classes, learnt.exemplars or [], strict=True):
        held |= dict.fromkeys((image.tobytes() for image in images), name)
    clashes = []
    for x, y in ((dataset.train_x, dataset.train_y), (dataset.test_x, dataset.test_y)):
        for image, label in zip(x, y, strict=True):
            new, old = dataset.classes[label], held.get(image.tobytes())
            if old not in (None, new):
                clashes.append((new, old))
    if not clashes:
        return None
    (new, old), more = clashes[0], f" (and {len(clashes) - 1:,} more such)" if len(clashes) > 1 else ""
    return f"an image of class {new!r} is an exemplar of {old!r}{more}: one of the two labels is wrong"


def rows(y: np.ndarray, labels: Iterable[int]) -> list[np.ndarray]:
    """The rows of each label."""
    return [np.flatnonzero(y == c) for c in labels]


def among(images: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each image is also among the others, pixel for pixel: (n,)."""
    known = {image.tobytes() for image in others} if len(images) else set()
    return np.array([image.tobytes() in known for image in images], bool)


def refuse_empty(scenario: Scenario, first: int = 0) -> None:
    """Refuse a class without a training image, from the class `first` on."""
    for name, index in list(zip(scenario.classes, scenario.train, strict=True))[first:]:
        if not len(index):
            raise Refused(f"class {name!r} has no training image")
