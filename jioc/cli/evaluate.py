"""`jioc evaluate`: judge a saved model on images whose classes are known."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

from jioc.cli.console import print_note
from jioc.cli.flags import FORCE, OWN_METHOD, Parser, add_fields, named_path
from jioc.config import Config
from jioc.data.catalogue import DATASETS
from jioc.data.find import find_dataset, no_folder
from jioc.errors import Failed, os_errors, refuse_if
from jioc.events import Note
from jioc.files import output
from jioc.report import evaluation as page
from jioc.report.lines import calibration_line, evaluation_lines, percent, unknown_line
from jioc.results import Evaluation
from jioc.terminal import table
from jioc.text import printable
from jioc.training.store import locked, model_folder, unfinished

SHOWN = 5  # of the files that cannot be used
MOST_CLASSES = 20  # of a matrix that is printed whole
MOST_PAIRS = 20


def build_parser() -> Parser:
    parser = Parser(
        "jioc evaluate",
        "Judge a saved model on images whose classes are known: accuracy by class, of old and new classes, "
        "confusions, calibration.",
        usage="jioc evaluate MODEL FOLDER [options]",
        examples={
            "jioc evaluate runs/photos held-out": "accuracy of every class, and what is taken for what",
            "jioc evaluate runs/photos held-out -o page.html": "the same on a page",
            "jioc evaluate runs/photos held-out --fit-unknown 0.95": "a score below which it answers unknown",
        },
    )
    parser.add("model", type=named_path, help="a run's folder, or a copy of its model")
    parser.add(
        "folder",
        help="of class folders, or of train and test folders of such, whose test images are then taken; "
        "a csv of path and label; a Python file; or an official set by name",
    )
    parser.add("--json", action="store_true", help="print one JSON object in place of the tables")
    parser.add("-o", "--out", type=named_path, metavar="FILE", help="also write a page: page.html")
    parser.add(
        "--readout", metavar="NAME", help="cnn, nme, or another that the method has; by default its headline"
    )
    parser.add(
        "--trained", action="store_true", help="also count images that the model is known to have trained on"
    )
    parser.add(
        "--fit-unknown",
        metavar="SHARE",
        help="fit the score below which jioc predict answers unknown, so that this share of right answers "
        "stay (0.95), and keep it in the model",
    )
    parser.add("--force", action="store_true", help=FORCE)
    parser.add("--method", metavar="FILE", help=OWN_METHOD)
    add_fields(parser, {"device": Config.model_fields["device"]})
    return parser


def main(argv: list[str]) -> int:
    args = build_parser().parse(argv)
    keep = None if args.fit_unknown is None else share(args.fit_unknown)
    unseen = "--fit-unknown needs images that the model has not trained on: leave --trained out"
    refuse_if(keep and args.trained, unseen)
    folder, data = model_folder(args.model), _data(args.folder)
    find_dataset(data)  # refuses what is no data before torch is imported
    target = None if args.out is None else output(args.out, page.MARK, args.force)
    from jioc.training import threshold
    from jioc.training.load import load_model

    if note := unfinished(folder):
        print_note(Note(note))
    with locked(folder) if keep else nullcontext():
        learner = load_model(folder, device=args.device or "auto", method=args.method)
        found = learner.evaluate(
            data, readout=args.readout, trained=args.trained, keep=keep, callback=print_note
        )
        if found.unknown is not None:
            with os_errors(f"the threshold cannot be kept in {str(folder)!r}", Failed):
                threshold.save(folder, found.readout, found.unknown)
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
    if not word or (word in DATASETS and not place.exists()):
        return word
    if not place.exists():
        raise no_folder(place)
    return str(place.absolute())


def share(word: str) -> float:
    """0.95, for --fit-unknown."""
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    refuse_if(not 0 < value <= 1, f"--fit-unknown: {word!r} is refused: give a share, such as 0.95")
    return value


def show(e: Evaluation) -> None:
    """Print the figures for a person."""
    print(printable("\n".join(evaluation_lines(e)), keep="\n"))
    print(calibration_line(e))
    if e.unknown is not None:
        print(f"{unknown_line(e.unknown)}; kept in the model: jioc predict --unknown auto")
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
