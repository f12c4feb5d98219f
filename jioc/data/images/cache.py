"""Decoded images kept on disk: one memory-mapped uint8 array per data set and size, decoded once by every core.

A kept set is a folder `NAME-PLACE-KEY`: PLACE tells sources and settings apart, KEY also what the source held, down to
sizes and times of its files. It is made under a temporary name, flushed and renamed, so it is whole or not there; its
array has a checksum. One process builds, others that want the same wait for it; when it dies, the next one builds. A
file that could not be read is tried again whenever the set is opened: that may change with neither size nor time.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Queue
from typing import IO, Any

import numpy as np

from jioc.data.images import decode
from jioc.data.images.listing import Listing
from jioc.errors import Failed, Refused
from jioc.events import Callback, Decoding, Note, Waiting, ignore
from jioc.files import flush_folder, write
from jioc.workers import cores, end

CHUNK = 250  # files that a worker is given at a time
CHECKED_AT_START = 4 << 30  # bytes up to which the checksum is looked at whenever the set is opened
BLOCK = 16 << 20


@dataclass
class Kept:
    """A decoded set: the training images, then the test images."""

    classes: list[str]  # of the original labels that are left
    pixels: np.ndarray  # uint8 (n, c, h, w), memory-mapped
    labels: np.ndarray  # int64 (n,)
    n_train: int
    about: dict[
        str, Any
    ]  # what went into result.json: split, skipped files, statistics, whether any file had colour


@dataclass
class Decoded:
    """Every file of a listing, decoded in its order; not yet split."""

    listing: Listing
    good: np.ndarray  # rows that hold an image
    why: dict[int, str]  # what is wrong with each of the others
    digests: np.ndarray  # (n, 16), of the files' bytes


Assemble = Callable[[Decoded], tuple[list[str], np.ndarray, np.ndarray, int, dict[str, Any]]]
"""Class names, rows to keep (training first), their labels, how many train, and what to record."""


def cache_folder(given: Path | None) -> Path:
    """The option, JIOC_CACHE, or the user's cache folder."""
    if given or os.environ.get("JIOC_CACHE"):
        return given or Path(os.environ["JIOC_CACHE"])
    import pooch

    return Path(pooch.os_cache("jioc"))


def kept(
    listing: Listing,
    name: str,
    canvas: int,
    colour: str,
    settings: dict[str, Any],
    assemble: Assemble,
    folder: Path,
    tell: Callback,
    thorough: bool = False,
) -> Kept:
    """The decoded set, built if it is not there. `settings`: all else that `assemble` depends on."""
    wanted = json.dumps(
        [decode.VERSION, listing.root, listing.layout, canvas, colour, settings], sort_keys=True
    )
    place, key = _hash(wanted), _hash(wanted, _lines(listing))
    safe = "".join(letter if letter.isalnum() else "-" for letter in name)[:40]
    target = folder / f"{safe}-{canvas}-{place[:8]}-{key[:16]}"
    try:
        if (found := _open(target, listing.root, thorough, tell)) is not None:
            return found
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / f".{target.name}.lock", tell):
            if (found := _open(target, listing.root, thorough, ignore)) is not None:
                return found  # another process built it while this one waited
            for litter in folder.glob(f".{target.name}.*.partial"):
                shutil.rmtree(litter, ignore_errors=True)
            temporary = folder / f".{target.name}.{os.getpid()}.partial"
            try:
                _build(temporary, listing, canvas, colour, assemble, tell)
                if target.exists():
                    shutil.rmtree(target)  # damaged, or without a file that can be read now
                os.rename(temporary, target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            flush_folder(folder)
            for stale in folder.glob(f"{safe}-{canvas}-{place[:8]}-*"):
                if stale != target:  # the same source as it was
                    shutil.rmtree(stale, ignore_errors=True)
    except OSError as error:
        raise Failed(f"the cache {str(folder)!r} cannot be used: {error.strerror or error}") from None
    built = _opened(target, False, tell)
    assert built is not None
    return built


def _hash(*parts: str) -> str:
    told = hashlib.blake2b(digest_size=16)
    for part in parts:
        told.update(os.fsencode(part) + b"\0")
    return told.hexdigest()


def _lines(listing: Listing) -> str:
    head = json.dumps([listing.classes, listing.bad, listing.notes, len(listing.train), listing.test is None])
    return "\0".join(
        [head, *(f"{path}\0{label}\0{size}\0{changed}" for path, label, size, changed in listing)]
    )


@contextmanager
def _lock(path: Path, tell: Callback) -> Iterator[None]:
    """Held by the one process that builds. The file is left: to remove it would let two hold different ones."""
    with open(path, "ab") as lock:
        told = False
        while not _got(lock):
            if not told:
                tell(Note("another process is decoding these images; waiting for it"))
            told = True
            time.sleep(0.1)
            tell(Waiting())
        yield


def _got(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- opening ---


def _open(target: Path, root: str, thorough: bool, tell: Callback) -> Kept | None:
    """The kept set, or None where there is none that is whole and without a file for the same reasons as now."""
    found = _opened(target, thorough, tell)
    unread = (
        [file for file, why in found.about["skipped"] if why.startswith(decode.UNREADABLE)] if found else []
    )
    return None if any(decode.readable(os.path.join(root, file)) for file in unread) else found


def _opened(target: Path, thorough: bool, tell: Callback) -> Kept | None:
    """The kept set as it was built, or None where there is none that is whole."""
    try:
        about = json.loads((target / "about.json").read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        tell(Note(f"the cache {target.name!r} is damaged; it is built again"))
        return None
    pixels_file, labels_file = target / "pixels.npy", target / "labels.npy"
    try:
        # copy-on-write, so that torch may wrap it; nobody writes
        pixels = np.load(pixels_file, mmap_mode="c")
        labels = np.load(labels_file)
        whole = pixels.nbytes == about["bytes"] and len(labels) == len(pixels)
        if whole and (thorough or pixels.nbytes <= CHECKED_AT_START):
            whole = checksum(pixels, labels) == about["checksum"]
    except (OSError, ValueError, KeyError, EOFError):
        whole = False
    if not whole:
        tell(Note(f"the cache {target.name!r} is damaged; it is built again"))
        return None
    return Kept(about["classes"], pixels, labels, about["train"], about["record"])


def checksum(pixels: np.ndarray, labels: np.ndarray) -> list[int]:
    """CRC-32 of each block of 16 MiB: against damage, not against malice; both cores, some gigabytes a second."""
    flat = pixels.reshape(-1)
    blocks = [flat[i : i + BLOCK] for i in range(0, len(flat), BLOCK)]
    with ThreadPoolExecutor(cores()) as pool:
        return [*pool.map(zlib.crc32, blocks), zlib.crc32(labels.tobytes())]


# --- building ---


def _build(
    into: Path,
    listing: Listing,
    canvas: int,
    colour: str,
    assemble: Assemble,
    tell: Callback,
) -> None:
    into.mkdir()
    files = list(listing)
    expected = _if_all_are_good(listing, assemble)  # files in the order in which they will be kept, if so
    paths = [os.path.join(listing.root, files[i].path) for i in expected]
    grey = colour == "grey"
    shape = (len(files), 1 if grey else 3, canvas, canvas)
    _room_for(int(np.prod(shape)), into)
    pixels = np.lib.format.open_memmap(into / "decoded.npy", "w+", np.uint8, shape)
    digests = np.lib.format.open_memmap(into / "digests.npy", "w+", np.uint8, (len(files), decode.DIGEST))
    wrong, coloured = decode_all(paths, pixels, digests, grey, into, tell)
    why = {int(expected[row]): reason for row, reason in wrong.items()}
    good = np.setdiff1d(np.arange(len(files)), np.fromiter(why, np.int64))
    row_of = np.argsort(expected)
    classes, rows, labels, n_train, record = assemble(Decoded(listing, good, why, digests[row_of]))
    channels = 1 if colour == "auto" and not coloured else shape[1]
    if channels == shape[1] and np.array_equal(rows, expected):
        os.rename(into / "decoded.npy", into / "pixels.npy")
    else:
        rows = row_of[rows]
        chosen = np.lib.format.open_memmap(
            into / "pixels.npy", "w+", np.uint8, (len(rows), channels, canvas, canvas)
        )
        for i in range(0, len(rows), 1000):
            chosen[i : i + 1000] = pixels[rows[i : i + 1000], :channels]
        pixels = chosen
        (into / "decoded.npy").unlink()
    pixels.flush()
    (into / "digests.npy").unlink()
    record["coloured"] = coloured
    record["mean"], record["std"] = statistics(pixels[:n_train])
    with open(into / "labels.npy", "wb") as file:
        np.save(file, labels)
        file.flush()
        os.fsync(file.fileno())
    crcs = checksum(pixels, labels)
    record["fingerprint"] = _hash(json.dumps([classes, n_train, crcs]))
    about = {
        "classes": classes,
        "train": n_train,
        "record": record,
        "bytes": pixels.nbytes,
        "checksum": crcs,
    }
    write(into / "about.json", json.dumps(about).encode())


def _if_all_are_good(listing: Listing, assemble: Assemble) -> np.ndarray:
    """Every file's number, in the order in which it would be kept if all were sound and no two the same."""
    every = np.arange(len(listing.train) + len(listing.test or ()))
    different = every[:, None].view(np.uint8).repeat(2, 1)
    _, rows, *_ = assemble(Decoded(listing, every, {}, different))
    return np.concatenate([rows, np.setdiff1d(every, rows)])


def _room_for(size: int, where: Path) -> None:
    free = shutil.disk_usage(where).free
    if size > free:
        raise Refused(
            f"decoded, the images take {size / 2**30:.1f} GiB; {str(where.parent)!r} has {free / 2**30:.1f} GiB left: "
            "choose another --data-cache or a smaller --image-size"
        )


def statistics(pixels: np.ndarray, most: int = 10_000) -> tuple[list[float], list[float]]:
    """Mean and deviation of each channel in [0, 1], to four digits, over at most that many images spread evenly."""
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


Answers = Generator[dict[str, Any], None, None]


def decode_all(
    paths: list[str], pixels: np.ndarray, digests: np.ndarray, grey: bool, scratch: Path, tell: Callback
) -> tuple[dict[int, str], bool]:
    """Every file into its row: what is wrong with the rows that stay empty, and whether any file had colour."""
    why: dict[int, str] = {}
    coloured, done = False, 0
    tell(Decoding(0, len(paths)))
    chunks = [(i, min(i + CHUNK, len(paths))) for i in range(0, len(paths), CHUNK)]
    if len(chunks) < 2 or not sys.executable:
        answers: Answers = (_here(chunk, paths, pixels, digests, grey) for chunk in chunks)
    else:
        write(scratch / "paths.json", json.dumps(paths).encode())
        task = {"paths": "paths.json", "pixels": "decoded.npy", "digests": "digests.npy", "grey": grey}
        task |= {name: str(scratch / str(task[name])) for name in ("paths", "pixels", "digests")}
        answers = _by_workers(task, chunks, paths)
    with closing(answers):  # `tell` may raise: the workers end before their files are removed
        for answer in answers:
            why |= {row: reason for row, reason in answer["bad"]}
            coloured, done = coloured or answer["colour"], done + answer["rows"]
            tell(Decoding(done, len(paths)))
    (scratch / "paths.json").unlink(missing_ok=True)
    return why, coloured


def _here(
    chunk: tuple[int, int], paths: list[str], pixels: np.ndarray, digests: np.ndarray, grey: bool
) -> dict[str, Any]:
    part = slice(*chunk)
    bad, colour = decode.fill(paths[part], pixels[part], digests[part], grey)
    return {"rows": chunk[1] - chunk[0], "bad": [(chunk[0] + row, why) for row, why in bad], "colour": colour}


def _by_workers(task: dict[str, Any], chunks: list[tuple[int, int]], paths: list[str]) -> Answers:
    """The answers of one process per core, as they come. A process that dies ends the work with a sentence."""
    answers: Queue[dict[str, Any]] = Queue()
    waiting = iter(chunks)  # shared by the threads; a list iterator hands out each item once
    command = [sys.executable, "-P", decode.__file__]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(min(cores(), len(chunks)))
    ]

    def tend(worker: "subprocess.Popen[str]") -> None:
        assert worker.stdin is not None and worker.stdout is not None
        given: deque[tuple[int, int]] = deque()
        try:
            worker.stdin.write(json.dumps(task) + "\n")
            while True:
                for chunk in islice(waiting, 2 - len(given)):  # one to work on and one to go on with
                    given.append(chunk)
                    worker.stdin.write(json.dumps(chunk) + "\n")
                    worker.stdin.flush()
                if not given:
                    break
                answers.put(json.loads(worker.stdout.readline()))
                given.popleft()
        except (OSError, ValueError):
            answers.put({"died": given[0] if given else chunks[0]})

    threads = ThreadPoolExecutor(len(workers))
    try:
        for worker in workers:
            threads.submit(tend, worker)
        for _ in chunks:
            answer = answers.get()
            if "failed" in answer:
                raise Failed(f"decoded images cannot be kept: {answer['failed']}")
            if "died" in answer:
                first, last = answer["died"]
                between = f"{paths[first]!r} and {paths[max(first, last - 1)]!r}"
                raise Failed(
                    f"a decoding process died (too little memory?) on one of {last - first} files between {between}"
                )
            yield answer
    finally:
        end(workers, threads)
