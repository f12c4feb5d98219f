"""A classifier between two tasks, without a data set: what it needs to answer and to learn on, and its files.

    classifier.readouts(pixels)["cnn"]        (n, K)
    classifier.predict(["a.jpg", "b.jpg"])    class names

It is saved as model.json, model.safetensors and, unless left out, exemplars.safetensors and
judged.safetensors (`judged.py`). model.json says what the model is and holds the other files' checksums. It
changes by one rename, so that the model is the one before or the one after at any moment:

    1   the new tensors are written as model.next.safetensors and so on
    2   model.json is replaced                                          from here on the model is the new one
    3   the new tensors take the names of the old ones

Who reads (`load.py`) takes, under either name, the file that matches the checksum; who writes next ends what
was left undone.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, ValidationError
from torch import Tensor

from jioc import __version__
from jioc.config import Config, Count, Options, Positive, index, plain
from jioc.data.augment import basic, crops
from jioc.data.dataset import MOST_SEEN, Dataset
from jioc.data.images.inputs import ImageInput, pixels_of
from jioc.data.loader import Images
from jioc.errors import Refused, refuse_if, unknown
from jioc.files import flush_folder, from_json, open_regular, read_bytes, write
from jioc.methods import base, checksum, is_ours
from jioc.results import TaskRow, Threshold
from jioc.text import uncapitalised
from jioc.training import checkpoint, evaluate
from jioc.training.finite import check_scores
from jioc.training.judged import Judged, to_state

FORMAT = 2
WEIGHTS, EXEMPLARS, JUDGED = TENSORS = ("model.safetensors", "exemplars.safetensors", "judged.safetensors")
AUGMENTS: dict[str, type[Any]] = {"shift": basic.Augment, "crop": crops.ResizedCrop}
MOST_JSON = 64 << 20  # bytes
MOST_LEVELS = 3 * 4096 * 4096  # of an image
SHA256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Preprocessing:
    """What is done to pixels before a network sees them, and to training images before that."""

    shape: tuple[int, int, int]  # channels, height and width of images as they are kept
    size: int | None  # of the centred square that the network sees; None: the whole image
    mean: tuple[float, ...]  # per channel, of pixels in [0, 1]
    std: tuple[float, ...]
    augment: Any  # the usual Augmentation, a dataclass; None: not known
    whole: bool = True  # whether pixels are levels of uint8; otherwise floats of any scale
    half: bool = False  # whether images are halved and enlarged, as exemplars were

    @classmethod
    def of(cls, dataset: Dataset, half: bool) -> "Preprocessing":
        c, h, w = dataset.train_x.shape[1:]
        whole = dataset.train_x.dtype == np.uint8
        return cls((c, h, w), dataset.size, dataset.mean, dataset.std, dataset.augment, whole, half)

    def images(self, pixels: np.ndarray, device: torch.device) -> Images:
        """Prepare pixels as a run prepares its test set."""
        labels = np.zeros(len(pixels), np.int64)
        return Images(pixels, labels, self.mean, self.std, device, self.size, self.half)


@dataclass(frozen=True)
class Classifier:
    """A method that has learnt some tasks, and all that belongs to it."""

    config: Config
    preprocessing: Preprocessing
    classes: list[str]  # names, in the order in which they were learnt
    sizes: tuple[int, ...]  # classes of each task
    method: base.Method
    device: torch.device
    exemplars: list[np.ndarray] | None  # of each class, best first, (m, c, h, w); None: left out
    generators: dict[str, tuple[str, Tensor]]  # the device's kind and the state of each
    counts: list[int]  # training images of each class in the task that taught it
    judged: Judged = field(default_factory=Judged)  # empty where it was left out
    unknown: dict[str, Threshold] = field(default_factory=dict)  # of read-outs; gone once it learns on

    @property
    def row(self) -> TaskRow | None:
        """Of the last task."""
        return self.judged.row

    def parts(self) -> dict[str, Any]:
        """Everything that it is made from."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @torch.no_grad()
    def readouts(self, pixels: np.ndarray) -> dict[str, Tensor]:
        """Score images, in the shape in which they are kept, by every read-out: (n, K) each, on the CPU.

        Fail if some scores are not finite.
        """
        kept = tuple(self.preprocessing.shape)
        refuse_if(
            pixels.shape[1:] != kept,
            f"readouts takes images in the shape in which they are kept, (n, {', '.join(map(str, kept))}), "
            f"not {tuple(pixels.shape)}; predict takes any",
        )
        self.method.net.eval()
        images = self.preprocessing.images(pixels, self.device)
        scored: dict[str, list[Tensor]] = {}
        for part in torch.arange(len(pixels), device=self.device).split(evaluate.at_once(images)):
            for name, scores in self.method.readouts(images.plain(part)).items():
                scored.setdefault(name, []).append(scores.float().cpu())
        joined = {name: torch.cat(parts) for name, parts in scored.items()}
        check_scores(joined)
        return joined

    def predict(self, images: ImageInput, readout: str | None = None) -> list[str]:
        """Name the class of each image (`data.images.inputs` says what an image may be).

        The read-out that it was judged by decides, unless another is named.
        """
        pixels = pixels_of(images, self.preprocessing.shape)
        best = self.confidence(pixels, readout).argmax(1).tolist() if len(pixels) else []
        return [self.classes[c] for c in best]

    def predict_proba(self, images: ImageInput, readout: str | None = None) -> np.ndarray:
        """The probability of each class for each image, float32 (n, K); columns as in `classes`.

        It is the softmax of the headline's scores, of those of the head where the headline is `nme`, or of
        another read-out's. Cosines are no probabilities: `nme` is refused.
        """
        headline = self.method.headline
        name = readout or ("cnn" if headline == "nme" else headline)
        refuse_if(name == "nme", "the scores of 'nme' are cosines, not probabilities; the head's are: 'cnn'")
        return self.confidence(pixels_of(images, self.preprocessing.shape), name).numpy()

    def confidence(self, pixels: np.ndarray, readout: str | None = None) -> Tensor:
        """The softmax of a read-out's scores; of `nme` the cosine to each class mean: (n, K)."""
        scores, name = self.readouts(pixels), readout or self.method.headline
        if name not in scores:
            raise unknown("read-out", name, scores)
        return (1 + scores[name] / 2).clamp(min=-1) if name == "nme" else scores[name].softmax(1)


# --- as plain data ---


class Checked(Options):
    """A file that belongs to model.json."""

    bytes: Annotated[int, Field(ge=0)]
    sha256: SHA256


class Origin(Options):
    """A method that is not ours, and the checksum of its file or of its code."""

    name: str
    sha256: SHA256


class ModelFile(Options):
    """What model.json holds."""

    any_text = True  # of the classes' names
    format: Literal[2]
    jioc: str
    headline: str
    classes: Annotated[list[str], Field(min_length=1)]
    sizes: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    counts: list[Count]
    keep_test: Count = Config.model_fields["keep_test"].default
    image: tuple[Positive, Positive, Positive]  # channels, height and width that the network sees
    canvas: Positive | None  # side of the square that is kept, whose centre is seen; None: no square
    mean: list[float]
    std: list[Annotated[float, Field(gt=0)]]
    augment: dict[str, Any] | None  # of training images; None: not one of ours
    plans: dict[str, dict[str, Any]]  # of the method's networks
    config: dict[str, Any]
    method: Origin | None = None  # None: one of this package
    frozen: dict[str, list[str]] = {}  # parameters that a method which is not ours does not train
    unknown: dict[str, Threshold] = {}  # of read-outs
    files: dict[str, Checked] = {}

    def contradiction(self) -> str | None:
        """Say what does not fit together."""
        c, h, w = self.image
        side, n = self.canvas or max(h, w), len(self.classes)
        wrong = {
            "a class is named twice": len(set(self.classes)) < n,
            "its tasks do not add up to its classes": sum(self.sizes) != n or len(self.counts) != n,
            "it has no mean and deviation for each channel": len(self.mean) != c or len(self.std) != c,
            f"no image is of {c}x{h}x{w} on a canvas of {side}": (
                c * side * side > MOST_LEVELS or (self.canvas and h != w)
            ),
            f"a network sees at most {MOST_SEEN:,} pixels, not {h}x{w}": h * w > MOST_SEEN,
        }
        return next((sentence for sentence, is_so in wrong.items() if is_so), None)


def to_parts(classifier: Classifier) -> tuple[dict[str, Any], checkpoint.State, checkpoint.State | None]:
    """Split a classifier: what model.json holds except `files`, the weights, what only learning needs."""
    prepared, state = classifier.preprocessing, classifier.method.state()
    del state["memory"]
    nets = {name: value for name, value in state.items() if isinstance(value, dict) and "plan" in value}
    weights = {name: value["weights"] if name in nets else value for name, value in state.items()}
    unlearnt = {name: weights.pop(name, None) for name in classifier.method.for_learning}
    kinds = [name for name, kind in AUGMENTS.items() if type(prepared.augment) is kind]
    config = {key: v for key, v in plain(classifier.config).items() if key not in index.MACHINE}
    places = [key for key in ("method", "data", "weights") if config[key]]
    names = {key: Path(config[key]).name or config[key] for key in places}  # without folders
    c, h, w = prepared.shape
    about = {
        "format": FORMAT,
        "jioc": __version__,
        "headline": classifier.method.headline,
        "classes": list(classifier.classes),
        "sizes": list(classifier.sizes),
        "counts": list(classifier.counts),
        "keep_test": classifier.config.keep_test,
        "image": [c, h, w] if prepared.size is None else [c, prepared.size, prepared.size],
        "canvas": w if h == w else None,
        "mean": list(prepared.mean),
        "std": list(prepared.std),
        "augment": {"kind": kinds[0], **asdict(prepared.augment)} if kinds else None,
        "plans": {name: value["plan"] for name, value in nets.items()},
        "config": config | names,
    }
    method = type(classifier.method)
    if (sha256 := checksum(method)) is not None:
        about["method"] = {"name": method.spec.name, "sha256": sha256}
    if not is_ours(method):
        frozen = {name: value["frozen"] for name, value in nets.items() if name != "teacher"}
        about["frozen"] = {name: parts for name, parts in frozen.items() if parts}
    if classifier.unknown:
        about["unknown"] = {name: one.plain() for name, one in classifier.unknown.items()}
    if classifier.exemplars is None:
        return about, weights, None
    pixels = np.concatenate([np.zeros((0, c, h, w), np.uint8), *classifier.exemplars])
    learning = {
        "held": [len(images) for images in classifier.exemplars],
        "images": torch.from_numpy(pixels),
        "generators": {name: {"kind": k, "state": s} for name, (k, s) in classifier.generators.items()},
        **unlearnt,
    }
    return about, weights, learning


# --- files ---


def save(place: str | Path, classifier: Classifier) -> None:
    """Replace the model in a folder, whole or not at all; make the folder if there is none."""
    refuse_if(
        not classifier.preprocessing.whole,
        "a saved model takes images of uint8; what learnt from floats or vectors is kept by pickling it",
    )
    about, weights, learning = to_parts(classifier)
    judged = None if learning is None else to_state(classifier.judged, classifier.preprocessing.shape)
    states = {WEIGHTS: weights, EXEMPLARS: learning, JUDGED: judged}
    parts = {name: checkpoint.pack(state) for name, state in states.items() if state is not None}
    about["files"] = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in parts.items()
    }
    why = ModelFile.model_validate(about).contradiction()
    refuse_if(why, f"this model cannot be saved: {why}")
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    settle(folder)
    try:
        for name, content in parts.items():
            write(next_name(folder / name), content)
        write(folder / "model.json", as_json(about))
    finally:
        settle(folder)  # also delete what a failing disk left


def as_json(about: dict[str, Any]) -> bytes:
    return (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()


def learnt_more(folder: Path, tasks: int) -> bool:
    """Whether the model in a folder has learnt more tasks than that."""
    try:
        return len(read_about(folder).sizes) > tasks
    except Refused:
        return False


def settle(folder: Path) -> None:
    """End a replacement that was begun: rename the files that model.json names, delete the others."""
    for name in ("model.json", *TENSORS):
        for written in (name, str(next_name(Path(name)))):
            for partial in folder.glob(f".{written}.*.partial"):
                partial.unlink()
    try:
        files = read_about(folder).files
    except Refused:
        return  # no model yet, or not one of ours
    for name in TENSORS:
        coming = next_name(folder / name)
        if name not in files:
            coming.unlink(missing_ok=True)
            (folder / name).unlink(missing_ok=True)
        elif coming.exists():
            matches = coming.is_file() and _matches(coming, files[name])
            os.replace(coming, folder / name) if matches else coming.unlink()
    flush_folder(folder)


def _matches(path: Path, wanted: Checked) -> bool:
    with open_regular(path) as file:
        return same_file(file, wanted)


def next_name(path: Path) -> Path:
    """The name under which the next content of a file is written."""
    return path.with_name(f"{path.stem}.next{path.suffix}")


def read_about(folder: Path) -> ModelFile:
    """Read and check model.json."""
    path = folder / "model.json"
    try:
        values = from_json(read_bytes(path, MOST_JSON))
        newer = values["format"] > FORMAT
    except FileNotFoundError:
        raise Refused(f"there is no model in {str(folder)!r}: it has no model.json") from None
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise Refused(f"{str(path)!r} is damaged: it does not describe a model") from None
    refuse_if(
        newer,
        f"{str(path)!r} has format {values['format']}; "
        f"this jioc {__version__} reads up to {FORMAT}: update it",
    )
    try:
        return ModelFile.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place, why = ".".join(map(str, first["loc"])), uncapitalised(first["msg"])
        raise Refused(f"{str(path)!r} is damaged: {place}: {why}") from None


def same_file(file: Any, wanted: Checked) -> bool:
    """Whether an open file is the one that model.json describes."""
    if os.fstat(file.fileno()).st_size != wanted.bytes:
        return False
    return hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256
