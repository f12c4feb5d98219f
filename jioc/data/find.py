"""Find a data set by its name, or in a folder, a csv or a Python file. No image is decoded here."""

import os
from pathlib import Path

from jioc.data.catalogue import DATASETS, Entry, unknown_name, usual_tasks
from jioc.errors import Refused


def find_dataset(name: str) -> Entry:
    if name in DATASETS:
        return DATASETS[name]
    place = Path(name).expanduser()
    if is_images(place):
        return _of_images(place)
    if place.is_file() and place.suffix == ".py":
        from jioc.data.sources import python_file

        return python_file.entry(place)
    if place.is_file():
        raise Refused(
            f"--data {name!r} is a file; give a folder of class folders, a csv of path and label, "
            "or a Python file"
        )
    if place.suffix.lower() in (".csv", ".py"):
        raise Refused(f"--data: there is no file {name!r}")
    if os.sep in name or name.startswith("."):
        raise Refused(f"--data: there is no folder {name!r}")
    raise unknown_name(name)


def is_images(place: Path) -> bool:
    """Whether a place may hold image files: a folder, or a csv that names them."""
    return place.is_dir() or (place.is_file() and place.suffix.lower() == ".csv")


def _of_images(place: Path) -> Entry:
    from jioc.data.images.listing import class_names

    classes = len(class_names(place))
    if not classes:
        raise Refused(
            f"{str(place)!r} holds no class folders; give a folder with a folder of images for each class"
        )
    name = place.resolve().stem if place.is_file() else place.resolve().name
    return Entry(name, "image_files", classes, usual_tasks(classes), None, None, "", None, None, place=place)


def image_size(entry: Entry) -> int:
    """The side at which the images of a data set are seen unless `--image-size` names another."""
    if entry.size is not None:
        return entry.size
    from jioc.data.images.peek import usual_size

    assert entry.place is not None
    return usual_size(entry.place)
