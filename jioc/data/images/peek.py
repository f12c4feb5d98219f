"""The size of images, from a few of them, before any is decoded."""

from pathlib import Path

from jioc.data.images import decode
from jioc.data.images.listing import sample

MOST_FILES = 25


def usual_size(place: Path) -> int:
    """The side at which to see the images of a place: their median shorter side, or 64, 84 or 224."""
    sides = []
    for path in sample(place, MOST_FILES):
        try:
            sides.append(decode.shorter_side(path))
        except decode.Unusable:
            continue
    if not sides:
        return 64  # nothing can be read: the loader says so
    median = max(8, sorted(sides)[len(sides) // 2])
    return median if median <= 64 else max(size for size in (64, 84, 224) if size <= median)
