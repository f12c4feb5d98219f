"""The kernels of `fused.py`, in Triton: convolutions that take BN's sums along, and what stands between them.

A program works on BM pixels, all of one image. Activations are (n, h, w, c). CI, CO: channels in and out; H: side of
the map that is read; HO: of the one that is written; ST: stride. Sums over a batch are whole numbers in 64 bits (fixed
point), whose order does not matter. A layer's `sums` hold, a row of its channels each:

    0  sum of y     1  sum of y²     2  sum of g     3  sum of g times the normalised y         g = dL/dz
"""

import triton
import triton.language as tl

Y_UNIT = tl.constexpr(2.0**28)  # of sums over y and y²: room for a root mean square of 500 over 2^17 pixels
G_UNIT = tl.constexpr(2.0**44)  # of sums over gradients
NONE, SAME, STRIDED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
"""What a block adds to its second layer: nothing, its input, or every second row and column of it and zero channels."""


@triton.jit
def _pixel(tile, BM: tl.constexpr, SIDE: tl.constexpr):
    """Of a tile's pixels: their number, image, row and column."""
    m = tile * BM + tl.arange(0, BM)
    return m, m // (SIDE * SIDE), (m // SIDE) % SIDE, m % SIDE


@triton.jit
def _moments(sums, c, count, C: tl.constexpr):
    """Mean of y and one over its deviation."""
    mean, square = tl.load(sums + c).to(tl.float32), tl.load(sums + C + c).to(tl.float32)
    unit = 1.0 / (Y_UNIT * count)
    mean = mean * unit
    var = tl.maximum(square * unit - mean * mean, 0.0)
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
    tl.atomic_add(sums + c, (tl.sum(values, 0) * UNIT).to(tl.int64), sem="relaxed")


@triton.jit
def _convolved(
    x, w, n, i, j, BM: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr, ST: tl.constexpr,
    UP: tl.constexpr,
):  # fmt: skip
    """The 3x3 convolution of x with packed weights (9, CI, CO), at some pixels: (BM, CO).

    UP: x is read as if a row and a column of zeros stood between any two of its own, H being its side then.
    """
    ci, co = tl.arange(0, CI), tl.arange(0, CO)
    SIDE: tl.constexpr = H // UP
    weights = w + ci[:, None] * CO + co[None, :]
    acc = tl.zeros((BM, CO), tl.float32)
    for tap in range(9):
        u, v = i * ST + (tap // 3 - 1), j * ST + (tap % 3 - 1)
        inside = (u >= 0) & (u < H) & (v >= 0) & (v < H)
        if UP == 2:
            inside = inside & (u % 2 == 0) & (v % 2 == 0)
            u, v = u // 2, v // 2
        a = tl.load(x + (((n * SIDE + u) * SIDE + v) * CI)[:, None] + ci[None, :], inside[:, None], 0.0)
        k = tl.load(weights + tap * (CI * CO))
        acc = tl.dot(a, k, acc, input_precision="ieee")
    return acc


@triton.jit
def _patches(x, sn, sc, sh, sw, n, i, j, C: tl.constexpr, K: tl.constexpr, H: tl.constexpr):
    """The 3x3 surroundings of pixels of images in any layout: (BM, K), of which 9 C are used, channels innermost."""
    k = tl.arange(0, K)
    u, v = i[:, None] + (k // (3 * C) - 1)[None, :], j[:, None] + ((k // C) % 3 - 1)[None, :]
    inside = (u >= 0) & (u < H) & (v >= 0) & (v < H) & (k < 9 * C)[None, :]
    return tl.load(x + n[:, None] * sn + u * sh + v * sw + ((k % C) * sc)[None, :], inside, 0.0)


@triton.jit
def _stem(
    x, w, sn, sc, sh, sw, n, i, j, CI: tl.constexpr, K: tl.constexpr, CO: tl.constexpr, H: tl.constexpr,
    TYPE: tl.constexpr,
):  # fmt: skip
    """The 3x3 convolution of images, at some pixels: (BM, CO). The weights are (CO, 9, CI)."""
    k, co = tl.arange(0, K), tl.arange(0, CO)
    a = _patches(x, sn, sc, sh, sw, n, i, j, CI, K, H).to(TYPE)
    b = tl.load(w + k[:, None] + (co * (9 * CI))[None, :], (k < 9 * CI)[:, None], 0.0).to(TYPE)
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _short(x, n, i, j, C: tl.constexpr, H: tl.constexpr, KIND: tl.constexpr):
    """What a block adds to its second layer, at some pixels: (BM, C)."""
    c = tl.arange(0, C)
    if KIND == SAME:
        return tl.load(x + (((n * H + i) * H + j) * C)[:, None] + c[None, :]).to(tl.float32)
    at = ((n * (2 * H) + 2 * i) * (2 * H) + 2 * j) * (C // 2)
    return tl.load(x + at[:, None] + c[None, :], (c < C // 2)[None, :], 0.0).to(tl.float32)


@triton.jit
def pack(table, packed, flipped, BLOCK: tl.constexpr, TYPE: tl.constexpr):
    """Weights (co, 9, ci) of any number of layers as (9, ci, co), and as (9 from the last, co, ci), rounded.

    `table`: a row for each program: the weights' address, its first element, where the layer's begin, ci, co.
    """
    row = table + tl.program_id(0) * 5
    w = tl.load(row).to(tl.pointer_type(TYPE))
    first, at = tl.load(row + 1).to(tl.int32), tl.load(row + 2)
    ci, co = tl.load(row + 3).to(tl.int32), tl.load(row + 4).to(tl.int32)
    e = first + tl.arange(0, BLOCK)
    here = e < 9 * ci * co
    value = tl.load(w + e, here, 0.0).to(packed.dtype.element_ty)
    c, tap, o = e % ci, (e // ci) % 9, e // (9 * ci)
    tl.store(packed + at + (tap * ci + c) * co + o, value, here)
    tl.store(flipped + at + ((8 - tap) * co + o) * ci + c, value, here)


@triton.jit
def conv(
    x, w, y, sums, sn, sc, sh, sw, BM: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr,
    HO: tl.constexpr, ST: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """y and its sums. K > 0: x are images, of the strides given."""
    co = tl.arange(0, CO)
    m, n, i, j = _pixel(tl.program_id(0), BM, HO)
    TYPE: tl.constexpr = y.dtype.element_ty
    if K > 0:
        acc = _stem(x, w, sn, sc, sh, sw, n, i, j, CI, K, CO, H, TYPE)
    else:
        acc = _convolved(x, w, n, i, j, BM, CI, CO, H, ST, 1)
    acc = acc.to(TYPE)
    tl.store(y + (m * CO)[:, None] + co[None, :], acc)
    seen = acc.to(tl.float32)
    _add(sums, co, seen, Y_UNIT)
    _add(sums + CO, co, seen * seen, Y_UNIT)


@triton.jit
def join(
    y, sums, gamma, beta, running_mean, running_var, x, out, count, BM: tl.constexpr, C: tl.constexpr, H: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """out = relu(z + shortcut), z the batch norm of y; the running statistics take the batch's in."""
    tile, c = tl.program_id(0), tl.arange(0, C)
    m, n, i, j = _pixel(tile, BM, H)
    at = (m * C)[:, None] + c[None, :]
    z = tl.load(y + at).to(tl.float32)
    mean, var, r = _moments(sums, c, count, C)
    s = tl.load(gamma + c) * r
    z = z * s[None, :] + (tl.load(beta + c) - s * mean)[None, :]
    if KIND != NONE:
        z += _short(x, n, i, j, C, H, KIND)
    tl.store(out + at, tl.maximum(z, 0.0).to(out.dtype.element_ty))
    if tile == 0:
        tl.store(running_mean + c, 0.9 * tl.load(running_mean + c) + 0.1 * mean)
        tl.store(running_var + c, 0.9 * tl.load(running_var + c) + 0.1 * var * (count / (count - 1.0)))


@triton.jit
def frozen(
    x, w, out, gamma, beta, running_mean, running_var, short, sn, sc, sh, sw, BM: tl.constexpr, CI: tl.constexpr,
    CO: tl.constexpr, H: tl.constexpr, HO: tl.constexpr, ST: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """relu(BN(conv(x)) + shortcut) with the running statistics: a layer of a network that does not learn."""
    co = tl.arange(0, CO)
    m, n, i, j = _pixel(tl.program_id(0), BM, HO)
    TYPE: tl.constexpr = out.dtype.element_ty
    if K > 0:
        acc = _stem(x, w, sn, sc, sh, sw, n, i, j, CI, K, CO, H, TYPE)
    else:
        acc = _convolved(x, w, n, i, j, BM, CI, CO, H, ST, 1)
    s = tl.load(gamma + co) * tl.rsqrt(tl.load(running_var + co) + 1e-5)
    z = acc * s[None, :] + (tl.load(beta + co) - s * tl.load(running_mean + co))[None, :]
    if KIND != NONE:
        z += _short(short, n, i, j, CO, HO, KIND)
    tl.store(out + (m * CO)[:, None] + co[None, :], tl.maximum(z, 0.0).to(TYPE))


@triton.jit
def _close(acc, at, y, out, g, sums, count, C: tl.constexpr):
    """From dL/dout to g, where out > 0, and its sums."""
    c = tl.arange(0, C)
    kept = tl.where(tl.load(out + at) > 0, acc, 0.0).to(g.dtype.element_ty)
    tl.store(g + at, kept)
    mean, var, r = _moments(sums, c, count, C)
    kept = kept.to(tl.float32)
    _add(sums + 2 * C, c, kept, G_UNIT)
    _add(sums + 3 * C, c, kept * (tl.load(y + at).to(tl.float32) - mean[None, :]) * r[None, :], G_UNIT)


@triton.jit
def top(dfeatures, y, out, g, sums, count, BM: tl.constexpr, C: tl.constexpr, H: tl.constexpr):
    """From the gradient of the mean over pixels to g of the last layer, and its sums."""
    m, n, i, j = _pixel(tl.program_id(0), BM, H)
    c = tl.arange(0, C)
    acc = tl.load(dfeatures + (n * C)[:, None] + c[None, :]) * (1.0 / (H * H))
    _close(acc, (m * C)[:, None] + c[None, :], y, out, g, sums, count, C)


@triton.jit
def through(g, y, sums, gamma, dy, dgamma, dbeta, count, BM: tl.constexpr, C: tl.constexpr):
    """dL/dy from g: back through the batch norm; dL/dgamma and dL/dbeta."""
    tile, c = tl.program_id(0), tl.arange(0, C)
    at = ((tile * BM + tl.arange(0, BM)) * C)[:, None] + c[None, :]
    from_g, from_y = tl.load(g + at).to(tl.float32), tl.load(y + at).to(tl.float32)
    mean, var, r = _moments(sums, c, count, C)
    shift, scale = _gradients(sums, c, C)
    up, per = tl.load(gamma + c) * r, 1.0 / count
    slope = -up * r * scale * per
    rest = -slope * mean - up * shift * per
    d = up[None, :] * from_g + slope[None, :] * from_y + rest[None, :]
    tl.store(dy + at, d.to(dy.dtype.element_ty))
    if tile == 0:
        tl.store(dbeta + c, shift)
        tl.store(dgamma + c, scale)


@triton.jit
def back(
    dy, w, y, out, g, sums, short, count, BM: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr,
    UP: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """From dL/dy of a layer (CI channels here) to g of the layer below (CO of side H), and its sums.

    `short`: g of the block's end, which the shortcut hands down.
    """
    co = tl.arange(0, CO)
    m, n, i, j = _pixel(tl.program_id(0), BM, H)
    acc = _convolved(dy, w, n, i, j, BM, CI, CO, H, 1, UP)
    at = (m * CO)[:, None] + co[None, :]
    if KIND == SAME:
        acc += tl.load(short + at).to(tl.float32)
    if KIND == STRIDED:
        half = (((n * (H // 2) + i // 2) * (H // 2) + j // 2) * CI)[:, None] + co[None, :]
        acc += tl.load(short + half, ((i % 2 == 0) & (j % 2 == 0))[:, None], 0.0).to(tl.float32)
    _close(acc, at, y, out, g, sums, count, CO)


@triton.jit
def weigh(
    x, dy, parts, tiles, BM: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr, HO: tl.constexpr,
    ST: tl.constexpr,
):  # fmt: skip
    """A part of the weights' gradient: a row of the kernel, over every so many tiles of pixels: (CO, 3, CI)."""
    part, row, ci, co = tl.program_id(0), tl.program_id(1), tl.arange(0, CI), tl.arange(0, CO)
    left = tl.zeros((CO, CI), tl.float32)
    middle = tl.zeros((CO, CI), tl.float32)
    right = tl.zeros((CO, CI), tl.float32)
    for tile in range(part, tiles, tl.num_programs(0)):
        m, n, i, j = _pixel(tile, BM, HO)
        d = tl.trans(tl.load(dy + (m * CO)[:, None] + co[None, :]))
        u, v = i * ST + row - 1, j * ST
        at = x + (((n * H + u) * H + v) * CI)[:, None] + ci[None, :]
        inside = (u >= 0) & (u < H)
        left = tl.dot(d, tl.load(at - CI, (inside & (v > 0))[:, None], 0.0), left, input_precision="ieee")
        middle = tl.dot(d, tl.load(at, inside[:, None], 0.0), middle, input_precision="ieee")
        right = tl.dot(d, tl.load(at + CI, (inside & (v + 1 < H))[:, None], 0.0), right, input_precision="ieee")
    to = parts + part * (9 * CI * CO) + (co * (9 * CI))[:, None] + (row * 3 * CI + ci)[None, :]
    tl.store(to, left)
    tl.store(to + CI, middle)
    tl.store(to + 2 * CI, right)


@triton.jit
def weigh_stem(
    x, dy, parts, tiles, sn, sc, sh, sw, BM: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, H: tl.constexpr,
    K: tl.constexpr,
):  # fmt: skip
    """The same of the first layer, whole: (CO, 9, CI)."""
    part, k, co = tl.program_id(0), tl.arange(0, K), tl.arange(0, CO)
    acc = tl.zeros((CO, K), tl.float32)
    for tile in range(part, tiles, tl.num_programs(0)):
        m, n, i, j = _pixel(tile, BM, H)
        d = tl.load(dy + (m * CO)[:, None] + co[None, :])
        acc = tl.dot(
            tl.trans(d), _patches(x, sn, sc, sh, sw, n, i, j, CI, K, H).to(d.dtype), acc, input_precision="ieee"
        )
    to = parts + part * (9 * CI * CO) + (co * (9 * CI))[:, None] + k[None, :]
    tl.store(to, acc, (k < 9 * CI)[None, :])


@triton.jit
def add_up(parts, grads, table, BLOCK: tl.constexpr, P: tl.constexpr):
    """The parts of every layer's gradient, added in their order.

    `table`: a row for each program: where its elements' parts begin, their stride, their number, where the sum goes,
    and how many elements there are.
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
