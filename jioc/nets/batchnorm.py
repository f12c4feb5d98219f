"""Batch normalisation over the images of all processes: one process and several then train the same network.

The mean, then the squares about it, are summed over the processes with the number of values; both sums pass gradients.
torch's SyncBatchNorm computes the same on CUDA alone, and not on our module.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from jioc.nets.resnet import BatchNorm

EPS, MOMENTUM = 1e-5, 0.1  # torch's, as in BatchNorm


class Synchronised(BatchNorm):
    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        full = x.float()
        sums = Summed.apply(torch.cat([full.sum((0, 2, 3)), full.new_full((1,), full[:, 0].numel())]))
        n, mean = sums[-1].detach(), sums[:-1] / sums[-1]
        centred = full - mean.view(1, -1, 1, 1)
        var = Summed.apply(centred.square().sum((0, 2, 3))) / n
        lone = n == 1  # has no variance: the running statistics stand in, as in BatchNorm
        with torch.no_grad():
            step = torch.where(lone, 0.0, MOMENTUM).to(var)
            self.running_mean.lerp_(mean.to(self.running_mean), step)
            self.running_var.lerp_((var * n / (n - 1).clamp_min(1)).to(self.running_var), step)
        mean, var = torch.where(lone, self.running_mean, mean), torch.where(lone, self.running_var, var)
        scaled = (full - mean.view(1, -1, 1, 1)) * ((var + EPS).rsqrt() * self.weight).view(1, -1, 1, 1)
        return (scaled + self.bias.view(1, -1, 1, 1)).to(x.dtype)


class Summed(torch.autograd.Function):
    """The sum over the processes; so is its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return Summed.forward(ctx, gradients[0].contiguous())


def synchronise(net: nn.Module) -> None:
    """From now on every BN of the network measures the images of all processes."""
    for module in net.modules():
        if type(module) is BatchNorm:
            module.__class__ = Synchronised
