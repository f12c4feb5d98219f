"""`jioc data list|get|check`: list the data sets, fetch one, or check that one can be read."""

from pathlib import Path

from jioc.cli.console import Progress, counts_table, print_note
from jioc.cli.flags import Parser, add_fields, given_values
from jioc.config import Config, Options, index, make
from jioc.data import catalogue
from jioc.data.sources import archives
from jioc.errors import refuse_if, refuse_unknown
from jioc.events import Note
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.resolve.suggest import method_for
from jioc.terminal import table
from jioc.text import counted

FEW = 20  # classes whose training images a check prints without being asked


def build_parser() -> Parser:
    parser = Parser(
        "jioc data",
        "List the data sets, fetch one, or check that one can be read.",
        common=("--data-dir", "--image-size", "--tasks", "--long-tail", "--counts"),
        examples={
            "jioc data list": "the data sets, and whether their files are here",
            "jioc data get cifar100": "fetch the official files",
            "jioc data check photos": "what a run would see of a folder of class folders",
        },
    )
    parser.add("action", help="list, get or check")
    parser.add("name", nargs="?", help="a data set; to check: also a folder of class folders, or a csv")
    add_fields(parser, {name: Config.model_fields[name] for name in index.taken_by("data")})
    parser.add(
        "--counts", action="store_true", help=f"check: print the counts of more than {FEW} classes too"
    )
    return parser


def main(argv: list[str]) -> int:
    args = build_parser().parse(argv)
    refuse_unknown("word after jioc data", args.action, ("list", "get", "check"))
    places = "a data set or a folder" if args.action == "check" else "a data set"
    no_name = args.action != "list" and args.name is None
    refuse_if(no_name, f"jioc data {args.action} needs the name of {places}")
    given = given_values(args, Options) | {"data": "digits" if args.name is None else args.name}
    several = any(name in given for name in index.grouped("tasks"))
    suggested = method_for(args.name, trains=False, several=several) if args.action == "check" else None
    config = make(**overlay(suggested[0] if suggested else {"method": "finetune"}, given))
    if args.action == "list":
        show(catalogue.data_folder(config.data_dir))
    elif args.action == "get":
        place = archives.get(args.name, config.data_dir, lambda text: print(text, flush=True))
        print(f"{args.name} lies in {place}")
    else:
        check(config, args.counts)
    return 0


def show(folder: Path) -> None:
    """Print the data sets, and whether their files are in the folder."""
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
    from jioc.data import load, scenario

    config = resolve(config)
    with Progress() as tell:
        d = load.load_dataset(config, tell, thorough=True)
    made = None
    try:
        made = scenario.make(d, config)
    except scenario.NothingToJudge as why:  # the images are there all the same
        print_note(Note(f"{why}; a run needs a second image of some class"))
    stored = "x".join(map(str, d.train_x.shape[1:]))
    seen = "" if d.shape == d.train_x.shape[1:] else f", seen as {'x'.join(map(str, d.shape))}"
    images = f"{len(d.train_y):,} training and {counted(len(d.test_y), 'test image')}"
    print(f"{d.name}: {counted(len(d.classes), 'class')}, {images} of {stored}{seen}")
    if split := d.record.get("split"):
        made_of = "made: {share:.0%} of each class, seed {seed}"
        test = made_of.format(**split) if split["made"] else "as given"
        test += f" ({split['test']})" if "test" in split else ""
        left_out = counted(len(d.record["skipped"]), "image" if d.record["layout"] == "arrays" else "file")
        print(f"layout: {d.record['layout']}; test set {test}; {left_out} left out")
    network = f"network by default: {config.backbone}, {config.stem} stem"
    print(f"{network}; {counted(len(made.sizes), 'task')}" if made else network)
    if made is None:
        return
    if counts or config.long_tail is not None or len(made.classes) <= FEW:
        counts_table(made.classes, made.counts, list(made.sizes))
