"""The cache of decoded images: a memory-mapped uint8 array for each data set and size, decoded once.

A set is a folder `NAME-PLACE-KEY`: PLACE tells sources and settings apart, KEY also what the source held,
down to sizes and times of its files. It is built under a temporary name, flushed and renamed, so it is whole
or not there; its array has a checksum. One process builds, others that want the same wait for it; when it
dies, the next one builds. A file that could not be read is tried again whenever the set is opened: that may
change with neither size nor time.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from jioc.data.images import decode
from jioc.data.images.build import build, checksum, digest
from jioc.data.images.files import Listing
from jioc.data.images.select import Select
from jioc.errors import Failed
from jioc.events import Callback, Note, Waiting, ignore
from jioc.files import flush_folder

CHECKED_AT_START = 4 << 30  # bytes up to which the checksum is compared whenever the set is opened


@dataclass
class CachedImages:
    """A decoded set: the training images, then the test images."""

    classes: list[str]  # of the original labels that are left
    pixels: np.ndarray  # uint8 (n, c, h, w), memory-mapped
    labels: np.ndarray  # int64 (n,)
    n_train: int
    record: dict[str, Any]  # for result.json: split, skipped files, statistics, whether any file had colour


def cache_folder(given: Path | None) -> Path:
    """The option, JIOC_CACHE, or the user's cache folder."""
    if given or os.environ.get("JIOC_CACHE"):
        return given or Path(os.environ["JIOC_CACHE"])
    import pooch

    return Path(pooch.os_cache("jioc"))


def open_or_build(
    listing: Listing,
    name: str,
    canvas: int,
    colour: str,
    settings: dict[str, Any],
    select: Select,
    folder: Path,
    tell: Callback,
    thorough: bool = False,
) -> CachedImages:
    """Open the decoded set of a listing; build it if it is not there. `settings`: what `select` depends on.

    `thorough`: compare the checksum of a large set, too.
    """
    wanted = [decode.VERSION, listing.root, listing.layout, canvas, colour, settings]
    source = json.dumps(wanted, sort_keys=True)
    safe = "".join(letter if letter.isalnum() else "-" for letter in name)[:40]
    prefix = f"{safe}-{canvas}-{digest(source)[:8]}"
    target = folder / f"{prefix}-{digest(source, _text(listing))[:16]}"
    try:
        if (images := _open(target, listing.root, thorough, tell)) is not None:
            return images
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / f".{target.name}.lock", tell):
            if (images := _open(target, listing.root, thorough, ignore)) is not None:
                return images  # another process built it while this one waited
            for litter in folder.glob(f".{target.name}.*.partial"):
                shutil.rmtree(litter, ignore_errors=True)
            temporary = folder / f".{target.name}.{os.getpid()}.partial"
            try:
                build(temporary, listing, canvas, colour, select, tell)
                if target.exists():
                    shutil.rmtree(target)  # damaged, or without a file that can be read now
                os.rename(temporary, target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            flush_folder(folder)
            for stale in folder.glob(f"{prefix}-*"):
                if stale != target:  # the same source as it was
                    shutil.rmtree(stale, ignore_errors=True)
    except OSError as error:
        raise Failed(f"the cache {str(folder)!r} cannot be used: {error.strerror or error}") from None
    built = _read(target, False, tell)
    assert built is not None
    return built


def _text(listing: Listing) -> str:
    head = json.dumps([listing.classes, listing.bad, listing.notes, len(listing.train), listing.test is None])
    files = (f"{path}\0{label}\0{size}\0{changed}" for path, label, size, changed in listing)
    return "\0".join([head, *files])


@contextmanager
def _lock(path: Path, tell: Callback) -> Iterator[None]:
    """Let one process build. The file is left: if it were removed, two could hold different ones."""
    with open(path, "ab") as lock:
        if not _locked(lock):
            tell(Note("another process is decoding these images; waiting for it"))
            while not _locked(lock):
                time.sleep(0.1)
                tell(Waiting())
        yield


def _locked(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(target: Path, root: str, thorough: bool, tell: Callback) -> CachedImages | None:
    """The set, or None if there is none that is whole, or if a file that it lacks can be read now."""
    images = _read(target, thorough, tell)
    if images is None:
        return None
    unread = [file for file, why in images.record["skipped"] if why.startswith(decode.UNREADABLE)]
    return None if any(decode.readable(os.path.join(root, file)) for file in unread) else images


def _read(target: Path, thorough: bool, tell: Callback) -> CachedImages | None:
    """The set as it was built, or None if there is none that is whole."""
    try:
        about = json.loads((target / "about.json").read_bytes())
        # copy-on-write, so that torch may wrap it; it is never written
        pixels = np.load(target / "pixels.npy", mmap_mode="c")
        labels = np.load(target / "labels.npy")
        whole = pixels.nbytes == about["bytes"] and len(labels) == len(pixels)
        if whole and (thorough or pixels.nbytes <= CHECKED_AT_START):
            whole = checksum(pixels, labels) == about["checksum"]
        if whole:
            return CachedImages(about["classes"], pixels, labels, about["train"], about["record"])
    except (OSError, ValueError, KeyError, EOFError):
        if not (target / "about.json").exists():
            return None
    tell(Note(f"the cache {target.name!r} is damaged; it is built again"))
    return None
