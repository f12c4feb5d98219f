"""Find a data set by its name, or in a folder, a csv or a Python file. No image is decoded here."""

import os
from contextlib import suppress
from pathlib import Path

from jioc.data.catalogue import DATASETS, Entry, home_expanded, unknown_name, usual_tasks
from jioc.errors import os_errors, refuse_if
from jioc.scripts import is_script


def find_dataset(name: str) -> Entry:
    """The entry of a name, of a folder, or of a file."""
    if name in DATASETS:
        return DATASETS[name]
    if not name:
        raise unknown_name(name)
    with os_errors(f"--data {name!r} cannot be read"):
        return _at(home_expanded(name), name)


def _at(place: Path, name: str) -> Entry:
    """The data set of a folder or a file; `name`: as it was given."""
    if place.is_dir() or (place.is_file() and place.suffix.lower() == ".csv"):
        return _of_images(place)
    if place.is_file() and is_script(place):
        from jioc.data.sources import python_file

        return python_file.entry(place)
    refuse_if(
        place.is_file(),
        f"--data {name!r} is a file; give a folder of class folders, a csv of path and label, "
        "or a Python file",
    )
    refuse_if(place.exists(), f"--data {name!r} is neither a file nor a folder")
    refuse_if(place.suffix.lower() in (".csv", ".py"), f"--data: there is no file {name!r}")
    refuse_if(os.sep in name or name.startswith("."), f"--data: there is no folder {name!r}")
    raise unknown_name(name)


def _of_images(place: Path) -> Entry:
    from jioc.data.images import listing

    classes, path = len(listing.class_names(place)), place.resolve()
    refuse_if(
        not classes,
        f"{str(place)!r} holds no class folders; give a folder with a folder of images for each class",
    )
    name = path.stem if place.is_file() else path.name
    return Entry(name, "image_files", classes, usual_tasks(classes), None, None, "", None, None, place=place)


def image_size(entry: Entry) -> int:
    """The side at which the images of a data set are seen unless `--image-size` names another.

    Of a folder or csv: the median shorter side of a few images; of larger ones 64, 84 or 224.
    """
    if entry.size is not None:
        return entry.size
    from jioc.data.images import decode, listing

    assert entry.place is not None
    sides = []
    for path in listing.sample(entry.place, most=25):
        with suppress(decode.Unusable):
            sides.append(decode.shorter_side(path))
    if not sides:
        return 64  # nothing can be read: the loader says so
    median = max(8, sorted(sides)[len(sides) // 2])
    return median if median <= 64 else max(size for size in (64, 84, 224) if size <= median)
