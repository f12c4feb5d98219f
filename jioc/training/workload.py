"""The images that a run trains on: those behind it, and about how many are left. No torch here.

A task's length in images follows from its settings up to what a method does with its exemplars and its second
stage; the run's own events correct that as they come.
"""

from jioc.config import Config
from jioc.config.schedule import stages
from jioc.events import Epoch, Start, Training
from jioc.methods import Spec

ORDER = {"first": 0, "later": 0, "second": 1, "rebalance": 2}  # of the stages of a task
Stage = tuple[int, str]  # of a task, 1 for the first


class Workload:
    """Counts the images of a run's epochs; `done` and `left` are up to date after each `update`."""

    def __init__(self, config: Config, spec: Spec, start: Start):
        self.expected: dict[Stage, float] = {}  # images of each stage of every task
        for t in range(len(start.sizes)):
            for stage, epochs in stages(config, t).items():
                self.expected[t + 1, stage] = epochs * _images(config, spec, start, t)
        self.seen: dict[Stage, int] = {}  # images that each stage has trained on
        self.factor: dict[str, float] = {}  # images of a stage, relative to what was expected
        self.before = sum(n for (task, _), n in self.expected.items() if task <= start.done)
        self.left = sum(self.expected.values()) - self.before

    @property
    def done(self) -> float:
        return self.before + sum(self.seen.values())

    def share(self, task: int) -> float:
        """How far a task is, from 0 to 1."""
        whole = sum(n for (t, _), n in self.expected.items() if t == task)
        return min(1.0, sum(n for (t, _), n in self.seen.items() if t == task) / whole) if whole else 0.0

    def update(self, event: Epoch | Training) -> None:
        """Count what the event tells of."""
        here = event.task, event.stage
        if isinstance(event, Epoch):
            each, self.seen[here] = event.images, event.epoch * event.images
        else:
            each, self.seen[here] = event.total, (event.epoch - 1) * event.total + event.done
        if expected := self.expected.get(here):
            self.factor[event.stage] = each * event.epochs / expected
        later = [key for key in self.expected if _place(key) > _place(here)]
        self.left = each * event.epochs - self.seen[here]
        self.left += sum(self.expected[task, stage] * self.factor.get(stage, 1.0) for task, stage in later)


def _place(stage: Stage) -> tuple[int, int]:
    return stage[0], ORDER.get(stage[1], 0)


def _images(config: Config, spec: Spec, start: Start, t: int) -> int:
    """The new images of a task (0 for the first), and the old ones that are kept by then."""
    old = sum(start.sizes[:t])
    new = sum(start.counts[old : old + start.sizes[t]])
    if spec.memory == "none" or old == 0:
        return new
    if spec.memory == "all":
        return new + sum(start.counts[:old])
    quota = config.memory_per_class or (start.memory or 0) // old
    return new + sum(min(quota, n) for n in start.counts[:old])
