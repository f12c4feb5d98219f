"""Small trees of image files for the tests: every picture its own colour."""

from pathlib import Path

import numpy as np
from PIL import Image

from jioc.config.values import make
from jioc.data.load import load

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


WNIDS = ["n02124075", "n01443537", "n04067472"]


def tiny_imagenet(folder: Path) -> Path:
    root = folder / "tiny-imagenet-200"
    number = 0
    for wnid in WNIDS:
        for i in range(4):
            picture(root / "train" / wnid / "images" / f"{wnid}_{i}.JPEG", number, (64, 64))
            number += 1
        (root / "train" / wnid / f"{wnid}_boxes.txt").write_text("0\t0\t9\t9\n")
    lines = []
    for i in range(6):
        picture(root / "val" / "images" / f"val_{i}.JPEG", 20 + i, (64, 64))
        lines.append(f"val_{i}.JPEG\t{WNIDS[i % 3]}\t0\t0\t9\t9\n")
    (root / "val" / "val_annotations.txt").write_text("".join(lines))
    picture(root / "test" / "images" / "test_0.JPEG", 30, (64, 64))
    (root / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
    words = [
        "n01443537\tgoldfish, Carassius auratus",
        "n02124075\tEgyptian cat",
        "n04067472\treel",
        "n09\treel",
    ]
    (root / "words.txt").write_text("\n".join(words) + "\n")
    return root


def write_digits(folder: Path, names: str, images: int, first: int = 0) -> Path:
    """So many training images of each of the digits named, from the first on, as PNG files."""
    digits = load(make(method="icarl", data="digits"))
    for name in names:
        (folder / name).mkdir(parents=True)
        for i, x in enumerate(digits.train_x[digits.train_y == int(name)][first : first + images]):
            Image.fromarray(x[0]).save(folder / name / f"{i}.png")
    return folder
