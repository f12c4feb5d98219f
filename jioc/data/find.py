"""Find a data set by its name, or in a folder, a csv or a Python file. No image is decoded here."""

import os
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from jioc.data.catalogue import (
    DATASETS,
    Entry,
    home_expanded,
    is_nearly_known,
    unknown_name,
    usual_tasks,
)
from jioc.errors import Refused, os_errors, refuse_if
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
    is_file = place.suffix.lower() in (".csv", ".py")
    near = nearest_place(place)
    hint = f"; did you mean {os.path.join(os.path.dirname(name), near)!r}?" if near else ""
    refuse_if(is_file, f"--data: there is no file {name!r}{hint}")
    is_path = os.sep in name or name.startswith(".")
    refuse_if(is_path or (near and not is_nearly_known(name)), f"--data: there is no folder {name!r}{hint}")
    if name.lower().startswith("imagenet") or is_nearly_known(name):
        raise unknown_name(name)
    sets = ", ".join(sorted(DATASETS))
    raise Refused(f"--data: there is no folder {name!r} here; data sets that have a name are {sets}")


def no_folder(place: Path) -> Refused:
    """The refusal of a folder or file that is not there; it suggests the nearest name beside it."""
    near = nearest_place(place)
    return Refused(
        f"there is no folder {str(place)!r}"
        + (f"; did you mean {str(place.with_name(near))!r}?" if near else "")
    )


def nearest_place(place: Path) -> str | None:
    """The name beside a missing folder or file that is nearest to its own; None: there is none like it."""
    try:
        names = [name for name in os.listdir(place.parent) if not name.startswith(".")]
    except OSError:
        return None
    return next(iter(get_close_matches(place.name, names, n=1, cutoff=0.7)), None)


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
