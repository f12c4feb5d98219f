"""Every setting of a run, declared once: type, default, help, and what other modules need to know about it.

A field of `Config`, or of one of its parts, is a flag of `jioc run`, a line of config.yaml and a keyword of
`jioc.run`; its docstring is its help. `index.py` answers questions about them; `docs/settings.md` lists
all. A method's own options are declared with the methods (`methods/specs.py`).
"""

import os
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

SECTIONS = {  # headings of `jioc run --help`, in order
    "data": "what is learnt",
    "memory": "what is remembered",
    "network": "the network",
    "training": "training",
    "coordination": "JIOC",
    "options": "of the method alone",
    "seeds": "seeds",
    "machine": "the machine",
}


@dataclass(frozen=True)
class About:
    """What is declared with a setting, in addition to its type, default and help."""

    section: str = ""  # a key of SECTIONS; a part of `later`, `first`, … stands in the section of the whole
    group: str = ""  # settings that belong together: images, reading, tasks, order, seeds, step
    label: Literal["value", "place", "title"] = "value"  # where tables show it
    machine: bool = False  # a resumed run may have another value
    commands: tuple[str, ...] = ("learn", "estimator")  # that take it, besides `jioc run`, which takes all
    follows: tuple[str, ...] = ()  # what decides it where nobody gives it; ".epochs": of the same stage
    excludes: tuple[str, ...] = ()  # cannot be given together with it; over a file, it replaces these
    resets: tuple[str, ...] = ()  # over a file, it replaces these; they can be given together with it
    part: str = ""  # of JIOC, for `index.without_effect`: reading, inputs, outputs, strength, distillation
    only: tuple[str, ...] = ()  # for an option of `jioc grid`: the values of --on that use it
    metavar: str = ""  # the name of its value in the help; by default the last word of its name


def setting(default: Any, section: str = "", **about: Any) -> Any:
    """Declare a field together with what `About` holds."""
    return Field(default, json_schema_extra={"about": About(section, **about)})  # type: ignore[dict-item]


TEMPERATURE = 2.0  # the default of every distillation, as in PyCIL

MOST = 2**31 - 1  # of anything that is counted, and more than any run has
Count = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]
LARGEST = 1e38  # about the largest 32-bit float
Amount = Annotated[float, Field(ge=0, le=LARGEST)]
Above0 = Annotated[float, Field(gt=0, le=LARGEST)]
Share = Annotated[float, Field(ge=0, lt=1)]
Within01 = Annotated[float, Field(gt=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


def _path_as_text(value: Any) -> Any:
    """Turn a path into text that stays a path: ./digits is a folder, digits a data set."""
    if not isinstance(value, Path):
        return value
    return str(value) if os.sep in str(value) else os.path.join(os.curdir, value)


Word = Annotated[str, BeforeValidator(_path_as_text)]
LongTail = Annotated[float, Field(gt=1)] | Literal["paper"]
Coordinate = Literal["none", "ic", "oc", "jioc"]
HostKD = Literal["replace", "keep", "add", "drop"]


NO_TEXT = re.compile("[\0\ud800-\udfff]")  # NUL, and bytes that are no letters


class Options(BaseModel):
    """A set of settings. It refuses unknown names and cannot be changed."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, validate_default=True
    )
    any_text: ClassVar[bool] = False  # whether a text may hold what no name of a file can

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_odd(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what pydantic takes: true and false as 1 and 0, text that no file of ours can hold."""
        allows = partial(_allows, cls.model_fields[info.field_name or ""].annotation)
        parts = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(part, bool) for part in parts) and not allows(bool):
            raise PydanticCustomError("switch", "Input should be neither true nor false")
        texts = [] if cls.any_text else [str(part) for part in parts if isinstance(part, str | Path)]
        if any(map(NO_TEXT.search, texts)):
            raise PydanticCustomError("text", "Input should be UTF-8, without NUL")
        return tuple(value) if isinstance(value, list) and allows(tuple) else value  # of strict JSON, too


def _allows(annotation: Any, kind: type) -> bool:
    """Whether a type allows values of that kind."""
    names = (annotation, get_origin(annotation))
    return (
        kind in names
        or (annotation is Any and kind is bool)
        or any(_allows(part, kind) for part in get_args(annotation))
    )


class Schedule(Options):
    """How long and how fast a stage trains. What is not given follows from the method (PyCIL's schedules)."""

    epochs: Positive | None = setting(None, follows=("method", "later.epochs"))
    """Epochs. Milestones, the first task and a second stage scale with those of the later tasks."""
    lr: Above0 | None = setting(None, follows=("method", "later.lr"))
    """Learning rate for a batch of the given size. The other stages scale with that of the later tasks."""
    decay: Literal["steps", "cosine"] | None = setting(None, follows=("method",))
    """How the rate falls: by ten at each milestone, or along a cosine to zero."""
    milestones: tuple[Positive, ...] | None = setting(None, follows=("method", ".epochs", ".decay"))
    """Epochs at which the rate falls by ten, such as 80,120."""
    weight_decay: Amount | None = setting(None, follows=("method",))
    """Weight decay of SGD."""


READINGS: dict[str, dict[str, Any]] = {  # options of JIOC that follow from the reading of its formulas
    "printed": {"delta_scale": "plain", "delta_softmax": "host", "oc_reduce": "sum"},
    "averaged": {"delta_scale": "plain", "delta_softmax": "plain", "oc_reduce": "mean"},
}
READ = ("coordination.reading",)


class Coordination(Options):
    """JIOC, and what its paper leaves open. `coordination.JIOC` applies the formula with these options."""

    coordinate: Coordinate = setting("none", label="title")
    """Coordinate inputs (ic), outputs (oc) or both (jioc)."""
    reading: Literal["printed", "averaged"] = setting("printed", part="reading")
    """Reading of the formulas: as printed, or with the distillation averaged over past tasks and the input
    weights from the plain logits."""
    gamma1: Amount = setting(1.0, part="strength")
    """Strength of the distillation on each past task's head; 0 leaves the method's own in place."""
    gamma2: Amount = setting(1.0, part="outputs")
    """Strength of the suppression of old images on new heads."""
    temperature: Above0 = setting(TEMPERATURE, part="distillation")
    """Temperature of the coordinated distillation."""
    kd_t2: bool = setting(False, part="distillation")
    """Multiply the coordinated distillation by the temperature squared."""
    delta: Literal["detached", "differentiated"] = setting("detached", part="inputs")
    """Hold the input weight 1 - p_y constant, or differentiate through it (the focal loss)."""
    delta_scale: Literal["plain", "mean1", "per-class"] | None = setting(None, part="inputs", follows=READ)
    """Take the input weight as it is, divide it by its batch mean, or average it over the batch's images of a
    class."""
    delta_softmax: Literal["host", "plain"] | None = setting(None, part="inputs", follows=READ)
    """Take p_y from what the method's own classification loss normalises, or from the plain logits; they
    differ in FOSTER."""
    ic_terms: Literal["cls", "all"] = setting("cls", part="inputs")
    """Weigh the classification loss alone, or auxiliary ones too (DER's aux, FOSTER's fe)."""
    oc_data: Literal["all", "new", "old"] = setting("all", part="distillation")
    """Which images the coordinated distillation sees."""
    oc_heads: Literal["task", "joint"] = setting("task", part="distillation")
    """Take a softmax for each past task, or one over all old classes."""
    oc_reduce: Literal["sum", "mean", "share"] | None = setting(None, part="distillation", follows=READ)
    """Add up the distillation over past tasks, average it, or weigh each task by its share of old classes."""
    host_kd: HostKD | None = setting(None, part="outputs", follows=("method",))
    """What becomes of the method's own distillation: replaced by the coordinated one, kept instead of it,
    kept with it (add), or dropped with it; by default replaced, or kept where it is the same (SS-IL)."""
    suppress_scale: Literal["task", "batch", "old-mean"] = setting("task", part="outputs")
    """Divide the suppression by the new images of the task, by those of the batch, or by the batch's old
    images."""


FIXED = ("estimator",)  # not `jioc learn`: a saved model has fixed it for all classes to come
FILES = ("data", "learn")  # commands that read image files
SPLIT: dict[str, Any] = {"group": "tasks", "label": "place", "commands": ("data", "estimator")}
TASKS = ("data",)  # `jioc data check` takes it: it decides the images or the tasks


class Config(Options):
    """All settings of a run."""

    method: Word = setting(..., label="title", commands=())
    """The method: a registered name, or a Python file that registers one."""

    # --- what is learnt ---
    data: Word = setting("digits", "data", group="images", label="place", commands=())
    """digits, cifar10, cifar100, tinyimagenet, miniimagenet, cub200; a folder of class folders; a csv of
    path, label and perhaps split; or a Python file whose load() returns arrays."""
    data_dir: Path | None = setting(None, "data", group="reading", machine=True, commands=TASKS)
    """Where the official files lie (also JIOC_DATA)."""
    image_size: Annotated[int, Field(ge=4, le=1024)] | None = setting(
        None, "data", group="images", follows=("data", "weights"), commands=TASKS
    )
    """Side of the square that the network sees; by default the pretrained weights', else the data set's, or
    that of a folder's images. Smaller images that come as arrays are enlarged on the device."""
    canvas: Annotated[int, Field(ge=4, le=2048)] | None = setting(
        None, "data", group="images", follows=("image_size",), commands=TASKS
    )
    """Side at which images are kept, from which crops are taken; 8/7 of a size above 64, else the size."""
    colour: Literal["auto", "rgb", "grey"] = setting("auto", "data", group="images", commands=TASKS)
    """Channels of a folder's images: grey where all are, three as soon as one has colour."""
    mean: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = setting(
        None, "data", group="reading", follows=("weights", "backbone"), commands=FIXED
    )
    """Mean of each channel, of levels in [0, 1]; by default the pretrained weights', else the data set's, for
    a folder measured."""
    std: tuple[Above0, ...] | None = setting(
        None, "data", group="reading", follows=("weights", "backbone"), commands=FIXED
    )
    """Standard deviation of each channel, likewise."""
    flip: bool | None = setting(None, "data", group="reading", commands=FIXED)
    """Mirror training images at random; by default everything but digits."""
    on_bad: Literal["skip", "fail"] = setting("skip", "data", group="reading", commands=FILES)
    """Leave out a file that is no usable image, and name it; or end the run."""
    test_share: Within01 = setting(0.2, "data", group="images", commands=FILES)
    """Share of each class that becomes the test set, where none is given."""
    split_seed: Seed = setting(1993, "data", group="images", commands=FILES)
    """Seed of that split."""
    long_tail: LongTail | None = setting(None, "data", label="place", commands=TASKS)
    """Exponential counts, most / fewest = this factor; `paper` gives the paper's exact counts on CIFAR."""
    long_tail_order: Literal["original", "learnt", "shuffled"] = setting("original", "data", commands=TASKS)
    """How counts are assigned to classes: by original label, by the order of learning, or shuffled."""
    holdout: Share = setting(0.0, "data", label="place", commands=())
    """Share of the training images of each class to measure accuracy on; the test set is then not used."""
    tasks: Positive | None = setting(None, "data", **SPLIT, excludes=("base", "increment", "task_sizes"))
    """Number of tasks of equal size (the first ones are larger where it does not divide)."""
    base: Positive | None = setting(None, "data", **SPLIT, excludes=("tasks", "task_sizes"))
    """Classes of the first task."""
    increment: Positive | None = setting(None, "data", **SPLIT, excludes=("tasks", "task_sizes"))
    """Classes of each later task; the last may be smaller."""
    task_sizes: tuple[Positive, ...] | None = setting(
        None, "data", **SPLIT, excludes=("tasks", "base", "increment")
    )
    """Classes of every task, such as 4,3,3."""
    order: tuple[int | str, ...] | None = setting(None, "data", group="order", metavar="FILE", commands=TASKS)
    """File with the class order: names or original labels, separated by white space or one a line."""
    order_seed: Seed = setting(1993, "data", group="order", excludes=("order",), commands=TASKS)
    """Seed of the class order."""

    # --- what is remembered ---
    memory: Count = setting(2000, "memory", label="place", excludes=("memory_per_class",))
    """Exemplars in all, shared equally by the classes seen."""
    memory_per_class: Positive | None = setting(
        None, "memory", label="place", excludes=("memory",), metavar="M"
    )
    """Exemplars of each class instead of a total."""
    select: Literal["herding", "random", "first"] = setting("herding", "memory")
    """How exemplars are chosen."""
    keep_exemplars: bool = setting(True, "memory", machine=True, commands=("learn",))
    """Save the exemplars with the model; without them it cannot learn on."""

    # --- the network ---
    backbone: str | None = setting(
        None, "network", label="place", follows=("data", "image_size", "weights"), commands=FIXED
    )
    """Backbone; by default that of the weights, else the data set's. timm:NAME is one of the library timm."""
    stem: Literal["cifar", "cifar-pool", "imagenet"] | None = setting(
        None, "network", follows=("data", "image_size", "weights"), commands=FIXED
    )
    """First layers: 3x3 convolution, the same with max-pooling, or 7x7 with stride 2 and max-pooling."""
    weights: Word | None = setting(None, "network", metavar="NAME|FILE", commands=FIXED)
    """Pretrained weights of the backbone: efficientnet-lite0 and others of the extra `pretrained`, or a file,
    safetensors or a torch state dict; images are prepared as they need it."""
    freeze: Literal["none", "all"] | Positive | None = setting(
        None, "network", follows=("method",), metavar="STAGES", commands=FIXED
    )
    """Stages of the backbone, from the first on, that never learn: none, all, or how many."""
    pretrained_lr: Above0 | None = setting(None, "network", follows=("weights",), metavar="SHARE")
    """Learning rate of pretrained layers, as a share of that of the others; a tenth with --weights."""

    # --- training ---
    later: Schedule = setting(Schedule(), "training")
    first: Schedule = setting(Schedule(), "training", commands=FIXED)
    second: Schedule = setting(Schedule(), "training")
    batch_size: Positive = setting(128, "training")
    """Images a step; the last, smaller batch is trained on too."""
    momentum: Share = setting(0.9, "training")
    """Momentum of SGD."""
    adjust: Amount = setting(0.0, "training", metavar="TAU")
    """After the first task, add TAU log n_c to the logit of class c in the classification loss, n_c its
    training images (logit adjustment); 0 leaves the loss as it is."""
    augment: Literal["standard", "autoaugment", "none"] = setting("standard", "training")
    """Augment training images as usual for the data set, also with AutoAugment and Cutout, or not at all."""

    coordination: Coordination = setting(Coordination(), "coordination")
    options: dict[str, Any] = setting({}, "options", follows=("method",))
    """The method's own options."""

    # --- seeds ---
    seed: Seed = setting(1, "seeds", group="seeds", resets=("init_seed", "data_seed"), commands=("learn",))
    """Sets the two seeds below."""
    init_seed: Seed | None = setting(None, "seeds", group="seeds", follows=("seed",))
    """Seed of the weights."""
    data_seed: Seed | None = setting(None, "seeds", group="seeds", follows=("seed",))
    """Seed of the data order and the augmentation."""

    # --- the machine ---
    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = setting(
        "auto", "machine", machine=True
    )
    """auto, cpu, cuda or cuda:N."""
    precision: Literal["auto", "fp32", "tf32", "bf16"] = setting("auto", "machine", group="step")
    """Arithmetic of the network; auto is bf16 on CUDA and fp32 on the CPU."""
    engine: Literal["auto", "graph", "eager"] = setting("auto", "machine", group="step")
    """On CUDA, replay a whole training step from one graph, or launch it piece by piece."""
    compile: bool | None = setting(None, "machine", group="step")
    """Compile backbones; by default with the graph engine only."""
    accumulate: Positive = setting(1, "machine", metavar="PARTS")
    """Parts in which a batch is worked through to save memory; batch normalisation sees a part at a time."""
    bn: Literal["per-process", "synchronised"] = setting("per-process", "machine", group="step")
    """On several processes: normalise each one's share of a batch by itself, or all of it together."""
    deterministic: bool = setting(False, "machine", group="step")
    """Use only kernels that repeat bit for bit on CUDA (the CPU always repeats, with as many threads)."""
    data_cache: Path | None = setting(None, "machine", group="reading", machine=True, commands=FILES)
    """Where decoded images are kept (also JIOC_CACHE); by default the user's cache folder."""
    stream: Literal["auto", "yes", "no"] = setting("auto", "machine", machine=True)
    """Send batches from the disk as they are needed; auto: where the images take most of a CUDA device's
    memory."""
    checkpoint_every: Amount = setting(30.0, "machine", machine=True, metavar="SECONDS", commands=())
    """Minimum seconds between checkpoints within a stage."""

    _given: tuple[str, ...] | None = PrivateAttr(None)

    @property
    def given(self) -> tuple[str, ...]:
        """Dotted names of the settings that somebody gave; all others follow from them."""
        if self._given is not None:
            return self._given
        names = []
        for name, value in self.model_dump(exclude_unset=True, exclude_none=True).items():
            names += [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
        return tuple(names)

    def filled(self, given: tuple[str, ...], **values: Any) -> "Config":
        """A copy with other values. `given`: the names of the settings that somebody gave."""
        config = self.model_copy(update=values)
        config._given = given
        return config

    def __eq__(self, other: object) -> bool:
        """Compare the values of all settings; who chose them does not matter."""
        return isinstance(other, Config) and self.__dict__ == other.__dict__
