"""A classifier that learns more classes.

learner = Learner.first(config, dataset)       every class of the data set is the first task
learner = learner.learn(more)                  every class of that one is the next

Learning on is a run of one task. Its training images are the exemplars, class after class, then the new
classes' images; method and generators begin as the last task left them. So two tasks in one run and the
second learnt through here give the same weights, bit for bit on a CPU.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor

from jioc.config import Config, Options, make, plain
from jioc.data import catalogue
from jioc.data.dataset import Dataset
from jioc.data.loader import TaskData
from jioc.data.scenario import Scenario
from jioc.errors import Refused
from jioc.events import Callback, TaskEnd
from jioc.methods import registry, source
from jioc.resolve.derive import resolve
from jioc.training.build import generators, make_method
from jioc.training.classifier import Classifier
from jioc.training.joined import joined, refuse_empty, rows, two_labels
from jioc.training.preflight import preflight
from jioc.training.runner import Run
from jioc.types import Task

Stop = Callable[[], bool]


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
        return cls.taught(Run(preflight(config, dataset, scenario=scenario), None, callback, stop))

    @classmethod
    def taught(cls, run: Run, earlier: list[int] | None = None) -> Self:
        """Let a run learn its next task. `earlier`: the counts of the classes learnt before it."""
        run.tell_start()
        run.learn_next()
        run.tell(TaskEnd(run.rows[-1]))
        return cls(**run.classifier(earlier).parts())

    def learn(
        self,
        dataset: Dataset,
        *,
        config: Config | None = None,
        known: Literal["refuse", "add"] = "refuse",
        reseed: bool = False,
        callback: Callback | None = None,
        stop: Stop | None = None,
    ) -> Self:
        """Learn the data set's classes too; return the new learner, and leave this one as it is.

        `config`: other settings for this task. `known`: what to do about classes that were learnt already.
        With "add" their images train together with the exemplars, and are kept after them while the class has
        room; an image that is an exemplar already is left out. `reseed`: seed the generators again.
        """
        return self.taught(self._run(dataset, known, config, reseed, callback, stop), self.counts)

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
        replay = registry.load_method("replay")(
            net=run.method.net,
            memory=run.method.memory,
            options=Options(),
            coordination=None,
            generator=run.method.generator,
        )
        task = Task(
            len(self.sizes) - 1, self.sizes, len(dataset.train_y), sum(map(len, self.exemplars or []))
        )
        data = TaskData([], run.config.batch_size, run.features, run.generators["order"])
        run.engine.fit(replay, task, data.of(run.method.memory.index), stage="later")
        run.method.rehearsed(task, data)
        return type(self)(**run.classifier(self.counts).parts())

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
        whole, scenario = joined(self, dataset, known)
        entry = catalogue.in_memory(dataset.name, len(scenario.classes), whole.shape[-1])
        plan = preflight(resolve(config or self.config, entry), whole, scenario=scenario)
        run = Run(plan, None, callback, stop)
        source.refuse_other(plan.config.method, *map(source.checksum, (type(self.method), type(run.method))))
        self._take_up(run, reseed)
        twice = sum(map(len, self.exemplars)) + len(dataset.train_y) - sum(scenario.counts)
        if twice:
            run.note(f"images that are among the exemplars already, and not added again: {twice:,}")
        if callback is not None and (warning := two_labels(self, dataset)):
            run.note(warning)
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
        for name, g in generators(run.config, run.device, run.earlier).items():
            kind, state = self.generators[name]
            try:
                run.generators[name].set_state(g.get_state() if reseed or kind != g.device.type else state)
            except (RuntimeError, TypeError):
                raise Refused("the saved random numbers are damaged; --seed begins with others") from None

    # --- pickling ---

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle plain values, arrays and tensors on the CPU."""
        method = on_cpu(self.method.state())
        plain_parts = {"config": plain(self.config), "method": method, "device": str(self.device)}
        return unpickled, (self.parts() | plain_parts, source.checksum(type(self.method)))


def unpickled(parts: dict[str, Any], sha256: str | None) -> Learner:
    """Put a learner together again, on the CPU if its device is not here."""
    config, wanted = make(**parts["config"]), torch.device(parts["device"])
    here = wanted.type == "cpu" or (wanted.index or 0) < torch.cuda.device_count()
    device = wanted if here else torch.device("cpu")
    method = make_method(config, parts["preprocessing"].shape[0], torch.Generator(), device)
    source.refuse_other(config.method, sha256, source.checksum(type(method)))
    method.load_state(parts["method"], device)
    return Learner(**parts | {"config": config, "method": method, "device": device})


def on_cpu(value: Any) -> Any:
    """Move the tensors of a tree to the CPU."""
    if isinstance(value, dict):
        return {name: on_cpu(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(on_cpu(part) for part in value)
    return value.detach().cpu() if isinstance(value, Tensor) else value
