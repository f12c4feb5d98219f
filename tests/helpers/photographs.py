"""Photographs that the tests draw: a shape a class, in any colour and place, on a noisy background.

python tests/helpers/photographs.py FOLDER [COUNT]      so many of each of eight classes, 160x200 pixels
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

CLASSES = ("disc", "square", "triangle", "cross", "ring", "stripes", "star", "dots")
SIZE = (200, 160)


def photograph(name: str, draw: np.random.RandomState) -> Image.Image:
    """One photograph of a class."""
    w, h = SIZE
    ground = draw.randint(40, 216, 3) + np.linspace(-30, 30, w)[None, :, None] * draw.choice([-1, 1])
    picture = Image.fromarray((ground + draw.normal(0, 18, (h, w, 3))).clip(0, 255).astype(np.uint8))
    pen, r = ImageDraw.Draw(picture), draw.randint(32, 56)
    x, y = draw.randint(r, w - r), draw.randint(r, h - r)
    ink = tuple(int(level) for level in (ground.mean((0, 1)) + draw.choice([-1, 1], 3) * 90).clip(0, 255))
    corners = [(x + r * np.sin(a), y - r * np.cos(a)) for a in np.arange(10) * np.pi / 5 + draw.uniform(0, 1)]
    match name:
        case "disc":
            pen.ellipse((x - r, y - r, x + r, y + r), fill=ink)
        case "square":
            pen.rectangle((x - r, y - r, x + r, y + r), fill=ink)
        case "triangle":
            pen.polygon([(x, y - r), (x - r, y + r), (x + r, y + r)], fill=ink)
        case "cross":
            pen.rectangle((x - r, y - r // 4, x + r, y + r // 4), fill=ink)
            pen.rectangle((x - r // 4, y - r, x + r // 4, y + r), fill=ink)
        case "ring":
            pen.ellipse((x - r, y - r, x + r, y + r), outline=ink, width=r // 4)
        case "stripes":
            for at in range(-r, r, r // 4):
                pen.line((x + at, y - r, x + at, y + r), fill=ink, width=r // 8)
        case "star":
            pen.polygon(
                [c if i % 2 else ((c[0] + x) / 2, (c[1] + y) / 2) for i, c in enumerate(corners)], ink
            )
        case "dots":
            for i, j in np.ndindex(4, 4):
                a, b = x - r + i * r // 2, y - r + j * r // 2
                pen.ellipse((a, b, a + r // 4, b + r // 4), fill=ink)
    return picture


def photographs(folder: Path, count: int, classes: tuple[str, ...] = CLASSES, seed: int = 0) -> Path:
    """So many photographs of each class, in a folder of class folders."""
    for name in classes:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            draw = np.random.RandomState([seed, CLASSES.index(name), i])
            photograph(name, draw).save(folder / name / f"{i}.jpg", quality=90)
    return folder


if __name__ == "__main__":
    photographs(Path(sys.argv[1]), int((sys.argv[2:] or ["20"])[0]))
