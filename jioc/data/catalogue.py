"""The data sets by name, and what is known of each before its images are read. No torch, no numpy here."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from jioc import files
from jioc.errors import NEAR, Refused, unknown

MEMORY = 2000  # exemplars, as usual on CIFAR-100

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of its levels, by channel


@dataclass(frozen=True)
class Entry:
    """A data set and its defaults."""

    name: str
    source: str  # who reads it, of `load.SOURCES`; `vectors` come from memory alone
    classes: int
    tasks: int
    backbone: str | None  # None: the one that suits the size of the images
    folder: str | None  # of the official files, below the data folder; None: nothing to fetch
    about: str
    size: int | None  # pixels of the square that the network sees; None: that of the images in `place`
    stem: str | None = "cifar"  # None: the one that suits the size of the images
    images: tuple[int, int] | None = None  # training and test images of the whole set
    archive: tuple[str, str, str] | None = None  # of the official files: its address, file name and md5
    by_hand: str = ""  # how to get it where there is no official address
    other_folders: tuple[str, ...] = ()  # names under which copies circulate
    place: Path | None = None  # of a folder or file that is no official set
    memory: int = MEMORY  # exemplars; with room for every image nothing would be forgotten


DATASETS = {
    entry.name: entry
    for entry in [
        Entry(
            "digits", "digits", 10, 5, "tiny", None,
            "1,797 handwritten digits of 8x8, shipped with scikit-learn", 8, memory=40,
        ),
        Entry(
            "cifar10", "cifar", 10, 5, "resnet32", "cifar-10-batches-py",
            "60,000 images of 32x32 in 10 classes", 32,
            images=(50_000, 10_000),
            archive=(
                "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
                "cifar-10-python.tar.gz",
                "c58f30108f718f92721af3b95e74349a",
            ),
        ),
        Entry(
            "cifar100", "cifar", 100, 10, "resnet32", "cifar-100-python",
            "60,000 images of 32x32 in 100 classes", 32,
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
            by_hand="MiniImageNet has no official archive: put its images with train.csv, val.csv and "
            "test.csv, or its class folders, into",
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
    """Write a place so that it ends in its name, which `.` and `..` do not."""
    return place if not place or Path(place).name not in ("", "..") else os.path.abspath(home_expanded(place))


def home_expanded(place: str) -> Path:
    """The path with a user's folder in the place of ~ or ~user."""
    try:
        return Path(place).expanduser()
    except RuntimeError:
        raise Refused(f"there is no home folder for {place!r}") from None


def is_nearly_known(name: str) -> bool:
    """Whether a name is like that of a data set."""
    return bool(get_close_matches(name, DATASETS, n=1, cutoff=NEAR))


def unknown_name(name: str) -> Refused:
    """Refuse a name that is no data set's. ImageNet and its parts are read from their folders."""
    if name.lower().startswith("imagenet"):
        return Refused(
            f"{name!r} is known by its folder alone, the one that holds train and val: --data FOLDER"
        )
    return unknown("data set", name, DATASETS)


def in_memory(name: str, classes: int, size: int) -> Entry:
    """The entry of images that are in memory; images of a pixel are vectors."""
    source, backbone = ("vectors", "mlp") if size == 1 else ("image_files", None)
    return Entry(name, source, classes, usual_tasks(classes), backbone, None, "", size, None)


def usual_tasks(classes: int) -> int:
    """Five tasks, or fewer where a task would have less than two classes."""
    return max(1, min(5, classes // 2))


def tasks_by_default(data: str, classes: int) -> int:
    """The number of tasks where no setting says it, of a data set of so many classes."""
    return DATASETS[data].tasks if data in DATASETS else usual_tasks(classes)


def task_sizes(
    classes: int, tasks: int, base: int | None, increment: int | None, given: Sequence[int] | None
) -> tuple[int, ...]:
    """The number of classes of each task: as given, or a base and increments, or as even as can be."""
    if given:
        return tuple(given)
    if increment:
        first = base or increment
        return (first, *(min(increment, classes - done) for done in range(first, classes, increment)))
    size, larger = divmod(classes, tasks)
    return tuple(size + (i < larger) for i in range(tasks))


def network_for(size: int) -> tuple[str, str]:
    """Backbone and stem that suit images of a size."""
    backbone = "tiny" if size < 24 else "resnet32" if size <= 40 else "resnet18"
    return backbone, "cifar" if size < 96 else "imagenet"  # which is 16 times as fast


def usual_canvas(size: int) -> int:
    """The side of the square that is cached of an image: larger than the one seen where crops are resized."""
    return size if size <= 64 else round(size * 8 / 7)


def data_folder(given: Path | None) -> Path:
    """The folder of official files: the option, JIOC_DATA, `data` here, or in the user's cache folder."""
    here = Path("data") if os.path.isdir("data") else None
    return Path(given or os.environ.get("JIOC_DATA") or here or files.user_cache() / "data")


def cache_folder(given: Path | None) -> Path:
    """The folder of decoded images: the option, JIOC_CACHE, or the user's cache folder."""
    return Path(given or files.cache())
