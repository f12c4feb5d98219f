"""Classifiers that grow: features (n, d) -> logits (n, K). Old classes keep their logits.

A head is made from the sizes of the tasks that it has grown by, so that a plan of plain numbers describes it.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Head(nn.Module):
    """The interface of every head."""

    def __init__(self, width: int, sizes: Sequence[int] = ()):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(sum(sizes), width))

    def grow(self, n: int, generator: torch.Generator) -> None:
        """Make room for n more classes."""
        raise NotImplementedError

    def rows(self) -> Tensor:
        """A weight vector for each class, or for each of its proxies: (rows, d)."""
        return self.weight


class LinearHead(Head):
    """z = W f + b; W ~ U(-sqrt(3 / d), sqrt(3 / d)), b = 0."""

    scale: nn.Parameter | None  # (K,), factors of the logits while they are trained; see `fold_scale`

    def __init__(self, width: int, sizes: Sequence[int] = ()):
        super().__init__(width, sizes)
        self.bias = nn.Parameter(torch.empty(sum(sizes)))
        self.register_parameter("scale", None)

    @torch.no_grad()
    def grow(self, n: int, generator: torch.Generator, wider: int = 0) -> None:
        """Make room for n more classes and for `wider` more features, which old classes ignore."""
        old = F.pad(self.weight, (0, wider))
        fresh = _uniform(n, old, math.sqrt(3 / old.shape[1]), generator)
        self.weight = nn.Parameter(torch.cat([old, fresh]))
        self.bias = nn.Parameter(torch.cat([self.bias, self.bias.new_zeros(n)]))

    @torch.no_grad()
    def align(self, n_old: int) -> float:
        """Multiply the new rows by gamma = mean |w_old| / mean |w_new|, and return gamma.

        Zhao et al., CVPR 2020. Biases stay; where there is nothing old, rows stay too and gamma is 1.
        """
        if not n_old:
            return 1.0
        norms = self.weight.norm(dim=1)
        gamma = norms[:n_old].mean() / norms[n_old:].mean()
        self.weight[n_old:] *= gamma
        return gamma.item()

    @torch.no_grad()
    def draw_anew(self, generator: torch.Generator) -> None:
        """Draw every row again, as those of new classes are."""
        rows, width = self.weight.shape
        self.weight.copy_(_uniform(rows, self.weight, math.sqrt(3 / width), generator))
        self.bias.zero_()

    @torch.no_grad()
    def fold_scale(self) -> None:
        """Multiply rows and biases by `scale`, if there is one, which is gone then."""
        if self.scale is not None:
            self.weight.mul_(self.scale[:, None])
            self.bias.mul_(self.scale)
            self.scale = None

    def forward(self, features: Tensor) -> Tensor:
        z = F.linear(features, self.weight, self.bias)
        return z if self.scale is None else z * self.scale


class CorrectedHead(LinearHead):
    """z_k = alpha_s (W f + b)_k + beta_s for the classes k of task s; a pair (alpha, beta) starts at (1, 0).

    The pairs are not trained with the rest: whoever fits one asks for its gradient.
    """

    def __init__(self, width: int, sizes: Sequence[int] = ()):
        super().__init__(width, sizes)
        self.sizes = list(sizes)
        self.pairs = nn.ParameterList([self._pair() for _ in sizes])

    def _pair(self) -> nn.Parameter:
        return nn.Parameter(torch.tensor([1.0, 0.0], device=self.weight.device), requires_grad=False)

    def grow(self, n: int, generator: torch.Generator, wider: int = 0) -> None:
        super().grow(n, generator, wider)
        self.sizes.append(n)
        self.pairs.append(self._pair())

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat(self._corrected(super().forward(features)), dim=1)

    def uncorrected(self, features: Tensor) -> Tensor:
        """The logits with the newest task's pair taken as (1, 0)."""
        z = super().forward(features)
        return torch.cat([*self._corrected(z)[:-1], z[:, -self.sizes[-1] :]], dim=1)

    def _corrected(self, logits: Tensor) -> list[Tensor]:
        parts = logits.split(self.sizes, dim=1)
        return [pair[0] * z + pair[1] for pair, z in zip(self.pairs, parts, strict=True)]


class CosineHead(Head):
    """z = sigma cos(f, w); w ~ U(-1 / sqrt d, 1 / sqrt d), sigma learnt from 1."""

    def __init__(self, width: int, sizes: Sequence[int] = ()):
        super().__init__(width, sizes)
        self.sigma = nn.Parameter(torch.ones(()))

    @torch.no_grad()
    def grow(self, n: int, generator: torch.Generator) -> None:
        fresh = _uniform(n, self.weight, 1 / math.sqrt(self.weight.shape[1]), generator)
        self.weight = nn.Parameter(torch.cat([self.weight, fresh]))

    def forward(self, features: Tensor) -> Tensor:
        return self.sigma * F.linear(F.normalize(features, dim=1), F.normalize(self.weight, dim=1))


class ScaledCosineHead(Head):
    """z = 16 cos(f, w), not rounded to bf16: no class's rows or features weigh more by being longer.

    Gidaris and Komodakis, CVPR 2018; Hou et al., CVPR 2019, who learn the scale. w ~ as a linear head's.
    Where features grow by copies, f' = [f, f], old classes have z' = z / sqrt(2) until they are trained.
    """

    @torch.no_grad()
    def grow(self, n: int, generator: torch.Generator, wider: int = 0) -> None:
        """Make room for n more classes and for `wider` more features, which old rows ignore."""
        old = F.pad(self.weight, (0, wider))
        fresh = _uniform(n, old, math.sqrt(3 / old.shape[1]), generator)
        self.weight = nn.Parameter(torch.cat([old, fresh]))

    def forward(self, features: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            f = F.normalize(features.to(self.weight.dtype), dim=1)
            return SCALE * F.linear(f, F.normalize(self.weight, dim=1))


class NoHead(Head):
    """No logits, (n, 0): of a method that scores features itself."""

    def __init__(self, width: int, sizes: Sequence[int] = ()):
        super().__init__(width)

    def grow(self, n: int, generator: torch.Generator) -> None:
        pass

    def forward(self, features: Tensor) -> Tensor:
        return features[:, :0]


PROXIES = 10
SCALE = 16.0  # of cosines: a softmax over a hundred of them can come near to 1


class ProxyHead(Head):
    """z_k = sigma sum_j softmax_j(s_kj) s_kj, s_kj = cos(f, w_kj): ten proxies a class.

    Douillard et al., ECCV 2020. The proxies of earlier tasks are frozen; `weight` holds the newest task's,
    class after class.
    """

    def __init__(self, width: int, sizes: Sequence[int] = ()):
        super().__init__(width, [PROXIES * n for n in sizes[-1:]])
        self.frozen = nn.Parameter(torch.empty(PROXIES * sum(sizes[:-1]), width), requires_grad=False)
        self.sigma = nn.Parameter(torch.ones(()))

    @torch.no_grad()
    def grow(self, n: int, generator: torch.Generator) -> None:
        self.frozen = nn.Parameter(self.rows().clone(), requires_grad=False)
        self.weight = nn.Parameter(
            _uniform(PROXIES * n, self.weight, 1 / math.sqrt(self.weight.shape[1]), generator)
        )

    def rows(self) -> Tensor:
        return torch.cat([self.frozen, self.weight])

    def forward(self, features: Tensor) -> Tensor:
        cosines = F.linear(F.normalize(features, dim=1), F.normalize(self.rows(), dim=1))
        s = cosines.unflatten(1, (-1, PROXIES))  # (n, K, proxies)
        return self.sigma * (s.softmax(2) * s).sum(2)


def _uniform(n: int, like: Tensor, bound: float, generator: torch.Generator) -> Tensor:
    return torch.empty(n, like.shape[1]).uniform_(-bound, bound, generator=generator).to(like)


HEADS: dict[str, type[Head]] = {
    "linear": LinearHead,
    "corrected": CorrectedHead,
    "cosine": CosineHead,
    "scaled-cosine": ScaledCosineHead,
    "proxies": ProxyHead,
    "none": NoHead,
}
