"""Classifiers that grow: features (n, d) -> logits (n, K). Growing leaves the old classes' logits as they are."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LinearHead(nn.Module):
    """z = W f + b; W ~ U(-sqrt(3 / d), sqrt(3 / d)), b = 0."""

    def __init__(self, width: int, classes: int = 0):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, width))
        self.bias = nn.Parameter(torch.empty(classes))

    @torch.no_grad()
    def grow(self, n: int, generator: torch.Generator) -> None:
        bound = math.sqrt(3 / self.weight.shape[1])
        fresh = torch.empty(n, self.weight.shape[1]).uniform_(-bound, bound, generator=generator)
        self.weight = nn.Parameter(torch.cat([self.weight, fresh.to(self.weight)]))
        self.bias = nn.Parameter(torch.cat([self.bias, self.bias.new_zeros(n)]))

    def forward(self, features: Tensor) -> Tensor:
        return F.linear(features, self.weight, self.bias)


class CosineHead(nn.Module):
    """z = sigma cos(f, w); w ~ U(-1 / sqrt d, 1 / sqrt d), sigma learnt from 1."""

    def __init__(self, width: int, classes: int = 0):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, width))
        self.sigma = nn.Parameter(torch.ones(()))

    @torch.no_grad()
    def grow(self, n: int, generator: torch.Generator) -> None:
        bound = 1 / math.sqrt(self.weight.shape[1])
        fresh = torch.empty(n, self.weight.shape[1]).uniform_(-bound, bound, generator=generator)
        self.weight = nn.Parameter(torch.cat([self.weight, fresh.to(self.weight)]))

    def forward(self, features: Tensor) -> Tensor:
        return self.sigma * F.linear(F.normalize(features, dim=1), F.normalize(self.weight, dim=1))


HEADS: dict[str, type[LinearHead] | type[CosineHead]] = {"linear": LinearHead, "cosine": CosineHead}
