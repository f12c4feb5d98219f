"""What an estimator has learnt in its calls so far. It never changes: a further call makes another one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jioc.config import Config
from jioc.data.catalogue import in_memory
from jioc.data.dataset import with_statistics
from jioc.data.sources.arrays import ArrayLayout
from jioc.errors import Refused
from jioc.resolve.derive import resolve
from jioc.resolve.validate import unused
from jioc.training.learner import Learner


@dataclass(frozen=True)
class Fitted:
    """The learner and the labels of its tasks."""

    form: ArrayLayout  # of X
    seed: int
    tasks: tuple[np.ndarray, ...] = ()  # the labels of each
    learner: Any = None  # a Learner once there is a task

    @property
    def labels(self) -> np.ndarray:
        """All labels, in the order of learning."""
        return np.concatenate(self.tasks)

    def learn(self, x: np.ndarray, y: np.ndarray, config: Config, flip: bool) -> "Fitted":
        """Learn new labels as a task; without any, train on further images of known ones."""
        known = self.labels if self.tasks else y[:0]
        if label_kind(known) != label_kind(y):
            so_far = f"the labels so far are {label_kind(known)}"
            raise Refused(f"{so_far}, so y cannot hold {label_kind(y)}")
        config = self._with_first_network(config)
        new, here = np.setdiff1d(y, known), np.unique(y)
        names = [self._name(label) if label in known else str(label) for label in here]
        images, positions = self.form.read(x), np.searchsorted(here, y)
        dataset = with_statistics(self.form.dataset(images, positions, names, flip), config)
        if self.learner is None:
            learner = Learner.first(config, dataset)
        elif len(new):
            learner = self.learner.learn(dataset, config=config, known="add")
        else:
            learner = self.learner.rehearse(dataset, config=config)
        return replace(self, learner=learner, tasks=(*self.tasks, new) if len(new) else self.tasks)

    def _name(self, label: Any) -> str:
        """The learner's name of a known label."""
        return self.learner.classes[np.flatnonzero(self.labels == label)[0]]

    def refuse_early(self, config: Config, classes: int) -> None:
        """Refuse before the first task what only the last one would refuse."""
        unused(resolve(config, in_memory("X", classes, self.form.side)))

    def _with_first_network(self, config: Config) -> Config:
        """Keep the method and the network of the first call; refuse others."""
        if self.learner is None:
            return config
        before = {name: getattr(self.learner.config, name) for name in ("method", "backbone", "stem")}
        for name, old in before.items():
            now = getattr(config, name)
            if now not in (None, old):
                raise Refused(f"{name} was {old!r} in the call before and is {now!r} now; fit starts anew")
        return config.filled(config.given, **before)


def label_kind(labels: np.ndarray) -> str:
    """The kind of labels: those of different kinds cannot be told apart or sorted together."""
    return {"O": "text", "U": "text", "S": "text", "b": "truth values"}.get(labels.dtype.kind, "numbers")
