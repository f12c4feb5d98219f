"""A data set in memory (or mapped into it), whatever it came from."""

import importlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jioc.config.schema import Config
from jioc.data import catalogue
from jioc.errors import Refused
from jioc.events import Callback


@dataclass(frozen=True)
class Dataset:
    name: str
    classes: list[str]  # by original label
    train_x: np.ndarray  # uint8 (n, c, h, w); or float32, of any scale
    train_y: np.ndarray  # int64 (n,), original labels
    test_x: np.ndarray
    test_y: np.ndarray
    mean: tuple[float, ...]  # per channel, of pixels in [0, 1]; of floats as they are
    std: tuple[float, ...]
    augment: Any  # an Augmentation, a dataclass
    size: int | None = None  # of the centred square that the network sees; None: the whole image
    tasks: int = 5  # by default
    record: dict[str, Any] = field(default_factory=dict)  # what result.json tells under "data": split, skipped files

    @property
    def channels(self) -> int:
        return self.train_x.shape[1]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of an image as the network sees it."""
        c, h, w = self.train_x.shape[1:]
        return (c, h, w) if self.size is None else (c, self.size, self.size)


def load(
    config: Config,
    tell: Callback = lambda kind, what: None,
    thorough: bool = False,
    more: bool = False,
) -> Dataset:
    """The data set of a configuration, read and checked.

    `thorough`: a large cache's checksum too, and all that is left out by name; `more`: its classes come beside others,
    so that one is as usual as many.
    """
    from jioc.data.images import cache
    from jioc.data.sources import archives

    entry = catalogue.find(config.data, config.image_size)
    module = importlib.import_module(f"jioc.data.sources.{entry.module}")
    where = entry.place
    if where is None and entry.folder is not None:
        where = archives.located(entry, catalogue.data_folder(config.data_dir), cache.cache_folder(config.data_cache))
    if entry.module in ("image_files", "python_file"):
        dataset = module.load(entry, where, config, tell, thorough)
    else:
        dataset = replace(module.load(entry, where, config), tasks=entry.tasks)
    if len(dataset.classes) == 1 and not more:
        tell("note", {"text": _one_class(dataset.classes[0], entry)})
    if not len(dataset.train_y):
        raise Refused(f"{config.data} holds no usable training image")
    if config.flip is not None:
        dataset = replace(dataset, augment=replace(dataset.augment, flip=config.flip))
    return with_statistics(dataset, config)


def _one_class(name: str, entry: catalogue.Entry) -> str:
    folder = entry.place is not None and entry.place.is_dir()
    told = "; classes are the folders directly inside the one that is given" if folder else ""
    return f"there is one class, {name!r}{told}"


def with_statistics(dataset: Dataset, config: Config) -> Dataset:
    """The data set with the mean and deviation that the configuration names, where it does."""
    mean, std = config.mean or dataset.mean, config.std or dataset.std
    if not len(mean) == len(std) == dataset.channels:
        raise Refused(f"--mean and --std need {dataset.channels} values each, one for each channel")
    record = {**dataset.record, "mean": list(mean), "std": list(std)}
    return replace(dataset, mean=tuple(mean), std=tuple(std), record=record)
