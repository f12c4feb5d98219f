"""Mix the images of a batch, and their losses.

    mixup     x <- s x + (1 - s) x'            s ~ Beta(alpha, alpha), drawn for each image
    cutmix    a box of x' is pasted into x     of area 1 - s, cut off at the border; s: what is left of x
    loss      <- s loss(y) + (1 - s) loss(y')  term by term, so that a term without labels stays as it is

Zhang et al., ICLR 2018; Yun et al., ICCV 2019. The partner x' is any image of the batch, new or exemplar.
JIOC weighs a mixture by 1 - s p_y - (1 - s) p_y', and suppresses it where both images are old. Shapes never
depend on a draw, so that a CUDA graph can hold it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from jioc.data.augment.basic import Draws
from jioc.types import Batch, Output, Task, Terms


@dataclass(frozen=True)
class Mix:
    """A way to mix the images of a batch."""

    kind: Literal["mixup", "cutmix"]
    alpha: float = 1.0

    def draw(self, n: int, generator: torch.Generator) -> Draws:
        """Draw the partner (n,), the image's own share (n,), and the centre of the box in [0, 1) (2, n)."""
        device = generator.device
        partner = torch.rand(n, generator=generator, device=device).argsort()
        both = torch.full((2, n), self.alpha, dtype=torch.float64, device=device)
        a, b = torch._standard_gamma(both, generator=generator)
        share = torch.where(a + b > 0, a / (a + b), 0.5).float()
        return partner, share, torch.rand(2, n, generator=generator, device=device)

    def apply(self, x: Tensor, other: Tensor, share: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
        """Mix (n, c, h, w) with the partners as drawn; return it with each image's share in it (n,)."""
        if self.kind == "mixup":
            s = share[:, None, None, None].to(x)
            return s * x + (1 - s) * other, share
        inside = _box(share, centre, x.shape[2], x.shape[3])
        return torch.where(inside[:, None], other, x), 1 - inside.float().mean((1, 2))


def _box(share: Tensor, centre: Tensor, h: int, w: int) -> Tensor:
    """The pixels of each image's box, which covers 1 - share where no border cuts it off: (n, h, w)."""
    side = (1 - share).sqrt()

    def within(length: int, middle: Tensor) -> Tensor:
        half, at = (side * length / 2)[:, None], (middle * length).floor()[:, None]
        pixel = torch.arange(length, device=share.device)
        return (pixel >= (at - half).round()) & (pixel < (at + half).round())

    return within(h, centre[0])[:, :, None] & within(w, centre[1])[:, None, :]


def mixed_terms(
    loss: Callable[..., Terms], batch: Batch, out: Output, old: Output | None, task: Task
) -> Terms:
    """The terms of a loss; of mixed images, those of both labels, weighed by the images' shares."""
    if batch.other is None or batch.share is None:
        return loss(batch, out, old, task)
    one, two = (
        loss(replace(batch, y=y, old=y < task.n_old, other=None, share=None), out, old, task)
        for y in (batch.y, batch.other)
    )
    return {name: batch.share * one[name] + (1 - batch.share) * two[name] for name in one}
