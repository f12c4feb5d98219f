"""From the indices of a batch to images: its parts, gathered, augmented and mixed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from jioc.data.augment.basic import Augmentation
from jioc.data.augment.mix import Mix
from jioc.data.loader import Images
from jioc.types import Batch, Task


def split(index: Tensor, n: int) -> tuple[Tensor, ...]:
    """Split a batch into n parts that are trained on in turn: every n-th image, as `World.share` has it."""
    return tuple(index[i::n] for i in range(min(n, len(index)))) if n > 1 else (index,)


@dataclass
class Batches:
    """Makes batches of training images; all that is random is drawn from `noise`."""

    images: Images
    augment: Augmentation
    mix: Mix | None
    noise: torch.Generator

    def gather(self, parts: tuple[Tensor, ...], task: Task, mixed: bool) -> list[Batch]:
        """Gather, augment and, if asked, mix this process's share of each part of a batch."""
        own, batches, every = self.images.own, list[Batch](), list[Tensor]()
        for part in parts:
            y = self.images.labels[part]
            old = y < task.n_old
            if self.mix is None or not mixed:
                x = self.images.augmented(part, self.augment, self.noise)
                batches.append(Batch(x, own(y), own(old)))
            else:
                x, partner, share = self.images.mixed(part, self.augment, self.mix, self.noise)
                old = old & old[partner]
                batches.append(Batch(x, own(y), own(old), other=own(y[partner]), share=share))
            every.append(old)
        if len(batches[0].y) < sum(map(len, parts)):
            for batch in batches:
                batch.whole_old = torch.cat(every)
        return batches
