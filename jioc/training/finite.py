"""Refuse a network that has diverged: weights or answers that are infinite or not a number."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from jioc.device.distributed import ALONE, World
from jioc.errors import Failed
from jioc.methods.base import Method
from jioc.nets.incremental import Net

ADVICE = "so training has diverged; a smaller --lr may help"


class NotFinite(Failed):
    """A loss, a weight or an answer is infinite or not a number."""


def modules(method: Method) -> list[nn.Module]:
    """The modules of a method that a checkpoint holds."""
    values = [getattr(method, name) for name in method.persistent]
    return [value for value in values if isinstance(value, nn.Module)]


def check_weights(parts: Iterable[nn.Module], when: str = "", world: World = ALONE) -> None:
    """Fail if a parameter is not finite, or a statistic of batch normalisation in one of our networks.

    What else a module of somebody's own keeps, such as a mask, may be infinite.
    """
    held = [part.state_dict().values() if isinstance(part, Net) else part.parameters() for part in parts]
    wrong = [~tensor.isfinite().all() for some in held for tensor in some if tensor.is_floating_point()]
    if wrong and world.sum(torch.stack(wrong).sum().float()).item():
        raise NotFinite(f"some weights are not finite{when}, {ADVICE}")


def check_scores(scores: dict[str, Tensor]) -> None:
    """Fail if scores (n, K) give no probabilities. A class may have -inf, but not every class of an image."""
    for name, value in scores.items():
        if value.double().softmax(1).isnan().any():
            raise NotFinite(f"scores of the read-out {name!r} are not finite, {ADVICE}")
