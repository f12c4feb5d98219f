"""Select images: which files are used, and which of them train and which test.

Left out, and named in the record: a file that is no usable image, and a training image whose very file is
also in the test set. An official set is used as its authors split it; there such twins are only noted.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jioc.data.images.listing import TRAIN, File, Listing, alike_but_for_case, note_case
from jioc.errors import Refused
from jioc.events import Callback, Note
from jioc.text import counted

SAME_FILE = "is the same file as"
SHOWN = 5  # of the files left out, on the screen; the record names all


@dataclass
class DecodedFiles:
    """Every file of a listing, in its order, after it was decoded."""

    listing: Listing
    good: np.ndarray  # rows that hold an image
    bad: dict[int, str]  # the others, and why
    digests: np.ndarray  # (n, 16), of the files' bytes


class Selection(NamedTuple):
    classes: list[str]
    rows: np.ndarray  # of the files that are used, those that train first
    labels: np.ndarray  # of these rows, int64
    n_train: int
    record: dict[str, Any]  # for result.json: split, skipped files, notes


Select = Callable[[DecodedFiles], Selection]


def select(decoded: DecodedFiles, seed: int, share: float, official: bool, tested: bool = True) -> Selection:
    """Select the images of a listing; if it has no test images, draw a `share` of each class by the `seed`.

    `tested`: whether the test images are used; if not, a class without any gets no note.
    """
    listing, good, twin = decoded.listing, decoded.good, _first_twin(decoded)
    files = list(listing)
    label = np.array([file.label for file in files], np.int64)
    skipped = [*listing.bad, *((files[row].path, why) for row, why in sorted(decoded.bad.items()))]
    notes = [*listing.notes, *_note_two_labels(good, twin, label, files, listing.classes)]
    if not official:
        notes += [note_case(*pair) for pair in alike_but_for_case(listing.classes)]
    train, test = good[good < len(listing.train)], good[good >= len(listing.train)]
    split: dict[str, Any] = {"made": listing.test is None}
    if listing.test is None:
        if not official:
            again = train[(twin[train] != train) & (label[twin[train]] == label[train])]
            skipped += [(files[r].path, f"{SAME_FILE} {files[twin[r]].path!r}") for r in again]
            train = np.setdiff1d(train, again)
        test = _draw_test(train, label, listing.classes, seed, share)
        train = np.setdiff1d(train, test)
        split |= {"seed": seed, "share": share}
    else:
        both = train[np.isin(twin[train], twin[test])]
        in_test = {int(twin[row]): files[row].path for row in test[::-1]}
        twins = [(files[r].path, f"is also in the test set, as {in_test[int(twin[r])]!r}") for r in both]
        if official and twins:
            notes.append(
                f"also in the test set: {counted(len(twins), 'training image')}, such as {twins[0][0]!r}; "
                "kept as published"
            )
        elif twins:
            skipped += twins
            train = np.setdiff1d(train, both)
    trained = np.unique(label[train])
    notes += _note_empty_classes(listing.classes, trained, np.unique(label[test]) if tested else None)
    new_label = np.full(len(listing.classes), -1, np.int64)
    new_label[trained] = np.arange(len(trained))
    rows = np.concatenate([train, test[new_label[label[test]] >= 0]])
    record = {"split": split, "skipped": skipped, "notes": notes}
    return Selection([listing.classes[c] for c in trained], rows, new_label[label[rows]], len(train), record)


def _first_twin(decoded: DecodedFiles) -> np.ndarray:
    """For each row the first good row whose file has the same bytes; -1 for a bad one: (n,)."""
    first = np.full(len(decoded.digests), -1, np.int64)
    _, where, which = np.unique(decoded.digests[decoded.good], axis=0, return_index=True, return_inverse=True)
    first[decoded.good] = decoded.good[where][which.reshape(-1)]
    return first


def _note_two_labels(
    good: np.ndarray, twin: np.ndarray, label: np.ndarray, files: list[File], names: list[str]
) -> list[str]:
    clashing = good[label[good] != label[twin[good]]]
    if not len(clashing):
        return []
    one, other = (f"{files[r].path!r} of class {names[label[r]]!r}" for r in (clashing[0], twin[clashing[0]]))
    more = f" (and {len(clashing) - 1:,} more such)" if len(clashing) > 1 else ""
    return [f"{one} is the same image as {other}{more}: one of the two labels is wrong"]


def _draw_test(rows: np.ndarray, label: np.ndarray, names: list[str], seed: int, share: float) -> np.ndarray:
    """Draw a share of each class by the seed and the class's name: it stays when other classes come or go."""
    drawn = []
    for c, name in enumerate(names):
        own = rows[label[rows] == c]
        wanted = min(len(own) - 1, max(1, round(share * len(own))))
        if wanted > 0:
            draw = np.random.RandomState([seed, *name.encode()])
            drawn.append(np.sort(own[draw.permutation(len(own))[:wanted]]))
    return np.concatenate(drawn) if drawn else rows[:0]


def _note_empty_classes(names: list[str], trained: np.ndarray, tested: np.ndarray | None) -> list[str]:
    """Note classes without a training image and, if test images are used, those without a test image."""
    notes = []
    for c, name in enumerate(names):
        if c not in trained:
            notes.append(_left_out(name))
        elif tested is not None and c not in tested:
            notes.append(f"class {name!r} has no test image; it is learnt and not judged")
    return notes


def _left_out(name: str) -> str:
    return f"class {name!r} has no usable training image; it is left out"


def tell_skipped(record: dict[str, Any], on_bad: str, tell: Callback, every: bool = False) -> None:
    """Tell which files are left out, the first few or `every` one; refuse them if `--on-bad` is fail."""
    skipped, notes = record["skipped"], record["notes"]
    if skipped and on_bad == "fail":
        file, why = skipped[0]
        more = f" (and {len(skipped) - 1:,} more)" if len(skipped) > 1 else ""
        raise Refused(f"{file!r} {why}{more}; --on-bad skip leaves such files out")
    if not every:
        skipped = _copies_once(skipped)
    shown = skipped if every else skipped[:SHOWN]
    for file, why in shown:
        tell(Note(f"{file!r} {why}; it is left out"))
    if len(skipped) > len(shown):
        tell(Note(f"left out besides: {len(skipped) - len(shown):,}; jioc data check names them all"))
    top = [file for file, _ in shown if os.path.dirname(file).lower() in ("", *TRAIN)]
    named = {_left_out(os.path.basename(file)) for file in top}  # as a folder
    for text in notes:
        if text not in named:
            tell(Note(text))


def _copies_once(skipped: list[Any]) -> list[Any]:
    """Name the first of the second copies of files, and how many more there are."""
    copies = [pair for pair in skipped if pair[1].startswith(SAME_FILE)]
    if len(copies) < 2:
        return skipped
    (file, why), more = copies[0], len(copies) - 1
    return [*(pair for pair in skipped if pair not in copies), (file, f"{why} (and {more:,} more such)")]
