"""Data sets of image files: a listing, decoded once, split, and made a `Dataset`.

Left out, and named in the record: what is no usable image, and a training image whose very file is also in the test
set. An official set is used as its authors split it; there such twins are only named.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jioc.config.schema import Config
from jioc.data.augment.basic import Augment
from jioc.data.augment.crops import ResizedCrop
from jioc.data.catalogue import Entry, usual_canvas, usual_tasks
from jioc.data.dataset import Dataset
from jioc.data.images import cache, listing
from jioc.data.images.cache import Decoded
from jioc.data.images.peek import usual_size
from jioc.data.sources import official
from jioc.errors import Refused
from jioc.events import Callback, Note
from jioc.text import counted

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def load(entry: Entry, where: Path | None, config: Config, tell: Callback, thorough: bool = False) -> Dataset:
    assert where is not None
    found = official.LISTINGS[entry.name](where) if entry.place is None else listing.of_place(where)
    if not found.train:
        first = f": {found.bad[0][0]!r} {found.bad[0][1]}" if found.bad else ""
        raise Refused(f"{str(where)!r} holds no image to train on{first}")
    size = config.image_size or entry.size or usual_size(where)
    canvas = config.canvas or usual_canvas(size)
    if canvas < size:
        raise Refused(f"--canvas {canvas} is smaller than --image-size {size}")
    named = entry.place is None
    settings = {"share": config.test_share, "seed": config.split_seed, "named": named}
    colour = config.colour if config.colour != "auto" or not named else "rgb"
    arrange = partial(assemble, seed=config.split_seed, share=config.test_share, named=named)
    folder = cache.cache_folder(config.data_cache)
    kept = cache.kept(found, entry.name, canvas, colour, settings, arrange, folder, tell, thorough)
    record = {"layout": found.layout, "image_size": size, "canvas": canvas, **kept.about}
    if found.validation:
        record["split"] = record["split"] | {"test": found.validation}
    report(record, config.on_bad, tell, every=thorough)
    mean, std = IMAGENET if named else (record["mean"], record["std"])
    n = kept.n_train
    if named and entry.images is not None and (n, len(kept.labels) - n) != entry.images:
        told = f"this copy of {entry.name} has {n:,} training and {len(kept.labels) - n:,} test images"
        tell(Note(f"{told}; the whole set has {entry.images[0]:,} and {entry.images[1]:,}"))
    return Dataset(
        name=entry.name,
        classes=kept.classes,
        train_x=kept.pixels[:n],
        train_y=kept.labels[:n],
        test_x=kept.pixels[n:],
        test_y=kept.labels[n:],
        mean=tuple(mean),
        std=tuple(std),
        augment=usual_augment(size, canvas),
        size=size,
        tasks=entry.tasks if named else usual_tasks(len(kept.classes)),
        record=record,
    )


def usual_augment(size: int, canvas: int) -> Augment | ResizedCrop:
    """A shifted crop of images kept as small as they are seen (by an eighth, at most 4 pixels), else a resized crop."""
    if canvas > size:
        return ResizedCrop(size)
    return Augment(pad=max(1, min(4, size // 8)), flip=True)


SHOWN = 5  # of the files left out, on the screen; the record names all


def report(record: dict[str, Any], on_bad: str, tell: Callback, every: bool = False) -> None:
    """`every`: name all that is left out."""
    skipped, notes = record["skipped"], record["notes"]
    if skipped and on_bad == "fail":
        file, why = skipped[0]
        more = f" (and {len(skipped) - 1:,} more)" if len(skipped) > 1 else ""
        raise Refused(f"{file!r} {why}{more}; --on-bad skip leaves such files out")
    shown = skipped if every else skipped[:SHOWN]
    for file, why in shown:
        tell(Note(f"{file!r} {why}; it is left out"))
    if len(skipped) > len(shown):
        tell(Note(f"left out besides: {len(skipped) - len(shown):,}; jioc data check names them all"))
    split = [os.path.split(file) for file, _ in shown]
    said = {
        _untaught(name) for home, name in split if home.lower() in ("", *listing.TRAIN)
    }  # of a class folder itself
    for text in notes:
        if text not in said:
            tell(Note(text))


# --- which image goes where ---


def assemble(
    decoded: Decoded, seed: int, share: float, named: bool, judged: bool = True
) -> tuple[list[str], np.ndarray, np.ndarray, int, dict[str, Any]]:
    """Class names, rows to keep (training first), their labels, how many train, and the record.

    `judged`: by the test images; else it is no news that a class has none.
    """
    found = decoded.listing
    files = list(found)
    label = np.array([file.label for file in files], np.int64)
    skipped = [*found.bad, *((files[row].path, why) for row, why in sorted(decoded.why.items()))]
    notes = list(found.notes)
    twin = _first_of_the_same(decoded)
    train = decoded.good[decoded.good < len(found.train)]
    test = decoded.good[decoded.good >= len(found.train)]
    split: dict[str, Any] = {"made": found.test is None}
    notes += _two_labels(decoded.good, twin, label, files, found.classes)
    if found.test is None:
        if not named:
            again = train[(twin[train] != train) & (label[twin[train]] == label[train])]
            skipped += [(files[r].path, f"is the same file as {files[twin[r]].path!r}") for r in again]
            train = np.setdiff1d(train, again)
        test = _drawn(train, label, found.classes, seed, share)
        train = np.setdiff1d(train, test)
        split |= {"seed": seed, "share": share}
    else:
        both = train[np.isin(twin[train], twin[test])]
        of = {int(twin[row]): int(row) for row in test[::-1]}
        told = [
            (files[r].path, f"is also in the test set, as {files[of[int(twin[r])]].path!r}") for r in both
        ]
        if named and told:
            images = counted(len(told), "training image")
            notes.append(f"also in the test set: {images}, such as {told[0][0]!r}; kept as published")
        elif told:
            skipped += told
            train = np.setdiff1d(train, both)
    classes, train, test, label = _without_untaught(found.classes, train, test, label, notes, judged)
    rows = np.concatenate([train, test])
    record = {"split": split, "skipped": skipped, "notes": notes}
    return classes, rows, label[rows], len(train), record


def _first_of_the_same(decoded: Decoded) -> np.ndarray:
    """For each row the first good row whose file has the same bytes; -1 for a bad one: (n,)."""
    first = np.full(len(decoded.digests), -1, np.int64)
    _, where, which = np.unique(decoded.digests[decoded.good], axis=0, return_index=True, return_inverse=True)
    first[decoded.good] = decoded.good[where][which.reshape(-1)]
    return first


def _two_labels(
    good: np.ndarray, twin: np.ndarray, label: np.ndarray, files: list[Any], names: list[str]
) -> list[str]:
    torn = good[label[good] != label[twin[good]]]
    if not len(torn):
        return []
    a, b = files[torn[0]], files[twin[torn[0]]]
    told = (
        f"{a.path!r} of class {names[a.label]!r} is the same image as {b.path!r} of class {names[b.label]!r}"
    )
    more = f" (and {len(torn) - 1:,} more such)" if len(torn) > 1 else ""
    return [f"{told}{more}: one of the two labels is wrong"]


def _drawn(rows: np.ndarray, label: np.ndarray, names: list[str], seed: int, share: float) -> np.ndarray:
    """A share of each class, drawn by the seed and the class's name: it stays when other classes come or go."""
    drawn = []
    for c, name in enumerate(names):
        of = rows[label[rows] == c]
        wanted = min(len(of) - 1, max(1, round(share * len(of))))
        if wanted > 0:
            draw = np.random.RandomState([seed, *name.encode()])
            drawn.append(np.sort(of[draw.permutation(len(of))[:wanted]]))
    return np.concatenate(drawn) if drawn else rows[:0]


def _untaught(name: str) -> str:
    return f"class {name!r} has no usable training image; it is left out"


def _without_untaught(
    names: list[str], train: np.ndarray, test: np.ndarray, label: np.ndarray, notes: list[str], judged: bool
) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """The classes that have a training image, labelled anew; what else happened to a class becomes a note."""
    taught, tested = np.unique(label[train]), set(label[test].tolist())
    for c, name in enumerate(names):
        if c not in taught:
            notes.append(_untaught(name))
        elif judged and c not in tested:
            notes.append(f"class {name!r} has no test image; it is learnt and not judged")
    if not len(taught):
        return [], train, test, label
    anew = np.full(len(names), -1, np.int64)
    anew[taught] = np.arange(len(taught))
    return [names[c] for c in taught], train, test[anew[label[test]] >= 0], anew[label]
