"""A classifier between two tasks, without a data set: what it needs to answer, and to learn the next classes.

classifier.readouts(pixels)["cnn"]        (n, K)
classifier.predict(["a.jpg", "b.jpg"])    class names
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jioc.config import Config
from jioc.data.dataset import Dataset
from jioc.data.images.inputs import ImageInput, pixels_of
from jioc.data.loader import Images
from jioc.errors import unknown
from jioc.methods.base import Method
from jioc.results import TaskRow
from jioc.training.evaluate import AT_ONCE


@dataclass(frozen=True)
class Preprocessing:
    """What is done to pixels before a network sees them, and to training images before that."""

    shape: tuple[int, int, int]  # channels, height and width of images as they are kept
    size: int | None  # of the centred square that the network sees; None: the whole image
    mean: tuple[float, ...]  # per channel, of pixels in [0, 1]
    std: tuple[float, ...]
    augment: Any  # the usual Augmentation, a dataclass; None: not known
    whole: bool = True  # whether pixels are levels of uint8; otherwise floats of any scale

    @classmethod
    def of(cls, dataset: Dataset) -> "Preprocessing":
        c, h, w = dataset.train_x.shape[1:]
        whole = dataset.train_x.dtype == np.uint8
        return cls((c, h, w), dataset.size, dataset.mean, dataset.std, dataset.augment, whole)

    def images(self, pixels: np.ndarray, device: torch.device) -> Images:
        """Prepare pixels as a run prepares its test set."""
        return Images(pixels, np.zeros(len(pixels), np.int64), self.mean, self.std, device, self.size)


@dataclass(frozen=True)
class Classifier:
    """A method that has learnt some tasks, and all that belongs to it."""

    config: Config
    preprocessing: Preprocessing
    classes: list[str]  # names, in the order in which they were learnt
    sizes: tuple[int, ...]  # classes of each task
    method: Method
    device: torch.device
    exemplars: list[np.ndarray] | None  # of each class, best first, (m, c, h, w); None: left out
    generators: dict[str, tuple[str, Tensor]]  # the device's kind and the state of each
    counts: list[int]  # training images of each class in the task that taught it
    row: TaskRow | None = None  # of the last task; test images of older classes are not kept

    def parts(self) -> dict[str, Any]:
        """Everything that it is made from."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @torch.no_grad()
    def readouts(self, pixels: np.ndarray) -> dict[str, Tensor]:
        """Score images, in the shape in which they are kept, by every read-out: (n, K) each, on the CPU."""
        self.method.net.eval()
        images = self.preprocessing.images(pixels, self.device)
        scored: dict[str, list[Tensor]] = {}
        for part in torch.arange(len(pixels), device=self.device).split(AT_ONCE):
            for name, scores in self.method.readouts(images.plain(part)).items():
                scored.setdefault(name, []).append(scores.float().cpu())
        return {name: torch.cat(parts) for name, parts in scored.items()}

    def predict(self, images: ImageInput, readout: str | None = None) -> list[str]:
        """Name the class of each image (`data.images.inputs` says what an image may be).

        The method's headline decides, unless another read-out is named.
        """
        pixels = pixels_of(images, self.preprocessing.shape)
        if not len(pixels):
            return []
        return [self.classes[c] for c in self.confidence(pixels, readout).argmax(1).tolist()]

    def confidence(self, pixels: np.ndarray, readout: str | None = None) -> Tensor:
        """The softmax of a read-out's scores; of `nme` the cosine to each class mean: (n, K)."""
        scores = self.readouts(pixels)
        name = readout or self.method.spec.headline
        if name not in scores:
            raise unknown("read-out", name, scores)
        return (1 + scores[name] / 2).clamp(min=-1) if name == "nme" else scores[name].softmax(1)
