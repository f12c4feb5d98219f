"""Build a set of decoded images: decode every file of a listing, select images, write what the cache opens.

A set is a folder: pixels.npy, uint8 (n, c, h, w), the training images first; labels.npy; and about.json.
"""

import hashlib
import json
import os
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np

from jioc.data.images import decode, workers
from jioc.data.images.files import Listing
from jioc.data.images.select import DecodedFiles, Select
from jioc.device.cores import cores
from jioc.errors import Refused
from jioc.events import Callback, Decoding
from jioc.files import write

BLOCK = 16 << 20  # bytes
COPIED = 1000  # images at a time


def build(into: Path, listing: Listing, canvas: int, colour: str, select: Select, tell: Callback) -> None:
    into.mkdir()
    n, channels = len(list(listing)), 1 if colour == "grey" else 3
    _refuse_too_large(n * channels * canvas * canvas, into)
    # every file has the row that it keeps if all are good and no two the same: then nothing is copied
    order = _order_if_all_are_good(listing, select)
    row_of = np.argsort(order)
    pixels = np.lib.format.open_memmap(into / "decoded.npy", "w+", np.uint8, (n, channels, canvas, canvas))
    decoded, coloured = _decode(listing, order, pixels, tell)
    classes, used, labels, n_train, record = select(decoded)
    if colour == "auto" and not coloured:
        channels = 1
    if channels == pixels.shape[1] and np.array_equal(used, order):
        os.rename(into / "decoded.npy", into / "pixels.npy")
    else:
        pixels = _copy(pixels, row_of[used], channels, into / "pixels.npy")
        (into / "decoded.npy").unlink()
    pixels.flush()
    with open(into / "labels.npy", "wb") as file:
        np.save(file, labels)
        file.flush()
        os.fsync(file.fileno())
    checksums = checksum(pixels, labels)
    mean, std = statistics(pixels[:n_train])
    record |= {"coloured": coloured, "mean": mean, "std": std}
    record["fingerprint"] = digest(json.dumps([classes, n_train, checksums]))
    about = {"classes": classes, "train": n_train, "record": record}
    about |= {"bytes": pixels.nbytes, "checksum": checksums}
    write(into / "about.json", json.dumps(about).encode())


def _refuse_too_large(size: int, into: Path) -> None:
    free = shutil.disk_usage(into).free
    if size > free:
        raise Refused(
            f"decoded, the images take {size / 2**30:.1f} GiB; {str(into.parent)!r} has {free / 2**30:.1f} "
            "GiB left: choose another --data-cache or a smaller --image-size"
        )


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
    files = list(listing)
    paths = [os.path.join(listing.root, files[i].path) for i in order]
    digests = np.zeros((len(files), decode.DIGEST), np.uint8)
    bad: dict[int, str] = {}
    coloured, done = False, 0
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


def _copy(pixels: np.memmap, rows: np.ndarray, channels: int, file: Path) -> np.memmap:
    copied = np.lib.format.open_memmap(file, "w+", np.uint8, (len(rows), channels, *pixels.shape[2:]))
    for i in range(0, len(rows), COPIED):
        copied[i : i + COPIED] = pixels[rows[i : i + COPIED], :channels]
    return copied


def digest(*texts: str) -> str:
    """A digest of texts, which may hold file names that are no UTF-8."""
    digested = hashlib.blake2b(digest_size=16)
    for text in texts:
        digested.update(os.fsencode(text) + b"\0")
    return digested.hexdigest()


def checksum(pixels: np.ndarray, labels: np.ndarray) -> list[int]:
    """CRC-32 of each block: against damage, not against malice. By every core, some gigabytes a second."""
    flat = pixels.reshape(-1)
    blocks = [flat[i : i + BLOCK] for i in range(0, len(flat), BLOCK)]
    with ThreadPoolExecutor(cores()) as pool:
        return [*pool.map(zlib.crc32, blocks), zlib.crc32(labels.tobytes())]


def statistics(pixels: np.ndarray, most: int = 10_000) -> tuple[list[float], list[float]]:
    """Mean and deviation of each channel in [0, 1], to four digits, over at most so many images."""
    sample = pixels[:: max(1, -(-len(pixels) // most))]
    levels = np.zeros((pixels.shape[1], 256), np.int64)
    for i in range(0, len(sample), 500):
        for c in range(pixels.shape[1]):
            levels[c] += np.bincount(sample[i : i + 500, c].reshape(-1), minlength=256)
    at = np.arange(256) / 255
    share = levels / np.maximum(levels.sum(1, keepdims=True), 1)
    mean = share @ at
    std = np.sqrt(np.maximum(share @ at**2 - mean**2, 0))
    return [round(float(m), 4) for m in mean], [max(round(float(s), 4), 0.01) for s in std]
