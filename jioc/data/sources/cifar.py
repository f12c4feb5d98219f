"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009) from the official Python files.

Each file's md5 is checked, then its pickle is read by a parser that builds numpy arrays, lists, strings and
numbers and nothing else.
"""

import hashlib
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from jioc.config import Config
from jioc.data.augment.basic import Augment
from jioc.data.catalogue import Entry
from jioc.data.dataset import Dataset
from jioc.errors import Refused, refuse_if
from jioc.events import Callback
from jioc.files import read_bytes

CROP_FLIP_BRIGHTNESS = Augment(pad=4, flip=True, brightness=63 / 255)

FILES = {  # training files, test files, file with the names; md5 of each
    "cifar10": (
        {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        },
        {"test_batch": "40351d587109b95175f43aff81a1287e"},
        {"batches.meta": "5ff9c542aee3614f3951f8cda6e48888"},
    ),
    "cifar100": (
        {"train": "16019d7e3df5f24257cddd939b257f8d"},
        {"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
        {"meta": "7973b15100ade9c7d40fb424638fde48"},
    ),
}
KEYS = {"cifar10": (b"labels", b"label_names"), "cifar100": (b"fine_labels", b"fine_label_names")}
STATISTICS = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
}


def load(entry: Entry, where: Path, config: Config, tell: Callback, thorough: bool) -> Dataset:
    """Read the official files; those of the test set may be missing if training images are held out."""
    (train, test, meta), (labels, names) = FILES[entry.name], KEYS[entry.name]
    x, y = _images(where, train, labels)
    tested = not config.judged_by_holdout or all((where / name).exists() for name in test)
    images = x, y, *(_images(where, test, labels) if tested else (x[:0], y[:0]))
    ((name, md5),) = meta.items()
    classes = [c.decode() for c in _checked(where / name, md5)[names]]
    return Dataset(
        entry.name, classes, *images, *STATISTICS[entry.name], CROP_FLIP_BRIGHTNESS, tasks=entry.tasks
    )


def _images(where: Path, files: dict[str, str], labels: bytes) -> tuple[np.ndarray, np.ndarray]:
    parts = [_checked(where / name, md5) for name, md5 in files.items()]
    x = np.concatenate([part[b"data"] for part in parts]).reshape(-1, 3, 32, 32)
    return x, np.concatenate([part[labels] for part in parts]).astype(np.int64)


def _checked(path: Path, md5: str) -> dict[bytes, Any]:
    anew = "delete its folder, and jioc data get fetches it anew"
    try:
        raw = read_bytes(path)
    except OSError as error:
        missing = f"; {anew}" if isinstance(error, FileNotFoundError) else ""
        raise Refused(f"{str(path)!r} cannot be read: {error.strerror}{missing}") from None
    refuse_if(
        hashlib.md5(raw).hexdigest() != md5,
        f"{str(path)!r} is damaged: its md5 is not the official file's; {anew}",
    )
    return PlainUnpickler(io.BytesIO(raw), encoding="bytes").load()


class PlainUnpickler(pickle.Unpickler):
    """Reads arrays, lists, strings and numbers; any other object is refused before it is made."""

    _EMPTY_ARRAY = np.empty(0).__reduce__()[0]  # numpy has moved this function about
    ALLOWED = {
        ("numpy.core.multiarray", "_reconstruct"): _EMPTY_ARRAY,
        ("numpy._core.multiarray", "_reconstruct"): _EMPTY_ARRAY,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        refuse_if(
            (module, name) not in self.ALLOWED,
            f"the pickle asks for {module}.{name}, which no image file needs; it is not read",
        )
        return self.ALLOWED[module, name]
