"""List the files of TinyImageNet, CUB-200-2011 and MiniImageNet as people have them. No image is opened.

Labels follow the sorted synset numbers (TinyImageNet, MiniImageNet), as every loader of class folders gives
them, or the official class numbers (CUB).
"""

import os
from collections.abc import Callable
from pathlib import Path

from jioc.data.images.csv_files import list_rows, read_rows
from jioc.data.images.files import File, FileFinder, Listing, folders
from jioc.errors import Refused


def tiny_imagenet(root: Path) -> Listing:
    """train/WNID/images/*, and as the test set val/images/* by val_annotations.txt, or val/WNID/*."""
    wnids = sorted(line.split()[0] for line in _lines(root / "wnids.txt"))
    words = dict(line.split("\t", 1) for line in _lines(root / "words.txt") if "\t" in line)
    label = {wnid: c for c, wnid in enumerate(wnids)}
    finder = FileFinder(root)
    train = [file for w in wnids for file in finder.in_folder(root / "train" / w / "images", label[w])]
    annotations = root / "val" / "val_annotations.txt"
    test: list[File] = []
    if annotations.is_file() and (root / "val" / "images").is_dir():
        for line in _lines(annotations):
            name, tab, rest = line.partition("\t")
            wnid = rest.split("\t")[0]
            if not tab:
                raise Refused(
                    f"{str(annotations)!r} has a line that is not a name, a tab and a class: {line!r}"
                )
            if wnid not in label:
                raise Refused(f"{str(annotations)!r} names {wnid!r}, which wnids.txt does not have")
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
    classes = _numbered(root / "classes.txt")
    images, labels, trains = (
        _numbered(root / name) for name in ("images.txt", "image_class_labels.txt", "train_test_split.txt")
    )
    rows: list[tuple[str, str, str | None]] = []
    for number, path in images.items():
        if number not in labels or number not in trains or labels[number] not in classes:
            raise Refused(f"{str(root)!r}: image {number} of images.txt has no class or no split")
        split = "train" if trains[number] == "1" else "test"
        rows.append((os.path.join("images", path), classes[labels[number]], split))
    ordered = [classes[number] for number in sorted(classes, key=int)]
    return list_rows(root, rows, "CUB-200-2011", ordered)


def mini_imagenet(root: Path) -> Listing:
    """images/ with csv files of filename and label, or class folders, or train, val and test folders of such.

    The splits in circulation part the classes, for few-shot learning; they are put together again, and a
    fifth of each class becomes the test set. Where train and test hold the same classes, that split is kept.
    """
    tables = [root / f"{name}.csv" for name in ("train", "val", "test") if (root / f"{name}.csv").is_file()]
    if tables:
        rows = [(path, label, None) for table in tables for path, label, _ in read_rows(table)]
        names = sorted({label for _, label, _ in rows})
        below = "images" if (root / "images").is_dir() else "."
        return list_rows(
            root, list(rows), "images with csv files", names, lambda path: os.path.join(below, path)
        )
    finder = FileFinder(root)
    parts = [name for name in ("train", "val", "test") if (root / name).is_dir()]
    homes = {part: folders(root / part) for part in parts} or {"": folders(root)}
    names = sorted({name for held in homes.values() for name in held})
    if not names:
        raise Refused(f"{str(root)!r} holds neither csv files nor class folders")
    label = {name: c for c, name in enumerate(names)}

    def files(part: str) -> list[File]:
        return [file for name in homes[part] for file in finder.in_folder(root / part / name, label[name])]

    if set(homes) >= {"train", "test"} and set(homes["train"]) == set(homes["test"]) == set(names):
        return Listing(finder.root, "train and test", names, files("train"), files("test"), finder.bad)
    if sum(map(len, homes.values())) != len(names):
        raise Refused(
            f"{str(root)!r}: some classes are in two of {', '.join(homes)}, but not all in train and test"
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
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _numbered(path: Path) -> dict[str, str]:
    values = {}
    for line in _lines(path):
        number, _, value = line.partition(" ")
        if not number.isdecimal() or not value:
            raise Refused(f"{str(path)!r} has a line that is not a number and a value: {line!r}")
        values[number] = value.strip()
    return values
