"""Which images a folder or a csv holds and what each shows, from names alone: no image is opened.

A folder holds class folders, or `train` and `test` folders of class folders. A csv has a row of path, label
and perhaps split for each image. What cannot be used is named with the reason; `--on-bad` says whether that
stops the run. Neither torch nor numpy is imported here.
"""

import csv
import io
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from jioc.errors import Refused, os_errors, refuse_if
from jioc.files import read_bytes

TRAIN = ("train", "training")
VALIDATION = ("val", "valid", "validation")
TEST = ("test", "testing", *VALIDATION)
LITTER = {"thumbs.db", "desktop.ini", "__macosx"}  # left by file managers; hidden files are passed over too
PICTURE_ENDINGS = (
    *(".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"),
    *(".heic", ".heif", ".avif"),
)
COLUMNS = (  # names of a csv's columns of paths, labels and splits
    ("path", "filename", "file", "image", "image_path"),
    ("label", "class", "class_name"),
    ("split",),
)
DIGITS = re.compile(r"(\d+)")

Row = tuple[str, str, str | None]  # of a csv: path, label and split, which is train, test, val or None


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
    validation: str | None = None  # its name there, where it serves as the test set

    def __iter__(self) -> Iterator[File]:
        yield from self.train
        yield from self.test or ()


def list_images(root: Path) -> Listing:
    """List the images of a folder or csv, class by class."""
    if root.is_file():
        return _list_csv(root)
    train, test, unused = _splits(root)
    finder, names = FileFinder(root), class_names(root)
    label = {name: c for c, name in enumerate(names)}

    def files(folder: Path) -> list[File]:
        known = [(label[key], name) for name in folders(folder) if (key := normalise_name(name)) in label]
        homes = [(c, folder / name) for c, name in sorted(known) if (folder / name).exists()]
        return [file for c, home in homes for file in finder.in_folder(home, c)]

    layout = "class folders" if train is None else f"{train} and {test}" if test else f"{train} alone"
    to_train, to_test = files(root / (train or ".")), files(root / test) if test else None
    if test:
        finder.bad += [
            (os.path.join(test, name), f"is a class that {train} does not have")
            for name in folders(root / test)
            if normalise_name(name) not in label
        ]
    finder.bad += [
        (os.path.normpath(os.path.join(part, name)), "lies in no class folder")
        for part in filter(None, [".", train, test])
        for name in _pictures(root / part)
    ]
    notes = [f"the folder {name!r} beside {train!r} is not used" for name in unused]
    notes += _taken_together(root, train or ".", [file.path for file in to_train])
    validation = test if test and test.lower() in VALIDATION else None
    return Listing(finder.root, layout, names, to_train, to_test, finder.bad, notes, validation)


def _taken_together(root: Path, home: str, paths: list[str]) -> list[str]:
    """Say which class folders hold images in several folders below them alone, which may be classes too."""
    below: dict[str, set[str]] = {}
    for path in paths:
        name, *rest = Path(os.path.relpath(path, home)).parts
        below.setdefault(name, set()).add(rest[0] if len(rest) > 1 else "")
    nested = [name for name, inside in below.items() if len(inside) > 1 and "" not in inside]
    if not nested:
        return []
    first, others = nested[0], f" (and {len(nested) - 1} more such)" if len(nested) > 1 else ""
    there = os.path.normpath(root / home / first)
    return [f"all folders below {first!r} are one class{others}; if each is a class, give {there!r}"]


def class_names(root: Path) -> list[str]:
    """The classes that a folder or csv names."""
    if root.is_file():
        return _classes(_without_validation(read_rows(root))[0])
    return sorted({normalise_name(name) for name in folders(root / (_splits(root)[0] or "."))}, key=natural)


def sample(root: Path, most: int) -> list[str]:
    """The paths of a few images: the first of classes, or rows of a csv, spread evenly."""
    if root.is_file():
        rows = read_rows(root)
        return [os.path.join(root.parent, path) for path, _, _ in rows[:: max(1, len(rows) // most)]]
    home, paths = root / (_splits(root)[0] or "."), []
    names = folders(home)
    for name in names[:: max(1, len(names) // most)]:
        for where, below, files in os.walk(home / name):
            below.sort(key=natural)
            if used := sorted((file for file in files if not is_litter(file)), key=natural):
                paths += [os.path.join(where, file) for file in used[: max(1, most // len(names))]]
                break
    return paths


# --- names ---


def natural(name: str) -> tuple[list[Any], str]:
    """Key of the order in which a person counts: image2 before image10."""
    parts: list[Any] = DIGITS.split(name)  # text and digits in turn
    parts[1::2] = [(len(number), number) for digits in parts[1::2] for number in [digits.lstrip("0")]]
    return parts, name


def normalise_name(name: str) -> str:
    """Bring a class's name to one spelling: some file systems and archives take letters and accents apart."""
    return unicodedata.normalize("NFC", name)


def alike_but_for_case(names: list[str]) -> list[tuple[str, str]]:
    """Pairs of classes whose names differ in case alone."""
    first: dict[str, str] = {}
    return [(other, name) for name in names if (other := first.setdefault(name.casefold(), name)) != name]


def note_case(one: str, other: str) -> str:
    return f"the classes {one!r} and {other!r} differ in case alone, and are taken for two"


def is_litter(name: str) -> bool:
    """Whether a file is hidden, or one that a file manager left."""
    return name.startswith(".") or name.lower() in LITTER


# --- folders ---


def folders(where: Path) -> list[str]:
    """Folders there, and broken links that may be such, in natural order."""
    with os_errors(f"{str(where)!r} cannot be listed"), os.scandir(where) as entries:
        present = [e for e in entries if not is_litter(e.name)]
        names = [e.name for e in present if e.is_dir() or (e.is_symlink() and not os.path.exists(e.path))]
    return sorted(names, key=natural)


def _splits(root: Path) -> tuple[str | None, str | None, list[str]]:
    """The names of the training and test folders, where there are such, and of other folders beside them."""
    here = folders(root)
    by_word = {name.lower(): name for name in here}
    train = next((by_word[word] for word in TRAIN if word in by_word), None)
    test = next((by_word[word] for word in TEST if word in by_word), None)
    beside = [name for name in here if name not in (train, test)]
    # without a test folder, `train` may well be a class of vehicles
    if train is None or not folders(root / train) or (test is None and beside):
        return None, None, []
    return train, test, beside


def _pictures(where: Path) -> list[str]:
    """Files there whose names end as images do, in natural order; a csv or a licence may well lie there."""
    with os.scandir(where) as entries:
        files = [e.name for e in entries if e.name.lower().endswith(PICTURE_ENDINGS) and e.is_file()]
    return sorted((name for name in files if not is_litter(name)), key=natural)


class FileFinder:
    """Finds image files below a root, and notes in `bad` what cannot be used."""

    def __init__(self, root: Path):
        self.root, self.given = os.path.realpath(root), str(root)
        self.bad: list[tuple[str, str]] = []
        self.held: dict[str, bool] = {}  # folders that were looked at, and whether they are inside

    def in_folder(self, folder: Path, label: int) -> list[File]:
        """Every regular file in the folder and below it; its content tells later whether it is an image."""
        where, files = os.path.relpath(folder, self.given), list[File]()
        if any("\ud800" <= letter <= "\udfff" for letter in folder.name):
            self.bad.append((where, "is a class folder whose name is not UTF-8"))
        elif os.path.islink(folder):
            why = self._wrong_link(str(folder)) or "is a link to a folder, which is not followed"
            self.bad.append((where, why))
        else:
            files += self._walk(where, label)
            if not files and not any(path.startswith(where + os.sep) for path, _ in self.bad):
                self.bad.append((where, "is an empty class folder"))
        return files

    def at(self, path: str, label: int) -> File | None:
        """The file of that name below the root."""
        place = os.path.join(self.root, path)
        try:
            if self._holds(os.path.dirname(place)):
                about = os.lstat(place)
                link = stat.S_ISLNK(about.st_mode)
                if not link or self._is_inside(os.path.realpath(place)):
                    return self._file(path, label, os.stat(place) if link else about)
            self.bad.append((path, "lies outside the folder"))
        except (OSError, ValueError) as error:
            self.bad.append((path, f"cannot be read: {getattr(error, 'strerror', None) or error}"))
        return None

    def _walk(self, where: str, label: int) -> Iterator[File]:
        try:
            with os.scandir(os.path.join(self.root, where)) as listed:
                entries = sorted((e for e in listed if not is_litter(e.name)), key=lambda e: natural(e.name))
        except OSError as error:
            self.bad.append((where, f"cannot be listed: {error.strerror}"))
            return
        for entry in entries:
            path = f"{where}/{entry.name}"
            if entry.is_symlink() and (why := self._wrong_link(entry.path)):
                self.bad.append((path, why))
            elif entry.is_dir(follow_symlinks=False):
                yield from self._walk(path, label)
            elif entry.is_dir():
                self.bad.append((path, "is a link to a folder, which is not followed"))
            else:
                try:
                    file = self._file(path, label, entry.stat())
                except OSError as error:  # it has gone meanwhile
                    self.bad.append((path, f"cannot be read: {error.strerror}"))
                    continue
                if file is not None:
                    yield file

    def _file(self, path: str, label: int, about: os.stat_result) -> File | None:
        if stat.S_ISREG(about.st_mode):
            return File(path, label, about.st_size, about.st_mtime_ns)
        self.bad.append((path, "is not a regular file"))  # a pipe would be waited on for ever
        return None

    def _wrong_link(self, path: str) -> str | None:
        """Why a link cannot be followed; None: it can."""
        if not os.path.exists(path):
            return "is a link to nothing"
        return None if self._is_inside(os.path.realpath(path)) else "is a link that leaves the folder"

    def _holds(self, folder: str) -> bool:
        """Whether a folder is the root or below it; its links are followed once for all its files."""
        if folder not in self.held:
            self.held[folder] = self._is_inside(os.path.join(os.path.realpath(folder), ""))
        return self.held[folder]

    def _is_inside(self, place: str) -> bool:
        """Whether a place without links on the way to it is below the root."""
        return place.startswith(self.root.rstrip(os.sep) + os.sep)


# --- csv files ---


def _list_csv(place: Path) -> Listing:
    every = read_rows(place)
    rows, notes = _without_validation(every)
    listing = list_rows(place.parent, rows, "csv", _classes(rows))
    listing.notes += notes
    splits = {split for _, _, split in every}
    listing.validation = "val" if "val" in splits and "test" not in splits else None
    return listing


def read_rows(place: Path) -> list[Row]:
    """Read every row of a csv; the first may name the columns. One that has not changed is read once."""
    with suppress(OSError):
        about = os.stat(place)
        return _read_rows(place, about.st_mtime_ns, about.st_size)
    return _read_rows(place, 0, 0)  # says what is wrong


@lru_cache(maxsize=1)
def _read_rows(place: Path, *_: int) -> list[Row]:
    name = repr(str(place))
    try:
        file = io.StringIO(read_bytes(place).decode("utf-8-sig"), newline="")
        cells = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise Refused(f"{name} cannot be read as a csv: {why}") from None
    refuse_if(not cells, f"{name} is empty; it needs a row of path, label and perhaps split for each image")
    head = [cell.lower() for cell in cells[0]]
    path, label, split = (next((i for i, c in enumerate(head) if c in names), None) for names in COLUMNS)
    if path is not None and label is not None:
        cells = cells[1:]
    else:
        path, label, split = 0, 1, 2 if len(head) > 2 else None
    refuse_if(not cells, f"{name} names its columns and holds no row; it needs one for each image")
    rows: list[Row] = []
    for number, row in enumerate(cells, 1):
        if len(row) <= max(path, label) or not row[path] or not row[label]:
            other = "; it looks separated by semicolons, not by commas" if ";" in "".join(row) else ""
            raise Refused(f"{name}: row {number} has no path or no label{other}")
        word = row[split].lower() if split is not None and split < len(row) else ""
        if word not in ("", *TRAIN, *TEST):
            raise Refused(f"{name}: row {number} has the split {word!r}; there is train, test and val")
        part = "train" if word in TRAIN else "val" if word in VALIDATION else "test"
        rows.append((row[path], normalise_name(row[label]), part if word else None))
    mixed = len({part is None for _, _, part in rows}) > 1
    refuse_if(mixed, f"{name}: some rows say which split they belong to and some do not")
    return rows


def list_rows(
    root: Path, rows: list[Row], layout: str, classes: list[str], below: Callable[[str], str] = str
) -> Listing:
    """List images by rows of their paths below the root (after `below`), class names and splits."""
    finder, label = FileFinder(root), {name: c for c, name in enumerate(classes)}
    sides: dict[str | None, list[File]] = {"train": [], "test": [], None: []}
    for path, name, split in rows:
        if file := finder.at(os.path.normpath(below(path)), label[name]):
            sides[split].append(file)
    for files in sides.values():
        files.sort(key=lambda file: file.label)  # class by class, rows in their order
    split_given = any(split for _, _, split in rows)
    train, test = (sides["train"], sides["test"]) if split_given else (sides[None], None)
    return Listing(finder.root, layout, classes, train, test, finder.bad)


def _classes(rows: list[Row]) -> list[str]:
    return sorted({label for _, label, _ in rows}, key=natural)


def _without_validation(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """Take rows of validation as the test set where there is no other; else leave them out, with a note."""
    if not any(split == "test" for _, _, split in rows):
        return [(path, label, "test" if split == "val" else split) for path, label, split in rows], []
    used = [row for row in rows if row[2] != "val"]
    unused = len(rows) - len(used)
    return used, [f"validation rows beside test rows are not used: {unused:,}"] * bool(unused)
