"""Tell now and then how far an epoch is, so that a long one is seen to move. No torch here."""

import time
from collections.abc import Callable, Sequence, Sized

from jioc.events import Training

EVERY = 0.5  # seconds


class Pulse:
    """Called after each step of an epoch; tells at most every `EVERY` seconds."""

    def __init__(self, tell: Callable[[Training], None]):
        self.tell, self.last = tell, time.monotonic()

    def __call__(
        self, task: int, stage: str, epoch: int, epochs: int, batches: Sequence[Sized], step: int
    ) -> None:
        """Tell that the batches up to that step are trained on. Tasks, epochs and steps count from 0."""
        if (now := time.monotonic()) - self.last < EVERY:
            return
        self.last = now
        done, left = sum(map(len, batches[: step + 1])), sum(map(len, batches[step + 1 :]))
        self.tell(Training(task + 1, stage, epoch + 1, epochs, done, done + left))
