"""Small trees of image files for the tests: every picture its own colour."""

from pathlib import Path

import numpy as np
from PIL import Image

Colour = tuple[int, int, int]


def colour(number: int) -> Colour:
    """A colour for each number, told apart even after JPEG's losses."""
    return (40 * (number % 6), 40 * (number // 6 % 6), 40 * (number // 36 % 6))


def picture(path: Path, number: int = 0, size: tuple[int, int] = (8, 8)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour(number)).save(path)
    return path


def class_folders(root: Path, classes: dict[str, int], first: int = 0, ending: str = "png") -> Path:
    """That many images in each class folder; numbers go on from `first`, so that no two pictures are the same."""
    for name, count in classes.items():
        for i in range(count):
            picture(root / name / f"{i}.{ending}", first)
            first += 1
    return root


def shown(pixels: np.ndarray) -> Colour:
    """The mean colour of an image (3, h, w)."""
    return tuple(int(level) for level in pixels.reshape(3, -1).mean(1).round())  # type: ignore[return-value]
