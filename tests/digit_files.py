"""The digits as image files, a folder a class."""

from pathlib import Path

from PIL import Image

from jioc.config import schema as settings
from jioc.data.dataset import load


def write(folder: Path, names: str, images: int, first: int = 0) -> Path:
    """So many training images of each of the digits named, from the first on, as PNG files."""
    digits = load(settings.make(method="icarl", data="digits"))
    for name in names:
        (folder / name).mkdir(parents=True)
        for i, x in enumerate(digits.train_x[digits.train_y == int(name)][first : first + images]):
            Image.fromarray(x[0]).save(folder / name / f"{i}.png")
    return folder
