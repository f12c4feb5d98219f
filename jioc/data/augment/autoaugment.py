"""AutoAugment's policy for CIFAR-10 on whole batches, each operation as PIL does it.

Cubuk et al., CVPR 2019. Each image draws one of 25 sub-policies: two operations, each applied with its own
probability and at its own strength, in a direction drawn for it. Every operation is computed for the whole
batch and taken where it was drawn, so that shapes and control flow never depend on the draw. Geometric
operations take the nearest pixel and fill with grey.
"""

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

POLICY = """
invert .1 7 contrast .2 6         | rotate .7 2 translate_x .3 9       | sharpness .8 1 sharpness .9 3
shear_y .5 8 translate_y .7 9     | autocontrast .5 8 equalize .9 2    | shear_y .2 7 posterize .3 7
colour .4 3 brightness .6 7       | sharpness .3 9 brightness .7 9     | equalize .6 5 equalize .5 1
contrast .6 7 sharpness .6 5      | colour .7 7 translate_x .5 8       | equalize .3 7 autocontrast .4 8
translate_y .4 3 sharpness .2 6   | brightness .9 6 colour .2 8        | solarize .5 2 invert .0 3
equalize .2 0 autocontrast .6 0   | equalize .2 8 equalize .6 4        | colour .9 9 equalize .6 6
autocontrast .8 4 solarize .2 8   | brightness .1 3 colour .7 0        | solarize .4 5 autocontrast .9 3
translate_y .9 9 translate_y .7 9 | autocontrast .9 2 solarize .8 3    | equalize .8 8 invert .1 3
translate_y .7 9 autocontrast .9 1
"""  # operation, probability, strength from 0 to 9; twice
SUBS = [line.split() for row in POLICY.strip().splitlines() for line in row.split("|")]
GREY = 128
STRONGEST = {  # at strength 9; operations that are not named have no strength
    "shear_x": 0.3,
    "shear_y": 0.3,
    "translate_x": 150 / 331,  # of the width
    "translate_y": 150 / 331,
    "rotate": 30.0,  # degrees
    "colour": 0.9,
    "contrast": 0.9,
    "sharpness": 0.9,
    "brightness": 0.9,
}
MOVES = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
LIGHTS = (
    "colour", "contrast", "sharpness", "brightness",
    "posterize", "solarize", "invert", "autocontrast", "equalize",
)  # fmt: skip


def draw(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Draw the sub-policy (n,), and the chance (2, n) and the direction (2, n) of its two operations."""
    device = generator.device
    which = torch.randint(0, len(SUBS), (n,), generator=generator, device=device)
    chance = torch.rand(2, n, generator=generator, device=device)
    return which, chance, torch.randint(0, 2, (2, n), generator=generator, device=device)


def augmented(x: Tensor, which: Tensor, chance: Tensor, direction: Tensor) -> Tensor:
    """Augment uint8 (n, c, h, w) as drawn."""
    names, odds, factors, matrices = tables(x.shape[2], x.shape[3], x.device)
    for i in range(2):
        name = names[which, i].masked_fill(chance[i] >= odds[which, i], -1)
        x = apply(x, name, factors[which, i, direction[i]], matrices[which, i, direction[i]])
    return x


def apply(x: Tensor, name: Tensor, factor: Tensor, matrix: Tensor) -> Tensor:
    """Apply to each image the operation of that number: its place in MOVES + LIGHTS; -1: none."""
    moves = (name >= 0) & (name < len(MOVES))
    x = torch.where(moves[:, None, None, None], moved(x, matrix), x)
    done = x
    for k, light in enumerate(LIGHTS, len(MOVES)):
        done = torch.where((name == k)[:, None, None, None], OPERATIONS[light](x, factor), done)
    return done


@cache
def tables(h: int, w: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The policy as numbers: operation (25, 2), probability (25, 2), factor (25, 2, 2), matrix (25, 2, 2, 6).

    The third axis is the direction drawn.
    """
    pairs = [[(s[0], float(s[1]), int(s[2])), (s[3], float(s[4]), int(s[5]))] for s in SUBS]
    names = [[(*MOVES, *LIGHTS).index(name) for name, _, _ in pair] for pair in pairs]
    odds = [[p for _, p, _ in pair] for pair in pairs]
    factors = [[[factor_of(name, k, sign) for sign in (1, -1)] for name, _, k in pair] for pair in pairs]
    matrices = [
        [[fixed(name, factor_of(name, k, sign), h, w) for sign in (1, -1)] for name, _, k in pair]
        for pair in pairs
    ]
    return (
        torch.tensor(names, device=device),
        torch.tensor(odds, device=device),
        torch.tensor(factors, device=device),
        torch.tensor(matrices, device=device),
    )


def factor_of(name: str, strength: int, sign: int) -> float:
    if name == "posterize":  # bits kept, from 8 to 4
        return float(round(8 - 4 * strength / 9))
    if name == "solarize":  # least level that is inverted, from 256 to 0
        return 256 - 256 * strength / 9
    amount = sign * STRONGEST.get(name, 0.0) * strength / 9
    return amount if name in MOVES else 1 + amount


def fixed(name: str, amount: float, h: int, w: int) -> list[int]:
    """PIL's affine map from an output pixel to its source, (a, b, c, d, e, f).

    In 1/65536 of a pixel, with the half pixel in it.
    """
    maps: dict[str, tuple[float, ...]] = {
        "shear_x": (1, amount, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, amount, 1, 0),
        "translate_x": (1, 0, amount * w, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, amount * h),
    }
    a, b, c, d, e, f = maps.get(name, (1, 0, 0, 0, 1, 0))
    if name == "rotate":
        angle = -math.radians(amount % 360)
        a, b = round(math.cos(angle), 15), round(math.sin(angle), 15)
        d, e = round(-math.sin(angle), 15), round(math.cos(angle), 15)
        c, f = w / 2 - a * w / 2 - b * h / 2, h / 2 - d * w / 2 - e * h / 2
    return [math.floor(v * 65536 + 0.5) for v in (a, b, c + (a + b) / 2, d, e, f + (d + e) / 2)]


def moved(x: Tensor, matrix: Tensor) -> Tensor:
    """Move each image by its affine map: the nearest pixel, grey from outside."""
    n, c, h, w = x.shape
    a, b, ox, d, e, oy = matrix.T[:, :, None, None]
    across, down = torch.arange(w, device=x.device), torch.arange(h, device=x.device)[:, None]
    col, row = (a * across + b * down + ox) >> 16, (d * across + e * down + oy) >> 16  # (n, h, w)
    inside = (col >= 0) & (col < w) & (row >= 0) & (row < h)
    flat = (row.clamp(0, h - 1) * w + col.clamp(0, w - 1)).flatten(1)
    taken = x.flatten(2).gather(2, flat[:, None].expand(n, c, h * w)).view(n, c, h, w)
    return taken.masked_fill(~inside[:, None], GREY)


def blend(towards: Tensor, x: Tensor, factor: Tensor) -> Tensor:
    """towards + factor (x - towards), cut to whole levels."""
    start = towards.float()
    return (start + factor[:, None, None, None] * (x.float() - start)).clamp(0, 255).to(torch.uint8)


def luma(x: Tensor) -> Tensor:
    """The grey level as PIL's mode L has it, int64: (n, 1, h, w)."""
    if x.shape[1] != 3:
        return x[:, :1].long()
    r, g, b = x.long().split(1, dim=1)
    return (19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16


def colour(x: Tensor, factor: Tensor) -> Tensor:
    return blend(luma(x).expand_as(x), x, factor)


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    pixels = x.shape[2] * x.shape[3]
    mean = (2 * luma(x).sum((1, 2, 3), keepdim=True) + pixels) // (2 * pixels)
    return blend(mean.expand_as(x), x, factor)


def brightness(x: Tensor, factor: Tensor) -> Tensor:
    return blend(torch.zeros_like(x), x, factor)


def sharpness(x: Tensor, factor: Tensor) -> Tensor:
    """Away from the smoothed image: 3 x 3, the middle five times; the border is not smoothed."""
    v = x.long()
    around = sum(v[:, :, i : v.shape[2] - 2 + i, j : v.shape[3] - 2 + j] for i in range(3) for j in range(3))
    smooth = v.clone()
    smooth[:, :, 1:-1, 1:-1] = (2 * (around + 4 * v[:, :, 1:-1, 1:-1]) + 13) // 26
    return blend(smooth, x, factor)


def posterize(x: Tensor, bits: Tensor) -> Tensor:
    unit = torch.exp2(8 - bits.clamp(0, 8)).long()[:, None, None, None]
    return (x.long() // unit * unit).to(torch.uint8)


def solarize(x: Tensor, threshold: Tensor) -> Tensor:
    return torch.where(x < threshold[:, None, None, None], x, 255 - x)


def invert(x: Tensor, factor: Tensor) -> Tensor:
    return 255 - x


def autocontrast(x: Tensor, factor: Tensor) -> Tensor:
    """Each channel stretched to the whole range."""
    flat = x.flatten(2).double()
    low, high = flat.amin(2, keepdim=True), flat.amax(2, keepdim=True)
    scale = torch.full_like(low, 255) / (high - low).clamp_min(1)  # 255 / x would round twice
    stretched = (flat * scale - low * scale).clamp(0, 255).to(torch.uint8).view_as(x)
    return torch.where((high > low)[..., None], stretched, x)


def equalize(x: Tensor, factor: Tensor) -> Tensor:
    """Each channel's histogram made flat, with PIL's whole-number arithmetic."""
    n, c, h, w = x.shape
    levels = x.flatten(2).long()
    counts = torch.zeros(n, c, 256, dtype=torch.long, device=x.device)
    counts.scatter_add_(2, levels, torch.ones_like(levels))
    step = (h * w - counts.gather(2, levels.amax(2, keepdim=True))) // 255  # without the highest level
    below = counts.cumsum(2) - counts
    table = ((step // 2 + below) // step.clamp_min(1)).clamp(0, 255)
    table = torch.where(step > 0, table, torch.arange(256, device=x.device))
    return table.gather(2, levels).to(torch.uint8).view_as(x)


OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    f.__name__: f
    for f in (colour, contrast, sharpness, brightness, posterize, solarize, invert, autocontrast, equalize)
}
