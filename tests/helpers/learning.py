"""Short runs, and parts of the digits to learn."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from jioc.config import make
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset
from jioc.methods import SPECS
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.training.preflight import preflight
from jioc.training.runner import Run


def most_coordination(method: str) -> str:
    """The word of --coordinate for as much of JIOC as a method of ours bears."""
    spec = SPECS[method]
    return "none" if not spec.trains else "ic" if spec.memory == "none" else "jioc"


def new_run(dataset: Dataset | None = None, **values: Any) -> Run:
    """A run with these settings that has learnt nothing."""
    config = resolve(make(**values))
    return Run(preflight(config, dataset or load_dataset(config)))


def started(method: str, tasks: int, **more: Any) -> Run:
    """A short run on the digits that has learnt so many tasks."""
    wanted = {
        "task_sizes": (4, 3, 3),
        "memory": 60,
        "later": {"epochs": 1},
        "first": {"epochs": 1},
        "device": "cpu",
    }
    run = new_run(method=method, **overlay(wanted, more))
    for _ in range(tasks):
        run.learn_next()
    return run


def some_images(run: Run) -> torch.Tensor:
    return run.test.plain(torch.arange(0, 300, 7))


def some(dataset: Dataset, names: list[str]) -> Dataset:
    """Only those classes, labelled in that order."""
    label = np.full(len(dataset.classes), -1)
    label[[dataset.classes.index(name) for name in names]] = np.arange(len(names))
    train, test = label[dataset.train_y], label[dataset.test_y]
    return replace(
        dataset,
        classes=names,
        train_x=dataset.train_x[train >= 0],
        train_y=train[train >= 0],
        test_x=dataset.test_x[test >= 0],
        test_y=test[test >= 0],
    )
