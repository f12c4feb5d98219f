"""The data sets by name: what the command line knows of each before its files are read."""

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import unknown


@dataclass(frozen=True)
class Entry:
    """A data set's defaults; `jioc.data.<module>.load(entry, folder)` reads it."""

    name: str
    module: str
    classes: int
    tasks: int  # by default
    backbone: str
    folder: str | None  # of the official files, below the data folder; None: nothing to fetch
    about: str


DATASETS = {
    entry.name: entry
    for entry in [
        Entry("digits", "digits", 10, 5, "tiny", None, "1,797 handwritten digits of 8x8, shipped with scikit-learn"),
        Entry("cifar10", "cifar", 10, 5, "resnet32", "cifar-10-batches-py", "60,000 images of 32x32 in 10 classes"),
        Entry("cifar100", "cifar", 100, 10, "resnet32", "cifar-100-python", "60,000 images of 32x32 in 100 classes"),
    ]
}


def find(name: str) -> Entry:
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    return DATASETS[name]


def data_folder(given: Path | None) -> Path:
    """Where official files are looked for: the option, JIOC_DATA, or the folder `data` here."""
    return given or Path(os.environ.get("JIOC_DATA") or "data")
