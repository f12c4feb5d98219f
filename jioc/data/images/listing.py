"""Which images there are and what each shows, from names alone: no image is opened, neither torch nor numpy imported.

A folder of class folders, `train` and `test` folders of class folders, or a csv of path, label and perhaps split.
What cannot be used is named with the reason; whether that stops the run is `--on-bad`'s to say.
"""

import csv
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jioc.errors import Refused

TRAIN = ("train", "training")
VALIDATION = ("val", "valid", "validation")
TEST = ("test", "testing", *VALIDATION)
LITTER = {"thumbs.db", "desktop.ini", "__macosx"}  # left by file managers; hidden files are passed over too
IMAGES = (
    ".jpg",
    ".jpeg",
    ".png",
    ".gif",
    ".bmp",
    ".webp",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".pbm",
)  # by their ending


class File(NamedTuple):
    path: str  # below the root
    label: int
    size: int  # bytes, and time of the last change in nanoseconds: how a changed source is noticed
    changed: int


@dataclass
class Listing:
    root: str
    layout: str
    classes: list[str]  # by original label
    train: list[File]  # class by class, in natural order of the names within a class
    test: list[File] | None  # None: no split was given, one is to be made
    bad: list[tuple[str, str]] = field(default_factory=list)  # a file or folder that cannot be used, and why
    notes: list[str] = field(default_factory=list)
    validation: str | None = None  # what it is called there, where it serves as the test set

    def __iter__(self) -> Iterator[File]:
        yield from self.train
        yield from self.test or ()


DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[list[Any], str]:
    """Key of the order in which a person counts: image2 before image10."""
    parts: list[Any] = DIGITS.split(name)  # text and digits in turn
    parts[1::2] = map(int, parts[1::2])
    return parts, name


def composed(name: str) -> str:
    """A class's name as it is typed: file systems and archives of some machines take letters and accents apart."""
    return unicodedata.normalize("NFC", name)


def class_names(place: Path) -> list[str]:
    """The classes that a folder or csv names, images aside."""
    if not place.is_file():
        return _names(place)
    return sorted({label for _, label, _ in _used(csv_rows(place))[0]}, key=natural)


def sample(place: Path, most: int) -> list[str]:
    """A few of the images' paths: the first of classes spread evenly."""
    if place.is_file():
        rows = csv_rows(place)
        return [os.path.join(place.parent, path) for path, _, _ in rows[:: max(1, len(rows) // most)]]
    train, _, _ = _splits(place)
    home = place / train if train else place
    names = folders(home)
    found = []
    for name in names[:: max(1, len(names) // most)]:
        for where, below, files in os.walk(home / name):
            below.sort(key=natural)
            kept = sorted((file for file in files if not litter(file)), key=natural)
            found += [os.path.join(where, file) for file in kept[: max(1, most // len(names))]]
            if kept:
                break
    return found


def of_place(place: Path) -> Listing:
    if not place.is_file():
        return of_folder(place)
    given = csv_rows(place)
    rows, notes = _used(given)
    found = of_rows(place.parent, rows, "csv", sorted({label for _, label, _ in rows}, key=natural))
    found.notes += notes
    splits = {split for _, _, split in given}
    found.validation = "val" if "val" in splits and "test" not in splits else None
    return found


# --- folders ---


def of_folder(root: Path) -> Listing:
    train, test, unused = _splits(root)
    find = Finder(root)
    names = _names(root)
    if not names:
        raise Refused(
            f"{str(root)!r} holds no class folders; give a folder with a folder of images for each class"
        )
    label = {name: c for c, name in enumerate(names)}

    def files(folder: Path) -> list[File]:
        homes = [(label[composed(name)], name) for name in folders(folder) if composed(name) in label]
        homes = [(c, name) for c, name in sorted(homes) if (folder / name).exists()]
        return [file for c, name in homes for file in find.images(folder / name, c)]

    if train is None:
        found = Listing(find.root, "class folders", names, files(root), None, find.bad)
    else:
        layout = f"{train} and {test}" if test else f"{train} alone"
        found = Listing(
            find.root, layout, names, files(root / train), files(root / test) if test else None, find.bad
        )
    if test:
        found.validation = test if test.lower() in VALIDATION else None
        untaught = [name for name in folders(root / test) if composed(name) not in label]
        find.bad += [
            (os.path.join(test, name), f"is a class that {train} does not have") for name in untaught
        ]
    for part in filter(None, [".", train, test]):
        strays = [os.path.normpath(os.path.join(part, name)) for name in _pictures(root / part)]
        find.bad += [(path, "lies in no class folder") for path in strays]
    found.notes += [f"the folder {name!r} beside {train!r} is not used" for name in unused]
    return found


def _names(root: Path) -> list[str]:
    train, _, _ = _splits(root)
    return sorted({composed(name) for name in folders(root / train if train else root)}, key=natural)


def _splits(root: Path) -> tuple[str | None, str | None, list[str]]:
    """The names of the training and test folders, where there are such, and of what then lies beside them."""
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


def folders(where: Path) -> list[str]:
    """Folders there, and links that may be such, in natural order."""
    try:
        with os.scandir(where) as entries:
            return sorted(
                (e.name for e in entries if not litter(e.name) and (e.is_dir() or _broken_link(e))),
                key=natural,
            )
    except OSError as error:
        raise Refused(f"{str(where)!r} cannot be listed: {error.strerror}") from None


def _pictures(where: Path) -> list[str]:
    """Files there that are images by their name, in natural order; a list of them or a licence may well lie beside."""
    with os.scandir(where) as entries:
        names = [
            e.name for e in entries if e.name.lower().endswith(IMAGES) and not litter(e.name) and e.is_file()
        ]
    return sorted(names, key=natural)


def _broken_link(entry: "os.DirEntry[str]") -> bool:
    return entry.is_symlink() and not os.path.exists(entry.path)


def _is_text(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def litter(name: str) -> bool:
    return name.startswith(".") or name.lower() in LITTER


class Finder:
    """Lists images below a root and keeps what it could not use."""

    def __init__(self, root: Path):
        self.root = os.path.realpath(root)
        self.given = str(root)
        self.bad: list[tuple[str, str]] = []

    def images(self, folder: Path, label: int) -> list[File]:
        """Every regular file in the folder and below it; what is an image is told by its content, later."""
        where = os.path.relpath(folder, self.given)
        found: list[File] = []
        if not _is_text(folder.name):
            self.bad.append((where, "is a class folder whose name is not UTF-8"))
        elif os.path.islink(folder):
            self.bad.append(
                (where, self._link(str(folder)) or "is a link to a folder, which is not followed")
            )
        else:
            self._walk(where, label, found)
            if not found and not any(path.startswith(where + os.sep) for path, _ in self.bad):
                self.bad.append((where, "is an empty class folder"))
        return found

    def one(self, path: str, label: int) -> File | None:
        """A named file below the root."""
        try:
            if not self._inside(os.path.join(self.root, path)):
                self.bad.append((path, "lies outside the folder"))
                return None
            return self._file(path, label, os.stat(os.path.join(self.root, path)))
        except (OSError, ValueError) as error:
            self.bad.append((path, f"cannot be read: {getattr(error, 'strerror', None) or error}"))
            return None

    def _walk(self, where: str, label: int, found: list[File]) -> None:
        try:
            with os.scandir(os.path.join(self.root, where)) as listed:
                entries = sorted((e for e in listed if not litter(e.name)), key=lambda e: natural(e.name))
        except OSError as error:
            self.bad.append((where, f"cannot be listed: {error.strerror}"))
            return
        for entry in entries:
            path = f"{where}/{entry.name}"
            if entry.is_symlink() and (why := self._link(entry.path)):
                self.bad.append((path, why))
            elif entry.is_dir(follow_symlinks=False):
                self._walk(path, label, found)
            elif entry.is_dir():
                self.bad.append((path, "is a link to a folder, which is not followed"))
            elif file := self._file(path, label, entry.stat()):
                found.append(file)

    def _file(self, path: str, label: int, about: os.stat_result) -> File | None:
        if not stat.S_ISREG(about.st_mode):  # a pipe would be waited on for ever
            self.bad.append((path, "is not a regular file"))
            return None
        return File(path, label, about.st_size, about.st_mtime_ns)

    def _link(self, path: str) -> str | None:
        if not os.path.exists(path):
            return "is a link to nothing"
        return None if self._inside(path) else "is a link that leaves the folder"

    def _inside(self, path: str) -> bool:
        return os.path.realpath(path).startswith(self.root.rstrip(os.sep) + os.sep)


# --- csv ---

PATH, LABEL, SPLIT = (
    ("path", "filename", "file", "image", "image_path"),
    ("label", "class", "class_name"),
    ("split",),
)


Row = tuple[str, str, str | None]
"""Path, label and split: train, test, val or None."""


def csv_rows(place: Path) -> list[Row]:
    """Each row; the first may name the columns."""
    try:
        with open(place, newline="", encoding="utf-8-sig") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{str(place)!r} cannot be read as a csv: {error}") from None
    if not rows:
        raise Refused(
            f"{str(place)!r} is empty; it needs a row of path, label and perhaps split for each image"
        )
    head = [cell.lower() for cell in rows[0]]
    path, label, split = (_column(head, names) for names in (PATH, LABEL, SPLIT))
    if path is not None and label is not None:
        rows = rows[1:]
    else:
        path, label, split = 0, 1, 2 if len(head) > 2 else None
    if not rows:
        raise Refused(f"{str(place)!r} names its columns and holds no row; it needs one for each image")
    found = []
    for number, row in enumerate(rows, 1):
        if len(row) <= max(path, label) or not row[path] or not row[label]:
            raise Refused(f"{str(place)!r}: row {number} has no path or no label")
        found.append((row[path], composed(row[label]), _split(place, number, row, split)))
    if len({split is None for _, _, split in found}) > 1:
        raise Refused(f"{str(place)!r}: some rows say which split they belong to and some do not")
    return found


def _used(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """Rows of validation serve as the test set where there is no other; else they are left out, with a note."""
    if not any(split == "test" for _, _, split in rows):
        return [(path, label, "test" if split == "val" else split) for path, label, split in rows], []
    used = [row for row in rows if row[2] != "val"]
    unused = len(rows) - len(used)
    return used, [f"validation rows beside test rows are not used: {unused:,}"] * bool(unused)


def _column(head: list[str], names: tuple[str, ...]) -> int | None:
    return next((i for i, cell in enumerate(head) if cell in names), None)


def _split(place: Path, number: int, row: list[str], column: int | None) -> str | None:
    word = row[column].lower() if column is not None and column < len(row) else ""
    if not word:
        return None
    if word not in TRAIN + TEST:
        raise Refused(f"{str(place)!r}: row {number} has the split {word!r}; there is train, test and val")
    return "train" if word in TRAIN else "val" if word in VALIDATION else "test"


def of_rows(
    root: Path,
    rows: list[Row],
    layout: str,
    names: list[str],
    find_below: Callable[[str], str] = str,
) -> Listing:
    """A listing from paths below the root (after `find_below`), class names and splits."""
    find = Finder(root)
    label = {name: c for c, name in enumerate(names)}
    sides: dict[str | None, list[File]] = {"train": [], "test": [], None: []}
    for path, name, split in rows:
        if file := find.one(os.path.normpath(find_below(path)), label[name]):
            sides[split].append(file)
    split_given = any(split for _, _, split in rows)
    for files in sides.values():
        files.sort(key=lambda file: file.label)  # class by class, rows in their order
    if split_given:
        return Listing(find.root, layout, names, sides["train"], sides["test"], find.bad)
    return Listing(find.root, layout, names, sides[None], None, find.bad)
