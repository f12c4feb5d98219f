"""`jioc predict`: a line for each image. Decoded by every core while the network answers; memory stays flat."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jioc.cli.flags import Parser, add_fields, config_fields
from jioc.data.images import listing
from jioc.errors import Failed, Refused
from jioc.text import PLAINLY
from jioc.training.store import model_folder, unfinished

if TYPE_CHECKING:
    from jioc.training.learner import Learner

STDIN = "-"


def main(argv: list[str]) -> int:
    parser = Parser(
        "jioc predict", description="The class of each image, by a model that a run or `jioc learn` saved."
    )
    parser.add_argument("model", type=Path, help="a run's folder, or a copy of its model")
    parser.add_argument(
        "images", nargs="+", metavar="image", help="files, folders, or - for both on standard input"
    )
    parser.add_argument("--top", default="1", metavar="K", help="name the K best classes (1)")
    parser.add_argument(
        "--json", action="store_true", help='a line of JSON each: {"image", "class", "score", "top"}'
    )
    parser.add_argument("--readout", help="cnn, nme, or another that the method has; by default its headline")
    parser.add_argument(
        "--method", metavar="FILE", help="the Python file of a method of your own, which is run"
    )
    add_fields(parser, config_fields(["device"]))
    found = parser.parse(argv)
    if not found.top.isdecimal() or int(found.top) < 1:
        raise Refused(f"--top: {found.top!r} is no number of classes")
    folder = model_folder(found.model)
    from jioc.training.load import load

    if told := unfinished(folder):
        print(f"note: {told}", file=sys.stderr)
    learner = load(folder, device=found.device or "auto", method=found.method)
    bad = answered = 0
    for path, answer in answers(learner, paths_of(found.images), int(found.top), found.readout):
        if isinstance(answer, str):
            bad += 1
            print(f"jioc: {path!r} {answer}", file=sys.stderr)
            continue
        answered += 1
        _print(path, answer, found.json)
    sys.stdout.flush()
    if not bad and not answered:
        raise Refused("there is no image to look at")
    return Failed.status if bad else 0


Answer = list[tuple[str, float]]
"""Classes and their scores, best first."""


def answers(
    learner: "Learner", paths: Iterator[str], top: int, readout: str | None
) -> Iterator[tuple[str, Answer | str]]:
    """For each path its answer, or what is wrong with the file, in the order of the paths."""
    from jioc.data.images.inputs import picture_form
    from jioc.data.images.workers import decoded

    for part in decoded(paths, *picture_form(learner.preprocessing.shape)):
        scores, best = learner.confidence(part.pixels, readout).topk(min(top, len(learner.classes)))
        for row, path in enumerate(part.paths):
            if row in part.bad:
                yield path, _of_folder(path) if os.path.isdir(path) else part.bad[row]
            else:
                named = [learner.classes[k] for k in best[row].tolist()]
                yield path, list(zip(named, scores[row].tolist(), strict=True))


def _of_folder(path: str) -> str:
    """Why a folder stands where an image should."""
    try:
        os.listdir(path)
    except OSError as error:
        return f"cannot be listed: {error.strerror}"
    return "is a folder without an image"


def paths_of(words: list[str]) -> Iterator[str]:
    """Every file that is meant, a folder's in natural order."""
    for word in words:
        for path in _on_stdin() if word == STDIN else [word]:
            if os.path.isdir(path):
                yield from below(path) or [path]
            else:
                yield path


def _on_stdin() -> Iterator[str]:
    lines = (line.rstrip(b"\r\n") for line in sys.stdin.buffer)
    return (os.fsdecode(line) for line in lines if line)


def below(folder: str) -> list[str]:
    """Files in the folder and its folders, hidden ones aside; links to folders are not followed. A folder that cannot
    be listed stands for what it may hold."""
    found: list[str] = []
    for where, folders, files in os.walk(folder, onerror=lambda error: found.append(error.filename)):
        folders[:] = sorted((name for name in folders if not listing.is_litter(name)), key=listing.natural)
        kept = sorted((name for name in files if not listing.is_litter(name)), key=listing.natural)
        found.extend(os.path.join(where, name) for name in kept)
    return found


def _print(path: str, answer: Answer, as_json: bool) -> None:
    if as_json:
        top: list[dict[str, Any]] = [{"class": name, "score": score} for name, score in answer]
        print(json.dumps({"image": path, **top[0], "top": top}))
        return
    cells = [path, *(cell for name, score in answer for cell in (name, f"{score:.4f}"))]
    line = "\t".join(
        "".join(c if c.isprintable() or "\udc80" <= c <= "\udcff" else " " for c in x) for x in cells
    )
    sys.stdout.buffer.write(f"{line}\n".encode(sys.getfilesystemencoding(), PLAINLY))
