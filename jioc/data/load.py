"""Read the data set of a configuration."""

from dataclasses import replace

from jioc.config import Config
from jioc.data.catalogue import Entry, data_folder
from jioc.data.dataset import Dataset, with_statistics
from jioc.data.find import find_dataset
from jioc.data.images.cache import cache_folder
from jioc.data.sources import archives, cifar, digits, image_files, python_file
from jioc.errors import Refused
from jioc.events import Callback, Note, ignore

SOURCES = {
    "cifar": cifar.load,
    "digits": digits.load,
    "image_files": image_files.load,
    "python_file": python_file.load,
}


def load_dataset(
    config: Config, tell: Callback = ignore, thorough: bool = False, more: bool = False
) -> Dataset:
    """Read and check the data set.

    `thorough`: compare a large cache's checksum, too, and tell the name of every file left out; `more`: its
    classes are added to others, so that a single class gets no note.
    """
    entry = find_dataset(config.data)
    where = entry.place
    if where is None and entry.folder is not None:
        where = archives.locate(entry, data_folder(config.data_dir), cache_folder(config.data_cache))
    dataset = SOURCES[entry.source](entry, where, config, tell, thorough)
    if len(dataset.classes) == 1 and not more:
        tell(Note(_one_class(dataset.classes[0], entry)))
    if not len(dataset.train_y):
        raise Refused(f"{config.data} holds no usable training image")
    if config.flip is not None:
        dataset = replace(dataset, augment=replace(dataset.augment, flip=config.flip))
    return with_statistics(dataset, config)


def _one_class(name: str, entry: Entry) -> str:
    folder = entry.place is not None and entry.place.is_dir()
    hint = "; classes are the folders directly inside the one that is given" if folder else ""
    return f"there is one class, {name!r}{hint}"
