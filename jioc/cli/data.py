"""`jioc data list|get|check`: what there is, fetching it, and whether it can be read. Torch only where images are."""

import sys
from pathlib import Path
from typing import Any

from jioc.cli.console import counts_table, table
from jioc.cli.flags import Parser, add_fields, said
from jioc.config import schema as settings
from jioc.config.schema import Config
from jioc.data import catalogue
from jioc.data.sources import archives
from jioc.errors import Refused, unknown
from jioc.methods.specs import find
from jioc.text import counted

READING = (
    "data_dir", "data_cache", "image_size", "canvas", "colour", "on_bad", "test_share", "split_seed", "long_tail",
    "long_tail_order", "order", "order_seed", "tasks", "base", "increment", "task_sizes",
)  # fmt: skip
"""The settings of a run that `jioc data check` takes too."""


def main(words: list[str]) -> int:
    parser = Parser("jioc data", description="List the data sets, fetch one, or check that one can be read.")
    parser.add_argument("what", help="list, get or check")
    parser.add_argument("name", nargs="?", help="a data set; to check: also a folder of class folders, or a csv")
    add_fields(parser, READING)
    parser.add_argument("--counts", action="store_true", help="check: print the training images of every class")
    found = parser.parse(words)
    what, name, counts = found.what, found.name, found.counts
    if what not in ("list", "get", "check"):
        raise unknown("word after jioc data", what, ["list", "get", "check"])
    if what != "list" and name is None:
        raise Refused(f"jioc data {what} needs the name of a data set" + (" or a folder" if what == "check" else ""))
    values = said(found, find("finetune")) | {"method": "finetune", "data": name or "digits"}  # no method's memory
    config = settings.make(**values)
    if what == "list":
        show(catalogue.data_folder(config.data_dir))
    elif what == "get":
        place = archives.get(name, config.data_dir, lambda text: print(text, flush=True))
        print(f"{name} lies in {place}")
    else:
        check(config, counts)
    return 0


def show(folder: Path) -> None:
    rows = [
        [e.name, e.about, str(e.size), f"{e.backbone}, {e.stem} stem", str(e.tasks), archives.describe(e, folder)]
        for e in catalogue.DATASETS.values()
    ]
    table(["data set", "", "size", "network", "tasks", "files"], rows)
    print(f"official files are looked for in {folder}; a folder of class folders is a data set too")


def check(config: Config, counts: bool) -> None:
    """Read the official files, or decode the images and verify the cache of them, and say what a run would see."""
    from jioc.data import scenario
    from jioc.data.dataset import load
    from jioc.resolve.derive import resolve

    config = resolve(config)
    with Progress() as tell:
        d = load(config, tell, thorough=True)
    made = scenario.make(d, config)
    kept = "x".join(map(str, d.train_x.shape[1:]))
    seen = "" if d.shape == d.train_x.shape[1:] else f", seen as {'x'.join(map(str, d.shape))}"
    images = f"{len(d.train_y):,} training and {counted(len(d.test_y), 'test image')}"
    print(f"{d.name}: {counted(len(d.classes), 'class')}, {images} of {kept}{seen}")
    split = d.record.get("split")
    if split:
        how = f"made: {split['share']:.0%} of each class, seed {split['seed']}" if split["made"] else "as given"
        how += f" ({split['test']})" if "test" in split else ""
        left_out = counted(len(d.record["skipped"]), "image" if d.record["layout"] == "arrays" else "file")
        print(f"layout: {d.record['layout']}; test set {how}; {left_out} left out")
    print(f"network by default: {config.backbone}, {config.stem} stem; {counted(len(made.sizes), 'task')}")
    if counts or config.long_tail is not None:
        counts_table(made.classes, made.counts, list(made.sizes))


class Progress:
    """Tells notes on stderr, with a bar on a terminal."""

    def __enter__(self) -> "Progress":
        from rich.console import Console
        from rich.progress import Progress as Bars

        self.bars = Bars(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self.bars.start()
        self.task: Any = None
        return self

    def __exit__(self, *error: object) -> None:
        self.bars.stop()

    def __call__(self, kind: str, what: dict[str, Any]) -> None:
        if kind == "note":
            print(f"note: {what['text']}", file=sys.stderr)
        elif kind == "decode":
            if self.task is None:
                self.task = self.bars.add_task("decoding images", total=what["total"])
            self.bars.update(self.task, completed=what["done"])
