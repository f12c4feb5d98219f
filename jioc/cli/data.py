"""`jioc data list|get|check`: what there is, fetching it, and whether it can be read. Torch only where images are."""

from pathlib import Path

from jioc.cli.console import Progress, counts_table, table
from jioc.cli.flags import Parser, add_fields, config_fields, given_values
from jioc.config import index
from jioc.config.schema import Config, Options
from jioc.config.values import make
from jioc.data import catalogue
from jioc.data.sources import archives
from jioc.errors import Refused, unknown
from jioc.text import counted


def main(argv: list[str]) -> int:
    parser = Parser("jioc data", description="List the data sets, fetch one, or check that one can be read.")
    parser.add_argument("what", help="list, get or check")
    parser.add_argument(
        "name", nargs="?", help="a data set; to check: also a folder of class folders, or a csv"
    )
    add_fields(parser, config_fields(index.taken_by("data")))
    parser.add_argument(
        "--counts", action="store_true", help="check: print the training images of every class"
    )
    found = parser.parse(argv)
    what, name, counts = found.what, found.name, found.counts
    if what not in ("list", "get", "check"):
        raise unknown("word after jioc data", what, ["list", "get", "check"])
    if what != "list" and name is None:
        raise Refused(
            f"jioc data {what} needs the name of a data set" + (" or a folder" if what == "check" else "")
        )
    values = given_values(found, Options) | {
        "method": "finetune",
        "data": name or "digits",
    }  # no method's memory
    config = make(**values)
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
        [
            e.name,
            e.about,
            str(e.size),
            f"{e.backbone}, {e.stem} stem",
            str(e.tasks),
            archives.describe(e, folder),
        ]
        for e in catalogue.DATASETS.values()
    ]
    table(["data set", "", "size", "network", "tasks", "files"], rows)
    print(f"official files are looked for in {folder}; a folder of class folders is a data set too")


def check(config: Config, counts: bool) -> None:
    """Read the official files, or decode the images and verify the cache of them, and say what a run would see."""
    from jioc.data import scenario
    from jioc.data.load import load
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
        how = (
            f"made: {split['share']:.0%} of each class, seed {split['seed']}" if split["made"] else "as given"
        )
        how += f" ({split['test']})" if "test" in split else ""
        left_out = counted(len(d.record["skipped"]), "image" if d.record["layout"] == "arrays" else "file")
        print(f"layout: {d.record['layout']}; test set {how}; {left_out} left out")
    print(f"network by default: {config.backbone}, {config.stem} stem; {counted(len(made.sizes), 'task')}")
    if counts or config.long_tail is not None:
        counts_table(made.classes, made.counts, list(made.sizes))
