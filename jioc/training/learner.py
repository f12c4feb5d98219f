"""A classifier that learns more classes.

learner = Learner.first(config, dataset)       every class of the data set is the first task
learner = learner.learn(more)                  every class of that one is the next

Learning on is a run of one task. Its training images are the exemplars, class after class, then the new
classes' images; method and generators begin as the last task left them. So two tasks in one run and the
second learnt through here give the same weights, bit for bit on a CPU.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import torch

from jioc.config import Config, Options, make, plain
from jioc.data import catalogue, loader
from jioc.data.dataset import Dataset, fitted
from jioc.data.images.inputs import pixels_of
from jioc.data.labelled import Part, labelled_images
from jioc.data.scenario import Scenario
from jioc.errors import Refused, refuse_if
from jioc.events import Callback, TaskEnd, ignore
from jioc.methods import checksum, load_method, refuse_other
from jioc.methods.state import placed
from jioc.resolve.derive import resolve
from jioc.results import Evaluation
from jioc.text import counted
from jioc.training import build, notes
from jioc.training.judge import judge
from jioc.training.judged import learnt_row, no_checksums, without_trained
from jioc.training.model import Classifier
from jioc.training.preflight import preflight
from jioc.training.runner import Run
from jioc.types import Task

Stop = Callable[[], bool]
SOME = 64  # images


@dataclass(frozen=True)
class Learner(Classifier):
    """A classifier that can learn the next task; learning gives another learner."""

    @classmethod
    def first(
        cls, config: Config, dataset: Dataset, *, callback: Callback | None = None, stop: Stop | None = None
    ) -> Self:
        """Learn every class of the data set, in its order, as the first task; `config.data` is any name."""
        config = resolve(config, catalogue.in_memory(dataset.name, len(dataset.classes), dataset.shape[-1]))
        labels = range(len(dataset.classes))
        train, test = rows(dataset.train_y, labels), rows(dataset.test_y, labels)
        scenario = Scenario(dataset.classes, (len(labels),), train, test, False)
        refuse_empty(scenario)
        run = Run(preflight(config, fitted(dataset, config), scenario=scenario), None, callback, stop)
        run.load_weights()
        return cls.taught(run)

    @classmethod
    def taught(cls, run: Run, earlier: Self | None = None) -> Self:
        """Let a run learn its next task. `earlier`: the learner that it began with."""
        run.tell_start()
        before = earlier._accuracy_on_old(run) if earlier is not None else {}
        run.learn_next()
        if earlier is not None:
            run.rows[-1] = learnt_row(run.rows[-1], [len(index) for index in run.scenario.test], before)
        learner = cls._of(run, earlier)
        run.tell(TaskEnd(run.rows[-1]))
        return learner

    @classmethod
    def _of(cls, run: Run, earlier: Self | None) -> Self:
        """What a run has learnt, once it has answered for some images: there may be none to test it on."""
        learner = cls(**run.classifier(earlier.counts if earlier else None).parts())
        learner.readouts(run.dataset.train_x[:SOME])
        if earlier is None:
            return learner
        judged, trained = learner.judged, [earlier.judged.trained, learner.judged.trained]
        rows = [*earlier.judged.rows, *judged.rows]
        known = np.unique(np.concatenate(trained)) if learner.config.keep_test else no_checksums()
        return replace(learner, judged=replace(judged, rows=rows, trained=known))

    def _accuracy_on_old(self, run: Run) -> dict[str, float | None]:
        """The accuracy of every read-out on a run's test images of the classes known so far, in percent."""
        tests = run.scenario.test[: len(self.classes)]
        y = np.repeat(np.arange(len(tests)), [len(index) for index in tests])
        if not len(y):
            return {}
        scores = self.readouts(run.dataset.test_x[np.concatenate(tests)])
        return {name: 100 * float((s.argmax(1).numpy() == y).mean()) for name, s in scores.items()}

    def learn(
        self,
        dataset: Dataset,
        *,
        config: Config | None = None,
        known: Literal["refuse", "add", "skip"] = "refuse",
        reseed: bool = False,
        callback: Callback | None = None,
        stop: Stop | None = None,
    ) -> Self:
        """Learn the data set's classes too; return the new learner, and leave this one as it is.

        `config`: other settings for this task. `known`: what to do about classes that were learnt already.
        With "add" their images train together with the exemplars, and are kept after them while the class has
        room; an image that is an exemplar already is left out. With "skip" their images are. `reseed`: seed
        the generators again.
        """
        refuse_if(
            not isinstance(dataset, Dataset),
            f"learn takes a Dataset, not {type(dataset).__name__}; the command jioc learn takes a folder, "
            "and IncrementalClassifier takes arrays",
        )
        return self.taught(self._run(dataset, known, config, reseed, callback, stop), self)

    def evaluate(
        self,
        data: Any,
        labels: Sequence[str] | None = None,
        *,
        readout: str | None = None,
        trained: bool = False,
        keep: float | None = None,
        callback: Callback | None = None,
    ) -> Evaluation:
        """Judge it on the images of a folder, as `jioc evaluate` does; or on images with their class names.

        With `labels`, `data` is what `predict` takes. `trained`: count images that it has trained on, too.
        `keep`: fit a threshold for `unknown` that this share of the right answers reach.
        """
        shape, size = self.preprocessing.shape, self.preprocessing.size
        refuse_if(keep is not None and not 0 < keep <= 1, f"keep is a share above 0, at most 1, not {keep}")
        if labels is None:
            parts = labelled_images(os.fspath(data), shape, size, callback or ignore)
        else:
            pixels, names = pixels_of(data, shape), [str(name) for name in labels]
            refuse_if(len(pixels) != len(names), f"there are {len(pixels)} images and {len(names)} labels")
            parts = iter([Part(pixels, names)])
        return judge(self, parts, readout, trained, keep)

    def rehearse(
        self,
        dataset: Dataset,
        *,
        config: Config | None = None,
        callback: Callback | None = None,
        stop: Stop | None = None,
    ) -> Self:
        """Train by plain replay on new images of known classes and on the exemplars; return the new learner.

        The images are kept after the exemplars while their class has room.
        """
        run = self._run(dataset, "rehearse", config, False, callback, stop)
        replay = load_method("replay")(
            net=run.method.net,
            memory=run.method.memory,
            options=Options(),
            coordination=None,
            generator=run.method.generator,
        )
        exemplars = sum(map(len, self.exemplars or []))
        task = Task(len(self.sizes) - 1, self.sizes, len(dataset.train_y), exemplars)
        data = loader.TaskData([], run.config.batch_size, run.features, run.generators["order"])
        if run.spec.trains:
            run.engine.fit(replay, task, data.of(run.method.memory.index), stage="later")
        run.method.rehearsed(task, data)
        return self._of(run, self)

    def _run(
        self,
        dataset: Dataset,
        known: str,
        config: Config | None,
        reseed: bool,
        callback: Callback | None,
        stop: Stop | None,
    ) -> Run:
        """Make a run that begins where this learner is, images of known classes among its exemplars."""
        if self.exemplars is None:
            raise Refused(
                "this model came without its exemplars, so learning cannot continue; "
                "where they were saved, jioc.load(..., to_learn=True) brings them"
            )
        given, skipped = dataset, [name for name in dataset.classes if name in self.classes]
        if known == "skip":
            dataset = without_classes(dataset, skipped)
        tests, seen = without_trained(self.judged.tests, dataset.train_x)
        whole, scenario = joined(self, tests, dataset, known)
        entry = catalogue.in_memory(dataset.name, len(scenario.classes), whole.shape[-1])
        plan = preflight(resolve(config or self.config, entry), whole, scenario=scenario, begins=False)
        asked = plan.config.exemplar_size
        wrong = "memory cannot be 0" if asked == "half" else f"exemplar_size cannot be {asked!r}"
        refuse_if(
            self.preprocessing.half and not build.halves(plan.config),
            f"the exemplars of this model are kept at half their size, so {wrong} now",
        )
        run = Run(plan, None, callback, stop)
        refuse_other(plan.config.method, *map(checksum, (type(self.method), type(run.method))))
        was, now = self.config.head, plan.config.head
        refuse_if(was != now, f"this model has learnt with head={was!r}, so head cannot be {now!r} now")
        self._take_up(run, reseed)
        if left_out := len(given.train_y) - len(dataset.train_y):
            names = ", ".join(map(repr, skipped))
            run.note(f"learnt before, and left out: {names} ({counted(left_out, 'image')})")
        twice = sum(map(len, self.exemplars)) + len(dataset.train_y) - sum(scenario.counts)
        if twice:
            where = "are among the exemplars" if run.spec.trains else "were learnt"
            run.note(f"images that {where} already, and not added again: {twice:,}")
        if seen:
            run.note(f"test images that are among the new training images, and no longer used: {seen:,}")
        if callback is not None and (warning := two_labels(self, dataset)):
            run.note(warning)
        if run.train.halving is not None:
            held = sum(map(len, self.exemplars))
            run.train.halve(torch.arange(held), before=held if self.preprocessing.half else 0)
        run.method.memory.classes = [torch.from_numpy(index) for index in scenario.train[: len(self.classes)]]
        return run

    def _take_up(self, run: Run, reseed: bool) -> None:
        """Begin the run where this learner is; its exemplars are the first images of the run's data set.

        Generators go on from where it left them. Those of another kind of device have other numbers: they
        begin afresh, as all do with `reseed`, from the seeds and the number of tasks done.
        """
        run.earlier = len(self.sizes)
        run.method.load_state(self.method.state(), run.device)
        if run.method.teacher is None:
            run.method.keep_teacher()  # coordination may be new to the method
        for name, g in build.generators(run.config, run.device, run.earlier).items():
            kind, state = self.generators[name]
            try:
                run.generators[name].set_state(g.get_state() if reseed or kind != g.device.type else state)
            except (RuntimeError, TypeError):
                raise Refused("the saved random numbers are damaged; --seed begins with others") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle plain values, arrays and tensors on the CPU."""
        state = placed(self.method.state(), torch.device("cpu"))
        parts = self.parts() | {"config": plain(self.config), "method": state, "device": str(self.device)}
        return unpickled, (parts, checksum(type(self.method)))


def unpickled(parts: dict[str, Any], sha256: str | None) -> Learner:
    """Put a learner together again, on the CPU if its device is not here."""
    config, wanted = make(**parts["config"]), torch.device(parts["device"])
    here = wanted.type == "cpu" or (wanted.index or 0) < torch.cuda.device_count()
    device = wanted if here else torch.device("cpu")
    method = build.make_method(config, parts["preprocessing"].shape[0], torch.Generator(), device)
    refuse_other(config.method, sha256, checksum(type(method)))
    method.load_state(parts["method"], device)
    seen = replace(parts["preprocessing"], half=build.halves(config))  # earlier versions did not keep `half`
    return Learner(**parts | {"config": config, "preprocessing": seen, "method": method, "device": device})


# --- exemplars and new images as one data set ---


def joined(
    learnt: Classifier, tests: list[np.ndarray], dataset: Dataset, known: str
) -> tuple[Dataset, Scenario]:
    """Join the exemplars, class after class, and the new images; and the tasks so far with the new one.

    `tests`: test images of the classes so far, to join likewise. `known`: what to do about classes that were
    learnt already (refuse, add), or `rehearse`: there are no others. A method that sums up what it has seen
    and trains nothing takes no image a second time.
    """
    assert learnt.exemplars is not None
    new = _new_classes(learnt, dataset, known)
    label = {name: c for c, name in enumerate(dataset.classes)}
    old = [label.get(name, -1) for name in learnt.classes]  # -1: no image has that label
    sums_up = known == "add" and not learnt.method.spec.trains
    held = np.cumsum([0, *map(len, learnt.exemplars)])
    train = [held[-1] + index for index in rows(dataset.train_y, [*old, *new])]
    for c, exemplars in enumerate(learnt.exemplars):
        given = dataset.train_x[train[c] - held[-1]]
        held_already = among(_as_exemplars(learnt, given), exemplars)
        fresh = ~(learnt.judged.has_trained_on(given) if sums_up else held_already)
        train[c] = np.concatenate([np.arange(held[c], held[c + 1]), train[c][fresh]])
    classes = [*learnt.classes, *(dataset.classes[c] for c in new)]
    sizes = (*learnt.sizes, *([len(new)] if new else []))
    kept = np.cumsum([0, *map(len, tests)])
    test = [kept[-1] + index for index in rows(dataset.test_y, [*old, *new])]
    for c, images in enumerate(tests):
        given = dataset.test_x[test[c] - kept[-1]]
        fresh = ~(among(given, images) | learnt.judged.has_trained_on(given))
        test[c] = np.concatenate([np.arange(kept[c], kept[c + 1]), test[c][fresh]])
    scenario = Scenario(classes, sizes, train, test, False)
    refuse_empty(scenario, len(old))
    whole = replace(
        dataset,
        train_x=np.concatenate([*learnt.exemplars, dataset.train_x]),
        train_y=np.concatenate([np.full(held[-1], -1, np.int64), dataset.train_y]),
        test_x=np.concatenate([*tests, dataset.test_x]),
        test_y=np.concatenate([np.full(kept[-1], -1, np.int64), dataset.test_y]),
        mean=learnt.preprocessing.mean,
        std=learnt.preprocessing.std,
        size=learnt.preprocessing.size,
        augment=learnt.preprocessing.augment,
    )
    return whole, scenario


def without_classes(dataset: Dataset, known: list[str]) -> Dataset:
    """The data set without some of its classes; refuse to leave none."""
    kept = [c for c, name in enumerate(dataset.classes) if name not in known]
    refuse_if(not kept, no_new_class(dataset))
    place = np.full(len(dataset.classes), -1)
    place[kept] = np.arange(len(kept))
    train, test = (np.isin(y, kept) for y in (dataset.train_y, dataset.test_y))
    return replace(
        dataset,
        classes=[dataset.classes[c] for c in kept],
        train_x=dataset.train_x[train],
        train_y=place[dataset.train_y[train]],
        test_x=dataset.test_x[test],
        test_y=place[dataset.test_y[test]],
    )


def no_new_class(dataset: Dataset) -> str:
    known = ", ".join(map(repr, dataset.classes))
    return f"there is no new class among {known}; for more images of these alone, train anew on all images"


def _new_classes(learnt: Classifier, dataset: Dataset, known: str) -> list[int]:
    """The labels of the data set that are new; refuse images, or classes, that cannot be learnt."""
    shape, spec = learnt.preprocessing.shape, learnt.method.spec
    wanted, got = ("x".join(map(str, one)) for one in (shape, dataset.train_x.shape[1:]))
    refuse_if(wanted != got, f"this model learnt images of {wanted} (channels, height, width), not of {got}")
    again = [name for name in dataset.classes if name in set(learnt.classes)]
    refuse_if(
        again and known == "refuse",
        notes.already_learnt(again),
    )
    refuse_if(
        again and known == "add" and spec.memory == "none" and spec.trains,
        f"{spec.name} keeps no exemplars, so new images of old classes have no place",
    )
    new = [label for label, name in enumerate(dataset.classes) if name not in set(learnt.classes)]
    refuse_if(not new and known != "rehearse", no_new_class(dataset))
    return new


def two_labels(learnt: Classifier, dataset: Dataset) -> str | None:
    """Warn of an image of one class that is an exemplar of another, or was learnt as one."""
    exemplars = zip(learnt.classes, learnt.exemplars or [], strict=True)
    held = {image.tobytes(): name for name, images in exemplars for image in images}
    splits = ((dataset.train_x, dataset.train_y), (dataset.test_x, dataset.test_y))
    labelled = (pair for x, y in splits for pair in zip(_as_exemplars(learnt, x), y, strict=True))
    names = ((dataset.classes[label], held.get(image.tobytes())) for image, label in labelled)
    clashes = [(new, old) for new, old in names if old not in (None, new)]
    if not clashes:
        return _learnt_as_another(learnt, dataset)
    (new, old), more = clashes[0], f" (and {len(clashes) - 1:,} more such)" if len(clashes) > 1 else ""
    return f"an image of class {new!r} is an exemplar of {old!r}{more}: one of the two labels is wrong"


def _learnt_as_another(learnt: Classifier, dataset: Dataset) -> str | None:
    """Warn of images of a new class that the model has trained on, though it never had that class."""
    for label, name in enumerate(dataset.classes):
        seen = learnt.judged.has_trained_on(dataset.train_x[dataset.train_y == label])
        if name not in learnt.classes and seen.any():
            several = counted(int(seen.sum()), "image")
            return f"{several} of class {name!r} were learnt before as another class: look at the labels"
    return None


def rows(y: np.ndarray, labels: Iterable[int]) -> list[np.ndarray]:
    return [np.flatnonzero(y == c) for c in labels]


def among(images: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each image is also among the others, pixel for pixel: (n,)."""
    known = {image.tobytes() for image in others} if len(images) else set()
    return np.array([image.tobytes() in known for image in images], bool)


def _as_exemplars(learnt: Classifier, images: np.ndarray) -> np.ndarray:
    """The images as they would look among the model's exemplars: (n, c, h, w)."""
    if not learnt.preprocessing.half:
        return images
    like = np.empty_like(images)
    for begin in range(0, len(images), SOME):
        part = loader.as_tensor(images[begin : begin + SOME])
        like[begin : begin + SOME] = loader.halved_and_enlarged(part, torch.ones(len(part), dtype=torch.bool))
    return like


def refuse_empty(scenario: Scenario, first: int = 0) -> None:
    """Refuse a class without a training image, from the class `first` on."""
    for name, index in list(zip(scenario.classes, scenario.train, strict=True))[first:]:
        refuse_if(not len(index), f"class {name!r} has no training image")
