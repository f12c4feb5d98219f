"""A learner in files: model.json, model.safetensors and, unless left out, exemplars.safetensors.

model.json says what the model is and holds the other files' checksums. It changes by one rename, so that the model is
the one before or the one after at any moment:

    1   the new tensors are written as model.next.safetensors and exemplars.next.safetensors
    2   model.json is replaced                                          from here on the model is the new one
    3   the new tensors take the names of the old ones

Who reads takes, under either name, the file that matches the checksum; who writes next ends what was left undone.
Nothing is unpickled, no file beyond these names is opened, and no code that a model names is run.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from torch import Tensor

from jioc import __version__
from jioc.config import schema as settings
from jioc.config.schema import Count, Options, Positive
from jioc.data import catalogue
from jioc.data.augment.basic import Augment
from jioc.data.augment.crops import ResizedCrop
from jioc.errors import Refused, first_line
from jioc.files import flush_folder, write
from jioc.methods.base import Method
from jioc.methods.specs import of_model, ours, sha256_of
from jioc.nets.incremental import build
from jioc.resolve.derive import resolve
from jioc.training.checkpoint import State, pack, unpack
from jioc.training.execution import pick_device
from jioc.training.learner import Learner, Look, make_method
from jioc.training.store import model_folder

FORMAT = 2
WEIGHTS, EXEMPLARS = "model.safetensors", "exemplars.safetensors"
AUGMENTS: dict[str, type[Any]] = {"shift": Augment, "crop": ResizedCrop}
MOST_JSON = 64 << 20  # bytes
MOST_LEVELS = 3 * 4096 * 4096  # of an image


class Checked(Options):
    """A file beside model.json."""

    bytes: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Origin(Options):
    """A method of somebody's own, and the checksum of its file or of its code."""

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
    canvas: Positive | None  # side of the square that is kept of an image, and its centre seen; None: no square
    mean: list[float]
    std: list[Annotated[float, Field(gt=0)]]
    augment: dict[str, Any] | None  # of training images; None: none that we know
    plans: dict[str, dict[str, Any]]  # of the method's networks
    config: dict[str, Any]
    method: Origin | None = None  # None: one of this package, or saved by an earlier version
    frozen: dict[str, list[str]] = {}  # parameters that are not trained, of a method of somebody's own
    files: dict[str, Checked] = {}

    def sound(self) -> str | None:
        """What does not fit together."""
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


# --- a learner as plain data, and back ---


def taken_apart(learner: Learner) -> tuple[dict[str, Any], State, State | None]:
    """What model.json says but for the files, the weights, and what only learning needs."""
    look, state = learner.look, learner.method.state()
    del state["memory"]
    nets = {name: value for name, value in state.items() if isinstance(value, dict) and "plan" in value}
    plain = {name: value["weights"] if name in nets else value for name, value in state.items()}
    c, h, w = look.shape
    about = {
        "format": FORMAT,
        "jioc": __version__,
        "headline": learner.method.spec.headline,
        "classes": list(learner.classes),
        "sizes": list(learner.sizes),
        "counts": list(learner.counts),
        "image": [c, h, w] if look.size is None else [c, look.size, look.size],
        "canvas": w if h == w else None,
        "mean": list(look.mean),
        "std": list(look.std),
        "augment": _augment_to(look.augment),
        "plans": {name: value["plan"] for name, value in nets.items()},
        "config": _portable(settings.plain(learner.config)),
    }
    method = type(learner.method)
    if (checksum := sha256_of(method)) is not None:
        about["method"] = {"name": method.spec.name, "sha256": checksum}
    if not ours(method):
        frozen = {name: value["frozen"] for name, value in nets.items() if name != "teacher"}
        about["frozen"] = {name: parts for name, parts in frozen.items() if parts}
    learning = None
    if learner.exemplars is not None:
        learning = {
            "held": [len(images) for images in learner.exemplars],
            "images": torch.from_numpy(np.concatenate([np.zeros((0, c, h, w), np.uint8), *learner.exemplars])),
            "generators": {name: {"kind": k, "state": s} for name, (k, s) in learner.generators.items()},
            "teacher": plain.pop("teacher", None),
        }
    plain.pop("teacher", None)
    return about, plain, learning


def put_together(
    about: About, weights: State, learning: State | None, device: torch.device, method: str | None = None
) -> Learner:
    """`method`: a Python file that may be run, for a model of a method of somebody's own."""
    if (told := about.sound()) is not None:
        raise ValueError(told)
    c, h, w = about.image
    kept = (c, h, w) if about.canvas is None else (c, about.canvas, about.canvas)
    seen = None if kept == about.image else w
    look = Look(kept, seen, tuple(about.mean), tuple(about.std), _augment_from(about.augment))
    config = _config(about, method)
    made = make_method(config, c, torch.Generator(), device)
    # earlier versions let a method leave out its means
    state: State = dict.fromkeys(("teacher", "means", *made.late)) | weights | {"memory": []}
    if learning is not None:
        state["teacher"] = learning["teacher"]
    _sound_networks(about, made, state)
    for name in about.plans.keys() & set(made.persistent):
        if state[name] is not None:
            state[name] = {"plan": about.plans[name], "weights": state[name]}
            if name in about.frozen:
                state[name]["frozen"] = about.frozen[name]
    made.load_state({k: v.clone() if isinstance(v, Tensor) else v for k, v in state.items()}, device)
    learner = Learner(
        config=config,
        look=look,
        classes=list(about.classes),
        sizes=tuple(about.sizes),
        method=made,
        device=device,
        exemplars=None if learning is None else _exemplars(learning, look, len(about.classes)),
        generators={} if learning is None else _generators(learning),
        counts=list(about.counts),
    )
    for name, scores in learner.readouts(np.zeros((1, *kept), np.uint8)).items():
        if scores.shape != (1, len(about.classes)):
            raise ValueError(f"its read-out {name} does not fit its classes")
    return learner


def _portable(values: dict[str, Any]) -> dict[str, Any]:
    """Settings without what belongs to this machine: of paths the last name alone."""
    kept = {name: value for name, value in values.items() if name not in settings.MACHINE}
    return kept | {name: Path(kept[name]).name or kept[name] for name in ("method", "data")}


def _config(about: About, method: str | None) -> settings.Config:
    values = {k: v for k, v in about.config.items() if k not in settings.MACHINE}
    values["method"] = of_model(str(values.get("method")), method, about.method.sha256 if about.method else None)
    entry = catalogue.in_memory(str(values.get("data")), len(about.classes), about.image[-1])
    return resolve(settings.make(**values), entry)


def _sound_networks(about: About, made: Method, state: State) -> None:
    """Every network as large as the tensors that the file holds for it, before one is made."""
    missing = [name for name in made.persistent if name not in state]
    if missing:
        raise ValueError(f"it lacks {missing[0]}")
    for name in about.plans.keys() & set(made.persistent):
        plan, tensors = about.plans[name], state[name]
        if tensors is None:
            continue
        if plan.get("sizes") != about.sizes or not 1 <= plan.get("backbones", 1) <= len(tensors):
            raise ValueError(f"the plan of {name} does not fit its classes")
        with torch.device("meta"):
            empty = build(plan)
            try:
                empty.load_state_dict(tensors, assign=True)
            except RuntimeError:  # a page of names
                raise ValueError(f"the tensors of {name} do not have the shapes of its plan") from None


def _exemplars(learning: State, look: Look, classes: int) -> list[np.ndarray]:
    held, images = learning["held"], learning["images"]
    if tuple(images.shape) != (sum(held), *look.shape) or len(held) != classes or min(held) < 0:
        raise ValueError("its exemplars do not fit its classes")
    return np.split(images.numpy(), np.cumsum(held)[:-1])


def _generators(learning: State) -> dict[str, tuple[str, Tensor]]:
    found = {name: (part["kind"], part["state"]) for name, part in learning["generators"].items()}
    for name in ("order", "noise", "weights"):
        kind, state = found[name]
        if kind == "cpu":
            torch.Generator().set_state(state)  # refuses what is no state
    return found


def _augment_to(augment: Any) -> dict[str, Any] | None:
    kinds = [name for name, kind in AUGMENTS.items() if type(augment) is kind]
    return {"kind": kinds[0], **asdict(augment)} if kinds else None


def _augment_from(values: dict[str, Any] | None) -> Any:
    if values is None:
        return None
    numbers = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k != "kind"}
    for value in numbers.values():
        for v in value if isinstance(value, tuple) else [value]:
            if not isinstance(v, (int, float)) or not 0 <= v <= 4096:
                raise ValueError(f"its augmentation has {v!r}")
    return AUGMENTS[values["kind"]](**numbers)


# --- files ---


def save(place: str | Path, learner: Learner) -> None:
    """Replace the model in a folder, whole or not at all; make the folder where there is none."""
    if not learner.look.whole:
        raise Refused("a saved model takes images of uint8; what learnt from floats or vectors is kept by pickling it")
    about, weights, learning = taken_apart(learner)
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
        settle(folder)  # where the disk failed, what was written for nothing goes


def learnt_on(folder: Path, tasks: int) -> bool:
    """Whether the model there has learnt more tasks than that."""
    try:
        return len(read_about(folder).sizes) > tasks
    except Refused:
        return False


def settle(folder: Path) -> None:
    """End a replacement that was begun: what model.json names takes its place, what it does not name goes."""
    for name in ("model.json", WEIGHTS, EXEMPLARS):
        for litter in [*folder.glob(f".{name}.*.partial"), *folder.glob(f".{next_name(Path(name))}.*.partial")]:
            litter.unlink()
    try:
        files = read_about(folder).files
    except Refused:
        return  # no model yet, or one that is not ours to judge
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
    return path.with_name(f"{path.stem}.next{path.suffix}")


def load(place: str | Path, *, to_learn: bool = False, device: str = "cpu", method: str | None = None) -> Learner:
    """The model in a folder. `to_learn`: with its exemplars; `method`: the file of a method of one's own."""
    where = pick_device(settings.make(method="finetune", device=device).device)
    folder = model_folder(Path(place))
    for last in (False, False, True):
        about = read_about(folder)
        if to_learn and EXEMPLARS not in about.files:
            raise Refused(_why_no_exemplars(about, folder))
        if to_learn and about.augment is None:
            raise Refused(f"{str(folder)!r} was trained with an augmentation of one's own, so learning cannot continue")
        try:
            weights = _tensors(folder / WEIGHTS, about)
            learning = _tensors(folder / EXEMPLARS, about) if to_learn else None
            break
        except Replaced:
            if last:
                raise Refused(f"{str(folder)!r} holds no whole model: it is being replaced again and again") from None
    with _refused_as(folder):
        learner = put_together(about, weights, learning, where, method)
    return learner


def _why_no_exemplars(about: About, folder: Path) -> str:
    if str(about.config.get("method")) == "joint":
        return "joint training needs every image it has seen, and a saved model keeps none: learning cannot continue"
    return f"{str(folder)!r} was saved without its exemplars, so learning cannot continue"


def read_about(folder: Path) -> About:
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
        raise Refused(f"{str(path)!r} has format {version}; this jioc {__version__} reads up to {FORMAT}: update it")
    if version < FORMAT:
        raise Refused(f"{str(path)!r} has format {version}, from before models could learn on; train it again")
    try:
        return About.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Refused(f"{str(path)!r} is damaged: {place}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


class Replaced(Exception):
    """Another process put another file in the place of the one that was being read."""


def _tensors(path: Path, about: About) -> State:
    """The state in the file that model.json means, which may still have the name it was written under."""
    wanted = about.files.get(path.name)
    found = [p for p in (path, next_name(path)) if p.is_file()]
    if wanted is None or not found:
        raise Refused(f"{str(path.parent)!r} holds no whole model: {path.name} is missing")
    for candidate in found:
        try:
            with open(candidate, "rb") as file:
                before = os.fstat(file.fileno())
                if not _same_file(file, wanted):
                    continue
                try:
                    with _refused_as(path.parent, path.name):
                        state = unpack(candidate)
                except Refused:
                    if os.path.samestat(before, os.stat(candidate)):
                        raise
                    raise Replaced from None
                if not os.path.samestat(before, os.stat(candidate)):
                    raise Replaced
                return state
        except FileNotFoundError:
            raise Replaced from None
        except OSError as error:
            raise Refused(f"{str(candidate)!r} cannot be read: {error.strerror}") from None
    if read_about(path.parent).files.get(path.name) != wanted:
        raise Replaced
    size = os.stat(path).st_size if path.exists() else -1
    why = f"{path.name} does not match its checksum"
    if size != wanted.bytes:
        why = f"{path.name} has {size:,} bytes, not {wanted.bytes:,}"
    raise Refused(f"{str(path.parent)!r} holds no whole model: {why}")


def _matches(path: Path, wanted: Checked) -> bool:
    with open(path, "rb") as file:
        return _same_file(file, wanted)


def _same_file(file: Any, wanted: Checked) -> bool:
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode) or about.st_size != wanted.bytes:
        return False
    return hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256


@contextmanager
def _refused_as(folder: Path, part: str = "") -> Iterator[None]:
    """Whatever goes wrong with the contents of a model is a sentence about the model."""
    try:
        yield
    except Refused:
        raise
    except SafetensorError as error:
        raise Refused(
            f"{str(folder)!r} holds no whole model: {part or 'a part'} is no safetensors file ({error})"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError, RecursionError) as error:
        told = first_line(error)
        told = f"it lacks {told}" if isinstance(error, KeyError) else told
        raise Refused(f"{str(folder)!r} holds no whole model: {told}") from None
