"""Data sets of image files: listed, decoded once, split, and made a `Dataset`."""

from functools import partial
from pathlib import Path

from jioc.config import Config
from jioc.data.augment.crops import usual_augment
from jioc.data.catalogue import Entry, usual_canvas, usual_tasks
from jioc.data.dataset import Dataset
from jioc.data.images import cache
from jioc.data.images.listing import list_images
from jioc.data.images.peek import usual_size
from jioc.data.images.select import select, tell_skipped
from jioc.data.sources import official
from jioc.errors import Refused
from jioc.events import Callback, Note

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def load(entry: Entry, where: Path | None, config: Config, tell: Callback, thorough: bool = False) -> Dataset:
    """Load an official set, or the images of a folder or csv."""
    assert where is not None
    known = entry.place is None
    listing = official.LISTINGS[entry.name](where) if known else list_images(where)
    if not listing.train:
        first = f": {listing.bad[0][0]!r} {listing.bad[0][1]}" if listing.bad else ""
        raise Refused(f"{str(where)!r} holds no image to train on{first}")
    size = config.image_size or entry.size or usual_size(where)
    canvas = config.canvas or usual_canvas(size)
    if canvas < size:
        raise Refused(f"--canvas {canvas} is smaller than --image-size {size}")
    colour = "rgb" if known and config.colour == "auto" else config.colour
    seed, share = config.split_seed, config.test_share
    settings = {"share": share, "seed": seed, "named": known}
    choose = partial(select, seed=seed, share=share, official=known)
    folder = cache.cache_folder(config.data_cache)
    images = cache.open_or_build(
        listing, entry.name, canvas, colour, settings, choose, folder, tell, thorough
    )
    record = {"layout": listing.layout, "image_size": size, "canvas": canvas, **images.record}
    if listing.validation:
        record["split"] = record["split"] | {"test": listing.validation}
    tell_skipped(record, config.on_bad, tell, every=thorough)
    mean, std = IMAGENET if known else (record["mean"], record["std"])
    n = images.n_train
    counts = n, len(images.labels) - n
    if known and entry.images is not None and counts != entry.images:
        here = f"this copy of {entry.name} has {counts[0]:,} training and {counts[1]:,} test images"
        tell(Note(f"{here}; the whole set has {entry.images[0]:,} and {entry.images[1]:,}"))
    return Dataset(
        name=entry.name,
        classes=images.classes,
        train_x=images.pixels[:n],
        train_y=images.labels[:n],
        test_x=images.pixels[n:],
        test_y=images.labels[n:],
        mean=tuple(mean),
        std=tuple(std),
        augment=usual_augment(size, canvas),
        size=size,
        tasks=entry.tasks if known else usual_tasks(len(images.classes)),
        record=record,
    )
