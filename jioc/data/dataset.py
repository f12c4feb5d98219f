"""A data set in memory, whatever it came from."""

import importlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import catalogue
from .augment import Augment


@dataclass(frozen=True)
class Dataset:
    name: str
    classes: list[str]  # by original label
    train_x: np.ndarray  # uint8 (n, c, h, w)
    train_y: np.ndarray  # int64 (n,), original labels
    test_x: np.ndarray
    test_y: np.ndarray
    mean: tuple[float, ...]  # per channel, of pixels in [0, 1]
    std: tuple[float, ...]
    augment: Augment

    @property
    def channels(self) -> int:
        return self.train_x.shape[1]


def load(name: str, data_dir: Path | None) -> Dataset:
    """The data set of that name, read and checked."""
    entry = catalogue.find(name)
    return importlib.import_module(f"jioc.data.{entry.module}").load(entry, catalogue.data_folder(data_dir))
