"""Every setting of a run, checked. The one home of the defaults that do not belong to a method or a data set.

A flag of `jioc run` is a field of `Config` (or of one of its parts) with dashes; its docstring is the flag's help.
This module imports neither torch nor numpy, so that `jioc --help` and a wrong word answer at once.
"""

import hashlib
import json
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from jioc.errors import Refused, first_line

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


def _place(given: Any) -> Any:
    """A path as a word; ./digits is a folder and digits a data set."""
    if not isinstance(given, Path):
        return given
    return str(given) if os.sep in str(given) else os.path.join(os.curdir, given)


Word = Annotated[str, BeforeValidator(_place)]
LongTail = Annotated[float, Field(gt=1)] | Literal["paper"]
Coordinate = Literal["none", "ic", "oc", "jioc"]
HostKD = Literal["replace", "keep", "add", "drop"]


class Options(BaseModel):
    """Settings that refuse unknown names and never change."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, validate_default=True
    )


class Schedule(Options):
    """How long and how fast a stage trains. What is not given comes from the method (PyCIL's schedules)."""

    epochs: Positive | None = None
    """Epochs; a task's milestones, first epochs and second stage scale with them."""
    lr: Annotated[float, Field(gt=0)] | None = None
    """Learning rate per batch of the given size; the other stages' scale with it."""
    decay: Literal["steps", "cosine"] | None = None
    """How the rate falls: by ten at each milestone, or along a cosine to zero."""
    milestones: tuple[Positive, ...] | None = None
    """Epochs at which the rate falls by ten, such as 80,120."""
    weight_decay: Amount | None = None
    """Weight decay of SGD."""


class Coordination(Options):
    """JIOC and the readings that its paper leaves open. `coordination.JIOC` is these options with the formula."""

    coordinate: Coordinate = "none"
    """Coordination of inputs (ic), of outputs (oc) or both (jioc)."""
    gamma1: Amount = 1.0
    """Strength of the distillation on each past task's head; 0 leaves the method's own in place."""
    gamma2: Amount = 1.0
    """Strength of the suppression of old images on new heads."""
    temperature: Annotated[float, Field(gt=0)] = 2.0
    """Temperature of the coordinated distillation."""
    kd_t2: bool = False
    """Multiply the coordinated distillation by the temperature squared."""
    delta: Literal["detached", "differentiated"] = "detached"
    """Whether the input weight 1 - p_y is a constant; differentiated, it is the focal loss."""
    delta_scale: Literal["plain", "mean1", "per-class"] = "plain"
    """The input weight as it is, divided by its batch mean, or averaged over the batch's images of the class."""
    oc_data: Literal["all", "new", "old"] = "all"
    """Which images the coordinated distillation sees."""
    oc_heads: Literal["task", "joint"] = "task"
    """A softmax for each past task, or one over all old classes."""
    host_kd: HostKD | None = None
    """The method's own distillation is replaced by the coordinated one, kept instead of it, kept beside it, or dropped
    with it; by default replaced, and kept where it is the same already (SS-IL)."""
    quiet_scale: Literal["task", "batch", "old-mean"] = "task"
    """Suppression per new image of the task, per new image of the batch, or as a mean over the batch's old images."""


OF_INPUTS = ("delta", "delta_scale")
OF_DISTILLATION = ("temperature", "kd_t2", "oc_data", "oc_heads")
OF_OUTPUTS = ("gamma1", *OF_DISTILLATION, "host_kd", "gamma2", "quiet_scale")


def without_effect(coordinate: str, host_kd: str | None) -> tuple[str, ...]:
    """Options of JIOC that have no part in the loss."""
    if coordinate in ("none", "ic"):
        return OF_OUTPUTS + OF_INPUTS * (coordinate == "none")
    kept = {"keep": ("gamma1", *OF_DISTILLATION), "drop": OF_DISTILLATION}.get(host_kd or "", ())
    return kept + OF_INPUTS * (coordinate == "oc")


class Config(Options):
    method: Word
    """The method: a registered name, or a Python file that registers one."""

    # --- what is learnt ---
    data: Word = "digits"
    """digits, cifar10, cifar100, tinyimagenet, miniimagenet, cub200; a folder of class folders; a csv of path, label
    and perhaps split; or a Python file whose load() returns arrays."""
    data_dir: Path | None = None
    """Where the official files lie (also JIOC_DATA)."""
    image_size: Annotated[int, Field(ge=4, le=1024)] | None = None
    """Side of the square that the network sees; by default the data set's, for a folder that of its images."""
    canvas: Annotated[int, Field(ge=4, le=2048)] | None = None
    """Side at which images are kept, from which crops are taken; 8/7 of a size above 64, else the size."""
    colour: Literal["auto", "rgb", "grey"] = "auto"
    """Channels of a folder's images: grey where all are, three as soon as one has colour."""
    mean: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = None
    """Mean of each channel, of levels in [0, 1]; by default the data set's, for a folder measured."""
    std: tuple[Annotated[float, Field(gt=0)], ...] | None = None
    """Deviation of each channel, likewise."""
    flip: bool | None = None
    """Mirror training images at random; by default everything but digits."""
    on_bad: Literal["skip", "fail"] = "skip"
    """A file that is no usable image is named and left out, or ends the run."""
    test_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of each class that becomes the test set, where none is given."""
    split_seed: Seed = 1993
    """Seed of that split."""
    long_tail: LongTail | None = None
    """Exponential counts, most / fewest = this factor; `paper` gives the paper's exact counts on CIFAR."""
    long_tail_order: Literal["original", "learnt", "shuffled"] = "original"
    """Which class is how rare: by original label, by the order of learning, or shuffled by the order seed."""
    holdout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the training images of each class to judge by; the test set is then not used."""
    tasks: Positive | None = None
    """Number of tasks of equal size (the first ones are larger where it does not divide)."""
    base: Positive | None = None
    """Classes of the first task."""
    increment: Positive | None = None
    """Classes of each later task; the last may be smaller."""
    task_sizes: tuple[Positive, ...] | None = None
    """Classes of every task, such as 4,3,3."""
    order: tuple[int | str, ...] | None = None
    """File with the class order: names or original labels, separated by white space or one a line."""
    order_seed: Seed = 1993
    """Seed of the class order."""

    # --- what is remembered ---
    memory: Count = 2000
    """Exemplars in all, shared equally by the classes seen."""
    memory_per_class: Positive | None = None
    """Exemplars of each class instead of a total."""
    select: Literal["herding", "random", "first"] = "herding"
    """How exemplars are chosen."""

    keep_exemplars: bool = True
    """Save the exemplars beside the model; without them it cannot learn on."""

    # --- the network ---
    backbone: str | None = None
    """Backbone; by default the data set's."""
    stem: Literal["cifar", "cifar-pool", "imagenet"] | None = None
    """First layers: 3x3 convolution, the same with max-pooling, or 7x7 with stride 2 and max-pooling."""

    # --- training ---
    later: Schedule = Schedule()
    first: Schedule = Schedule()
    second: Schedule = Schedule()
    batch_size: Positive = 128
    """Images a step; the last, smaller batch is trained on too."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Momentum of SGD."""
    augment: Literal["standard", "autoaugment", "none"] = "standard"
    """Augment training images as is usual for the data set, also with AutoAugment and Cutout, or not at all."""

    coordination: Coordination = Coordination()
    options: dict[str, Any] = {}
    """The method's own options."""

    # --- seeds ---
    seed: Seed = 1
    """Sets the two seeds below."""
    init_seed: Seed | None = None
    """Seed of the weights."""
    data_seed: Seed | None = None
    """Seed of the data order and the augmentation."""

    # --- the machine ---
    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = "auto"
    """auto, cpu, cuda or cuda:N."""
    precision: Literal["auto", "fp32", "tf32", "bf16"] = "auto"
    """Arithmetic of the network; auto is bf16 on CUDA and fp32 on the CPU."""
    engine: Literal["auto", "graph", "eager"] = "auto"
    """On CUDA, a whole training step in one graph, or launched piece by piece."""
    compile: bool | None = None
    """Compile backbones; by default with the graph engine only."""
    accumulate: Positive = 1
    """Parts in which a batch is worked through to save memory; batch normalisation sees a part at a time."""
    bn: Literal["per-process", "synchronised"] = "per-process"
    """On several processes: each normalises its own share of a batch, or all of it together."""
    deterministic: bool = False
    """Only kernels that repeat bit for bit, on CUDA (the CPU always repeats, with as many threads)."""
    data_cache: Path | None = None
    """Where decoded images are kept (also JIOC_CACHE); by default the user's cache folder."""
    stream: Literal["auto", "yes", "no"] = "auto"
    """Send batches from the disk as they are needed; auto: where the images take most of a CUDA device's memory."""
    checkpoint_every: Amount = 30.0
    """Least seconds between two checkpoints within a stage."""


MACHINE = frozenset({"device", "data_dir", "data_cache", "stream", "checkpoint_every", "keep_exemplars"})
"""Fields in which a resumed run may differ from the one it goes on from."""

SEEDS = ("seed", "init_seed", "data_seed")
"""Fields in which the runs of one setting differ."""

OF_DATA = frozenset({
    "data", "data_dir", "data_cache", "image_size", "canvas", "colour", "mean", "std", "flip", "on_bad", "test_share",
    "split_seed",
})  # fmt: skip
"""Fields that decide what is read from the disk; runs that agree in them share a data set."""


def refusal(error: ValidationError, prefix: str = "--") -> Refused:
    """Pydantic's first complaint as one sentence with the flag's name; without a prefix, with the setting's."""
    first = error.errors()[0]
    sections = {"later", "coordination", "options"}
    words = [
        w
        for w in first["loc"]
        if isinstance(w, str) and w not in sections and not w.startswith(("constrained", "literal", "function"))
    ]
    named = words or [str(w) for w in first["loc"]] or [error.title]
    name = "-".join(named[:2] if named[0] in ("first", "second") else named[:1])
    name = prefix + name.replace("_", "-") if prefix else name
    told = first["msg"][0].lower() + first["msg"][1:].replace(" greater than or equal to ", " at least ")
    told = told.replace("input should be", "it should be")
    if first["type"] == "string_pattern_mismatch":
        told = "it should be auto, cpu, cuda or cuda:1"  # the only field with a pattern
    if first["type"] == "extra_forbidden":
        home = _home(str(first["loc"][0])) if error.title == "Config" and len(first["loc"]) == 1 else ""
        return Refused(f"unknown setting {'.'.join(map(str, first['loc']))!r} in the configuration{home}")
    return Refused(f"{name}: {first['input']!r} is refused: {told}")


def _home(name: str) -> str:
    """Where a setting that is looked for in the wrong place is."""
    parts: list[tuple[str, str, type[Options]]] = [
        ("later", "", Schedule), ("first", "first_", Schedule), ("second", "second_", Schedule),
        ("coordination", "", Coordination),
    ]  # fmt: skip
    for section, prefix, part in parts:
        if name.startswith(prefix) and name.removeprefix(prefix) in part.model_fields:
            return f"; {section!r} has {name.removeprefix(prefix)!r}"
    near = get_close_matches(name, Config.model_fields, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; a method's own are in 'options'"


def make(**values: Any) -> Config:
    """A checked configuration; a wrong value is refused in a sentence."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise refusal(error) from None


class Once(yaml.SafeLoader):
    """YAML in which a name stands once in its place; PyYAML by itself takes the last of several in silence."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} stands there twice", problem_mark=key.start_mark)
            seen.add((key.tag, key.value))
        return node


def read(path: Path) -> dict[str, Any]:
    """The values of a config.yaml, not yet checked."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Once)
    except FileNotFoundError:
        raise Refused(f"there is no configuration {str(path)!r}") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Refused(f"{str(path)!r}{line}: cannot be read as YAML: {error.problem or error.context}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:  # a date that is none is a ValueError
        raise Refused(f"{str(path)!r} cannot be read as YAML: {first_line(error)}") from None
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise Refused(f"{str(path)!r} is not a configuration: it holds no names and values")
    return values


def plain(config: Options) -> dict[str, Any]:
    """As JSON and YAML hold it."""
    return json.loads(config.model_dump_json())


def digest(config: Config) -> str:
    """Eight letters that tell two settings apart, wherever they run."""
    values = {k: v for k, v in plain(config).items() if k not in MACHINE}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def flat(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Settings by their dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return found


def at(values: dict[str, Any], path: str) -> Any:
    """The setting of a dotted name; None where there is none."""
    value: Any = values
    for word in path.split("."):
        value = value.get(word) if isinstance(value, dict) else None
    return value


def differences(a: dict[str, Any], b: dict[str, Any], path: str = "") -> list[str]:
    """Dotted names of the settings in which two configurations differ."""
    names = []
    for key in sorted(a.keys() | b.keys()):
        x, y = a.get(key), b.get(key)
        if isinstance(x, dict) and isinstance(y, dict):
            names += differences(x, y, f"{path}{key}.")
        elif x != y:
            names.append(path + key)
    return names
