"""What a model was judged by: kept with it, so that learning on can tell what it forgets.

    rows      the accuracies after each task that it has learnt
    tests     test images of each class: at most `--keep-test` of a class, and 32 MiB in all
    trained   checksums of the images that it has trained on, so that none is taken for a test image

They are saved as judged.safetensors, beside the exemplars (`model.py`). `--keep-test 0` saves the rows alone.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from jioc.data.scenario import Scenario
from jioc.results import Accuracy, TaskRow
from jioc.training.checkpoint import State

MOST_BYTES = 32 << 20  # of a model's test images
DIGEST = 8  # bytes of a checksum
TIMES = ("seconds", "images_per_second")


def no_checksums() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Judged:
    rows: list[TaskRow] = field(default_factory=list)
    tests: list[np.ndarray] = field(default_factory=list)  # of each class, (m, c, h, w); empty: none is kept
    trained: np.ndarray = field(default_factory=no_checksums)  # sorted, int64 (n,)

    @property
    def row(self) -> TaskRow | None:
        """Of the last task."""
        return self.rows[-1] if self.rows else None

    def has_trained_on(self, images: np.ndarray) -> np.ndarray:
        """Whether the model is known to have trained on each image: (n,)."""
        return np.isin(checksums(images), self.trained) if len(self.trained) else np.zeros(len(images), bool)


def checksums(images: Iterable[np.ndarray]) -> np.ndarray:
    """A checksum of each image's pixels: int64 (n,)."""
    digests = [hashlib.blake2b(image.tobytes(), digest_size=DIGEST).digest() for image in images]
    return np.frombuffer(b"".join(digests), np.int64)


def spread(index: np.ndarray, keep: int, classes: int, image_bytes: int) -> np.ndarray:
    """Choose the test images of a class that are kept, evenly over its own, as many as there is room for."""
    room = min(keep, MOST_BYTES // max(1, classes * image_bytes))
    return index if len(index) <= room else index[np.arange(room) * len(index) // max(1, room)]


class Judging:
    """Collects what a run's model is judged by, given the pixels of its training and of its test images."""

    def __init__(self, train: np.ndarray, test: np.ndarray, scenario: Scenario):
        self.train, self.test, self.scenario = train, test, scenario
        self.checksums: list[np.ndarray] = []  # of the training images of each class, computed once

    def judged(self, rows: list[TaskRow], classes: int, keep: int) -> Judged:
        """What is kept after so many classes; `keep`: test images of a class, 0 for the rows alone."""
        size = self.test[:1].nbytes
        tests = [self.test[spread(index, keep, classes, size)] for index in self.scenario.test[:classes]]
        if not keep:
            return Judged(list(rows), tests, no_checksums())
        for index in self.scenario.train[len(self.checksums) : classes]:
            self.checksums.append(checksums(self.train[i] for i in index))
        return Judged(
            list(rows), tests, np.unique(np.concatenate([no_checksums(), *self.checksums[:classes]]))
        )


# --- learning on ---


def without_trained(tests: list[np.ndarray], images: np.ndarray) -> tuple[list[np.ndarray], int]:
    """Leave out test images that are about to be trained on; and how many these are."""
    if not any(map(len, tests)):
        return tests, 0
    coming = checksums(images)
    kept = [images[~np.isin(checksums(images), coming)] for images in tests]
    return kept, sum(map(len, tests)) - sum(map(len, kept))


def learnt_row(row: TaskRow, tested: list[int], before: dict[str, float | None]) -> TaskRow:
    """Complete the row of a task that was learnt on.

    `tested`: test images of each class; `before`: the accuracy on those of old classes before the task. Few
    images of old classes may be at hand, so old and new classes count for `all` by their number.
    """
    n_old, n_seen = row.classes

    def complete(name: str, accuracy: Accuracy) -> Accuracy:
        both = None
        if accuracy.old is not None and accuracy.new is not None:
            both = (n_old * accuracy.old + (n_seen - n_old) * accuracy.new) / n_seen
        return accuracy.model_copy(update={"all": both, "top5": None, "before": before.get(name)})

    changed = {name: complete(name, accuracy) for name, accuracy in row.by_readout.items()}
    named: dict[str, Any] = {name: changed.pop(name) for name in ("cnn", "nme") if name in changed}
    return row.model_copy(update={**named, "readouts": changed, "tested": tested})


# --- as plain data ---


def to_state(judged: Judged, shape: tuple[int, ...]) -> State:
    """What judged.safetensors holds."""
    pixels = np.concatenate([np.zeros((0, *shape), np.uint8), *judged.tests])
    return {
        "rows": [_compact(row) for row in judged.rows],
        "held": [len(images) for images in judged.tests],
        "images": torch.from_numpy(pixels),
        "trained": torch.from_numpy(judged.trained.copy()),
    }


def _compact(row: TaskRow) -> dict[str, Any]:
    """A row without its times, so that the same learning gives the same file, and without the confusions."""
    values = {name: value for name, value in row.plain().items() if name not in TIMES}
    if values.get("diagnostics"):
        values["diagnostics"].pop("confusion", None)
    return values


def from_state(state: State, shape: tuple[int, ...], classes: int) -> Judged:
    """Put together what `to_state` gave; a ValueError says what does not fit."""
    rows = [TaskRow.model_validate(row) for row in state["rows"]]
    held, images, trained = state["held"], state["images"], state["trained"]
    if any(not row.classes[0] < row.classes[1] <= classes for row in rows):
        raise ValueError("the tasks of judged.safetensors do not fit its classes")
    fits = tuple(images.shape) == (sum(held), *shape) and images.dtype == torch.uint8
    if not fits or len(held) not in (0, classes) or min(held, default=0) < 0:
        raise ValueError("its test images do not fit its classes")
    if trained.dtype != torch.int64 or trained.dim() != 1:
        raise ValueError("its checksums of images are none")
    tests = np.split(images.numpy(), np.cumsum(held)[:-1]) if held else []
    return Judged(rows, tests, np.unique(trained.numpy()))
