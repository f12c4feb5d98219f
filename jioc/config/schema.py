"""Every setting of a run, declared once: type, default, help, and what other modules need to know about it.

A field of `Config`, or of one of its parts, is a flag of `jioc run`, a line of config.yaml and a keyword of
`jioc.run`; its docstring is its help. `index.py` answers questions about them; `docs/settings.md` lists
all. A method's own options are declared with the methods (`methods/specs.py`).
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr

from jioc.config.declare import (
    Above0,
    Amount,
    Count,
    Options,
    Positive,
    Seed,
    Share,
    Within01,
    Word,
    setting,
)

TEMPERATURE = 2.0  # the default of every distillation, as in PyCIL

LongTail = Annotated[float, Field(gt=1)] | Literal["paper"]
Coordinate = Literal["none", "ic", "oc", "jioc"]
HostKD = Literal["replace", "keep", "add", "drop"]
Reading = Literal["normalised", "printed", "averaged"]


class Schedule(Options):
    """How long and how fast a stage trains. What is not given follows from the method (PyCIL's schedules)."""

    epochs: Positive | None = setting(None, follows=("method", "later.epochs"), metavar="E")
    """Epochs. Milestones, the first task and a second stage scale with those of the later tasks."""
    lr: Above0 | None = setting(None, follows=("method", "later.lr"), metavar="RATE")
    """Learning rate for a batch of the given size. The other stages scale with that of the later tasks."""
    decay: Literal["steps", "cosine"] | None = setting(None, follows=("method",))
    """How the rate falls: by ten at each milestone, or along a cosine to zero."""
    milestones: tuple[Positive, ...] | None = setting(
        None, follows=("method", ".epochs", ".decay"), metavar="E,E,..."
    )
    """Epochs at which the rate falls by ten, such as 80,120."""
    weight_decay: Amount | None = setting(None, follows=("method",))
    """Weight decay of SGD."""


READINGS: dict[str, dict[str, Any]] = {  # options of JIOC that follow from the reading of its formulas
    "normalised": {"delta_scale": "mean1", "oc_reduce": "sum", "host_factors": "drop"},
    "printed": {"delta_scale": "plain", "oc_reduce": "sum", "host_factors": "keep"},
    "averaged": {"delta_scale": "plain", "oc_reduce": "mean", "host_factors": "keep"},
}
READING: Reading = "normalised"
READING_OF_EXPANDING: Reading = "averaged"  # of methods that add a backbone for each task
READ = ("coordination.reading",)


class Coordination(Options):
    """JIOC, and what its paper leaves open. `coordination.JIOC` applies the formula with these options."""

    coordinate: Coordinate = setting("none", label="title")
    """Coordinate inputs (ic), outputs (oc) or both (jioc)."""
    reading: Reading | None = setting(None, part="reading", follows=("method",))
    """Reading of the formulas: as printed; with the distillation averaged over past tasks, the default of
    methods that add a backbone for each task; or with input weights of mean 1, and gamma1 in place of the
    method's own factors, the default of all others."""
    gamma1: Amount = setting(1.0, part="strength", metavar="STRENGTH")
    """Strength of the distillation on each past task's head; 0 leaves the method's own in place."""
    gamma2: Amount = setting(1.0, part="outputs", metavar="STRENGTH")
    """Strength of the suppression of old images on new heads."""
    temperature: Above0 = setting(TEMPERATURE, part="distillation", metavar="T")
    """Temperature of the coordinated distillation."""
    kd_t2: bool = setting(False, part="distillation")
    """Multiply the coordinated distillation by the temperature squared."""
    delta: Literal["detached", "differentiated"] = setting("detached", part="inputs")
    """Hold the input weight 1 - p_y constant, or differentiate through it (the focal loss)."""
    delta_scale: Literal["plain", "mean1", "per-class"] | None = setting(None, part="inputs", follows=READ)
    """Take the input weight as it is, divide it by its batch mean, or average it over the batch's images of a
    class."""
    oc_data: Literal["all", "new", "old"] = setting("all", part="distillation")
    """Which images the coordinated distillation sees."""
    oc_heads: Literal["task", "joint"] = setting("task", part="distillation")
    """Take a softmax for each past task, or one over all old classes."""
    oc_reduce: Literal["sum", "mean"] | None = setting(None, part="distillation", follows=READ)
    """Add up the distillation over past tasks, or average it."""
    host_kd: HostKD | None = setting(None, part="host", follows=("method",))
    """What becomes of the method's own distillation: replaced by the coordinated one, kept instead of it,
    kept with it (add), or dropped with it; by default replaced, or kept where it is the same (SS-IL)."""
    host_factors: Literal["keep", "drop"] | None = setting(None, part="factors", follows=READ)
    """Keep the factors by which WA, BiC and COIL weigh classification and distillation, the shares of new and
    old classes; or drop them where the coordinated distillation takes the place of the method's own."""
    suppress_scale: Literal["task", "batch", "old-mean"] = setting("task", part="scale")
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
    data: Word = setting("digits", "data", group="images", label="place", commands=(), metavar="NAME|PATH")
    """digits, cifar10, cifar100, tinyimagenet, miniimagenet, cub200; a folder of class folders; a csv of
    path, label and perhaps split; or a Python file whose load() returns arrays."""
    data_dir: Path | None = setting(None, "data", group="reading", machine=True, commands=TASKS)
    """Where the official files lie (also JIOC_DATA)."""
    image_size: Annotated[int, Field(ge=4, le=1024)] | None = setting(
        None, "data", group="images", follows=("data", "weights"), commands=TASKS, metavar="PIXELS"
    )
    """Side of the square that the network sees; by default the pretrained weights', else the data set's, or
    that of a folder's images. Smaller images that come as arrays are enlarged on the device."""
    canvas: Annotated[int, Field(ge=4, le=2048)] | None = setting(
        None, "data", group="images", follows=("image_size",), commands=TASKS, metavar="PIXELS"
    )
    """Side at which images are kept, from which crops are taken; 8/7 of a size above 64, else the size."""
    colour: Literal["auto", "rgb", "grey"] = setting("auto", "data", group="images", commands=TASKS)
    """Channels of a folder's images: grey where all are, three as soon as one has colour."""
    mean: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = setting(
        None, "data", group="reading", follows=("weights", "backbone"), commands=FIXED, metavar="M,..."
    )
    """Mean of each channel, of levels in [0, 1]; by default the pretrained weights', else the data set's, for
    a folder measured."""
    std: tuple[Above0, ...] | None = setting(
        None, "data", group="reading", follows=("weights", "backbone"), commands=FIXED, metavar="S,..."
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
    long_tail: LongTail | None = setting(None, "data", label="place", commands=TASKS, metavar="FACTOR")
    """Exponential counts, most / fewest = this factor; `paper` gives the paper's exact counts on CIFAR."""
    long_tail_order: Literal["original", "learnt", "shuffled"] = setting("original", "data", commands=TASKS)
    """How counts are assigned to classes: by original label, by the order of learning, or shuffled."""
    holdout: Share = setting(0.0, "data", label="place", commands=(), metavar="SHARE")
    """Share of the training images of each class that is held out, to measure accuracy on."""
    judge_by: Literal["holdout", "test"] = setting("holdout", "data", label="place", commands=())
    """With --holdout, measure accuracy on the images held out; or on the test set, and leave them aside."""
    headline: str | None = setting(None, "data", follows=("method",), commands=(), metavar="READOUT")
    """Read-out that the run is judged by, and that its model answers with: cnn, the head; nme, the nearest
    mean of a class's exemplars; or another that the method has. By default the method's own, mostly cnn."""
    tasks: Positive | None = setting(
        None, "data", **SPLIT, excludes=("base", "increment", "task_sizes"), metavar="T"
    )
    """Number of tasks of equal size (the first ones are larger where it does not divide)."""
    base: Positive | None = setting(
        None, "data", **SPLIT, excludes=("tasks", "task_sizes"), metavar="CLASSES"
    )
    """Classes of the first task."""
    increment: Positive | None = setting(
        None, "data", **SPLIT, excludes=("tasks", "task_sizes"), metavar="CLASSES"
    )
    """Classes of each later task; the last may be smaller."""
    task_sizes: tuple[Positive, ...] | None = setting(
        None, "data", **SPLIT, excludes=("tasks", "base", "increment"), metavar="N,N,..."
    )
    """Classes of every task, such as 4,3,3."""
    order: Literal["original"] | tuple[int | str, ...] | None = setting(
        None, "data", group="order", metavar="FILE", commands=TASKS
    )
    """File with the class order: names or original labels, separated by white space or one a line; or the
    word original, for classes in the order of their labels."""
    order_seed: Seed = setting(1993, "data", group="order", excludes=("order",), commands=TASKS)
    """Seed of the class order."""

    # --- what is remembered ---
    memory: Count | None = setting(
        None,
        "memory",
        label="place",
        follows=("data",),
        excludes=("memory_per_class", "memory_bytes"),
        metavar="N",
    )
    """Exemplars in all, shared equally by the classes seen; by default 2000, for digits 40."""
    memory_per_class: Positive | None = setting(
        None, "memory", label="place", excludes=("memory", "memory_bytes"), metavar="M"
    )
    """Exemplars of each class instead of a total."""
    memory_bytes: Positive | None = setting(
        None, "memory", label="place", excludes=("memory", "memory_per_class"), commands=("learn",)
    )
    """Bytes of all exemplars instead of their number: as many as fit, a byte for each level of a pixel."""
    exemplar_size: Literal["full", "half"] = setting("full", "memory", label="place", commands=())
    """Keep exemplars as they are, or at half their height and width, in a quarter of the bytes; they are
    enlarged again when they are used. In training half of all other images are halved and enlarged too, and
    so is every image that is judged."""
    select: Literal["herding", "random", "first"] = setting("herding", "memory")
    """How exemplars are chosen."""
    keep_exemplars: bool = setting(True, "memory", machine=True, commands=("learn",))
    """Save the exemplars with the model; without them it cannot learn on."""
    keep_test: Count = setting(20, "memory", machine=True, metavar="M", commands=("learn",))
    """Test images of each class to save with them, so that learning on tells what it forgets."""

    # --- the network ---
    backbone: str | None = setting(
        None,
        "network",
        label="place",
        follows=("data", "image_size", "weights"),
        commands=FIXED,
        metavar="NAME",
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
    head: Literal["linear", "cosine"] = setting("linear", "network", commands=FIXED)
    """Classifier of a method that has none of its own: W f + b, or 16 times the cosine of the features and
    each class's weights."""
    pretrained_lr: Above0 | None = setting(None, "network", follows=("weights",), metavar="SHARE")
    """Learning rate of pretrained layers, as a share of that of the others; a tenth with --weights."""

    # --- training ---
    later: Schedule = setting(Schedule(), "training")
    first: Schedule = setting(Schedule(), "training", commands=FIXED)
    second: Schedule = setting(Schedule(), "training")
    batch_size: Positive = setting(128, "training", metavar="IMAGES")
    """Images a step; the last, smaller batch is trained on too."""
    momentum: Share = setting(0.9, "training")
    """Momentum of SGD."""
    adjust: Amount = setting(0.0, "training", metavar="TAU")
    """Add TAU log n_c to the logit of class c in the classification loss, n_c its training images (logit
    adjustment). 0 leaves the loss as it is; so do equal numbers of images."""
    augment: Literal["standard", "autoaugment", "autoaugment+cutout", "resized-crop", "none"] = setting(
        "standard", "training"
    )
    """Augment training images as usual for the data set; also with AutoAugment, or with AutoAugment and
    Cutout; by a padded, resized crop and a flip instead (LT-CIL's); or not at all."""
    mix: Literal["none", "mixup", "cutmix"] = setting("none", "training")
    """Mix each image of a batch, exemplars among them, with another one: weigh their levels (mixup), or paste
    a box of the other (cutmix); labels are mixed alike."""
    mix_alpha: Annotated[float, Field(ge=0.1, le=100)] = setting(1.0, "training", metavar="ALPHA")
    """The share of an image in its mixture is drawn from Beta(ALPHA, ALPHA)."""
    ema: Share = setting(0.0, "training", metavar="BETA")
    """Average the weights over the steps of a stage, each step's share BETA times that of the next; a stage
    ends with the average. 0: it ends with the last weights. A stage that trains only a part of the network
    has none."""
    rebalance: Literal["none", "head", "scale"] = setting("none", "training")
    """When a task is trained, train its head anew (head), or only a factor for each class (scale), on equally
    many images of each class, the features fixed."""
    rebalance_epochs: Positive | None = setting(None, "training", follows=("rebalance",))
    """Epochs of that; 30, however short or long a task is trained: a head drawn anew needs them."""

    coordination: Coordination = setting(Coordination(), "coordination")
    options: dict[str, Any] = setting({}, "options", follows=("method",))
    """The method's own options."""

    # --- seeds ---
    seed: Seed = setting(1, "seeds", group="seeds", resets=("init_seed", "data_seed"), commands=("learn",))
    """Seed of the weights and of the data order: sets the two seeds below."""
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
    data_cache: Path | None = setting(
        None, "machine", group="reading", machine=True, commands=FILES, metavar="DIR"
    )
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

    @property
    def judged_by_holdout(self) -> bool:
        """Whether accuracy is measured on training images, so that no test image is needed."""
        return self.holdout > 0 and self.judge_by == "holdout"

    def filled(self, given: tuple[str, ...], **values: Any) -> "Config":
        """A copy with other values. `given`: the names of the settings that somebody gave."""
        config = self.model_copy(update=values)
        config._given = given
        return config

    def __eq__(self, other: object) -> bool:
        """Compare the values of all settings; who chose them does not matter."""
        return isinstance(other, Config) and self.__dict__ == other.__dict__
