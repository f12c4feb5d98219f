"""RanPAC: ridge regression on random projections of frozen features (McDonnell et al., NeurIPS 2023).

    h = ReLU(f R)                               R (d, M) ~ N(0, 1), drawn once
    G = sum h h^T,  C = sum h y^T               over all images seen, y one-hot, float64
    W = (G + l I)^-1 C,   s(x) = h W,   p(c | x) = softmax(s / T)
    l = 10^-8 .. 10^8, the least        [tr (Y - HW)^T (Y - HW) / n] / (1 - tr H (G + l I)^-1 H^T / n)^2

Sums alone are kept: any order of tasks gives the same W. No gradient, no exemplars, no augmentation. T fits
each task's images, as SimpleCIL's does, each scored by the W that its leaving-out would give.

Departures: the paper holds out images of each task for l, which would depend on the order; generalised
cross-validation needs the sums alone. Powers under 10^-6 tr G are left out: rounding would show in W. The
paper fine-tunes the backbone on the first task; here it stays as it is. M is 2,000, or ten for each feature
where those are fewer; the paper's 10,000.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.methods import RanPACOptions, register
from jioc.methods.simplecil import FrozenFeatures, grown

POWERS = range(-8, 9)  # of ten, for the ridge
COLUMNS, TIMES = 2000, 10  # projections, at most so many for each feature
LEAST = 1e-6  # of the ridge, relative to the trace of G


@register("ranpac")
class RanPAC(FrozenFeatures):
    options: RanPACOptions
    persistent = ("projection", "gram", "ridge")
    for_learning = ("teacher", "sums", "gram")

    projection: Tensor | None = None  # R (d, M), float32
    gram: Tensor | None = None  # G (M, M), float64
    ridge: float = 0.0  # l

    def project(self, f: Tensor) -> Tensor:
        assert self.projection is not None
        return F.relu(f @ self.projection.to(f))

    def solve(self, f: Tensor, one_hot: Tensor) -> Tensor:
        if self.projection is None:
            shape = (self.net.width, self.options.projections or min(COLUMNS, TIMES * self.net.width))
            self.projection = torch.randn(shape, generator=self.generator).to(f.device)
        h = self.project(f)
        gram, products = h.T @ h, one_hot.T @ h
        self.gram = gram if self.gram is None else self.gram + gram
        self.sums = products if self.sums is None else grown(self.sums, len(products)) + products  # C^T
        assert self.counts is not None
        self.ridge, root = choose_ridge(self.gram, self.sums, self.counts.sum().item())
        w = self.sums @ root.T @ root
        self.rows = w.float()
        leverage = (h @ root.T).square().sum(1, keepdim=True)
        return (h @ w.T - leverage * one_hot) / (1 - leverage)

    def score(self, f: Tensor) -> Tensor:
        assert self.rows is not None
        return self.project(f) @ self.rows.T


def choose_ridge(gram: Tensor, products: Tensor, n: float) -> tuple[float, Tensor]:
    """Walk along the powers, from the mean of G's diagonal, to the least criterion; `products`: C^T (K, M).

    Give the ridge l with a root A of the inverse, A^T A = (G + l I)^-1.
    """
    eye, trace = torch.eye(len(gram)).to(gram), gram.trace().item()
    powers = [power for power in POWERS if 10.0**power >= LEAST * trace] or [POWERS[-1]]
    at = min(range(len(powers)), key=lambda i: abs(10.0 ** powers[i] - trace / len(gram)))
    tried: dict[int, tuple[float, Tensor]] = {}

    def criterion(i: int) -> float:
        if i not in tried:
            ridge = 10.0 ** powers[i]
            root = torch.linalg.solve_triangular(torch.linalg.cholesky(gram + ridge * eye), eye, upper=False)
            w = products @ root.T @ root
            error = n - (w * products).sum() - ridge * w.square().sum()  # tr (Y - HW)^T (Y - HW)
            left = n - len(gram) + ridge * root.square().sum()  # n less the degrees of freedom
            tried[i] = (n * error.clamp(min=0) / left**2).item(), root
        return tried[i][0]

    while (best := min(range(max(0, at - 1), min(len(powers), at + 2)), key=criterion)) != at:
        at = best
    return 10.0 ** powers[at], tried[at][1]
