"""Read the data set of a configuration."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from jioc.config import Config
from jioc.data.augment.basic import Augment
from jioc.data.catalogue import Entry, cache_folder, data_folder
from jioc.data.dataset import Dataset, fitted
from jioc.data.find import find_dataset
from jioc.data.sources import archives, cifar, image_files, python_file
from jioc.errors import refuse_if
from jioc.events import Callback, Note, ignore


def load_dataset(
    config: Config, tell: Callback = ignore, thorough: bool = False, more: bool = False
) -> Dataset:
    """Read and check the data set.

    `thorough`: compare a large cache's checksum, too, and tell the name of every file left out; `more`: its
    classes are added to others, so that a single class gets no note.
    """
    entry = find_dataset(config.data)
    where = entry.place or Path()
    if entry.folder is not None:
        where = archives.locate(entry, data_folder(config.data_dir), cache_folder(config.data_cache))
    dataset = SOURCES[entry.source](entry, where, config, tell, thorough)
    if len(dataset.classes) == 1 and not more:
        hint = (
            "; classes are the folders directly inside the one that is given"
            if entry.place is not None and where.is_dir()
            else ""
        )
        tell(Note(f"there is one class, {dataset.classes[0]!r}{hint}"))
    refuse_if(not len(dataset.train_y), f"{config.data} holds no usable training image")
    if config.flip is not None:
        dataset = replace(dataset, augment=replace(dataset.augment, flip=config.flip))
    return fitted(dataset, config)


def load_digits(entry: Entry, where: Path, config: Config, tell: Callback, thorough: bool) -> Dataset:
    """The 1,797 handwritten digits that scikit-learn ships: 8x8, 17 grey levels.

    In each class the last 30 % in file order are the test set.
    """
    x, y = _digits()
    test = np.zeros(len(y), bool)
    for c in range(10):
        rows = np.flatnonzero(y == c)
        test[rows[round(0.7 * len(rows)) :]] = True
    names, images = [str(c) for c in range(10)], (x[~test], y[~test], x[test], y[test])
    augment = Augment(pad=1)  # a flipped digit is another sign
    return Dataset(entry.name, names, *images, (0.3053,), (0.3762,), augment, tasks=entry.tasks)


@cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Every image and label, in file order: scikit-learn's file takes longer to read than a task to learn."""
    from sklearn import datasets

    digits = datasets.load_digits()
    return np.round(digits.images * (255 / 16)).astype(np.uint8)[:, None], digits.target.astype(np.int64)


SOURCES = {
    "cifar": cifar.load,
    "digits": load_digits,
    "image_files": image_files.load,
    "python_file": python_file.load,
}
