"""Which images a folder or a csv holds and what each shows, from names alone: no image is opened.

A folder holds class folders, or `train` and `test` folders of class folders. What cannot be used is named
with the reason; `--on-bad` says whether that stops the run. Neither torch nor numpy is imported here.
"""

import os
from pathlib import Path

from jioc.data.images import csv_files
from jioc.data.images.files import (
    TEST,
    TRAIN,
    VALIDATION,
    File,
    FileFinder,
    Listing,
    folders,
    is_litter,
    natural,
    normalise_name,
)
from jioc.errors import Refused

ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")


def list_images(root: Path) -> Listing:
    """List the images of a folder or csv, class by class."""
    if root.is_file():
        return csv_files.list_csv(root)
    train, test, unused = _splits(root)
    finder = FileFinder(root)
    names = class_names(root)
    if not names:
        raise Refused(
            f"{str(root)!r} holds no class folders; give a folder with a folder of images for each class"
        )
    label = {name: c for c, name in enumerate(names)}

    def files(folder: Path) -> list[File]:
        known = [(label[key], name) for name in folders(folder) if (key := normalise_name(name)) in label]
        homes = [(c, folder / name) for c, name in sorted(known) if (folder / name).exists()]
        return [file for c, home in homes for file in finder.in_folder(home, c)]

    if train is None:
        listing = Listing(finder.root, "class folders", names, files(root), None, finder.bad)
    else:
        layout = f"{train} and {test}" if test else f"{train} alone"
        to_train, to_test = files(root / train), files(root / test) if test else None
        listing = Listing(finder.root, layout, names, to_train, to_test, finder.bad)
    if test:
        listing.validation = test if test.lower() in VALIDATION else None
        unknown = [name for name in folders(root / test) if normalise_name(name) not in label]
        why = f"is a class that {train} does not have"
        finder.bad += [(os.path.join(test, name), why) for name in unknown]
    for part in filter(None, [".", train, test]):
        strays = [os.path.normpath(os.path.join(part, name)) for name in _pictures(root / part)]
        finder.bad += [(path, "lies in no class folder") for path in strays]
    listing.notes += [f"the folder {name!r} beside {train!r} is not used" for name in unused]
    return listing


def class_names(root: Path) -> list[str]:
    """The classes that a folder or csv names."""
    if root.is_file():
        return csv_files.class_names(root)
    return sorted({normalise_name(name) for name in folders(_train_folder(root))}, key=natural)


def sample(root: Path, most: int) -> list[str]:
    """The paths of a few images: the first of classes spread evenly."""
    if root.is_file():
        return csv_files.sample(root, most)
    home = _train_folder(root)
    names = folders(home)
    paths = []
    for name in names[:: max(1, len(names) // most)]:
        for where, below, files in os.walk(home / name):
            below.sort(key=natural)
            used = sorted((file for file in files if not is_litter(file)), key=natural)
            paths += [os.path.join(where, file) for file in used[: max(1, most // len(names))]]
            if used:
                break
    return paths


def _train_folder(root: Path) -> Path:
    train, _, _ = _splits(root)
    return root / train if train else root


def _splits(root: Path) -> tuple[str | None, str | None, list[str]]:
    """The names of the training and test folders, where there are such, and of other folders beside them."""
    here = folders(root)
    by_word = {name.lower(): name for name in here}
    train = next((by_word[word] for word in TRAIN if word in by_word), None)
    test = next((by_word[word] for word in TEST if word in by_word), None)
    if train is None or not folders(root / train):
        return None, None, []
    beside = [name for name in here if name not in (train, test)]
    if test is None and beside:  # `train` may well be a class of vehicles
        return None, None, []
    return train, test, beside


def _pictures(where: Path) -> list[str]:
    """Files there whose names end as images do, in natural order; a csv or a licence may well lie there."""
    with os.scandir(where) as entries:
        files = [e.name for e in entries if e.name.lower().endswith(ENDINGS) and e.is_file()]
    return sorted((name for name in files if not is_litter(name)), key=natural)
