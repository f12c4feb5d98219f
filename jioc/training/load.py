"""Load a saved model. Nothing is unpickled, only its own files are opened, no code that it names is run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from jioc.config import Config, index, make, upgraded
from jioc.data import catalogue
from jioc.device.pick import pick_device
from jioc.errors import Refused, first_line, is_of_the_device, refuse_if
from jioc.files import open_regular
from jioc.methods import base, load_method, of_model
from jioc.nets import incremental
from jioc.resolve.derive import resolve
from jioc.training import build, checkpoint, finite, model, store
from jioc.training.judged import Judged, from_state
from jioc.training.learner import Learner

JOINT = "joint training needs every image it has seen, and a saved model keeps none: learning cannot continue"


def load_model(
    place: str | Path,
    *,
    to_learn: bool = False,
    judged: bool = True,
    device: str = "cpu",
    method: str | None = None,
) -> Learner:
    """Load the model in a folder.

    `to_learn`: with its exemplars; `judged`: with what it was judged by, where that lies beside it; `method`:
    the file of a method not ours.
    """
    where, folder = pick_device(make(method="", device=device).device), store.model_folder(Path(place))
    name = repr(str(folder))
    for _ in range(3):
        about = model.read_about(folder)
        without = f"{name} was saved without its exemplars, so learning cannot continue"
        refuse_if(
            to_learn and model.EXEMPLARS not in about.files,
            JOINT if str(about.config.get("method")) == "joint" else without,
        )
        refuse_if(
            to_learn and about.augment is None,
            f"{name} was trained with an augmentation of one's own, so learning cannot continue",
        )
        with suppress(Replaced):
            weights = _tensors(folder / model.WEIGHTS, about)
            learning = _tensors(folder / model.EXEMPLARS, about) if to_learn else None
            kept = _tensors(folder / model.JUDGED, about) if judged and _has_judged(folder, about) else None
            with _as_refusal(folder):
                return from_parts(about, weights, learning, kept, where, method)
    raise Refused(f"{name} holds no whole model: it is being replaced again and again")


def _has_judged(folder: Path, about: model.ModelFile) -> bool:
    """Whether the file is there: a copy of a model may do without it."""
    path = folder / model.JUDGED
    return path.name in about.files and (path.is_file() or model.next_name(path).is_file())


class Replaced(Exception):
    """Another process has replaced the file that was being read."""


def _tensors(path: Path, about: model.ModelFile) -> checkpoint.State:
    """Read the file that model.json describes; it may still have the name under which it was written."""
    wanted = about.files.get(path.name)
    candidates = [p for p in (path, model.next_name(path)) if p.is_file()]
    if wanted is None or not candidates:
        raise Refused(f"{str(path.parent)!r} holds no whole model: {path.name} is missing")
    for candidate in candidates:
        try:
            with open_regular(candidate) as file:
                before = os.fstat(file.fileno())
                if not model.same_file(file, wanted):
                    continue
                try:
                    with _as_refusal(path.parent, path.name):
                        return checkpoint.unpack(candidate)
                finally:
                    if not os.path.samestat(before, os.stat(candidate)):
                        raise Replaced
        except FileNotFoundError:
            raise Replaced from None
        except OSError as error:
            raise Refused(f"{str(candidate)!r} cannot be read: {error.strerror}") from None
    if model.read_about(path.parent).files.get(path.name) != wanted:
        raise Replaced
    size = os.stat(path).st_size if path.exists() else -1
    wrong_size = f"has {size:,} bytes, not {wanted.bytes:,}"
    why = "does not match its checksum" if size == wanted.bytes else wrong_size
    raise Refused(f"{str(path.parent)!r} holds no whole model: {path.name} {why}")


@contextmanager
def _as_refusal(folder: Path, part: str = "a part") -> Iterator[None]:
    """Turn any error about the contents of a model into a sentence about the model."""
    try:
        yield
    except SafetensorError as error:
        why = f"{part} is no safetensors file ({error})"
    except KeyError as error:
        why = f"it lacks {first_line(error)}"
    except (ValueError, TypeError, AttributeError, IndexError, RuntimeError, finite.NotFinite) as error:
        if is_of_the_device(error):
            raise
        why = first_line(error)
    else:
        return
    raise Refused(f"{str(folder)!r} holds no whole model: {why}")


# --- from plain data ---


def from_parts(
    about: model.ModelFile,
    weights: checkpoint.State,
    learning: checkpoint.State | None,
    judged: checkpoint.State | None,
    device: torch.device,
    method: str | None = None,
) -> Learner:
    """Put a learner together from what `model.to_parts` gave. `method`: a Python file that may be run."""
    if (why := about.contradiction()) is not None:
        raise ValueError(why)
    c, h, w = about.image
    shape = (c, h, w) if about.canvas is None else (c, about.canvas, about.canvas)
    side, augment = None if shape == about.image else w, _augment_from(about.augment)
    config = _config(about, method)
    to_learn = {name: learning and learning[name] for name in load_method(config.method).for_learning}
    state: checkpoint.State = weights | to_learn | {"memory": []}
    _check_networks(about, state)
    made = build.make_method(config, c, torch.Generator(), device)
    _describe_networks(about, made, state)
    made.load_state({k: v.clone() if isinstance(v, Tensor) else v for k, v in state.items()}, device)
    finite.check_weights(finite.modules(made))
    learner = Learner(
        config=config,
        preprocessing=model.Preprocessing(
            shape, side, tuple(about.mean), tuple(about.std), augment, half=build.halves(config)
        ),
        classes=list(about.classes),
        sizes=tuple(about.sizes),
        method=made,
        device=device,
        exemplars=None if learning is None else _exemplars(learning, shape, len(about.classes)),
        generators={} if learning is None else _generators(learning),
        counts=list(about.counts),
        unknown=dict(about.unknown),
        judged=Judged() if judged is None else from_state(judged, shape, len(about.classes)),
    )
    for name, scores in learner.readouts(np.zeros((1, *shape), np.uint8)).items():
        if scores.shape != (1, len(about.classes)):
            raise ValueError(f"its read-out {name} does not fit its classes")
    return learner


def _config(about: model.ModelFile, method: str | None) -> Config:
    values = {k: v for k, v in upgraded(about.config).items() if k not in index.MACHINE}
    sha256 = about.method.sha256 if about.method else None
    values["keep_test"] = about.keep_test
    values["method"] = of_model(values.get("method"), method, sha256)
    entry = catalogue.in_memory(str(values.get("data")), len(about.classes), about.image[-1])
    try:
        return resolve(make(**values), entry)
    except Refused as error:
        raise ValueError(f"of its settings, {error}") from None


def _check_networks(about: model.ModelFile, state: checkpoint.State) -> None:
    """Refuse a plan that its tensors do not fit, before a network of that plan takes up memory or time."""
    channels = about.plans.get("net", {}).get("channels")
    if channels != about.image[0]:
        raise ValueError("the plan of net does not fit its images")
    for name in about.plans.keys() & state.keys():
        plan, tensors = about.plans[name], state[name]
        if tensors is None:
            continue
        several = plan.get("backbones", 1)
        if plan.get("sizes") != about.sizes or not 1 <= several <= min(len(tensors), len(about.sizes)):
            raise ValueError(f"the plan of {name} does not fit its classes")
        if not incremental.fits(plan, tensors):
            raise ValueError(f"the tensors of {name} do not have the shapes of its plan")


def _describe_networks(about: model.ModelFile, made: base.Method, state: checkpoint.State) -> None:
    """Put the plan of each network to its tensors."""
    missing = [name for name in made.persistent if name not in state]
    if missing:
        raise ValueError(f"it lacks {missing[0]}")
    for name in about.plans.keys() & set(made.persistent):
        if state[name] is not None:
            frozen = {"frozen": about.frozen[name]} if name in about.frozen else {}
            state[name] = {"plan": about.plans[name], "weights": state[name], **frozen}


def _exemplars(learning: checkpoint.State, shape: tuple[int, ...], classes: int) -> list[np.ndarray]:
    held, images = learning["held"], learning["images"]
    if tuple(images.shape) != (sum(held), *shape) or len(held) != classes or min(held) < 0:
        raise ValueError("its exemplars do not fit its classes")
    return np.split(images.numpy(), np.cumsum(held)[:-1])


def _generators(learning: checkpoint.State) -> dict[str, tuple[str, Tensor]]:
    saved = {name: (part["kind"], part["state"]) for name, part in learning["generators"].items()}
    for name in ("order", "noise", "weights"):
        kind, state = saved[name]
        if kind == "cpu":
            torch.Generator().set_state(state)  # raises for anything but a state
    return saved


def _augment_from(values: dict[str, Any] | None) -> Any:
    if values is None:
        return None
    kind = model.AUGMENTS[values["kind"]]
    wanted = get_type_hints(kind)
    numbers = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k != "kind"}
    for name, value in numbers.items():
        types = get_args(wanted.get(name)) or (wanted.get(name),)
        given = value if isinstance(value, tuple) else (value,)
        if len(given) != len(types) or not all(map(_fits, given, types)):
            raise ValueError(f"its augmentation has {value!r}")
    return kind(**numbers)


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is a number of that type; true is not a whole number."""
    allowed = (int, float) if wanted is float else (wanted,)
    return type(value) in allowed and 0 <= value <= 4096
