"""Batch normalisation of one process's images, and of the images of all processes.

Synchronised over the processes, one process and several train the same network: the mean, then the squares
about it, are summed over the processes with the number of values, and both sums pass gradients. torch's
SyncBatchNorm computes the same on CUDA alone, and not on our module.
"""

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

EPS, MOMENTUM = 1e-5, 0.1  # torch's


class BatchNorm(nn.Module):
    """torch's BatchNorm2d less its count of batches, which nothing reads and which costs a kernel."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, eps: float = EPS):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        # a single value has no variance, such as an epoch's last image as a map of 1x1
        measured = self.training and x[:, 0].numel() > 1
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, measured, MOMENTUM, self.eps
        )


class SynchronisedBatchNorm(BatchNorm):
    """BatchNorm over the images of all processes."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        full = x.float()
        sums = SumOverProcesses.apply(
            torch.cat([full.sum((0, 2, 3)), full.new_full((1,), full[:, 0].numel())])
        )
        n, mean = sums[-1].detach(), sums[:-1] / sums[-1]
        centred = full - mean.view(1, -1, 1, 1)
        var = SumOverProcesses.apply(centred.square().sum((0, 2, 3))) / n
        single = n == 1  # has no variance: the running statistics stand in, as in BatchNorm
        with torch.no_grad():
            step = torch.where(single, 0.0, MOMENTUM).to(var)
            self.running_mean.lerp_(mean.to(self.running_mean), step)
            self.running_var.lerp_((var * n / (n - 1).clamp_min(1)).to(self.running_var), step)
        mean, var = torch.where(single, self.running_mean, mean), torch.where(single, self.running_var, var)
        scaled = (full - mean.view(1, -1, 1, 1)) * ((var + self.eps).rsqrt() * self.weight).view(1, -1, 1, 1)
        return (scaled + self.bias.view(1, -1, 1, 1)).to(x.dtype)


class SumOverProcesses(torch.autograd.Function):
    """The sum over the processes; its gradient is summed over them, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return SumOverProcesses.forward(ctx, gradients[0].contiguous())


def synchronise(net: nn.Module) -> None:
    """Make every BN of the network measure the images of all processes from now on."""
    for module in net.modules():
        if type(module) is BatchNorm:
            module.__class__ = SynchronisedBatchNorm
