"""The kernels, in Triton: convolutions that take BN's sums along, and what stands between them.

`pooling.py` has those of a stem that pools, `weights.py` those that work on weights and their gradients.

A program works on BM pixels and BN channels of what it writes. Activations are (n, h, w, c). CI, CO: channels
in and out; H: side of the map that is read; HO: of the one that is written; ST: stride; TAPS: 9 or 1, of the
kernel, 49 of ImageNet's stem; `total`: the pixels written, which WHOLE tiles divide. POS: a program works on
one pixel of BM images, and `total` are the images. Sums over a batch are whole numbers in 64 bits
(fixed point), whose order does not matter. A layer's `sums` hold, a row of its channels each:

    0  sum of s y   1  sum of (s y)²   2  sum of g   3  sum of g times the normalised y         g = dL/dz
    4  the bits of s, a power of two by which s y is about 1 where running statistics are those of the batch
"""

import triton
import triton.language as tl

Y_UNIT = tl.constexpr(2.0**28)  # of sums over s y and its square: room for an even 500 over 2^17 pixels
LEAST = tl.constexpr(2.0**-8)  # a mean of y² below which s stays: a unit is far below what BN adds to it
G_UNIT = tl.constexpr(2.0**44)  # of sums over gradients
NONE, SAME, STRIDED, PROJECTED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
"""What a block adds to its second layer: nothing; its input; every second row and column of it and zero
channels; or the batch norm of a 1x1 convolution of it."""


@triton.jit
def _pixel(tile, BM: tl.constexpr, SIDE: tl.constexpr):
    """Of a tile's pixels: their number, image, row and column."""
    m = tile * BM + tl.arange(0, BM)
    return m, m // (SIDE * SIDE), (m // SIDE) % SIDE, m % SIDE


@triton.jit
def _here(m, total, WHOLE: tl.constexpr):
    """Which of a tile's pixels there are; all of them where tiles are whole, at no cost."""
    return (m == m) if WHOLE else (m < total)


@triton.jit
def _tile(tile, total, BM: tl.constexpr, SIDE: tl.constexpr, WHOLE: tl.constexpr, POS: tl.constexpr):
    """Of a tile's pixels: their number, image, row, column, and which there are. POS: one row and column."""
    if POS:
        each = tl.cdiv(total, BM)
        n, at = (tile % each) * BM + tl.arange(0, BM), tile // each
        i, j = at // SIDE, at % SIDE
        return (n * SIDE + i) * SIDE + j, n, i, j, _here(n, total, WHOLE)
    else:
        m, n, i, j = _pixel(tile, BM, SIDE)
        return m, n, i, j, _here(m, total, WHOLE)


@triton.jit
def _taps(i, H: tl.constexpr):
    """Of the three taps at a row (or column): the first that sees the map, and how many do."""
    first = (i == 0).to(tl.int32)
    return first, 3 - first - (i + 1 >= H).to(tl.int32)


@triton.jit
def begin(table, sums, BLOCK: tl.constexpr):
    """No sums yet, and the scale s, of one layer.

    `table`: a row for each program: the addresses of the running mean and variance, where the sums begin, and
    how many channels there are.
    """
    row, c = table + tl.program_id(0) * 4, tl.arange(0, BLOCK)
    kind = tl.pointer_type(tl.float32)
    means, variances = tl.load(row).to(kind), tl.load(row + 1).to(kind)
    first, channels = tl.load(row + 2), tl.load(row + 3)
    here, to = c < channels, sums + first + c
    mean = tl.load(means + c, here, 0.0)
    square = tl.load(variances + c, here, 0.0) + mean * mean
    square = tl.where(square < float("inf"), tl.maximum(square, LEAST), 1.0)
    up = ((square.to(tl.int32, bitcast=True) >> 23) - 125) >> 1  # square < 4^up
    for k in tl.static_range(4):
        tl.store(to + k * channels, tl.zeros((BLOCK,), tl.int64), here)
    tl.store(to + 4 * channels, ((127 - up) << 23).to(tl.int64), here)


@triton.jit
def _scale(sums, c, C: tl.constexpr):
    return tl.load(sums + 4 * C + c).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _moments(sums, c, count, C: tl.constexpr):
    """Mean and variance of y, and one over its deviation."""
    mean, square = tl.load(sums + c).to(tl.float32), tl.load(sums + C + c).to(tl.float32)
    down, each = 1.0 / _scale(sums, c, C), 1.0 / (Y_UNIT * count)
    mean = mean * each * down
    var = tl.maximum(square * each * down * down - mean * mean, 0.0)
    return mean, var, tl.rsqrt(var + 1e-5)


@triton.jit
def _gradients(sums, c, C: tl.constexpr):
    """dL/dbeta and dL/dgamma."""
    return (
        tl.load(sums + 2 * C + c).to(tl.float32) * (1.0 / G_UNIT),
        tl.load(sums + 3 * C + c).to(tl.float32) * (1.0 / G_UNIT),
    )


@triton.jit
def _add(sums, c, values, UNIT: tl.constexpr):
    """Add a program's part, at most its share of what 63 bits hold: too large a sum must not wrap around."""
    most = 9.2e18 / tl.num_programs(0)
    tl.atomic_add(sums + c, tl.clamp(tl.sum(values, 0) * UNIT, -most, most).to(tl.int64), sem="relaxed")


@triton.jit
def _plus(acc, a, b, TURN: tl.constexpr):
    """acc + a b; TURN: all three transposed, with pixels across.

    So a Hopper's tensor cores take more columns at once, and a thread has the sums over its pixels to itself.
    """
    return tl.dot(tl.trans(b) if TURN else a, tl.trans(a) if TURN else b, acc, input_precision="ieee")


@triton.jit
def _convolved(
    x, w, n, i, j, here, co, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, CI: tl.constexpr,
    CO: tl.constexpr, H: tl.constexpr, ST: tl.constexpr, TAPS: tl.constexpr, BACK: tl.constexpr,
    POS: tl.constexpr,
):  # fmt: skip
    """The convolution of x with weights (CO, TAPS, CI), at some pixels and channels: (BM, BN).

    BACK: with the weights (CI, TAPS, CO) of a layer from CO to CI channels, turned about: the gradient of
    what it read. POS: only with the taps that see the map from the one pixel: on a map of 1x1 one of nine.
    """
    ci = tl.arange(0, BK)
    weights = w + (
        (ci * (TAPS * CO))[:, None] + co[None, :] if BACK else (co * (TAPS * CI))[:, None] + ci[None, :]
    )
    centre = (((n * H + i * ST) * H + j * ST) * CI)[:, None] + ci[None, :]
    TURN: tl.constexpr = BN >= 64
    acc = tl.zeros((BN, BM) if TURN else (BM, BN), tl.float32)
    if POS and TAPS == 9:
        top, rows = _taps(i * ST, H)
        left, columns = _taps(j * ST, H)
        for step in range(rows * columns * (CI // BK)):
            k, first = step % (rows * columns), (step // (rows * columns)) * BK
            down, right = top + k // columns - 1, left + k % columns - 1
            tap = 3 * down + right + 4
            a = tl.load(x + (centre + ((down * H + right) * CI + first)), here[:, None], 0.0)
            if BACK:
                b = tl.load(weights + (first * (TAPS * CO) + (TAPS - 1 - tap) * CO))
            else:
                b = tl.trans(tl.load(weights + (tap * CI + first)))
            acc = _plus(acc, a, b, TURN)
    else:
        seen = _seen(i * ST, j * ST, here, H, TAPS)
        for step in range(TAPS * (CI // BK)):
            tap, first = step % TAPS, (step // TAPS) * BK
            down, right = (tap // 3 - 1, tap % 3 - 1) if TAPS == 9 else (0, 0)
            at = centre + ((down * H + right) * CI + first)
            a = tl.load(x + at, ((seen >> tap) & 1 == 1)[:, None], 0.0)
            if BACK:
                b = tl.load(weights + (first * (TAPS * CO) + (TAPS - 1 - tap) * CO))
            else:
                b = tl.trans(tl.load(weights + (tap * CI + first)))
            acc = _plus(acc, a, b, TURN)
    return tl.trans(acc) if TURN else acc


@triton.jit
def _spread(
    dy, w, n, i, j, odd, right_odd, here, co, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr, POS: tl.constexpr,
):  # fmt: skip
    """The gradient of the input of a 3x3 convolution of stride 2, at its pixels (2 i + odd, 2 j + right_odd).

    `dy` has CI channels and the side H; the weights are (CI, 9, CO). An even row was read by the middle tap
    of one row of outputs, an odd one by the outer taps of two, and so for columns: one, two or four of the
    nine taps.
    """
    ci = tl.arange(0, BK)
    weights = w + (ci * (9 * CO))[:, None] + co[None, :]
    corner = (((n * H + i) * H + j) * CI)[:, None] + ci[None, :]
    TURN: tl.constexpr = BN >= 64
    acc = tl.zeros((BN, BM) if TURN else (BM, BN), tl.float32)
    under, next_to = odd, right_odd  # whether there are two rows of outputs, and two columns
    if POS:
        under, next_to = odd * (i + 1 < H).to(tl.int32), right_odd * (j + 1 < H).to(tl.int32)
    twice = under + next_to
    for step in range((CI // BK) << twice):
        below, beside = (step >> next_to) & under, step & next_to
        first = (step >> twice) * BK
        inside = here if POS else here & (i + below < H) & (j + beside < H)
        a = tl.load(dy + (corner + ((below * H + beside) * CI + first)), inside[:, None], 0.0)
        tap = 3 * (1 + odd - 2 * below) + 1 + right_odd - 2 * beside
        k = tl.load(weights + (first * (9 * CO) + tap * CO))
        acc = _plus(acc, a, k, TURN)
    return tl.trans(acc) if TURN else acc


@triton.jit
def _seen(i, j, here, H: tl.constexpr, TAPS: tl.constexpr):
    """Which taps at a pixel see the map, a bit each."""
    if TAPS == 1:
        return here.to(tl.int32)
    rows = tl.where(i > 0, 0b111, 0) | 0b111000 | tl.where(i + 1 < H, 0b111000000, 0)
    columns = tl.where(j > 0, 0b001001001, 0) | 0b010010010 | tl.where(j + 1 < H, 0b100100100, 0)
    return tl.where(here, rows & columns, 0)


@triton.jit
def _patches(x, sn, sc, sh, sw, n, i, j, here, C: tl.constexpr, K: tl.constexpr, H: tl.constexpr):
    """The 3x3 surroundings of pixels of images in any layout: (BM, K); 9 C are used, channels innermost."""
    k = tl.arange(0, K)
    u, v = i[:, None] + (k // (3 * C) - 1)[None, :], j[:, None] + ((k // C) % 3 - 1)[None, :]
    inside = here[:, None] & (u >= 0) & (u < H) & (v >= 0) & (v < H) & (k < 9 * C)[None, :]
    return tl.load(x + n[:, None] * sn + u * sh + v * sw + ((k % C) * sc)[None, :], inside, 0.0)


@triton.jit
def _stem(
    x, w, sn, sc, sh, sw, n, i, j, here, co, CI: tl.constexpr, K: tl.constexpr, H: tl.constexpr,
    TYPE: tl.constexpr,
):  # fmt: skip
    """The 3x3 convolution of images, at some pixels and channels: (BM, BN). The weights are (CO, 9, CI)."""
    k = tl.arange(0, K)
    a = _patches(x, sn, sc, sh, sw, n, i, j, here, CI, K, H).to(TYPE)
    b = tl.load(w + k[:, None] + (co * (9 * CI))[None, :], (k < 9 * CI)[:, None], 0.0).to(TYPE)
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _row_of_patches(
    x, sn, sc, sh, sw, n, i, j, here, row, C: tl.constexpr, K: tl.constexpr, H: tl.constexpr,
    ST: tl.constexpr,
):  # fmt: skip
    """A row of the 7x7 surroundings of every ST-th pixel of images: (BM, K); 7 C are used."""
    k = tl.arange(0, K)
    u, v = i * ST + row - 3, (j * ST)[:, None] + (k // C - 3)[None, :]
    inside = (here & (u >= 0) & (u < H))[:, None] & (v >= 0) & (v < H) & (k < 7 * C)[None, :]
    return tl.load(x + (n * sn + u * sh)[:, None] + v * sw + ((k % C) * sc)[None, :], inside, 0.0)


@triton.jit
def _wide_stem(
    x, w, sn, sc, sh, sw, n, i, j, here, co, BM: tl.constexpr, BN: tl.constexpr, CI: tl.constexpr,
    K: tl.constexpr, H: tl.constexpr, ST: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """The 7x7 convolution of images, a row of taps at a time: (BM, BN). The weights are (CO, 49, CI)."""
    k = tl.arange(0, K)
    acc = tl.zeros((BM, BN), tl.float32)
    for row in range(7):
        a = _row_of_patches(x, sn, sc, sh, sw, n, i, j, here, row, CI, K, H, ST).to(TYPE)
        at = (row * 7 * CI + k)[:, None] + (co * (49 * CI))[None, :]
        b = tl.load(w + at, (k < 7 * CI)[:, None], 0.0).to(TYPE)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    return acc


@triton.jit
def _short(x, at, n, i, j, here, c, C: tl.constexpr, H: tl.constexpr, KIND: tl.constexpr):
    """What a block adds to its second layer, at the pixels and channels `at` of a map like its own."""
    known = here[:, None]
    if KIND == STRIDED:
        at = (((n * (2 * H) + 2 * i) * (2 * H) + 2 * j) * (C // 2))[:, None] + c[None, :]
        known = known & (c < C // 2)[None, :]
    return tl.load(x + at, known, 0.0).to(tl.float32)


@triton.jit
def conv(
    x, w, y, sums, sn, sc, sh, sw, total, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr, HO: tl.constexpr, ST: tl.constexpr,
    TAPS: tl.constexpr, K: tl.constexpr, WHOLE: tl.constexpr, POS: tl.constexpr,
):  # fmt: skip
    """y and its sums. K > 0: x are images, of the strides given."""
    TYPE: tl.constexpr = y.dtype.element_ty
    co = tl.program_id(1) * BN + tl.arange(0, BN)
    m, n, i, j, here = _tile(tl.program_id(0), total, BM, HO, WHOLE, POS)
    if K > 0 and TAPS == 49:
        acc = _wide_stem(x, w, sn, sc, sh, sw, n, i, j, here, co, BM, BN, CI, K, H, ST, TYPE)
    elif K > 0:
        acc = _stem(x, w, sn, sc, sh, sw, n, i, j, here, co, CI, K, H, TYPE)
    else:
        acc = _convolved(x, w, n, i, j, here, co, BM, BN, BK, CI, CO, H, ST, TAPS, False, POS)
    acc = acc.to(TYPE)
    tl.store(y + (m * CO)[:, None] + co[None, :], acc, here[:, None])
    seen = acc.to(tl.float32) * _scale(sums, co, CO)[None, :]
    _add(sums, co, seen, Y_UNIT)
    _add(sums + CO, co, seen * seen, Y_UNIT)


@triton.jit
def _normalised(y, sums, gamma, beta, running_mean, running_var, c, count, first, C: tl.constexpr):
    """The batch norm of y; the first program of a channel has the running statistics take the batch's in."""
    mean, var, r = _moments(sums, c, count, C)
    s = tl.load(gamma + c) * r
    z = y * s[None, :] + (tl.load(beta + c) - s * mean)[None, :]
    if first:
        _take_in(running_mean, running_var, c, mean, var, count)
    return z


@triton.jit
def _take_in(running_mean, running_var, c, mean, var, count):
    """Move the running statistics towards a batch's."""
    tl.store(running_mean + c, 0.9 * tl.load(running_mean + c) + 0.1 * mean)
    tl.store(running_var + c, 0.9 * tl.load(running_var + c) + 0.1 * var * (count / (count - 1.0)))


@triton.jit
def join(
    y, sums, gamma, beta, running_mean, running_var, x, x_sums, x_gamma, x_beta, x_running_mean,
    x_running_var, out, count, total, BM: tl.constexpr, BN: tl.constexpr, C: tl.constexpr, H: tl.constexpr,
    KIND: tl.constexpr, RELU: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """out = relu(z + shortcut), z the batch norm of y. PROJECTED: x is the y of the shortcut's own layer."""
    tile, c = tl.program_id(0), tl.program_id(1) * BN + tl.arange(0, BN)
    m, n, i, j = _pixel(tile, BM, H)
    here = _here(m, total, WHOLE)
    at = (m * C)[:, None] + c[None, :]
    z = tl.load(y + at, here[:, None], 0.0).to(tl.float32)
    z = _normalised(z, sums, gamma, beta, running_mean, running_var, c, count, tile == 0, C)
    if KIND == PROJECTED:
        d = tl.load(x + at, here[:, None], 0.0).to(tl.float32)
        z += _normalised(d, x_sums, x_gamma, x_beta, x_running_mean, x_running_var, c, count, tile == 0, C)
    elif KIND != NONE:
        z += _short(x, at, n, i, j, here, c, C, H, KIND)
    if RELU:
        z = tl.maximum(z, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + at, z.to(out.dtype.element_ty), here[:, None])


@triton.jit
def frozen(
    x, w, out, gamma, beta, running_mean, running_var, short, sn, sc, sh, sw, total, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr, HO: tl.constexpr,
    ST: tl.constexpr, TAPS: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr, RELU: tl.constexpr,
    WHOLE: tl.constexpr, POS: tl.constexpr,
):  # fmt: skip
    """relu(BN(conv(x)) + shortcut) with the running statistics: a layer of a network that does not learn."""
    TYPE: tl.constexpr = out.dtype.element_ty
    co = tl.program_id(1) * BN + tl.arange(0, BN)
    m, n, i, j, here = _tile(tl.program_id(0), total, BM, HO, WHOLE, POS)
    at = (m * CO)[:, None] + co[None, :]
    if K > 0 and TAPS == 49:
        acc = _wide_stem(x, w, sn, sc, sh, sw, n, i, j, here, co, BM, BN, CI, K, H, ST, TYPE)
    elif K > 0:
        acc = _stem(x, w, sn, sc, sh, sw, n, i, j, here, co, CI, K, H, TYPE)
    else:
        acc = _convolved(x, w, n, i, j, here, co, BM, BN, BK, CI, CO, H, ST, TAPS, False, POS)
    s = tl.load(gamma + co) * tl.rsqrt(tl.load(running_var + co) + 1e-5)
    z = acc * s[None, :] + (tl.load(beta + co) - s * tl.load(running_mean + co))[None, :]
    if KIND != NONE:
        z += _short(short, at, n, i, j, here, co, CO, HO, KIND)
    if RELU:
        z = tl.maximum(z, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + at, z.to(TYPE), here[:, None])


@triton.jit
def _close(
    acc, at, c, here, y, out, g, more, sums, x_y, x_sums, count, C: tl.constexpr, MORE: tl.constexpr,
    PROJECTS: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """From dL/dout to g, where out > 0, and its sums; PROJECTS: also with the y of the shortcut's own layer.

    MORE: `more` is another part of dL/dout, from a loss on the map itself.
    """
    if MORE:
        acc += tl.load(more + at, here[:, None], 0.0).to(tl.float32)
    if RELU:
        acc = tl.where(tl.load(out + at, here[:, None], 0.0) > 0, acc, 0.0)
    kept = acc.to(g.dtype.element_ty)
    tl.store(g + at, kept, here[:, None])
    kept = kept.to(tl.float32)
    mean, var, r = _moments(sums, c, count, C)
    _add(sums + 2 * C, c, kept, G_UNIT)
    seen = tl.load(y + at, here[:, None], 0.0).to(tl.float32)
    _add(sums + 3 * C, c, kept * (seen - mean[None, :]) * r[None, :], G_UNIT)
    if PROJECTS:
        mean, var, r = _moments(x_sums, c, count, C)
        _add(x_sums + 2 * C, c, kept, G_UNIT)
        seen = tl.load(x_y + at, here[:, None], 0.0).to(tl.float32)
        _add(x_sums + 3 * C, c, kept * (seen - mean[None, :]) * r[None, :], G_UNIT)


@triton.jit
def top(
    dfeatures, y, out, g, more, sums, x_y, x_sums, count, total, BM: tl.constexpr, BN: tl.constexpr,
    C: tl.constexpr, H: tl.constexpr, MORE: tl.constexpr, PROJECTS: tl.constexpr, RELU: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    """From the gradient of the mean over pixels to g of the last layer, and its sums."""
    m, n, i, j = _pixel(tl.program_id(0), BM, H)
    here, c = _here(m, total, WHOLE), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.load(dfeatures + (n * C)[:, None] + c[None, :], here[:, None], 0.0) * (1.0 / (H * H))
    at = (m * C)[:, None] + c[None, :]
    _close(acc, at, c, here, y, out, g, more, sums, x_y, x_sums, count, C, MORE, PROJECTS, RELU)


@triton.jit
def through(
    g, y, sums, gamma, dy, dgamma, dbeta, count, total, BM: tl.constexpr, BN: tl.constexpr, C: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    """dL/dy from g: back through the batch norm; dL/dgamma and dL/dbeta."""
    tile, c = tl.program_id(0), tl.program_id(1) * BN + tl.arange(0, BN)
    m = tile * BM + tl.arange(0, BM)
    here, at = _here(m, total, WHOLE)[:, None], (m * C)[:, None] + c[None, :]
    from_g, from_y = tl.load(g + at, here, 0.0).to(tl.float32), tl.load(y + at, here, 0.0).to(tl.float32)
    _normalised_back(from_g, from_y, at, here, tile == 0, sums, gamma, dy, dgamma, dbeta, c, count, C)


@triton.jit
def _normalised_back(
    from_g, from_y, at, here, first, sums, gamma, dy, dgamma, dbeta, c, count, C: tl.constexpr
):  # fmt: skip
    """Write dL/dy, and the first program of a channel dL/dgamma and dL/dbeta."""
    mean, var, r = _moments(sums, c, count, C)
    shift, scale = _gradients(sums, c, C)
    up, per = tl.load(gamma + c) * r, 1.0 / count
    slope = -up * r * scale * per
    rest = -slope * mean - up * shift * per
    d = up[None, :] * from_g + slope[None, :] * from_y + rest[None, :]
    tl.store(dy + at, d.to(dy.dtype.element_ty), here)
    if first:
        tl.store(dbeta + c, shift)
        tl.store(dgamma + c, scale)


@triton.jit
def back(
    dy, w, y, out, g, more, sums, x_y, x_sums, short, short_w, count, total, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr, UP: tl.constexpr,
    KIND: tl.constexpr, MORE: tl.constexpr, PROJECTS: tl.constexpr, WHOLE: tl.constexpr, POS: tl.constexpr,
):  # fmt: skip
    """From dL/dy of a layer (CI channels here) to g of the layer below (CO of side H), and its sums.

    UP: the layer's stride; where it is 2, a program takes a quarter of the pixels: of rows and columns the
    even or the odd ones. `total`: the pixels written, or a quarter of them. `short`: g of the block's end,
    which the shortcut hands down; PROJECTED: dL/dy of the shortcut's own layer, whose weights are `short_w`.
    PROJECTS: the layer below ends a block with such a shortcut, whose y is `x_y`.
    """
    tile, co = tl.program_id(0), tl.program_id(1) * BN + tl.arange(0, BN)
    if UP == 1:
        m, n, i, j, here = _tile(tile, total, BM, H, WHOLE, POS)
        at = (m * CO)[:, None] + co[None, :]
        acc = _convolved(dy, w, n, i, j, here, co, BM, BN, BK, CI, CO, H, 1, 9, True, POS)
        if KIND == SAME:
            acc += tl.load(short + at, here[:, None], 0.0).to(tl.float32)
    else:
        odd, right_odd = (tile // 2) % 2, tile % 2
        m, n, i, j, here = _tile(tile // 4, total, BM, H // 2, WHOLE, POS)
        at = (((n * H + 2 * i + odd) * H + 2 * j + right_odd) * CO)[:, None] + co[None, :]
        acc = _spread(dy, w, n, i, j, odd, right_odd, here, co, BM, BN, BK, CI, CO, H // 2, POS)
        if odd + right_odd == 0:
            if KIND == STRIDED:
                acc += tl.load(short + (m * CI)[:, None] + co[None, :], here[:, None], 0.0).to(tl.float32)
            if KIND == PROJECTED:
                acc += _convolved(
                    short, short_w, n, i, j, here, co, BM, BN, BK, CI, CO, H // 2, 1, 1, True, POS
                )
    _close(acc, at, co, here, y, out, g, more, sums, x_y, x_sums, count, CO, MORE, PROJECTS, True)
