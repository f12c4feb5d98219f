"""`jioc data list|get|check`: list the data sets, fetch one, or check that one can be read."""

from pathlib import Path

from jioc.cli.flags import Parser, add_fields, given_values
from jioc.config import Config, Options, index, make
from jioc.data import catalogue
from jioc.errors import Refused, unknown
from jioc.text import counted

ACTIONS = ("list", "get", "check")


def main(argv: list[str]) -> int:
    parser = Parser("jioc data", description="List the data sets, fetch one, or check that one can be read.")
    parser.add_argument("action", help="list, get or check")
    parser.add_argument(
        "name", nargs="?", help="a data set; to check: also a folder of class folders, or a csv"
    )
    add_fields(parser, {name: Config.model_fields[name] for name in index.taken_by("data")})
    parser.add_argument(
        "--counts", action="store_true", help="check: print the training images of every class"
    )
    args = parser.parse(argv)
    if args.action not in ACTIONS:
        raise unknown("word after jioc data", args.action, ACTIONS)
    if args.action != "list" and args.name is None:
        raise Refused(
            f"jioc data {args.action} needs the name of a data set"
            + " or a folder" * (args.action == "check")
        )
    config = make(**given_values(args, Options), method="finetune", data=args.name or "digits")
    if args.action == "list":
        show(catalogue.data_folder(config.data_dir))
    elif args.action == "get":
        from jioc.data.sources import archives

        place = archives.get(args.name, config.data_dir, lambda text: print(text, flush=True))
        print(f"{args.name} lies in {place}")
    else:
        check(config, args.counts)
    return 0


def show(folder: Path) -> None:
    """Print the data sets, and whether their files are in the folder."""
    from jioc.cli.console import table
    from jioc.data.sources import archives

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
    """Read all images, and verify those that are cached; print what a run would see."""
    from jioc.cli.console import Progress, counts_table
    from jioc.data import scenario
    from jioc.data.load import load_dataset
    from jioc.resolve.derive import resolve

    config = resolve(config)
    with Progress() as tell:
        d = load_dataset(config, tell, thorough=True)
    made = scenario.make(d, config)
    stored = "x".join(map(str, d.train_x.shape[1:]))
    seen = "" if d.shape == d.train_x.shape[1:] else f", seen as {'x'.join(map(str, d.shape))}"
    images = f"{len(d.train_y):,} training and {counted(len(d.test_y), 'test image')}"
    print(f"{d.name}: {counted(len(d.classes), 'class')}, {images} of {stored}{seen}")
    split = d.record.get("split")
    if split:
        test = (
            f"made: {split['share']:.0%} of each class, seed {split['seed']}" if split["made"] else "as given"
        )
        test += f" ({split['test']})" if "test" in split else ""
        left_out = counted(len(d.record["skipped"]), "image" if d.record["layout"] == "arrays" else "file")
        print(f"layout: {d.record['layout']}; test set {test}; {left_out} left out")
    print(f"network by default: {config.backbone}, {config.stem} stem; {counted(len(made.sizes), 'task')}")
    if counts or config.long_tail is not None:
        counts_table(made.classes, made.counts, list(made.sizes))
