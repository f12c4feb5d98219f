"""Images with the names of their classes, some at a time, to evaluate a model on.

Of a folder or csv that parts training and test images, the test images; of one that does not, every image. Of
a Python file's arrays and of an official set, the test images.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jioc.config import make
from jioc.data.find import find_dataset
from jioc.data.images.inputs import picture_form
from jioc.data.images.listing import list_images
from jioc.data.images.workers import decoded
from jioc.data.load import load_dataset
from jioc.errors import refuse_if
from jioc.events import Callback, Note, ignore

AT_ONCE = 1000  # images of arrays


@dataclass
class Part:
    """Some images: uint8 (n, c, h, w), and the name of each one's class."""

    pixels: np.ndarray
    names: list[str]
    skipped: list[tuple[str, str]] = field(default_factory=list)  # files that are no usable image, and why


def labelled_images(
    data: str, shape: tuple[int, int, int], size: int | None = None, tell: Callback = ignore
) -> Iterator[Part]:
    """Read the images of a folder, a csv, a Python file or an official set in a model's shape.

    `size`: of the centred square that the model sees; None: the whole image.
    """
    entry = find_dataset(data)
    if entry.source == "image_files" and entry.place is not None:
        yield from _of_files(entry.place, shape, tell)
    else:
        yield from _of_arrays(data, shape, size, tell)


def _of_files(place: Path, shape: tuple[int, int, int], tell: Callback) -> Iterator[Part]:
    side, grey = picture_form(shape)
    listing = list_images(place)
    for text in listing.notes:
        tell(Note(text))
    files = listing.train if listing.test is None else listing.test
    names = iter([listing.classes[file.label] for file in files])
    yield Part(np.zeros((0, *shape), np.uint8), [], listing.bad)
    for part in decoded((os.path.join(listing.root, file.path) for file in files), side, grey):
        own = [next(names) for _ in part.paths]
        good = [row for row in range(len(own)) if row not in part.bad]
        skipped = [(os.path.relpath(part.paths[row], listing.root), why) for row, why in part.bad.items()]
        yield Part(part.pixels[good], [own[row] for row in good], skipped)


def _of_arrays(data: str, shape: tuple[int, int, int], size: int | None, tell: Callback) -> Iterator[Part]:
    c, h, w = shape
    colour = "grey" if c == 1 else "rgb"
    config = make(method="finetune", data=data, image_size=size or w, canvas=w, colour=colour)
    dataset = load_dataset(config, tell, more=True)
    got = "x".join(map(str, dataset.test_x.shape[1:]))
    refuse_if(
        got != f"{c}x{h}x{w}", f"this model learnt images of {c}x{h}x{w}, and those of {data!r} are {got}"
    )
    for i in range(0, len(dataset.test_y), AT_ONCE):
        labels = dataset.test_y[i : i + AT_ONCE]
        yield Part(np.asarray(dataset.test_x[i : i + AT_ONCE]), [dataset.classes[c] for c in labels])
