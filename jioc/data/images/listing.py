"""Which images a folder or a csv holds and what each shows, from names alone: no image is opened.

What cannot be used is named with the reason; `--on-bad` says whether that stops the run. Neither torch nor
numpy is imported here.
"""

from pathlib import Path

from jioc.data.images import csv_files, folders
from jioc.data.images.files import Listing, is_litter, natural, normalise_name

__all__ = ["class_names", "normalise_name", "list_images", "is_litter", "natural", "sample"]


def class_names(place: Path) -> list[str]:
    """The classes that a folder or csv names."""
    return csv_files.class_names(place) if place.is_file() else folders.class_names(place)


def sample(place: Path, most: int) -> list[str]:
    """The paths of a few images."""
    return csv_files.sample(place, most) if place.is_file() else folders.sample(place, most)


def list_images(place: Path) -> Listing:
    """List the images of a folder or csv."""
    return csv_files.list_csv(place) if place.is_file() else folders.list_folder(place)
