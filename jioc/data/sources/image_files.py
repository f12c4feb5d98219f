"""Data sets of image files: listed, decoded once, split, and made a `Dataset`.

TinyImageNet, CUB-200-2011 and MiniImageNet are listed as people have them. Labels follow the sorted synset
numbers (TinyImageNet, MiniImageNet), as every loader of class folders gives them, or the official class
numbers (CUB).
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from jioc.config import Config
from jioc.data.augment.crops import usual_augment
from jioc.data.catalogue import IMAGENET, Entry, cache_folder, usual_canvas, usual_tasks
from jioc.data.dataset import Dataset
from jioc.data.find import image_size
from jioc.data.images import cache
from jioc.data.images.listing import (
    File,
    FileFinder,
    Listing,
    Row,
    folders,
    list_images,
    list_rows,
    read_rows,
)
from jioc.data.images.select import select, tell_skipped
from jioc.errors import Refused, refuse_if
from jioc.events import Callback, Note
from jioc.files import read_text


def load(entry: Entry, where: Path, config: Config, tell: Callback, thorough: bool) -> Dataset:
    """Load an official set, or the images of a folder or csv."""
    known = entry.place is None
    listing = LISTINGS[entry.name](where) if known else list_images(where)
    if not listing.train:
        first = "".join(f": {path!r} {why}" for path, why in listing.bad[:1])
        raise Refused(f"{str(where)!r} holds no image to train on{first}")
    size = config.image_size or image_size(entry)
    canvas = config.canvas or usual_canvas(size)
    colour = "rgb" if (known or config.weights) and config.colour == "auto" else config.colour
    seed, share = config.split_seed, config.test_share
    images = cache.open_or_build(
        listing,
        entry.name,
        canvas,
        colour,
        settings={"share": share, "seed": seed, "named": known},
        select=partial(select, seed=seed, share=share, official=known),
        folder=cache_folder(config.data_cache),
        tell=tell,
        thorough=thorough,
    )
    record = {"layout": listing.layout, "image_size": size, "canvas": canvas, **images.record}
    if listing.validation:
        record["split"] = record["split"] | {"test": listing.validation}
    tell_skipped(record, config.on_bad, tell, every=thorough)
    n, (mean, std) = images.n_train, IMAGENET if known else (record["mean"], record["std"])
    counts = n, len(images.labels) - n
    if known and entry.images is not None and counts != entry.images:
        tell(
            Note(
                f"this copy of {entry.name} has {counts[0]:,} training and {counts[1]:,} test images; "
                f"the whole set has {entry.images[0]:,} and {entry.images[1]:,}"
            )
        )
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


# --- official sets, as people have them ---


def tiny_imagenet(root: Path) -> Listing:
    """train/WNID/images/*, and as the test set val/images/* by val_annotations.txt, or val/WNID/*."""
    wnids = sorted(line.split()[0] for line in _lines(root / "wnids.txt"))
    words = dict(line.split("\t", 1) for line in _lines(root / "words.txt") if "\t" in line)
    label, finder = {wnid: c for c, wnid in enumerate(wnids)}, FileFinder(root)
    train = [file for w in wnids for file in finder.in_folder(root / "train" / w / "images", label[w])]
    annotations, test = root / "val" / "val_annotations.txt", list[File]()
    if annotations.is_file() and (root / "val" / "images").is_dir():
        for line in _lines(annotations):
            name, wnid = f"{line}\t".split("\t")[:2]
            refuse_if(
                "\t" not in line,
                f"{str(annotations)!r} has a line that is not a name, a tab and a class: {line!r}",
            )
            refuse_if(
                wnid not in label, f"{str(annotations)!r} names {wnid!r}, which wnids.txt does not have"
            )
            if file := finder.at(os.path.join("val", "images", name), label[wnid]):
                test.append(file)
        test.sort(key=lambda file: file.label)
    else:
        test = [file for w in wnids for file in finder.in_folder(root / "val" / w, label[w])]
    return Listing(finder.root, "TinyImageNet", _class_names(wnids, words), train, test, finder.bad)


def _class_names(wnids: list[str], words: dict[str, str]) -> list[str]:
    """The first word of each synset, with its number if two share it; the number alone if it has none."""
    first = [words.get(wnid, wnid).split(",")[0].strip() for wnid in wnids]
    return [w if first.count(w) == 1 else f"{w} ({wnid})" for w, wnid in zip(first, wnids, strict=True)]


def cub(root: Path) -> Listing:
    """images.txt, image_class_labels.txt, train_test_split.txt and classes.txt, each of number and value."""
    tables = ("classes", "images", "image_class_labels", "train_test_split")
    classes, images, labels, trains = (_numbered(root / f"{name}.txt") for name in tables)
    for number in images:
        refuse_if(
            number not in trains or labels.get(number) not in classes,
            f"{str(root)!r}: image {number} of images.txt has no class or no split",
        )
    rows: list[Row] = [
        (
            os.path.join("images", path),
            classes[labels[number]],
            "train" if trains[number] == "1" else "test",
        )
        for number, path in images.items()
    ]
    return list_rows(root, rows, "CUB-200-2011", [classes[number] for number in sorted(classes, key=int)])


def mini_imagenet(root: Path) -> Listing:
    """images/ with csv files of filename and label, or class folders, or train, val and test folders of such.

    The splits in circulation part the classes, for few-shot learning; they are put together again, and a
    fifth of each class becomes the test set. Where train and test hold the same classes, that split is kept.
    """
    parts = ("train", "val", "test")
    if tables := [root / f"{part}.csv" for part in parts if (root / f"{part}.csv").is_file()]:
        rows: list[Row] = [(path, label, None) for table in tables for path, label, _ in read_rows(table)]
        names = sorted({label for _, label, _ in rows})
        below = "images" if (root / "images").is_dir() else "."
        return list_rows(root, rows, "images with csv files", names, partial(os.path.join, below))
    homes = {part: folders(root / part) for part in parts if (root / part).is_dir()} or {"": folders(root)}
    names = sorted({name for held in homes.values() for name in held})
    refuse_if(not names, f"{str(root)!r} holds neither csv files nor class folders")
    label, finder = {name: c for c, name in enumerate(names)}, FileFinder(root)

    def files(part: str) -> list[File]:
        return [file for name in homes[part] for file in finder.in_folder(root / part / name, label[name])]

    if set(homes) >= {"train", "test"} and set(homes["train"]) == set(homes["test"]) == set(names):
        return Listing(finder.root, "train and test", names, files("train"), files("test"), finder.bad)
    refuse_if(
        sum(map(len, homes.values())) != len(names),
        f"{str(root)!r}: some classes are in two of {', '.join(homes)}, but not all in train and test",
    )
    every = sorted((file for part in homes for file in files(part)), key=lambda file: file.label)
    return Listing(finder.root, "class folders", names, every, None, finder.bad)


LISTINGS: dict[str, Callable[[Path], Listing]] = {
    "tinyimagenet": tiny_imagenet,
    "cub200": cub,
    "miniimagenet": mini_imagenet,
}


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in read_text(path).splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _numbered(path: Path) -> dict[str, str]:
    values = {}
    for line in _lines(path):
        number, _, value = line.partition(" ")
        refuse_if(
            not number.isdecimal() or not value,
            f"{str(path)!r} has a line that is not a number and a value: {line!r}",
        )
        values[number] = value.strip()
    return values
