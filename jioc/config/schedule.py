"""Schedules: the learning rate of an epoch, and stages that are made longer, shorter, faster or slower."""

import math
from collections.abc import Sequence

from jioc.config.schema import Config, Schedule


def lr_at(schedule: Schedule, epoch: int) -> float:
    """The learning rate of an epoch, counted from 0."""
    assert schedule.lr is not None and schedule.epochs is not None
    if schedule.decay == "cosine":
        return schedule.lr * 0.5 * (1 + math.cos(math.pi * epoch / schedule.epochs))
    return schedule.lr * 0.1 ** sum(epoch >= m for m in schedule.milestones or ())


def rescale_milestones(milestones: Sequence[int], epochs: int, now: int) -> tuple[int, ...]:
    """Move milestones of a stage of so many epochs into one of another length; those that meet become one."""
    return tuple(sorted({max(1, round(m * now / epochs)) for m in milestones}))


def rescale(stage: Schedule, length: float, rate: float = 1.0) -> Schedule:
    """Make a stage that many times as long, its milestones moved with it, and as fast."""
    assert stage.epochs is not None
    epochs = max(1, round(stage.epochs * length))
    milestones = stage.milestones and rescale_milestones(stage.milestones, stage.epochs, epochs)
    return stage.model_copy(
        update={"epochs": epochs, "lr": stage.lr and stage.lr * rate, "milestones": milestones}
    )


def total_epochs(config: Config, task: int) -> int:
    """Epochs that a task (0 for the first) trains, a second stage included."""
    if task == 0:
        return config.first.epochs or 0
    return (config.later.epochs or 0) + (config.second.epochs or 0)
