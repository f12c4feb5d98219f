"""Small trees of image files for the tests: every picture its own colour."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from jioc.config import make
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset
from jioc.events import Decoding, Event, Note
from jioc.resolve.derive import resolve

Colour = tuple[int, int, int]


def colour(number: int) -> Colour:
    """A colour for each number, told apart even after JPEG's losses."""
    return (40 * (number % 6), 40 * (number // 6 % 6), 40 * (number // 36 % 6))


def picture(path: Path, number: int = 0, size: tuple[int, int] = (8, 8)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour(number)).save(path)
    return path


def class_folders(root: Path, classes: dict[str, int], first: int = 0, ending: str = "png") -> Path:
    """That many images in each class folder, numbered on from `first`: no two pictures are the same."""
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


def cub(folder: Path) -> Path:
    root = folder / "CUB_200_2011"
    names = ["001.Black_footed_Albatross", "002.Laysan_Albatross", "010.Red_winged_Blackbird"]
    images, labels, splits = [], [], []
    for i in range(9):
        path = f"{names[i // 3]}/{names[i // 3][4:]}_{i:04d}.jpg"
        picture(root / "images" / path, i, (50, 40))
        images.append(f"{i + 1} {path}\n")
        labels.append(f"{i + 1} {i // 3 + 1}\n")
        splits.append(f"{i + 1} {int(i % 3 != 1)}\n")
    for name, lines in [("images", images), ("image_class_labels", labels), ("train_test_split", splits)]:
        (root / f"{name}.txt").write_text("".join(lines))
    (root / "classes.txt").write_text("".join(f"{c + 1} {name}\n" for c, name in enumerate(names)))
    return root


MINI = ["n01532829", "n02108089", "n03400231"]


def mini_csv(folder: Path) -> Path:
    root = folder / "miniimagenet"
    number = 0
    parts = {"train": MINI[1:2], "val": MINI[2:], "test": MINI[:1]}  # classes are parted, not images
    for table, names in parts.items():
        rows = ["filename,label\n"]
        for name in names:
            for i in range(10):
                picture(root / "images" / f"{name}{i:08d}.jpg", number, (100, 84))
                rows.append(f"{name}{i:08d}.jpg,{name}\n")
                number += 1
        (root / f"{table}.csv").write_text("".join(rows))
    return root


def mini_folders(folder: Path) -> Path:
    root = folder / "mini-imagenet"
    for c, name in enumerate(MINI):
        for i in range(10):
            picture(root / name / f"{name}{i:08d}.jpg", 10 * c + i, (100, 84))
    return root


def write_digits(folder: Path, names: str, images: int, first: int = 0) -> Path:
    """So many training images of each of the digits named, from the first on, as PNG files."""
    digits = load_dataset(make(method="icarl", data="digits"))
    for name in names:
        (folder / name).mkdir(parents=True)
        for i, x in enumerate(digits.train_x[digits.train_y == int(name)][first : first + images]):
            Image.fromarray(x[0]).save(folder / name / f"{i}.png")
    return folder


# --- what is loaded ---


def read_events(place: Path, **values: Any) -> tuple[Dataset, list[Event]]:
    """The data set of a folder or csv, seen at 8x8, and all that was told about it."""
    events: list[Event] = []
    config = make(method="finetune", data=str(place), **({"image_size": 8} | values))
    return load_dataset(config, events.append), events


def read(place: Path, **values: Any) -> tuple[Dataset, list[str]]:
    """The data set of a folder or csv, seen at 8x8, and the notes about it."""
    dataset, events = read_events(place, **values)
    return dataset, [event.text for event in events if isinstance(event, Note)]


def decodings(events: list[Event]) -> int:
    """How many times some images had been decoded."""
    return sum(isinstance(event, Decoding) and event.done > 0 for event in events)


def read_official(name: str, folder: Path, **values: Any) -> Dataset:
    return load_dataset(resolve(make(method="finetune", data=name, data_dir=folder, **values)))
