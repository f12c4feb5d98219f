"""Images that a csv names: a row of path, label and perhaps split for each."""

import csv
import os
from collections.abc import Callable
from pathlib import Path

from jioc.data.images.files import TEST, TRAIN, VALIDATION, File, FileFinder, Listing, natural, normalise_name
from jioc.errors import Refused

PATH = ("path", "filename", "file", "image", "image_path")
LABEL = ("label", "class", "class_name")
SPLIT = ("split",)

Row = tuple[str, str, str | None]
"""Path, label and split: train, test, val or None."""


def list_csv(place: Path) -> Listing:
    """List the images that a csv names."""
    every = read_rows(place)
    rows, notes = _without_validation(every)
    listing = list_rows(place.parent, rows, "csv", _classes(rows))
    listing.notes += notes
    splits = {split for _, _, split in every}
    listing.validation = "val" if "val" in splits and "test" not in splits else None
    return listing


def class_names(place: Path) -> list[str]:
    return _classes(_without_validation(read_rows(place))[0])


def sample(place: Path, most: int) -> list[str]:
    rows = read_rows(place)
    return [os.path.join(place.parent, path) for path, _, _ in rows[:: max(1, len(rows) // most)]]


def read_rows(place: Path) -> list[Row]:
    """Read every row; the first may name the columns."""
    try:
        with open(place, newline="", encoding="utf-8-sig") as file:
            cells = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{str(place)!r} cannot be read as a csv: {error}") from None
    if not cells:
        raise Refused(
            f"{str(place)!r} is empty; it needs a row of path, label and perhaps split for each image"
        )
    head = [cell.lower() for cell in cells[0]]
    path, label, split = (_column(head, names) for names in (PATH, LABEL, SPLIT))
    if path is not None and label is not None:
        cells = cells[1:]
    else:
        path, label, split = 0, 1, 2 if len(head) > 2 else None
    if not cells:
        raise Refused(f"{str(place)!r} names its columns and holds no row; it needs one for each image")
    rows = []
    for number, row in enumerate(cells, 1):
        if len(row) <= max(path, label) or not row[path] or not row[label]:
            raise Refused(f"{str(place)!r}: row {number} has no path or no label")
        rows.append((row[path], normalise_name(row[label]), _split(place, number, row, split)))
    if len({split is None for _, _, split in rows}) > 1:
        raise Refused(f"{str(place)!r}: some rows say which split they belong to and some do not")
    return rows


def list_rows(
    root: Path, rows: list[Row], layout: str, classes: list[str], below: Callable[[str], str] = str
) -> Listing:
    """List images by rows of their paths below the root (after `below`), class names and splits."""
    finder = FileFinder(root)
    label = {name: c for c, name in enumerate(classes)}
    sides: dict[str | None, list[File]] = {"train": [], "test": [], None: []}
    for path, name, split in rows:
        if file := finder.at(os.path.normpath(below(path)), label[name]):
            sides[split].append(file)
    for files in sides.values():
        files.sort(key=lambda file: file.label)  # class by class, rows in their order
    if any(split for _, _, split in rows):
        return Listing(finder.root, layout, classes, sides["train"], sides["test"], finder.bad)
    return Listing(finder.root, layout, classes, sides[None], None, finder.bad)


def _classes(rows: list[Row]) -> list[str]:
    return sorted({label for _, label, _ in rows}, key=natural)


def _without_validation(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """Take rows of validation as the test set where there is no other; else leave them out, with a note."""
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
