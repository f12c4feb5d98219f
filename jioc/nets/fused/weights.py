"""The kernels that work on weights: rounding them, and their gradients, in parts that are added up."""

import triton
import triton.language as tl

from jioc.nets.fused.kernels import _here, _patches, _pixel, _row_of_patches, _seen


@triton.jit
def round_all(table, rounded, BLOCK: tl.constexpr, TYPE: tl.constexpr):
    """The weights of any number of layers in the type of the activations.

    `table`: a row for each program: the address of its first weight, where it goes, and how many follow.
    """
    row, e = table + tl.program_id(0) * 3, tl.arange(0, BLOCK)
    w, to, here = tl.load(row).to(tl.pointer_type(TYPE)), tl.load(row + 1), e < tl.load(row + 2)
    tl.store(rounded + to + e, tl.load(w + e, here, 0.0).to(rounded.dtype.element_ty), here)


@triton.jit
def weigh(
    x, dy, parts, tiles, total, BM: tl.constexpr, BO: tl.constexpr, BI: tl.constexpr, CI: tl.constexpr,
    CO: tl.constexpr, H: tl.constexpr, HO: tl.constexpr, ST: tl.constexpr, TAPS: tl.constexpr,
    EACH: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """A part of the weights' gradient: EACH of the taps, over every so many tiles: (BO, EACH, BI)."""
    part, group, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    co = (block // (CI // BI)) * BO + tl.arange(0, BO)
    ci = (block % (CI // BI)) * BI + tl.arange(0, BI)
    accs = (tl.zeros((BO, BI), tl.float32),) * EACH
    for tile in range(part, tiles, tl.num_programs(0)):
        m, n, i, j = _pixel(tile, BM, HO)
        here = _here(m, total, WHOLE)
        d = tl.trans(tl.load(dy + (m * CO)[:, None] + co[None, :], here[:, None], 0.0))
        centre = (((n * H + i * ST) * H + j * ST) * CI)[:, None] + ci[None, :]
        seen = _seen(i * ST, j * ST, here, H, TAPS)
        added = ()
        for k in tl.static_range(EACH):
            tap = group * EACH + k
            at = centre + (((tap // 3 - 1) * H + tap % 3 - 1) * CI if TAPS == 9 else 0)
            a = tl.load(x + at, ((seen >> tap) & 1 == 1)[:, None], 0.0)
            added = added + (tl.dot(d, a, accs[k], input_precision="ieee"),)
        accs = added
    to = parts + part * (TAPS * CI * CO) + (co * (TAPS * CI))[:, None] + ci[None, :]
    for k in tl.static_range(EACH):
        tl.store(to + (group * EACH + k) * CI, accs[k])


@triton.jit
def weigh_stem(
    x, dy, parts, tiles, total, sn, sc, sh, sw, BM: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr,
    H: tl.constexpr, K: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """The same of the first layer, whole: (CO, 9, CI)."""
    part, k, co = tl.program_id(0), tl.arange(0, K), tl.arange(0, CO)
    acc = tl.zeros((CO, K), tl.float32)
    for tile in range(part, tiles, tl.num_programs(0)):
        m, n, i, j = _pixel(tile, BM, H)
        here = _here(m, total, WHOLE)
        d = tl.load(dy + (m * CO)[:, None] + co[None, :], here[:, None], 0.0)
        seen = _patches(x, sn, sc, sh, sw, n, i, j, here, CI, K, H).to(d.dtype)
        acc = tl.dot(tl.trans(d), seen, acc, input_precision="ieee")
    to = parts + part * (9 * CI * CO) + (co * (9 * CI))[:, None] + k[None, :]
    tl.store(to, acc, (k < 9 * CI)[None, :])


@triton.jit
def weigh_wide_stem(
    x, dy, parts, tiles, total, sn, sc, sh, sw, BM: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr,
    H: tl.constexpr, HO: tl.constexpr, ST: tl.constexpr, K: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """The same of a first layer of 7x7 taps, one of their rows: (CO, 7, CI)."""
    part, row, k, co = tl.program_id(0), tl.program_id(1), tl.arange(0, K), tl.arange(0, CO)
    acc = tl.zeros((CO, K), tl.float32)
    for tile in range(part, tiles, tl.num_programs(0)):
        m, n, i, j = _pixel(tile, BM, HO)
        here = _here(m, total, WHOLE)
        d = tl.load(dy + (m * CO)[:, None] + co[None, :], here[:, None], 0.0)
        seen = _row_of_patches(x, sn, sc, sh, sw, n, i, j, here, row, CI, K, H, ST).to(d.dtype)
        acc = tl.dot(tl.trans(d), seen, acc, input_precision="ieee")
    to = parts + part * (49 * CI * CO) + (co * (49 * CI))[:, None] + (row * 7 * CI + k)[None, :]
    tl.store(to, acc, (k < 7 * CI)[None, :])


@triton.jit
def add_up(parts, grads, table, BLOCK: tl.constexpr, P: tl.constexpr):
    """The parts of every layer's gradient, added in their order.

    `table`: a row for each program: where its elements' parts begin, their stride, their number, where the
    sum goes, and how many elements there are.
    """
    row = table + tl.program_id(0) * 5
    first, size, count = tl.load(row), tl.load(row + 1), tl.load(row + 2)
    to, left = tl.load(row + 3), tl.load(row + 4)
    e, p = tl.arange(0, BLOCK), tl.arange(0, P)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, P):
        here = ((start + p) < count)[:, None] & (e < left)[None, :]
        acc += tl.sum(tl.load(parts + first + ((start + p) * size)[:, None] + e[None, :], here, 0.0), 0)
    tl.store(grads + to + e, acc, e < left)
