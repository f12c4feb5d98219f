"""A list of image files, and a finder that notes what it cannot use. Neither torch nor numpy here."""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jioc.errors import Refused

TRAIN = ("train", "training")
VALIDATION = ("val", "valid", "validation")
TEST = ("test", "testing", *VALIDATION)
LITTER = {"thumbs.db", "desktop.ini", "__macosx"}  # left by file managers; hidden files are passed over too
DIGITS = re.compile(r"(\d+)")


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


def natural(name: str) -> tuple[list[Any], str]:
    """Key of the order in which a person counts: image2 before image10."""
    parts: list[Any] = DIGITS.split(name)  # text and digits in turn
    parts[1::2] = map(int, parts[1::2])
    return parts, name


def normalise_name(name: str) -> str:
    """Bring a class's name to one spelling: some file systems and archives take letters and accents apart."""
    return unicodedata.normalize("NFC", name)


def is_litter(name: str) -> bool:
    """Whether a file is hidden, or one that a file manager left."""
    return name.startswith(".") or name.lower() in LITTER


def folders(where: Path) -> list[str]:
    """Folders there, and links that may be such, in natural order."""
    try:
        with os.scandir(where) as entries:
            names = [e.name for e in entries if not is_litter(e.name) and (e.is_dir() or _broken_link(e))]
    except OSError as error:
        raise Refused(f"{str(where)!r} cannot be listed: {error.strerror}") from None
    return sorted(names, key=natural)


def _broken_link(entry: "os.DirEntry[str]") -> bool:
    return entry.is_symlink() and not os.path.exists(entry.path)


class FileFinder:
    """Finds image files below a root, and notes in `bad` what cannot be used."""

    def __init__(self, root: Path):
        self.root = os.path.realpath(root)
        self.given = str(root)
        self.bad: list[tuple[str, str]] = []

    def in_folder(self, folder: Path, label: int) -> list[File]:
        """Every regular file in the folder and below it; its content tells later whether it is an image."""
        where = os.path.relpath(folder, self.given)
        files: list[File] = []
        if not _is_text(folder.name):
            self.bad.append((where, "is a class folder whose name is not UTF-8"))
        elif os.path.islink(folder):
            why = self._wrong_link(str(folder)) or "is a link to a folder, which is not followed"
            self.bad.append((where, why))
        else:
            self._walk(where, label, files)
            if not files and not any(path.startswith(where + os.sep) for path, _ in self.bad):
                self.bad.append((where, "is an empty class folder"))
        return files

    def at(self, path: str, label: int) -> File | None:
        """The file of that name below the root."""
        try:
            if not self._inside(os.path.join(self.root, path)):
                self.bad.append((path, "lies outside the folder"))
                return None
            return self._file(path, label, os.stat(os.path.join(self.root, path)))
        except (OSError, ValueError) as error:
            self.bad.append((path, f"cannot be read: {getattr(error, 'strerror', None) or error}"))
            return None

    def _walk(self, where: str, label: int, files: list[File]) -> None:
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
                self._walk(path, label, files)
            elif entry.is_dir():
                self.bad.append((path, "is a link to a folder, which is not followed"))
            elif file := self._file(path, label, entry.stat()):
                files.append(file)

    def _file(self, path: str, label: int, about: os.stat_result) -> File | None:
        if not stat.S_ISREG(about.st_mode):  # a pipe would be waited on for ever
            self.bad.append((path, "is not a regular file"))
            return None
        return File(path, label, about.st_size, about.st_mtime_ns)

    def _wrong_link(self, path: str) -> str | None:
        """Why a link cannot be followed; None: it can."""
        if not os.path.exists(path):
            return "is a link to nothing"
        return None if self._inside(path) else "is a link that leaves the folder"

    def _inside(self, path: str) -> bool:
        return os.path.realpath(path).startswith(self.root.rstrip(os.sep) + os.sep)


def _is_text(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)
