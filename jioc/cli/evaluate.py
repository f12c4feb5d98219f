"""`jioc evaluate`: judge a saved model on images whose classes are known."""

import json
import sys
from pathlib import Path

from jioc.cli.console import print_note, table
from jioc.cli.flags import FORCE, OWN_METHOD, Parser, add_fields, named_path
from jioc.config import Config
from jioc.data.catalogue import DATASETS
from jioc.data.find import find_dataset
from jioc.errors import Failed, os_errors
from jioc.events import Note
from jioc.files import output
from jioc.report import evaluation as page
from jioc.report.lines import calibration_line, evaluation_lines, percent
from jioc.results import Evaluation
from jioc.text import printable
from jioc.training.store import model_folder, unfinished

SHOWN = 5  # of the files that cannot be used
MOST_CLASSES = 20  # of a matrix that is printed whole
MOST_PAIRS = 20


def main(argv: list[str]) -> int:
    args = _parser().parse(argv)
    folder, data = model_folder(args.model), _data(args.folder)
    find_dataset(data)  # refuses what is no data before torch is imported
    target = None if args.out is None else output(args.out, page.MARK, args.force)
    from jioc.training.load import load_model

    if note := unfinished(folder):
        print_note(Note(note))
    learner = load_model(folder, device=args.device or "auto", method=args.method)
    found = learner.evaluate(data, readout=args.readout, trained=args.trained, callback=print_note)
    found = found.model_copy(update={"model": str(args.model), "data": args.folder})
    for file, why in found.skipped[:SHOWN]:
        print_note(Note(f"{file!r} {why}; it is left out"))
    if len(found.skipped) > SHOWN:
        print_note(Note(f"left out besides: {len(found.skipped) - SHOWN:,}"))
    if target is not None:
        with os_errors(f"{str(args.out)!r} cannot be written", Failed):
            page.save(found, target)
    if args.json:
        print(json.dumps(found.plain(), allow_nan=False))
    else:
        show(found)
    if target is not None:
        print(f"the page: {args.out}", file=sys.stderr if args.json else sys.stdout)
    return 0


def _data(word: str) -> str:
    """The folder or file as somebody names it; an official set by its name, unless a folder is called so."""
    place = Path(word)
    return word if word in DATASETS and not place.exists() else str(place.absolute()) if word else ""


def show(e: Evaluation) -> None:
    """Print the figures for a person."""
    print(printable("\n".join(evaluation_lines(e)), keep="\n"))
    print(calibration_line(e))
    task_of = [t for t, size in enumerate(e.sizes, 1) for _ in range(size)]
    mistakes = e.confusions()
    rows = []
    for c, (name, n, right) in enumerate(zip(e.classes, e.images, e.accuracy.per_class, strict=True)):
        taken = next((f"{e.classes[k]} ({m:,})" for r, k, m in mistakes if r == c), "")
        rows.append([name, taken, str(task_of[c]), f"{n:,}", percent(right)])
    table(["class", "most often taken for", "task", "images", "right"], rows, text_columns=2)
    if len(e.classes) <= MOST_CLASSES:
        matrix = [[name, *map(str, row)] for name, row in zip(e.classes, e.confusion, strict=True)]
        title = "a row for each true class, a column for each answer"
        table(["", *e.classes], matrix, title, text_columns=1)
    elif mistakes:
        pairs = [[e.classes[r], e.classes[c], f"{n:,}"] for r, c, n in mistakes[:MOST_PAIRS]]
        table(["class", "taken for", "images"], pairs, "the most frequent mistakes", text_columns=2)


def _parser() -> Parser:
    parser = Parser(
        "jioc evaluate",
        "Judge a saved model on images whose classes are known: accuracy by class, of old and new classes, "
        "confusions, calibration.",
        usage="jioc evaluate MODEL FOLDER [options]",
    )
    parser.add("model", type=named_path, help="a run's folder, or a copy of its model")
    parser.add(
        "folder",
        help="of class folders, or of train and test folders of such, whose test images are then taken; "
        "a csv of path and label; a Python file; or an official set by name",
    )
    parser.add("--json", action="store_true", help="print one JSON object in place of the tables")
    parser.add("-o", "--out", type=named_path, metavar="FILE", help="also write a page: page.html")
    parser.add("--readout", help="cnn, nme, or another that the method has; by default its headline")
    parser.add(
        "--trained", action="store_true", help="also count images that the model is known to have trained on"
    )
    parser.add("--force", action="store_true", help=FORCE)
    parser.add("--method", metavar="FILE", help=OWN_METHOD)
    add_fields(parser, {"device": Config.model_fields["device"]})
    return parser
