"""The data sets by name: what is known of each before its images are read. `find.py` looks at somebody's own folder."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jioc.errors import Refused, unknown

Archive = tuple[str, str, str]
"""Of the official archive: its address, its file name, its md5."""


@dataclass(frozen=True)
class Entry:
    """A data set's defaults. `source`: the module of `data/sources` that reads it; vectors have none."""

    name: str
    source: str
    classes: int
    tasks: int  # by default
    backbone: str | None  # None: the one that suits the size of the images
    folder: str | None  # of the official files, below the data folder; None: nothing to fetch
    about: str
    size: int | None  # pixels, of the square that the network sees; None: that of the images in `place`
    stem: str | None = "cifar"  # None: as of the backbone
    images: tuple[int, int] | None = None  # training and test images of the whole set
    archive: Archive | None = None
    by_hand: str = ""  # what to do where no official address exists
    other_folders: tuple[str, ...] = ()  # names under which copies circulate
    place: Path | None = None  # of somebody's own images


DATASETS = {
    entry.name: entry
    for entry in [
        Entry("digits", "digits", 10, 5, "tiny", None, "1,797 handwritten digits of 8x8, shipped with scikit-learn", 8),
        Entry(
            "cifar10", "cifar", 10, 5, "resnet32", "cifar-10-batches-py", "60,000 images of 32x32 in 10 classes", 32,
            images=(50_000, 10_000),
            archive=(
                "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
                "cifar-10-python.tar.gz",
                "c58f30108f718f92721af3b95e74349a",
            ),
        ),
        Entry(
            "cifar100", "cifar", 100, 10, "resnet32", "cifar-100-python", "60,000 images of 32x32 in 100 classes", 32,
            images=(50_000, 10_000),
            archive=(
                "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
                "cifar-100-python.tar.gz",
                "eb9058c3a382ffc7106e4002c42a8d85",
            ),
        ),
        Entry(
            "tinyimagenet", "image_files", 200, 10, "resnet18", "tiny-imagenet-200",
            "110,000 images of 64x64 in 200 classes", 64,
            images=(100_000, 10_000),
            archive=(
                "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "tiny-imagenet-200.zip",
                "90528d7ca1a48142e341f4ef8d21d0de",
            ),
        ),
        Entry(
            "miniimagenet", "image_files", 100, 10, "resnet18", "miniimagenet",
            "60,000 images in 100 classes, seen at 84x84", 84,
            images=(48_000, 12_000),
            by_hand="MiniImageNet has no official archive: put its images with train.csv, val.csv and test.csv, "
            "or its class folders, into",
            other_folders=("mini-imagenet", "mini_imagenet", "miniImageNet", "MiniImageNet"),
        ),
        Entry(
            "cub200", "image_files", 200, 10, "resnet18", "CUB_200_2011",
            "11,788 photographs of birds of 200 species, seen at 224x224", 224, "imagenet",
            images=(5_994, 5_794),
            archive=(
                "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
                "CUB_200_2011.tgz",
                "97eceeb196236b17998738112f37df78",
            ),
        ),
    ]
}  # fmt: skip


def with_name(place: str) -> str:
    """The place, written so that it ends in the name that it goes by: `.` and `..` say none."""
    return place if Path(place).name not in ("", "..") else os.path.abspath(Path(place).expanduser())


def strange(name: str) -> Refused:
    """The refusal of a name that nobody knows. ImageNet and its parts are read as folders like one's own."""
    if name.lower().startswith("imagenet"):
        return Refused(
            f"{name!r} is known by its folder alone, the one that holds train and val: --data FOLDER"
        )
    return unknown("data set", name, DATASETS)


def in_memory(name: str, classes: int, size: int) -> Entry:
    """Images that somebody brings along; those of a pixel are vectors."""
    source, backbone = ("vectors", "mlp") if size == 1 else ("image_files", None)
    return Entry(name, source, classes, usual_tasks(classes), backbone, None, "", size, None)


def usual_tasks(classes: int) -> int:
    """Five, or fewer where a task would have less than two classes."""
    return max(1, min(5, classes // 2))


def task_sizes(
    classes: int, tasks: int, base: int | None, increment: int | None, given: Sequence[int] | None
) -> tuple[int, ...]:
    """Classes of each task: as given, or a base and increments, the last perhaps smaller, or as even as they go."""
    if given:
        return tuple(given)
    if increment:
        first = base or increment
        return (first, *(min(increment, classes - done) for done in range(first, classes, increment)))
    size, larger = divmod(classes, tasks)
    return tuple(size + (i < larger) for i in range(tasks))


def network_for(size: int) -> tuple[str, str]:
    """Backbone and stem for images of somebody's own."""
    if size < 24:
        return "tiny", "cifar"
    if size <= 40:
        return "resnet32", "cifar"
    return "resnet18", "cifar" if size < 128 else "imagenet"


def usual_canvas(size: int) -> int:
    """The square that is kept of an image: larger than what is seen (256 for 224) where crops are resized."""
    return size if size <= 64 else round(size * 8 / 7)


def data_folder(given: Path | None) -> Path:
    """Where official files are looked for: the option, JIOC_DATA, `data` here, or the user's cache folder."""
    if given or os.environ.get("JIOC_DATA"):
        return given or Path(os.environ["JIOC_DATA"])
    here = Path("data")
    if here.is_dir():
        return here
    import pooch

    return Path(pooch.os_cache("jioc")) / "data"
