"""What the command line knows of each method before torch is imported: its paper, its schedules, its own options.

The formula of method `name` is in `methods/<name>.py`. Schedules are PyCIL's for CIFAR-100, batch 128, unless a line
says otherwise.
"""

import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, create_model

from jioc.config.schema import Amount, Options, Positive, Schedule, plain, refusal
from jioc.errors import Refused, unknown
from jioc.scripts import SCRIPT, imported

if TYPE_CHECKING:
    from jioc.methods.base import Method

Temperature = Annotated[float, Field(gt=0)]


@dataclass(frozen=True)
class Spec:
    """A method's entry in the register."""

    name: str
    title: str
    paper: str
    first: Schedule
    later: Schedule
    second: Schedule | None = None  # BiC's bias, FOSTER's compression, PODNet's balanced tuning
    options: type[Options] = Options
    memory: Literal["exemplars", "none", "all"] = "exemplars"  # none: keeps nothing; all: keeps every image
    distils: bool = False
    expands: bool = False
    readouts: tuple[str, ...] = ("cnn", "nme")
    headline: str = "cnn"  # the read-out by which the method is judged
    needs_memory: bool = False  # refused without exemplars
    host_kd: Literal["replace", "keep"] = "replace"  # keep: its distillation is JIOC's already


def steps(epochs: int, *milestones: int, weight_decay: float, lr: float = 0.1) -> Schedule:
    return Schedule(epochs=epochs, lr=lr, decay="steps", milestones=milestones, weight_decay=weight_decay)


def cosine(epochs: int, *, weight_decay: float, lr: float = 0.1) -> Schedule:
    return Schedule(epochs=epochs, lr=lr, decay="cosine", weight_decay=weight_decay)


FIRST = steps(200, 60, 120, 170, weight_decay=5e-4)
BIC = steps(170, 60, 100, 140, weight_decay=2e-4)
COIL = steps(160, 80, 120, weight_decay=5e-4)


class LwFOptions(Options):
    kd_temperature: Temperature = 2.0
    """Temperature of the distillation."""
    kd_weight: Amount = 3.0
    """Weight of the distillation."""


class ICaRLOptions(Options):
    kd_temperature: Temperature = 2.0
    """Temperature of the distillation."""
    kd_weight: Amount = 1.0
    """Weight of the distillation."""
    balance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Beta of the class-balanced cross-entropy after the first task; 0 is plain, towards 1 rare classes count more."""


class WAOptions(Options):
    kd_temperature: Temperature = 2.0
    """Temperature of the distillation."""


class BiCOptions(Options):
    kd_temperature: Temperature = 2.0
    """Temperature of the distillation."""
    held_share: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of a class's exemplars that is held out to fit the bias."""
    bias_loss: Literal["paper", "pycil"] = "paper"
    """The bias is fitted with the network at rest; or as in PyCIL, softmax taken twice and BN statistics adrift."""


class PODNetOptions(Options):
    flat: Amount = 1.0
    """Weight of the distillation of the features."""
    spatial: Amount = 5.0
    """Weight of the distillation of the pooled stages."""
    margin: Amount = 0.6
    """By how much the label's similarity must exceed the others."""
    nca: Literal["paper", "pycil"] = "paper"
    """The paper's loss, or that of the code, whose margin cancels and whose denominator holds an extra 1."""


class SSILOptions(Options):
    kd_temperature: Temperature = 2.0
    """Temperature of the task-wise distillation."""
    kd_weight: Amount = 1.0
    """Weight of the task-wise distillation."""
    exemplar_share: Annotated[float, Field(gt=0)] = 0.25
    """Exemplars beside each new image of a batch: 32 beside 128."""


class DEROptions(Options):
    aux_weight: Amount = 1.0
    """Weight of the auxiliary loss."""


class FOSTEROptions(Options):
    kd_temperature: Temperature = 2.0
    """Temperature of both distillations."""
    lambda_okd: Amount = 1.0
    """Weight of the distillation while boosting."""
    beta1: Annotated[float, Field(gt=0, lt=1)] = 0.96
    """Balance of the classes while boosting; towards 1 rare classes count more."""
    beta2: Annotated[float, Field(gt=0, lt=1)] = 0.97
    """Balance of the classes while compressing."""
    oofc: Literal["ft", "az"] = "ft"
    """The weights from old features to new classes are trained (ft) or held at zero (az)."""


class COILOptions(Options):
    kd_temperature: Temperature = 2.0
    """Temperature of the distillations."""
    transport_weight: Amount = 1e-3
    """Weight of the two transport terms."""
    sinkhorn: Annotated[float, Field(gt=0)] = 0.464
    """Entropic regularisation of the transport."""
    transport_every: Positive = 30
    """Steps between two retrospective transports."""


SPECS: dict[str, Spec] = {
    spec.name: spec
    for spec in [
        Spec(
            "finetune", "Finetune", "new images alone: the floor",
            FIRST, steps(80, 40, 70, weight_decay=2e-4), memory="none",
        ),
        Spec(
            "joint", "Joint", "all images seen so far: the ceiling",
            FIRST, steps(70, 30, 50, weight_decay=2e-4), memory="all",
        ),
        Spec(
            "replay", "Replay", "cross-entropy on new images and exemplars",
            FIRST, steps(70, 30, 50, weight_decay=2e-4),
        ),
        Spec(
            "lwf", "LwF", "Li and Hoiem, ECCV 2016",
            steps(200, 60, 120, 160, weight_decay=5e-4), steps(250, 60, 120, 180, 220, weight_decay=2e-4),
            options=LwFOptions, memory="none", distils=True,
        ),
        Spec(
            "icarl", "iCaRL", "Rebuffi et al., CVPR 2017",
            FIRST, steps(170, 80, 120, weight_decay=2e-4), options=ICaRLOptions, distils=True,
        ),
        Spec(
            "wa", "WA", "Zhao et al., CVPR 2020",
            FIRST, steps(170, 60, 100, 140, weight_decay=2e-4), options=WAOptions, distils=True,
            readouts=("cnn", "nme", "unaligned"),
        ),
        Spec(
            "bic", "BiC", "Wu et al., CVPR 2019",
            BIC, BIC, BIC, options=BiCOptions, distils=True, readouts=("cnn", "nme", "uncorrected"), needs_memory=True,
        ),
        Spec(
            "podnet", "PODNet", "Douillard et al., ECCV 2020",
            cosine(160, weight_decay=5e-4), cosine(160, weight_decay=5e-4), cosine(20, lr=0.005, weight_decay=5e-4),
            options=PODNetOptions, distils=True,
        ),
        Spec(
            "ssil", "SS-IL", "Ahn et al., ICCV 2021",
            FIRST, steps(170, 80, 120, weight_decay=2e-4), options=SSILOptions, distils=True, host_kd="keep",
        ),
        Spec(
            "der", "DER", "Yan et al., CVPR 2021",
            FIRST, steps(170, 80, 120, 150, weight_decay=2e-4), options=DEROptions, expands=True,
            readouts=("cnn", "nme", "unaligned"),
        ),
        Spec(
            "foster", "FOSTER", "Wang et al., ECCV 2022",
            cosine(200, weight_decay=5e-4), cosine(170, weight_decay=5e-4), cosine(130, weight_decay=0.0),
            options=FOSTEROptions, distils=True, expands=True, readouts=("cnn", "nme", "boosted", "compressed"),
            needs_memory=True,
        ),
        Spec(
            "coil", "COIL", "Zhou et al., ACM MM 2021",
            COIL, COIL, options=COILOptions, distils=True, needs_memory=True,
        ),
    ]
}  # fmt: skip

ELSEWHERE = {"er": "replay", "naive": "finetune", "cumulative": "joint"}
"""What other libraries call a method, where the name is near another one's here."""

_OURS = frozenset(SPECS)
_CLASSES: dict[str, "type[Method]"] = {}
_OF_FILE: dict[str, list["type[Method]"]] = {}
_OF_CODE: dict["type[Method]", str | None] = {}  # checksums of classes that somebody's Python code registered


def register(spec: Spec | str) -> Callable[["type[Method]"], "type[Method]"]:
    """Class decorator: this class is the method of that entry (or, by name, of an entry above)."""
    entry = SPECS[spec] if isinstance(spec, str) else spec
    for name in dict.fromkeys(("cnn", entry.headline)):
        if name not in entry.readouts:
            raise ValueError(
                f"{entry.name} has the readouts {', '.join(entry.readouts)}, and {name!r} must be among them"
            )

    def keep(cls: "type[Method]") -> "type[Method]":
        cls.spec = entry
        if cls.__module__.startswith(SCRIPT):  # it is found by its file, and takes nobody else's name
            _OF_FILE.setdefault(cls.__module__, []).append(cls)
            return cls
        if entry.name in _OURS and cls.__module__ != f"{__package__}.{entry.name}":  # which may not be imported yet
            raise ValueError(f"{entry.name!r} is a method of jioc; give yours another name")
        known = _CLASSES.get(entry.name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise ValueError(f"two methods are called {entry.name!r}")
        SPECS[entry.name], _CLASSES[entry.name] = entry, cls
        if not ours(cls):
            _OF_CODE[cls] = _checksum(cls)  # now: its file may change while it is in use
        return cls

    return keep


def find(word: str) -> Spec:
    """The entry of a method by name, or of the one that a Python file registers."""
    if word.endswith(".py"):
        return _from_file(Path(word)).spec
    if word in ELSEWHERE and word not in SPECS:
        raise Refused(f"unknown method {word!r}; here it is {ELSEWHERE[word]!r}")
    if word not in SPECS:
        raise unknown("method", word, SPECS)
    return SPECS[word]


def sha256(word: str) -> str | None:
    """The checksum of a method that is not ours: see `sha256_of`."""
    if word.endswith(".py"):
        return imported(Path(word)).__sha256__
    return sha256_of(_CLASSES[word]) if word in _CLASSES else None


def refuse_changed(word: str, began: str | None, now: str | None, run: str = "this run") -> None:
    """A method whose checksum is not that with which the run began (older versions kept none)."""
    if began != now and None not in (began, now):
        raise Refused(f"{word!r} has changed since {run} began; bring it back as it was, or choose another --out")


def ours(method: "type[Method]") -> bool:
    return method.__module__.startswith(f"{__package__}.")


def sha256_of(method: "type[Method]") -> str | None:
    """The checksum of the file that a class came from, whatever became of the file since, or of the source of a class
    that Python code registered. None of one of ours, which the commit tells, and where there is no source to read."""
    return getattr(sys.modules.get(method.__module__), "__sha256__", None) or _OF_CODE.get(method)


def _checksum(method: "type[Method]") -> str | None:
    """Of what the class holds, and those above it that are not ours: plain values, and the source of functions, which
    a notebook has too. None where a function has no source, as at a prompt."""
    parts: list[str] = []
    for cls in method.__mro__:
        for name, value in sorted(vars(cls).items()) if cls is not object and not ours(cls) else ():
            function = next((f for kind in WRAPPED if (f := getattr(value, kind, None)) is not None), value)
            if isinstance(function, FunctionType):
                try:
                    parts.append(inspect.getsource(function))
                except (OSError, TypeError):
                    return None
            elif not name.startswith("__"):
                with suppress(TypeError, ValueError):
                    parts.append(json.dumps([name, value]))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


WRAPPED = ("__func__", "fget", "func")  # what a static method, a property and a cached one hold


def refuse_other(word: str, was: str | None, now: str | None) -> None:
    """A method whose checksum is not that with which a model learnt (older versions kept none)."""
    if was != now and None not in (was, now):
        what = "file" if word.endswith(".py") else "code"
        raise Refused(
            f"{word!r} is not the method's {what} as it was when this model learnt: its checksum is another; "
            f"give that {what} as it was, or train a model with this one"
        )


def of_model(named: str, file: str | None, was: str | None = None) -> str:
    """The method of a saved model. One that is in a file is run only as the file that somebody names.

    `was`: its checksum; a file that has another is not run at all, nor is a class.
    """
    own = named.endswith(".py")
    if own and file is None:
        told = f"the method of this model is in a file, {named!r}, which is not run unasked"
        raise Refused(f"{told}; give --method FILE, or method= in Python")
    if file not in (None, named) and not (own and str(file).endswith(".py")):
        raise Refused(f"--method {file!r} does not fit: the method of this model is {named!r}")
    if file is not None and own and Path(file).is_file():
        refuse_other(file, was, hashlib.sha256(Path(file).read_bytes()).hexdigest())
    if not own and named not in SPECS:
        raise Refused(f"unknown method {named!r}; if Python code registers it, open this model there, with jioc.load")
    if not own:
        refuse_other(named, was, sha256(named))
    return file or named


def load(word: str) -> "type[Method]":
    """The class of a method; this imports torch."""
    if word.endswith(".py"):
        return _from_file(Path(word))
    name = find(word).name
    if name not in _CLASSES:
        importlib.import_module(f"jioc.methods.{name}")
    return _CLASSES[name]


def own_options(spec: Spec, values: dict[str, Any]) -> Options:
    """The method's own options, checked."""
    try:
        return spec.options.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "extra_forbidden":
            raise unknown(f"option of {spec.name}", str(first["loc"][0]), spec.options.model_fields) from None
        raise refusal(error) from None


class Told(Options):
    """What result.json says of a method, for readers that do not have it: its title and what is usual for it."""

    model_config = ConfigDict(extra="ignore")

    name: str
    title: str
    memory: Literal["exemplars", "none", "all"]
    host_kd: Literal["replace", "keep"]
    first: Schedule
    later: Schedule
    second: Schedule | None
    options: dict[str, Any]
    sha256: str | None = None


def told(spec: Spec, checksum: str | None = None) -> dict[str, Any]:
    """`checksum`: of a method that is not ours."""
    own = {"options": spec.options.model_construct(), "sha256": checksum}
    values = {name: getattr(spec, name) for name in Told.model_fields if name not in own} | own
    return {name: plain(value) if isinstance(value, Options) else value for name, value in values.items()}


def understood(said: Any) -> Told | None:
    """What a result told, where that can be understood."""
    try:
        return Told.model_validate(said)
    except ValidationError:
        return None


def recorded(of: Told | None) -> Spec | None:
    """The entry of a method of which there is only what a result told."""
    if of is None:
        return None
    if not all(stage.epochs and stage.lr for stage in (of.first, of.later, of.second) if stage):
        return None
    named = {key: (Any, v) for key, v in of.options.items() if key[:1].isalpha() and not hasattr(Options, key)}
    own: type[Options] = create_model("Own", __base__=Options, **named)  # type: ignore[call-overload]
    return Spec(of.name, of.title, "", of.first, of.later, of.second, own, of.memory, host_kd=of.host_kd)


def _from_file(path: Path) -> "type[Method]":
    """The one method that a Python file registers."""
    if not path.is_file():
        raise Refused(f"there is no method file {str(path)!r}")
    module = imported(path)
    own = _OF_FILE.get(module.__name__, [])
    if len(own) != 1:
        raise Refused(f"{str(path)!r} registers {len(own)} methods; a method file registers one")
    return own[0]
