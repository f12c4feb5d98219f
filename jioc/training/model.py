"""Save a classifier: model.json, model.safetensors and, unless left out, exemplars.safetensors.

model.json says what the model is and holds the other files' checksums. It changes by one rename, so that the
model is the one before or the one after at any moment:

    1   the new tensors are written as model.next.safetensors and exemplars.next.safetensors
    2   model.json is replaced                                          from here on the model is the new one
    3   the new tensors take the names of the old ones

Who reads (`load.py`) takes, under either name, the file that matches the checksum; who writes next ends what
was left undone.
"""

import hashlib
import json
import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, ValidationError

from jioc import __version__
from jioc.config import Count, Options, Positive, index
from jioc.config import plain as plain_config
from jioc.data.augment.basic import Augment
from jioc.data.augment.crops import ResizedCrop
from jioc.errors import Refused
from jioc.files import flush_folder, write
from jioc.methods import source
from jioc.training.checkpoint import State, pack
from jioc.training.classifier import Classifier

FORMAT = 2
WEIGHTS, EXEMPLARS = "model.safetensors", "exemplars.safetensors"
AUGMENTS: dict[str, type[Any]] = {"shift": Augment, "crop": ResizedCrop}
MOST_JSON = 64 << 20  # bytes
MOST_LEVELS = 3 * 4096 * 4096  # of an image


class Checked(Options):
    """A file that belongs to model.json."""

    bytes: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Origin(Options):
    """A method that is not ours, and the checksum of its file or of its code."""

    name: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class About(Options):
    """What model.json holds."""

    format: Literal[2]
    jioc: str
    headline: str
    classes: Annotated[list[str], Field(min_length=1)]
    sizes: Annotated[list[Positive], Field(min_length=1)]
    counts: list[Count]
    image: tuple[Positive, Positive, Positive]  # channels, height and width that the network sees
    canvas: Positive | None  # side of the square that is kept, whose centre is seen; None: no square
    mean: list[float]
    std: list[Annotated[float, Field(gt=0)]]
    augment: dict[str, Any] | None  # of training images; None: not one of ours
    plans: dict[str, dict[str, Any]]  # of the method's networks
    config: dict[str, Any]
    method: Origin | None = None  # None: one of this package
    frozen: dict[str, list[str]] = {}  # parameters that a method which is not ours does not train
    files: dict[str, Checked] = {}

    def contradiction(self) -> str | None:
        """Say what does not fit together."""
        c, h, w = self.image
        side = self.canvas or max(h, w)
        if len(set(self.classes)) < len(self.classes):
            return "a class is named twice"
        if sum(self.sizes) != len(self.classes) or len(self.counts) != len(self.classes):
            return "its tasks do not add up to its classes"
        if len(self.mean) != c or len(self.std) != c:
            return "it has no mean and deviation for each channel"
        if c * side * side > MOST_LEVELS or side < max(h, w) or (self.canvas and h != w):
            return f"no image is of {c}x{h}x{w} on a canvas of {side}"
        return None


def to_parts(classifier: Classifier) -> tuple[dict[str, Any], State, State | None]:
    """Split a classifier: what model.json holds except `files`, the weights, what only learning needs."""
    prepared, state = classifier.preprocessing, classifier.method.state()
    del state["memory"]
    nets = {name: value for name, value in state.items() if isinstance(value, dict) and "plan" in value}
    weights = {name: value["weights"] if name in nets else value for name, value in state.items()}
    teacher = weights.pop("teacher", None)
    c, h, w = prepared.shape
    about = {
        "format": FORMAT,
        "jioc": __version__,
        "headline": classifier.method.spec.headline,
        "classes": list(classifier.classes),
        "sizes": list(classifier.sizes),
        "counts": list(classifier.counts),
        "image": [c, h, w] if prepared.size is None else [c, prepared.size, prepared.size],
        "canvas": w if h == w else None,
        "mean": list(prepared.mean),
        "std": list(prepared.std),
        "augment": _augment_to(prepared.augment),
        "plans": {name: value["plan"] for name, value in nets.items()},
        "config": _portable(plain_config(classifier.config)),
    }
    method = type(classifier.method)
    if (checksum := source.checksum(method)) is not None:
        about["method"] = {"name": method.spec.name, "sha256": checksum}
    if not source.is_ours(method):
        frozen = {name: value["frozen"] for name, value in nets.items() if name != "teacher"}
        about["frozen"] = {name: parts for name, parts in frozen.items() if parts}
    if classifier.exemplars is None:
        return about, weights, None
    pixels = np.concatenate([np.zeros((0, c, h, w), np.uint8), *classifier.exemplars])
    learning = {
        "held": [len(images) for images in classifier.exemplars],
        "images": torch.from_numpy(pixels),
        "generators": {name: {"kind": k, "state": s} for name, (k, s) in classifier.generators.items()},
        "teacher": teacher,
    }
    return about, weights, learning


def _portable(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out the settings of this machine, and the folders of paths."""
    values = {name: value for name, value in values.items() if name not in index.MACHINE}
    return values | {name: Path(values[name]).name or values[name] for name in ("method", "data")}


def _augment_to(augment: Any) -> dict[str, Any] | None:
    kinds = [name for name, kind in AUGMENTS.items() if type(augment) is kind]
    return {"kind": kinds[0], **asdict(augment)} if kinds else None


# --- files ---


def save(place: str | Path, classifier: Classifier) -> None:
    """Replace the model in a folder, whole or not at all; make the folder if there is none."""
    if not classifier.preprocessing.whole:
        raise Refused(
            "a saved model takes images of uint8; what learnt from floats or vectors is kept by pickling it"
        )
    about, weights, learning = to_parts(classifier)
    parts = {WEIGHTS: pack(weights)} | ({} if learning is None else {EXEMPLARS: pack(learning)})
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    settle(folder)
    about["files"] = {}
    try:
        for name, content in parts.items():
            about["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            write(next_name(folder / name), content)
        write(folder / "model.json", (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())
    finally:
        settle(folder)  # also delete what a failing disk left


def learnt_more(folder: Path, tasks: int) -> bool:
    """Whether the model in a folder has learnt more tasks than that."""
    try:
        return len(read_about(folder).sizes) > tasks
    except Refused:
        return False


def settle(folder: Path) -> None:
    """End a replacement that was begun: rename the files that model.json names, delete the others."""
    for name in ("model.json", WEIGHTS, EXEMPLARS):
        for written in (name, str(next_name(Path(name)))):
            for partial in folder.glob(f".{written}.*.partial"):
                partial.unlink()
    try:
        files = read_about(folder).files
    except Refused:
        return  # no model yet, or not one of ours
    for name in (WEIGHTS, EXEMPLARS):
        coming = next_name(folder / name)
        if name not in files:
            coming.unlink(missing_ok=True)
            (folder / name).unlink(missing_ok=True)
        elif coming.exists():
            if _matches(coming, files[name]):
                os.replace(coming, folder / name)
            else:
                coming.unlink()
    flush_folder(folder)


def next_name(path: Path) -> Path:
    """The name under which the next content of a file is written."""
    return path.with_name(f"{path.stem}.next{path.suffix}")


def read_about(folder: Path) -> About:
    """Read and check model.json."""
    path = folder / "model.json"
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or os.stat(path).st_size > MOST_JSON:
            raise Refused(f"{str(path)!r} is no model.json of ours")
        values = json.loads(path.read_bytes())
        version = values["format"]
        if not isinstance(version, int):
            raise ValueError("its format has no number")
    except FileNotFoundError:
        raise Refused(f"there is no model in {str(folder)!r}: it has no model.json") from None
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused(f"{str(path)!r} is damaged: it does not describe a model") from None
    if version > FORMAT:
        raise Refused(
            f"{str(path)!r} has format {version}; this jioc {__version__} reads up to {FORMAT}: update it"
        )
    try:
        return About.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place, why = ".".join(map(str, first["loc"])), first["msg"][0].lower() + first["msg"][1:]
        raise Refused(f"{str(path)!r} is damaged: {place}: {why}") from None


def _matches(path: Path, wanted: Checked) -> bool:
    with open(path, "rb") as file:
        return same_file(file, wanted)


def same_file(file: Any, wanted: Checked) -> bool:
    """Whether an open file is the one that model.json describes."""
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode) or about.st_size != wanted.bytes:
        return False
    return hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256
