"""AutoAugment's policy for CIFAR-10 on whole batches, each operation as PIL does it.

Cubuk et al., CVPR 2019. Each image draws one of 25 sub-policies: two operations, each applied with its own
probability and at its own strength, in a direction drawn for it. Geometric operations take the nearest pixel
and fill with grey. An operation on single levels is a curve, a new level for each of the 256; colour and
sharpness blend the image with another one. Every image is moved, sent through a curve and blended, most by
what changes nothing, so that shapes and control flow never depend on the draw.
"""

import math
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
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
LEVELS = ("brightness", "posterize", "solarize", "invert")  # the same curve for every image
BLENDS = ("colour", "sharpness")
NAMES = ("none", *MOVES, *LEVELS, "contrast", "autocontrast", "equalize", *BLENDS)
CONTRAST, AUTOCONTRAST, EQUALIZE, COLOUR, SHARPNESS = range(len(NAMES) - 5, len(NAMES))


class Operation(NamedTuple):
    """An operation of each image, as numbers; the last axis is the image."""

    name: Tensor  # (n,) its place in NAMES
    factor: Tensor  # (n,)
    matrix: Tensor  # (6, n) where each pixel comes from; see `fixed`
    curve: Tensor  # (256, n) the new levels, unless they depend on the image


def draw(n: int, h: int, w: int, generator: torch.Generator) -> Operation:
    """Draw a sub-policy for each of n images of h x w: its two operations, (..., 2, n)."""
    device = generator.device
    which = torch.randint(0, len(SUBS), (n,), generator=generator, device=device)
    chance = torch.rand(2, n, generator=generator, device=device)
    direction = torch.randint(0, 2, (2, n), generator=generator, device=device)
    odds, policy = tables(h, w, device)
    row = torch.where(chance < odds[:, which], which, len(SUBS))  # the last row: none
    place = torch.arange(2, device=device)[:, None]
    return Operation(*(numbers[..., row, place, direction] for numbers in policy))


def augmented(x: Tensor, drawn: Operation) -> Tensor:
    """Augment uint8 (n, c, h, w) as drawn."""
    for i in range(2):
        x = apply(x, Operation(*(numbers[..., i, :] for numbers in drawn)))
    return x


def apply(x: Tensor, drawn: Operation) -> Tensor:
    """Apply to each image its operation."""
    x = moved(x, drawn.matrix)
    v, levels, name = x.float(), x.flatten(2).long(), drawn.name[:, None, None, None]
    grey = luma(v)
    x = curves(drawn, levels, grey).gather(2, levels).view_as(x)
    towards = torch.where(name == SHARPNESS, smoothed(v), grey)
    return torch.where(name >= COLOUR, blend(towards, v, drawn.factor), x)


@cache
def tables(h: int, w: int, device: torch.device) -> tuple[Tensor, Operation]:
    """The policy as numbers: probability (2, 25), operations (..., 26, 2, 2), the last of them none.

    The last axis of the operations is the direction drawn.
    """
    pairs = [[(s[0], float(s[1]), int(s[2])), (s[3], float(s[4]), int(s[5]))] for s in SUBS]
    odds = torch.tensor([[p for _, p, _ in pair] for pair in pairs], device=device).T
    each = [
        as_numbers(name, strength, sign, h, w)
        for pair in [*pairs, [("none", 1.0, 0)] * 2]
        for name, _, strength in pair
        for sign in (1, -1)
    ]
    stacked = (torch.cat(numbers, -1) for numbers in zip(*each, strict=True))
    return odds, Operation(*(one.unflatten(-1, (-1, 2, 2)).to(device) for one in stacked))


def as_numbers(name: str, strength: int, sign: int, h: int, w: int) -> Operation:
    """An operation of one image of h x w."""
    factor = factor_of(name, strength, sign)
    matrix = torch.tensor(fixed(name, factor, h, w), dtype=torch.int32)[:, None]
    numbers = torch.tensor([factor])
    return Operation(torch.tensor([NAMES.index(name)]), numbers, matrix, curve_of(name, numbers)[:, None])


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
    a, b, ox, d, e, oy = matrix[:, :, None, None]
    across, down = (torch.arange(side, device=x.device, dtype=torch.int32) for side in (w, h))
    col = ((a * across + ox) + b * down[:, None]) >> 16  # (n, h, w)
    row = (d * across + (e * down[:, None] + oy)) >> 16
    near_col, near_row = col.clamp(0, w - 1), row.clamp(0, h - 1)
    flat = torch.add(near_col, near_row, alpha=w).flatten(1).long()
    taken = x.flatten(2).gather(2, flat[:, None].expand(n, c, h * w)).view(n, c, h, w)
    inside = (near_col == col) & (near_row == row)
    return torch.where(inside[:, None], taken, GREY)


# --- curves: (n, 1 or c, 256), a new level for each ---


def curves(drawn: Operation, levels: Tensor, grey: Tensor) -> Tensor:
    """The curve of each channel of each image (n, c, 256), given its levels (n, c, pixels) and its luma."""
    n, c, _ = levels.shape
    every = every_level(levels.device)
    counts = torch.zeros(n * c * 256, dtype=torch.int32, device=levels.device)
    place = levels.flatten(0, 1) + 256 * torch.arange(n * c, device=levels.device)[:, None]
    one = counts.new_ones(()).expand(place.numel())
    counts = counts.scatter_add_(0, place.flatten(), one).view(n, c, 256)  # of each level
    found = counts > 0
    low = torch.where(found, every, 255).amin(2, keepdim=True)
    high = torch.where(found, every, 0).amax(2, keepdim=True)
    name, curve = drawn.name[:, None, None], drawn.curve.T[:, None].expand(n, c, 256)
    curve = torch.where(name == CONTRAST, contrast(grey, drawn.factor), curve)
    curve = torch.where(name == AUTOCONTRAST, autocontrast(low, high), curve)
    return torch.where(name == EQUALIZE, equalize(counts, high), curve)


def every_level(device: torch.device | None = None) -> Tensor:
    return torch.arange(256, device=device)


def curve_of(name: str, factor: Tensor) -> Tensor:
    """The curve of an operation that is the same for every image: (256,)."""
    level = every_level()
    match name:
        case "brightness":
            level = blend(torch.zeros(()), level, factor).flatten()
        case "posterize":
            unit = 2 ** (8 - int(factor))
            level = level // unit * unit
        case "solarize":
            level = torch.where(level < factor, level, 255 - level)
        case "invert":
            level = 255 - level
    return level.to(torch.uint8)


def contrast(grey: Tensor, factor: Tensor) -> Tensor:
    """Away from the mean of the luma."""
    pixels = grey.shape[2] * grey.shape[3]
    mean = (2 * grey.sum((1, 2, 3), dtype=torch.long) + pixels) // (2 * pixels)  # a half goes up
    return blend(mean.float()[:, None, None, None], every_level(grey.device), factor)[:, 0]


def autocontrast(low: Tensor, high: Tensor) -> Tensor:
    """Each channel stretched to the whole range."""
    low, high, level = low.double(), high.double(), every_level(low.device)
    scale = torch.full_like(low, 255) / (high - low).clamp_min(1)  # 255 / x would round twice
    stretched = (level * scale - low * scale).clamp(0, 255)
    return torch.where(high > low, stretched, level).to(torch.uint8)


def equalize(counts: Tensor, high: Tensor) -> Tensor:
    """Each channel's histogram made flat, with PIL's whole-number arithmetic."""
    below = counts.cumsum(2, dtype=counts.dtype) - counts
    step = below.gather(2, high) // 255  # without the highest level
    curve = ((step // 2 + below) // step.clamp_min(1)).clamp(0, 255)
    return torch.where(step > 0, curve, every_level(counts.device)).to(torch.uint8)


# --- blends; images as float, whose whole numbers are exact below 2 ** 24 ---


def blend(towards: Tensor, x: Tensor, factor: Tensor) -> Tensor:
    """towards + factor (x - towards), cut to whole levels."""
    return (towards + factor[:, None, None, None] * (x - towards)).clamp(0, 255).to(torch.uint8)


def luma(v: Tensor) -> Tensor:
    """The grey level as PIL's mode L has it: (n, 1, h, w)."""
    if v.shape[1] != 3:
        return v[:, :1]
    r, g, b = v.split(1, dim=1)
    return ((r * 19595).add(g, alpha=38470).add(b, alpha=7471).add(0x8000) * 2**-16).floor()


def smoothed(v: Tensor) -> Tensor:
    """3 x 3, the middle five times; the border is not smoothed."""
    around = F.avg_pool2d(v, 3, stride=1, padding=1, divisor_override=1)
    smooth = v.clone()
    smooth[:, :, 1:-1, 1:-1] = (around.add(v, alpha=4) / 13).round()[:, :, 1:-1, 1:-1]  # never a half
    return smooth
