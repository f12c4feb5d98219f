"""The average of a network's weights over the steps of a stage (EMA).

    a_t = beta a_{t-1} + (1 - beta) w_t,   a_0 = 0;      w-bar_t = a_t / (1 - beta^t)

It is kept bias-corrected: w-bar <- w-bar + r (w - w-bar), r = (1 - beta) / (1 - beta^t), which is 1 at the
first step. BN's running statistics are averaged alike. When the stage ends the network takes the average, so
that the test, the exemplars, the teacher and the next task all have it. Nothing in a step waits for the
device, so that a CUDA graph can hold it.
"""

import math

import torch
from torch import Tensor, nn

from jioc.training.execution import Body, Sums

RUNNING = ("running_mean", "running_var")  # buffers of batch normalisation; others may be masks


class WeightAverage:
    """The average of the parameters that a stage trains, and of the running statistics that it changes."""

    def __init__(self, beta: float, trained: list[nn.Parameter], nets: nn.Module):
        statistics = [
            value
            for module in nets.modules() if module.training
            for name, value in module.named_buffers(recurse=False) if name in RUNNING
        ]  # fmt: skip
        self.weights: list[Tensor] = [*(p.data for p in trained), *statistics]
        self.average = [torch.zeros_like(w) for w in self.weights]
        self.steps = torch.zeros((), dtype=torch.float64, device=self.weights[0].device)
        self.beta = beta

    @property
    def tensors(self) -> list[Tensor]:
        """All that a step changes, and a checkpoint holds."""
        return [*self.average, self.steps]

    def after(self, step: Body) -> Body:
        """Return a step that also updates the average."""

        def both(index: Tensor, sums: Sums) -> None:
            step(index, sums)
            self.update()

        return both

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights as they are into the average."""
        self.steps.add_(1)
        rate = (self.beta - 1) / torch.expm1(self.steps * math.log(self.beta))  # (1 - b) / (1 - b^t)
        change = torch._foreach_sub(self.weights, self.average)
        torch._foreach_mul_(change, rate.to(self.average[0].dtype))
        torch._foreach_add_(self.average, change)

    @torch.no_grad()
    def hand_over(self) -> None:
        """Give the network the average, if there was a step."""
        if self.steps.item():
            for weight, mean in zip(self.weights, self.average, strict=True):
                weight.copy_(mean)
