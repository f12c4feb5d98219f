"""A classifier between two tasks, apart from any data set: what it needs to answer, and to learn the next classes.

learner = Learner.first(config, dataset)       every class of the data set is the first task
learner = learner.learn(more)                  every class of that one is the next
learner.readouts(pixels)["cnn"]                (n, K)

Learning on is a run of one task. Its training images are the exemplars, class after class, then the new classes'
images; method and generators begin as the last task left them. So two tasks in one run and the second learnt through
here give the same weights, bit for bit on a CPU.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from jioc.config.schema import Config, Options, make, plain
from jioc.coordination import JIOC
from jioc.data import catalogue
from jioc.data.dataset import Dataset
from jioc.data.images.inputs import Given, pixels_of
from jioc.data.loader import Images, TaskData
from jioc.data.scenario import Scenario
from jioc.errors import Refused, unknown
from jioc.events import Callback
from jioc.memory import Memory
from jioc.methods import specs
from jioc.methods.base import Method
from jioc.methods.state import begun
from jioc.nets.incremental import build, drawing_from
from jioc.resolve.derive import resolve
from jioc.types import Task

if TYPE_CHECKING:
    from jioc.training.runner import Run

AT_ONCE = 1000  # images that are judged or answered


@dataclass(frozen=True)
class Look:
    """What becomes of pixels before a network sees them, and of training images before that."""

    shape: tuple[int, int, int]  # channels, height and width of images as they are kept
    size: int | None  # of the centred square that the network sees; None: the whole image
    mean: tuple[float, ...]  # per channel, of pixels in [0, 1]
    std: tuple[float, ...]
    augment: Any  # the usual Augmentation, a dataclass; None: not known
    whole: bool = True  # whether pixels are levels of uint8; otherwise floats of any scale

    @classmethod
    def of(cls, dataset: Dataset) -> "Look":
        c, h, w = dataset.train_x.shape[1:]
        whole = dataset.train_x.dtype == np.uint8
        return cls((c, h, w), dataset.size, dataset.mean, dataset.std, dataset.augment, whole)

    def seen(self, pixels: np.ndarray, device: torch.device) -> Images:
        """Images as the test set of a run is seen."""
        return Images(pixels, np.zeros(len(pixels), np.int64), self.mean, self.std, device, self.size)


@dataclass(frozen=True)
class Learner:
    config: Config
    look: Look
    classes: list[str]  # names, in the order in which they were learnt
    sizes: tuple[int, ...]  # classes of each task
    method: Method
    device: torch.device
    exemplars: list[np.ndarray] | None  # of each class, best first, (m, c, h, w); None: left out
    generators: dict[str, tuple[str, Tensor]]  # the device's kind and the state of each
    counts: list[int]  # training images of each class in the task that taught it
    row: dict[str, Any] | None = None  # of the last task, as in result.json; test images of older classes are not kept

    # --- learning ---

    @classmethod
    def first(
        cls,
        config: Config,
        dataset: Dataset,
        *,
        callback: Callback | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> "Learner":
        """Every class of the data set, in its order, as the first task; `config.data` is only a name here."""
        from jioc.training.runner import Run  # a run saves learners

        config = resolve(config, catalogue.in_memory(dataset.name, len(dataset.classes), dataset.shape[-1]))
        labels = range(len(dataset.classes))
        scenario = Scenario(
            dataset.classes, (len(labels),), rows(dataset.train_y, labels), rows(dataset.test_y, labels), False
        )
        refuse_empty(scenario)
        return _taught(Run(config, dataset, None, callback, stop, scenario))

    def learn(
        self,
        dataset: Dataset,
        *,
        config: Config | None = None,
        known: Literal["refuse", "add"] = "refuse",
        reseed: bool = False,
        callback: Callback | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> "Learner":
        """The learner that also knows the data set's classes; this one stays as it is.

        `config`: other settings for this task. `known`: what to do about classes that were learnt already; added, their
        images train beside the exemplars, but for those that are such already, and are kept after them while the class
        has room. `reseed`: begin the generators afresh from the settings' seeds.
        """
        return _taught(self._run(dataset, known, config, reseed, callback, stop), self.counts)

    def rehearse(
        self,
        dataset: Dataset,
        *,
        config: Config | None = None,
        callback: Callback | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> "Learner":
        """The learner after plain replay of new images of classes that it knows, and of its exemplars.

        The images are kept after the exemplars while their class has room.
        """
        run = self._run(dataset, "rehearse", config, False, callback, stop)
        replay = specs.load("replay")(
            net=run.method.net,
            memory=run.method.memory,
            options=Options(),
            coordination=None,
            generator=run.method.generator,
        )
        task = Task(len(self.sizes) - 1, self.sizes, len(dataset.train_y), sum(map(len, self.exemplars or [])))
        data = TaskData([], run.config.batch_size, run.features, run.generators["order"])
        run.engine.fit(replay, task, data.of(run.method.memory.index), stage="later")
        run.method.rehearsed(task, data)
        return Learner.of(run, self.counts)

    def _run(
        self,
        dataset: Dataset,
        known: str,
        config: Config | None,
        reseed: bool,
        callback: Callback | None,
        stop: Callable[[], bool] | None,
    ) -> "Run":
        """A run that begins where this learner is, the images of known classes among its exemplars."""
        from jioc.training.runner import Run

        if self.exemplars is None:
            raise Refused(
                "this model came without its exemplars, so learning cannot continue; "
                "where they were saved, jioc.load(..., to_learn=True) brings them"
            )
        joined, scenario = self._joined(dataset, known)
        entry = catalogue.in_memory(dataset.name, len(scenario.classes), joined.shape[-1])
        run = Run(resolve(config or self.config, entry), joined, None, callback, stop, scenario)
        specs.refuse_other(run.config.method, *map(specs.sha256_of, (type(self.method), type(run.method))))
        run.take_up(self, reseed)
        again = sum(map(len, self.exemplars)) + len(dataset.train_y) - sum(scenario.counts)
        if again:
            run.note(f"images that are among the exemplars already, and not added again: {again:,}")
        if callback is not None and (told := self._two_labels(dataset)):
            run.note(told)
        run.method.memory.classes = [torch.from_numpy(index) for index in scenario.train[: len(self.classes)]]
        return run

    def _two_labels(self, dataset: Dataset) -> str | None:
        """What to know where an image of one class is an exemplar of another."""
        assert self.exemplars is not None
        held: dict[bytes, str] = {}
        for name, images in zip(self.classes, self.exemplars, strict=True):
            held |= dict.fromkeys((image.tobytes() for image in images), name)
        torn = []
        for x, y in ((dataset.train_x, dataset.train_y), (dataset.test_x, dataset.test_y)):
            names = ((dataset.classes[label], held.get(image.tobytes())) for image, label in zip(x, y, strict=True))
            torn += [(new, old) for new, old in names if old not in (None, new)]
        if not torn:
            return None
        (new, old), more = torn[0], f" (and {len(torn) - 1:,} more such)" if len(torn) > 1 else ""
        return f"an image of class {new!r} is an exemplar of {old!r}{more}: one of the two labels is wrong"

    def _joined(self, dataset: Dataset, known: str) -> tuple[Dataset, Scenario]:
        """Exemplars and new images as one data set, and the tasks so far with the new one."""
        assert self.exemplars is not None
        if dataset.train_x.shape[1:] != self.look.shape:
            wanted, got = ("x".join(map(str, shape)) for shape in (self.look.shape, dataset.train_x.shape[1:]))
            raise Refused(f"this model learnt images of {wanted} (channels, height, width), not of {got}")
        again = [name for name in dataset.classes if name in set(self.classes)]
        if again and known == "refuse":
            raise Refused(f"already learnt: {', '.join(map(repr, again))}; --known add uses their new images too")
        if again and known == "add" and self.method.spec.memory == "none":
            raise Refused(f"{self.method.spec.name} keeps no exemplars, so new images of old classes have no place")
        new = [label for label, name in enumerate(dataset.classes) if name not in set(self.classes)]
        if not new and known != "rehearse":
            raise Refused(f"there is no new class among {', '.join(map(repr, dataset.classes))}")

        label = {name: c for c, name in enumerate(dataset.classes)}
        old = [label.get(name, -1) for name in self.classes]  # -1: no image has that label
        held = np.cumsum([0, *map(len, self.exemplars)])
        train = [held[-1] + index for index in rows(dataset.train_y, [*old, *new])]
        for c, exemplars in enumerate(self.exemplars):
            fresh = ~among(dataset.train_x[train[c] - held[-1]], exemplars)
            train[c] = np.concatenate([np.arange(held[c], held[c + 1]), train[c][fresh]])
        classes = [*self.classes, *(dataset.classes[c] for c in new)]
        scenario = Scenario(
            classes, (*self.sizes, *([len(new)] if new else [])), train, rows(dataset.test_y, [*old, *new]), False
        )
        refuse_empty(scenario, len(old))
        joined = replace(
            dataset,
            train_x=np.concatenate([*self.exemplars, dataset.train_x]),
            train_y=np.concatenate([np.full(held[-1], -1, np.int64), dataset.train_y]),
            mean=self.look.mean,
            std=self.look.std,
            size=self.look.size,
            augment=self.look.augment,
        )
        return joined, scenario

    @classmethod
    def of(cls, run: "Run", earlier: list[int] | None = None, exemplars: bool = True) -> "Learner":
        """A run between two tasks. `earlier`: counts of the classes that were learnt before the run."""
        sizes = run.scenario.sizes[: run.done]
        n, before = sum(sizes), earlier or []
        pixels, held = run.dataset.train_x, run.method.memory.classes or [torch.zeros(0, dtype=torch.long)] * n
        return cls(
            config=run.config,
            look=Look.of(run.dataset),
            classes=run.scenario.classes[:n],
            sizes=sizes,
            method=run.method,
            device=run.device,
            exemplars=[pixels[index.numpy()] for index in held] if exemplars else None,
            generators={name: (g.device.type, g.get_state()) for name, g in run.generators.items()},
            counts=[*before, *run.scenario.counts[len(before) : n]],
            row=run.rows[-1] if run.rows else None,
        )

    # --- answering ---

    @torch.no_grad()
    def readouts(self, pixels: np.ndarray) -> dict[str, Tensor]:
        """Every read-out's scores (n, K) on the CPU, of images in the shape in which they are kept."""
        self.method.net.eval()
        images = self.look.seen(pixels, self.device)
        found: dict[str, list[Tensor]] = {}
        for part in torch.arange(len(pixels), device=self.device).split(AT_ONCE):
            for name, scores in self.method.readouts(images.plain(part)).items():
                found.setdefault(name, []).append(scores.float().cpu())
        return {name: torch.cat(parts) for name, parts in found.items()}

    def predict(self, images: Given, readout: str | None = None) -> list[str]:
        """The class of each image, see `data.given`; by the method's headline unless another read-out is named."""
        pixels = pixels_of(images, self.look.shape)
        if not len(pixels):
            return []
        return [self.classes[c] for c in self.confidence(pixels, readout).argmax(1).tolist()]

    def confidence(self, pixels: np.ndarray, readout: str | None = None) -> Tensor:
        """The softmax of a read-out's scores; of `nme` the cosine to each class mean: (n, K)."""
        found = self.readouts(pixels)
        name = readout or self.method.spec.headline
        if name not in found:
            raise unknown("read-out", name, found)
        return (1 + found[name] / 2).clamp(min=-1) if name == "nme" else found[name].softmax(1)

    # --- pickling ---

    def __reduce__(self) -> tuple[Any, ...]:
        """Plain values, arrays and tensors on the CPU; who unpickles without this device goes on on the CPU."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        kept |= {"config": plain(self.config), "method": on_cpu(self.method.state()), "device": str(self.device)}
        kept["sha256"] = specs.sha256_of(type(self.method))
        return unpickled, (kept,)


def unpickled(kept: dict[str, Any]) -> Learner:
    config, wanted = make(**kept["config"]), torch.device(kept["device"])
    here = wanted.type == "cpu" or (wanted.index or 0) < torch.cuda.device_count()
    device = wanted if here else torch.device("cpu")
    method = make_method(config, kept["look"].shape[0], torch.Generator(), device)
    specs.refuse_other(config.method, kept.pop("sha256", None), specs.sha256_of(type(method)))
    method.load_state(kept["method"], device)
    return Learner(**kept | {"config": config, "method": method, "device": device})


def on_cpu(value: Any) -> Any:
    """The same tree with its tensors on the CPU."""
    if isinstance(value, dict):
        return {name: on_cpu(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(on_cpu(part) for part in value)
    return value.detach().cpu() if isinstance(value, Tensor) else value


def _taught(run: "Run", earlier: list[int] | None = None) -> Learner:
    run.tell_start()
    run.learn_next()
    run.tell("task", run.rows[-1])
    return Learner.of(run, earlier)


def rows(y: np.ndarray, labels: Any) -> list[np.ndarray]:
    """For each label, where it stands."""
    return [np.flatnonzero(y == c) for c in labels]


def among(images: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of the images are also among others, level for level: (n,)."""
    known = {image.tobytes() for image in others} if len(images) else set()
    return np.array([image.tobytes() in known for image in images], bool)


def refuse_empty(scenario: Scenario, first: int = 0) -> None:
    for name, index in list(zip(scenario.classes, scenario.train, strict=True))[first:]:
        if not len(index):
            raise Refused(f"class {name!r} has no training image")


def make_method(config: Config, channels: int, generator: torch.Generator, device: torch.device) -> Method:
    """The method of a resolved configuration, before its first task."""
    cls, spec = specs.load(config.method), specs.find(config.method)
    plain: dict[str, Any] = {
        "backbone": config.backbone,
        "stem": config.stem,
        "channels": channels,
        "cosine": False,
        "maps": False,
        "head": "linear",
        "sizes": [],
    }
    total, per_class = (None, None) if spec.memory == "all" else (config.memory, config.memory_per_class)
    if spec.memory == "none":
        total, per_class = 0, None
    parts: dict[str, Any] = {
        "net": build(cls.plan(plain), generator).to(device),
        "memory": Memory(total, per_class, config.select),
        "options": specs.own_options(spec, config.options),
        "coordination": None if config.coordination.coordinate == "none" else JIOC(**config.coordination.model_dump()),
        "generator": generator,
    }
    with drawing_from(int(np.random.SeedSequence([config.init_seed or 0, 1]).generate_state(1)[0])):
        return begun(cls(**parts))
