"""A data set in memory, or mapped into it, from whatever source."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jioc.config import Config
from jioc.errors import refuse_if
from jioc.text import counted

MOST_SEEN = 1024 * 1024  # pixels of an image that a network sees


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
    tasks: int = 5  # unless the settings say otherwise
    record: dict[str, Any] = field(default_factory=dict)  # "data" of result.json: split, skipped files

    @property
    def channels(self) -> int:
        return self.train_x.shape[1]

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an image as the network sees it."""
        c, h, w = self.train_x.shape[1:]
        return (c, h, w) if self.size is None else (c, self.size, self.size)


def fitted(dataset: Dataset, config: Config) -> Dataset:
    """Give a data set the mean, the deviation and the size that the configuration names, if it does.

    Images that come as arrays may be smaller than that: the device enlarges them.
    """
    dataset, (h, w) = with_statistics(dataset, config), dataset.train_x.shape[2:]
    if dataset.size is not None or not config.image_size or config.image_size <= max(h, w):
        return dataset
    refuse_if(h != w, f"--image-size enlarges square images, not {h}x{w}")
    return replace(dataset, size=config.image_size)


def with_statistics(dataset: Dataset, config: Config) -> Dataset:
    """Give a data set the mean and deviation that the configuration names, if it does."""
    mean, std = config.mean or dataset.mean, config.std or dataset.std
    refuse_if(
        config.weights and len(mean) != dataset.channels,
        f"--weights {config.weights!r} are for images of {counted(len(mean), 'channel')}, "
        f"and those of {dataset.name} have {dataset.channels}",
    )
    refuse_if(
        not len(mean) == len(std) == dataset.channels,
        f"--mean and --std need {dataset.channels} values each, one for each channel",
    )
    record = dataset.record | {"mean": list(mean), "std": list(std)}
    return replace(dataset, mean=tuple(mean), std=tuple(std), record=record)
