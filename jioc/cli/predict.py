"""`jioc predict`: print a line for each image. All cores decode while the network answers."""

import json
import math
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jioc.cli.flags import OWN_METHOD, Parser, add_fields, named_path
from jioc.config import Config
from jioc.data.images import listing
from jioc.errors import Failed, refuse_if
from jioc.text import BYTES, PLAINLY, printable
from jioc.training.store import model_folder, unfinished

if TYPE_CHECKING:
    from jioc.training.learner import Learner


def build_parser() -> Parser:
    parser = Parser(
        "jioc predict",
        "Print the class of each image, by a model that a run or `jioc learn` saved.",
        examples={
            "jioc predict runs/photos new.jpg": "its class and score",
            "jioc predict runs/photos inbox --top 3": "three classes for every image in a folder",
            "find . -name '*.png' | jioc predict runs/photos - --json": "a line of JSON each",
        },
    )
    parser.add("model", type=named_path, help="a run's folder, or a copy of its model")
    parser.add("images", nargs="+", metavar="image", help="files, folders, or - for both on standard input")
    parser.add("--top", default="1", metavar="K", help="name the K best classes (1)")
    parser.add("--json", action="store_true", help='a line of JSON each: {"image", "class", "score", "top"}')
    parser.add(
        "--readout", metavar="NAME", help="cnn, nme, or another that the method has; by default its headline"
    )
    parser.add(
        "--unknown",
        metavar="SCORE",
        help="answer unknown below that score; auto: below the one that jioc evaluate --fit-unknown found",
    )
    parser.add("--method", metavar="FILE", help=OWN_METHOD)
    add_fields(parser, {"device": Config.model_fields["device"]})
    return parser


def main(argv: list[str]) -> int:
    args = build_parser().parse(argv)
    is_count = args.top.isdecimal() and len(args.top) <= 9 and int(args.top) >= 1
    refuse_if(not is_count, f"--top: {args.top!r} is no number of classes")
    least = None if args.unknown in (None, "auto") else _score(args.unknown)
    folder = model_folder(args.model)
    from jioc.training import threshold
    from jioc.training.load import load_model

    if note := unfinished(folder):
        print(f"note: {note}", file=sys.stderr)
    learner = load_model(folder, judged=False, device=args.device or "auto", method=args.method)
    if args.unknown is not None:
        refuse_if(
            UNKNOWN in learner.classes, f"the model has a class {UNKNOWN!r}, so --unknown would be ambiguous"
        )
    if args.unknown == "auto":
        least = threshold.find(learner, args.readout)
    bad = answered = 0
    for path, answer in answers(learner, paths_of(args.images), int(args.top), args.readout):
        if isinstance(answer, str):
            bad += 1
            print(f"jioc: {path!r} {answer}", file=sys.stderr)
        else:
            answered += 1
            _print(path, answer, args.json, least)
    sys.stdout.flush()
    refuse_if(not bad and not answered, "there is no image to look at")
    return Failed.status if bad else 0


UNKNOWN = "unknown"
Answer = list[tuple[str, float]]  # classes and their scores, best first


def answers(
    learner: "Learner", paths: Iterator[str], top: int, readout: str | None
) -> Iterator[tuple[str, Answer | str]]:
    """Give each path its answer, or what is wrong with the file, in the order of the paths."""
    from jioc.data.images.inputs import picture_form
    from jioc.data.images.workers import decoded

    for part in decoded(paths, *picture_form(learner.preprocessing.shape)):
        scores, best = learner.confidence(part.pixels, readout).topk(min(top, len(learner.classes)))
        for row, path in enumerate(part.paths):
            if row in part.bad:
                yield path, _folder_problem(path) if os.path.isdir(path) else part.bad[row]
            else:
                names = [learner.classes[k] for k in best[row].tolist()]
                yield path, list(zip(names, scores[row].tolist(), strict=True))


def _folder_problem(path: str) -> str:
    """Say why a folder gave no images."""
    try:
        os.listdir(path)
    except OSError as error:
        return f"cannot be listed: {error.strerror}"
    return "is a folder without an image"


def paths_of(arguments: list[str]) -> Iterator[str]:
    """List every file of the arguments, those of a folder in natural order."""
    for argument in arguments:
        for path in _on_stdin() if argument == "-" else [argument]:
            yield from (below(path) if os.path.isdir(path) else []) or [path]


def _on_stdin() -> Iterator[str]:
    for line in sys.stdin.buffer:
        refuse_if(b"\0" in line, "- reads paths from standard input, one a line, and this is no text")
        if path := line.rstrip(b"\r\n"):
            yield os.fsdecode(path)


def below(folder: str) -> list[str]:
    """List the files in a folder and its folders, without hidden ones and without following links.

    A folder that cannot be listed is in the list itself.
    """
    paths: list[str] = []
    for where, folders, files in os.walk(folder, onerror=lambda error: paths.append(error.filename)):
        for names in (folders, files):
            names[:] = sorted((name for name in names if not listing.is_litter(name)), key=listing.natural)
        paths.extend(os.path.join(where, name) for name in files)
    return paths


def _score(word: str) -> float:
    """A score for --unknown."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    refuse_if(not -1 <= value <= 1, f"--unknown: {word!r} is refused: give a score up to 1, or auto")
    return value


def _print(path: str, answer: Answer, as_json: bool, least: float | None) -> None:
    """Print an answer; `least`: the score below which it is unknown."""
    best = [(UNKNOWN, answer[0][1])] if least is not None and answer[0][1] < least else []
    if as_json:
        top: list[dict[str, Any]] = [{"class": name, "score": score} for name, score in answer]
        name, score = (best or answer)[0]
        print(json.dumps({"image": path, "class": name, "score": score, "top": top}))
        return
    shown = best + (answer if len(answer) > 1 or not best else [])
    cells = [path, *(cell for name, score in shown for cell in (name, f"{score:.4f}"))]
    line = "\t".join(printable(cell, keep=BYTES) for cell in cells) + "\n"
    sys.stdout.buffer.write(line.encode(sys.getfilesystemencoding(), PLAINLY))
