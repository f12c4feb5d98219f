"""A data set in a Python file, whose function `load` returns arrays.

    def load():
        return train_x, train_y, test_x, test_y

Images are uint8, (n, h, w) or (n, h, w, channels); labels are whatever tells classes apart, and their sorted
values are the classes. Mean and deviation are measured on the training images. The images are checked as a
folder's are: one on both sides of the split, one under two labels, or a class without a test image.
"""

import hashlib
import math
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np

from jioc.config import Config
from jioc.data.catalogue import Entry, usual_tasks
from jioc.data.dataset import MOST_SEEN, Dataset
from jioc.data.images.listing import File, Listing, normalise_name
from jioc.data.images.select import DecodedFiles, select, tell_skipped
from jioc.errors import Refused, refuse_if
from jioc.events import Callback
from jioc.scripts import imported

SMALLEST = 4  # pixels, as of --image-size
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def entry(place: Path) -> Entry:
    """The entry of a file, by what its `load` returns."""
    x, y, *_ = arrays(place.resolve())
    classes, size = len(np.unique(y)), min(x.shape[1:3])
    return Entry(
        place.stem, "python_file", classes, usual_tasks(classes), None, None, "", size, None, place=place
    )


def load(entry: Entry, where: Path, config: Config, tell: Callback, thorough: bool) -> Dataset:
    """Check the arrays of a file as if they were a folder's images."""
    from jioc.data.augment.crops import usual_augment
    from jioc.data.sources.arrays import statistics

    train_x, train_y, test_x, test_y = arrays(where.resolve())
    files = _as_files(train_x, train_y, test_x, test_y)
    seed, share, tested = config.split_seed, config.test_share, not config.judged_by_holdout
    classes, rows, labels, n, record = select(files, seed, share, official=False, tested=tested)
    tell_skipped(record, config.on_bad, tell, every=thorough)
    refuse_if(not n, f"every training image in {where.name!r} is in the test set too")
    to_train, to_test = train_x[rows[:n]], test_x[rows[n:] - len(train_x)]
    x, x_test = (np.ascontiguousarray(images.transpose(0, 3, 1, 2)) for images in (to_train, to_test))
    images, record = (x, labels[:n], x_test, labels[n:]), {"layout": "arrays", **record}
    fingerprint = hashlib.sha256()  # by which a resumed run knows the images that it began with
    for part in images:
        fingerprint.update(repr(part.shape).encode())
        fingerprint.update(part.tobytes())
    record["fingerprint"] = fingerprint.hexdigest()[:16]
    augment, tasks = usual_augment(min(x.shape[2:]), min(x.shape[2:])), usual_tasks(len(classes))
    return Dataset(entry.name, classes, *images, *statistics(x), augment, tasks=tasks, record=record)


def _as_files(
    train_x: np.ndarray, train_y: np.ndarray, test_x: np.ndarray, test_y: np.ndarray
) -> DecodedFiles:
    """The arrays as if they were a folder's files: each image has a name, a label and a digest."""
    names = np.unique(train_y)
    train = [File(f"train_x[{i}]", int(c), 0, 0) for i, c in enumerate(np.searchsorted(names, train_y))]
    test = [File(f"test_x[{i}]", int(c), 0, 0) for i, c in enumerate(np.searchsorted(names, test_y))]
    listing = Listing("", "arrays", [str(name) for name in names], train, test)
    each = [hashlib.blake2b(image.tobytes(), digest_size=16).digest() for image in (*train_x, *test_x)]
    digests = np.frombuffer(b"".join(each), np.uint8).reshape(-1, 16)
    return DecodedFiles(listing, np.arange(len(digests)), {}, digests)


def arrays(path: Path) -> Arrays:
    """The arrays that the file's `load` returns, called once for each state of the file."""
    return _arrays(imported(path), repr(path.name))


@lru_cache(maxsize=4)
def _arrays(module: ModuleType, place: str) -> Arrays:
    """Call `load` and check what it returns; images as (n, h, w, c)."""
    function = getattr(module, "load", None)
    if not callable(function):
        raise Refused(f"{place} has no function load(); a data file has one that returns images and labels")
    try:
        returned = function()
    except (Exception, SystemExit) as error:
        raise Refused(f"load() in {place} fails: {type(error).__name__}: {error}") from error
    refuse_if(
        not isinstance(returned, tuple | list) or len(returned) != 4,
        f"load() in {place} should return train_x, train_y, test_x, test_y",
    )
    train_x, train_y, test_x, test_y = (np.asarray(part) for part in returned)
    train_y, test_y = _labels(train_y, "train", place), _labels(test_y, "test", place)
    train, test = _images(train_x, train_y, "train", place), _images(test_x, test_y, "test", place)
    refuse_if(not len(train), f"load() in {place} returns no training image")
    refuse_if(
        train.shape[1:] != test.shape[1:],
        f"images to train on are {train.shape[1:]} and to test on {test.shape[1:]} in {place}",
    )
    if len(unknown := np.setdiff1d(test_y, train_y)):
        raise Refused(f"class {str(unknown[0])!r} of the test set in {place} has no training image")
    return train, train_y, test, test_y


def _labels(y: np.ndarray, part: str, place: str) -> np.ndarray:
    """Text as `listing` spells classes; refuse what tables put where there is no value."""
    objects = y.flat if y.dtype == object else ()
    absent = [
        not isinstance(label, str) and str(label) in ("None", "nan", "NaT", "<NA>") for label in objects
    ]
    if len(rows := np.flatnonzero(absent if y.dtype == object else y != y)):
        raise Refused(f"{part}_y in {place} has no label for image {rows[0]}: {y.flat[rows[0]]}")
    if y.dtype.kind not in "OU":
        return y
    return np.array([normalise_name(str(label)) for label in y.flat], str).reshape(y.shape)


def _images(x: np.ndarray, y: np.ndarray, part: str, place: str) -> np.ndarray:
    """Check the images; give a grey one its axis of channels."""
    name = f"{part}_x in {place}"
    refuse_if(x.dtype != np.uint8, f"{name} holds {x.dtype}; images are uint8, levels from 0 to 255")
    refuse_if(
        x.ndim not in (3, 4),
        f"{name} has the shape {x.shape}; images are (n, h, w) or (n, h, w, channels)",
    )
    refuse_if(
        min(x.shape[1:3]) < SMALLEST,
        f"{name} holds images of {x.shape[1]}x{x.shape[2]}; the least is {SMALLEST}x{SMALLEST}",
    )
    refuse_if(
        math.prod(x.shape[1:3]) > MOST_SEEN,
        f"{name} holds images of {x.shape[1]}x{x.shape[2]}; the most is {MOST_SEEN:,} pixels, 1024x1024",
    )
    refuse_if(
        x.ndim == 4 and x.shape[3] not in (1, 3),
        f"{name} has {x.shape[-1]} channels, which are the last axis; there may be 1 or 3",
    )
    refuse_if(
        y.shape != x.shape[:1],
        f"{part}_y in {place} has the shape {y.shape}; there are {len(x)} images to label",
    )
    return x if x.ndim == 4 else x[..., None]
