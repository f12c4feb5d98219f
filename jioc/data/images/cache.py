"""The cache of decoded images: a memory-mapped uint8 array for each data set and size, decoded once.

A set is a folder `NAME-PLACE-KEY`: PLACE tells sources and settings apart, KEY also what the source held,
down to sizes and times of its files. It holds pixels.npy, uint8 (n, c, h, w), the training images first;
labels.npy; and about.json. It is built under a temporary name, flushed and renamed, so it is whole or not
there; arrays and about.json have checksums. One process builds, others that want the same wait for it; when
it dies, the next one builds. A file that could not be read is tried again whenever the set is opened: that
may change with neither size nor time. No memory map is written to: on a full disk that ends the process.
"""

import fcntl
import hashlib
import json
import math
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from jioc.data.images import decode, workers
from jioc.data.images.listing import Listing
from jioc.data.images.select import DecodedFiles, Select
from jioc.device.pick import cores
from jioc.errors import Failed, os_errors, refuse_if
from jioc.events import Callback, Decoding, Note, Waiting, ignore
from jioc.files import check_regular, flush_folder, open_regular, read_bytes, write
from jioc.text import sized

CHECKED_AT_START = 4 << 30  # bytes up to which the checksum is compared whenever the set is opened
BLOCK = 16 << 20  # bytes that a checksum is of
COPIED = 1000  # images at a time
SEEN = 64  # rows and columns of an image that its statistics are of


@dataclass
class CachedImages:
    """A decoded set: the training images, then the test images."""

    classes: list[str]  # of the original labels that are left
    pixels: np.ndarray  # uint8 (n, c, h, w), memory-mapped
    labels: np.ndarray  # int64 (n,)
    n_train: int
    record: dict[str, Any]  # for result.json: split, skipped files, statistics, whether any file had colour


def open_or_build(
    listing: Listing,
    name: str,
    canvas: int,
    colour: str,
    settings: dict[str, Any],
    select: Select,
    folder: Path,
    tell: Callback,
    thorough: bool,
) -> CachedImages:
    """Open the decoded set of a listing; build it if it is not there. `settings`: what `select` depends on.

    `thorough`: compare the checksum of a large set, too.
    """
    wanted = [decode.VERSION, listing.root, listing.layout, canvas, colour, settings]
    source = json.dumps(wanted, sort_keys=True)
    safe = "".join(letter if letter.isalnum() else "-" for letter in name)[:40]
    prefix = f"{safe}-{canvas}-{_digest(source)[:8]}"
    target = folder / f"{prefix}-{_digest(source, _text(listing))[:16]}"
    with os_errors(f"the cache {str(folder)!r} cannot be used (--data-cache names another)", Failed):
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
                _build(temporary, listing, canvas, colour, select, tell)
                if target.exists():
                    shutil.rmtree(target)  # damaged, or without a file that can be read now
                os.rename(temporary, target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            flush_folder(folder)
            for stale in folder.glob(f"{prefix}-*"):
                if stale != target:  # the same source as it was
                    shutil.rmtree(stale, ignore_errors=True)
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
    with open_regular(path, "ab") as lock:
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
    unread = [file for file, why in images.record["skipped"] if why.startswith(decode.MENDABLE)]
    return None if any(decode.readable(os.path.join(root, file)) for file in unread) else images


def _read(target: Path, thorough: bool, tell: Callback) -> CachedImages | None:
    """The set as it was built, or None if there is none that is whole."""
    try:
        about = json.loads(read_bytes(target / "about.json"))
        # copy-on-write, so that torch may wrap it; it is never written
        pixels, mapped = _mapped(target / "pixels.npy", "c"), _mapped(target / "labels.npy", "r")
        if about.pop("digest") == _digest(json.dumps(about)) and _layout(pixels, mapped) == about["layout"]:
            labels, checked = np.array(mapped), thorough or pixels.nbytes <= CHECKED_AT_START
            if not checked or _checksums(pixels, labels) == about["checksum"]:
                return CachedImages(about["classes"], pixels, labels, about["train"], about["record"])
    except Exception:  # a damaged file can make a reader raise anything
        if not os.path.lexists(target / "about.json"):
            return None
    tell(Note(f"the cache {target.name!r} is damaged; it is built again"))
    return None


def _mapped(path: Path, mode: Literal["r", "c"]) -> np.ndarray:
    """Map an array's file, which must hold the whole array."""
    check_regular(path)
    return np.load(path, mmap_mode=mode)


def _layout(pixels: np.ndarray, labels: np.ndarray) -> list[Any]:
    return [pixels.dtype.str, list(pixels.shape), labels.dtype.str, list(labels.shape)]


# --- building a set ---


def _build(into: Path, listing: Listing, canvas: int, colour: str, select: Select, tell: Callback) -> None:
    """Decode every file of a listing, select images, and write what `_read` opens."""
    into.mkdir()
    n, channels = len(list(listing)), 1 if colour == "grey" else 3
    # every file has the row that it keeps if all are good and no two the same: then nothing is copied
    order = _order_if_all_are_good(listing, select)
    pixels = _new_array(into / "decoded.npy", (n, channels, canvas, canvas))
    decoded, coloured = _decode(listing, order, pixels, tell)
    classes, used, labels, n_train, record = select(decoded)
    channels = 1 if colour == "auto" and not coloured else channels
    if channels == pixels.shape[1] and np.array_equal(used, order):
        os.rename(into / "decoded.npy", into / "pixels.npy")
    else:
        pixels = _copy(pixels, np.argsort(order)[used], channels, into / "pixels.npy")
        (into / "decoded.npy").unlink()
    with open(into / "labels.npy", "wb") as file:
        np.save(file, labels)
    for name in ("pixels.npy", "labels.npy"):
        with open(into / name, "rb") as file:
            os.fsync(file.fileno())
    checksums = _checksums(pixels, labels)
    mean, std = statistics(pixels[:n_train])
    record |= {"coloured": coloured, "mean": mean, "std": std}
    record["fingerprint"] = _digest(json.dumps([classes, n_train, checksums]))
    about = {
        "classes": classes,
        "train": n_train,
        "record": record,
        "layout": _layout(pixels, labels),
        "checksum": checksums,
    }
    write(into / "about.json", json.dumps(about | {"digest": _digest(json.dumps(about))}).encode())


def _order_if_all_are_good(listing: Listing, select: Select) -> np.ndarray:
    """Every file's number, in the order in which it would be kept if all were sound and no two the same."""
    every = np.arange(len(list(listing)))
    different = every[:, None].view(np.uint8).repeat(2, 1)
    rows = select(DecodedFiles(listing, every, {}, different)).rows
    return np.concatenate([rows, np.setdiff1d(every, rows)])


def _decode(
    listing: Listing, order: np.ndarray, pixels: np.memmap, tell: Callback
) -> tuple[DecodedFiles, bool]:
    """Decode every file into its row, in that order; also whether any file had colour."""
    files, coloured, done = list(listing), False, 0
    paths = [os.path.join(listing.root, files[i].path) for i in order]
    digests = np.zeros((len(files), decode.DIGEST), np.uint8)
    bad: dict[int, str] = {}
    tell(Decoding(0, len(paths)))
    parts = workers.decoded(paths, pixels.shape[-1], pixels.shape[1] == 1, into=pixels)
    with closing(parts):  # `tell` may raise: the processes end before their files are removed
        for part in parts:
            rows = order[done : done + len(part.paths)]
            digests[rows] = part.digests
            bad |= {int(rows[i]): why for i, why in part.bad.items()}
            coloured, done = coloured or part.coloured, done + len(rows)
            tell(Decoding(done, len(paths)))
    good = np.setdiff1d(np.arange(len(files)), np.fromiter(bad, np.int64))
    return DecodedFiles(listing, good, bad, digests), coloured


def _new_array(file: Path, shape: tuple[int, ...]) -> np.memmap:
    """Make the file of an array of uint8, yet to be written to; refuse one that the disk has no room for."""
    size, free = math.prod(shape), shutil.disk_usage(file.parent).free
    refuse_if(
        size > free,
        f"decoded, the images take {sized(size)} more; {str(file.parent.parent)!r} has {sized(free)} left: "
        "choose another --data-cache or a smaller --image-size",
    )
    with open(file, "wb") as out:
        head = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(out, head)
        out.truncate(out.tell() + size)
    return np.lib.format.open_memmap(file, "r")


def _copy(pixels: np.memmap, rows: np.ndarray, channels: int, file: Path) -> np.memmap:
    """Copy those rows and so many channels into a file."""
    copied = _new_array(file, (len(rows), channels, *pixels.shape[2:]))
    with open(file, "r+b") as out:
        out.seek(copied.offset)
        for i in range(0, len(rows), COPIED):
            out.write(np.ascontiguousarray(pixels[rows[i : i + COPIED], :channels]).data)
    return copied


def _digest(*texts: str) -> str:
    """A digest of texts, which may hold file names that are no UTF-8."""
    joined = b"".join(os.fsencode(text) + b"\0" for text in texts)
    return hashlib.blake2b(joined, digest_size=16).hexdigest()


def _checksums(pixels: np.ndarray, labels: np.ndarray) -> list[int]:
    """CRC-32 of each block: against damage, not against malice. By every core, some gigabytes a second."""
    flat = pixels.reshape(-1)
    blocks = [flat[i : i + BLOCK] for i in range(0, len(flat), BLOCK)]
    with ThreadPoolExecutor(cores()) as pool:
        return [*pool.map(zlib.crc32, blocks), zlib.crc32(labels.tobytes())]


def statistics(pixels: np.ndarray, most: int = 10_000) -> tuple[list[float], list[float]]:
    """Mean and deviation of each channel in [0, 1], to four digits, over at most so many images.

    Of a large image every second, third, … row and column counts: neighbours are alike, and time is not.
    """
    apart, step = max(1, -(-len(pixels) // most)), -(-pixels.shape[-1] // SEEN)
    sample, levels = pixels[::apart, :, ::step, ::step], np.zeros((pixels.shape[1], 256), np.int64)
    for i in range(0, len(sample), 500):
        for c in range(pixels.shape[1]):
            levels[c] += np.bincount(sample[i : i + 500, c].reshape(-1), minlength=256)
    at, share = np.arange(256) / 255, levels / np.maximum(levels.sum(1, keepdims=True), 1)
    mean = share @ at
    std = np.sqrt(np.maximum(share @ at**2 - mean**2, 0))
    return [round(float(m), 4) for m in mean], [max(round(float(s), 4), 0.01) for s in std]
