"""Schedules: the learning rate of an epoch, the epochs of a task, and stages of another length or rate."""

import math
from collections.abc import Sequence
from typing import Any

from jioc.config.index import STAGES
from jioc.config.schema import Config, Schedule


def lr_at(schedule: Schedule, epoch: int) -> float:
    """The learning rate of an epoch, counted from 0."""
    assert schedule.lr is not None and schedule.epochs is not None
    if schedule.decay == "cosine":
        return schedule.lr * 0.5 * (1 + math.cos(math.pi * epoch / schedule.epochs))
    return schedule.lr * 0.1 ** sum(epoch >= m for m in schedule.milestones or ())


def rescale_milestones(milestones: Sequence[int], epochs: int, now: int) -> tuple[int, ...]:
    """Move the milestones of a stage that gets another length; those that meet become one."""
    return tuple(sorted({max(1, round(m * now / epochs)) for m in milestones}))


def rescale(config: Config, length: float, rate: float = 1.0) -> dict[str, Any]:
    """Make the stages that have epochs `length` times as long, and multiply their learning rates by `rate`.

    Milestones move with the length. The stages are returned as config.yaml has them.
    """
    stages: dict[str, Any] = {}
    for name, stage in ((name, getattr(config, name)) for name in STAGES):
        if stage.epochs is not None:
            epochs = max(1, round(stage.epochs * length))
            milestones = stage.milestones and rescale_milestones(stage.milestones, stage.epochs, epochs)
            changed = {"epochs": epochs, "lr": stage.lr and stage.lr * rate, "milestones": milestones}
            stages[name] = stage.model_copy(update=changed).model_dump(mode="json", exclude_none=True)
    return stages


def stages(config: Config, task: int) -> dict[str, int]:
    """The stages of a task (0 for the first) with their epochs; 0 for one that the method does not have."""
    trained = ("first",) if task == 0 else ("later", "second")
    epochs = {name: getattr(config, name).epochs or 0 for name in trained}
    return epochs | {"rebalance": config.rebalance_epochs or 0}


def total_epochs(config: Config, task: int) -> int:
    """Epochs that a task (0 for the first) trains, a second stage and a rebalanced head included."""
    return sum(stages(config, task).values())
