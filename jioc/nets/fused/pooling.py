"""The kernels of a stem that pools: the largest of 3x3 at every second pixel, and the way back.

The stem's batch norm and ReLU are part of both. `which` keeps for each largest value its place among the
nine, the first where several are equal, as torch has it; `picked` its y, so that what comes back from the
pooled map gives the sums of the batch norm without the larger map.
"""

import triton
import triton.language as tl

from jioc.nets.fused.kernels import _here, _moments, _normalised_back, _pixel, _take_in


@triton.jit
def _window(k, i, j, here, n, H: tl.constexpr):
    """The pixels of place k in windows of a map of side 2 H, and which there are."""
    u, v = 2 * i + k // 3 - 1, 2 * j + k % 3 - 1
    return (n * (2 * H) + u) * (2 * H) + v, here & (u >= 0) & (v >= 0)


@triton.jit
def pool(
    y, sums, gamma, beta, running_mean, running_var, out, picked, which, count, total, BM: tl.constexpr,
    BN: tl.constexpr, C: tl.constexpr, H: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """out (side H) = the largest of relu(z) in each window, z the batch norm of y (side 2 H)."""
    tile, c = tl.program_id(0), tl.program_id(1) * BN + tl.arange(0, BN)
    m, n, i, j = _pixel(tile, BM, H)
    here, at = _here(m, total, WHOLE), (m * C)[:, None] + c[None, :]
    mean, var, r = _moments(sums, c, count, C)
    s = tl.load(gamma + c) * r
    shift = tl.load(beta + c) - s * mean
    if tile == 0:
        _take_in(running_mean, running_var, c, mean, var, count)
    best = tl.full((BM, BN), float("-inf"), tl.float32)
    kept, place = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.int32)
    for k in tl.static_range(9):
        pixel, inside = _window(k, i, j, here, n, H)
        seen = tl.load(y + (pixel * C)[:, None] + c[None, :], inside[:, None], 0.0).to(tl.float32)
        z = seen * s[None, :] + shift[None, :]
        better = inside[:, None] & ((z > best) | (z != z))
        best, kept, place = (
            tl.where(better, z, best),
            tl.where(better, seen, kept),
            tl.where(better, k, place),
        )
    best = tl.maximum(best, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + at, best.to(out.dtype.element_ty), here[:, None])
    tl.store(picked + at, kept.to(picked.dtype.element_ty), here[:, None])
    tl.store(which + at, place.to(tl.int8), here[:, None])


@triton.jit
def largest(
    x, out, total, BM: tl.constexpr, BN: tl.constexpr, C: tl.constexpr, H: tl.constexpr, WHOLE: tl.constexpr
):  # fmt: skip
    """out (side H) = the largest of x (side 2 H, never negative) in each window: a network that is frozen."""
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    m, n, i, j = _pixel(tl.program_id(0), BM, H)
    here = _here(m, total, WHOLE)
    best = tl.zeros((BM, BN), out.dtype.element_ty)
    for k in tl.static_range(9):
        pixel, inside = _window(k, i, j, here, n, H)
        seen = tl.load(x + (pixel * C)[:, None] + c[None, :], inside[:, None], 0.0)
        best = tl.maximum(best, seen, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + (m * C)[:, None] + c[None, :], best, here[:, None])


@triton.jit
def through_pool(
    g, which, y, sums, gamma, dy, dgamma, dbeta, count, total, BM: tl.constexpr, BN: tl.constexpr,
    C: tl.constexpr, H: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """dL/dy (side H) from g (half of it), which is 0 where ReLU let nothing pass; dL/dgamma and dL/dbeta.

    An even row is in one row of windows, in their middle; an odd one ends a window and begins the next.
    """
    tile, c = tl.program_id(0), tl.program_id(1) * BN + tl.arange(0, BN)
    m, n, u, v = _pixel(tile, BM, H)
    here, at = _here(m, total, WHOLE), (m * C)[:, None] + c[None, :]
    from_g = tl.zeros((BM, BN), tl.float32)
    for k in tl.static_range(4):
        i, j = u // 2 + k // 2, v // 2 + k % 2
        down, right = u - 2 * i + 1, v - 2 * j + 1
        inside = here & (down >= 0) & (right >= 0) & (i < H // 2) & (j < H // 2)
        to = (((n * (H // 2) + i) * (H // 2) + j) * C)[:, None] + c[None, :]
        chosen = tl.load(which + to, inside[:, None], 0).to(tl.int32) == (3 * down + right)[:, None]
        from_g += tl.load(g + to, inside[:, None] & chosen, 0.0).to(tl.float32)
    from_y = tl.load(y + at, here[:, None], 0.0).to(tl.float32)
    _normalised_back(
        from_g, from_y, at, here[:, None], tile == 0, sums, gamma, dy, dgamma, dbeta, c, count, C
    )  # fmt: skip
