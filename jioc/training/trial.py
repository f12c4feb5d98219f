"""The trial of a method that is not ours: three small tasks of noise, before its run has a folder.

It learns them in one go, and again in pieces: a run is stopped after every step, and another one, which has
the checkpoint alone, goes on. Both must end alike, or the method has a state that a resumed run and a saved
model would lose. The rules that it is held to meanwhile are in `methods/contract.py`.
"""

import random
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jioc.config import Config, index
from jioc.data.augment.basic import Augment
from jioc.data.dataset import Dataset
from jioc.data.scenario import Scenario
from jioc.errors import Failed, Interrupted, Refused, refuse_if
from jioc.events import Callback, Epoch
from jioc.methods import contract, find_method, registry
from jioc.methods.base import Method
from jioc.methods.state import SAVEABLE, unsaveable
from jioc.nets.incremental import Net, drawing_from
from jioc.resolve.validate import keeps_nothing
from jioc.training import build, notes
from jioc.training.checkpoint import Checkpointer, State
from jioc.training.execution import Execution
from jioc.training.finite import NotFinite
from jioc.training.runner import Run

TASKS, CLASSES, IMAGES, EPOCHS = 3, 2, 3, 2  # tasks, classes of each, images of each, epochs of every stage
End = Any  # what a trial ended with: the method's state and its scores, as nested tensors and plain data


def try_method(config: Config, dataset: Dataset) -> tuple[str, ...]:
    """Refuse a method that breaks a rule, and give notes on what may be a mistake.

    Nothing of it reaches the run. Some methods need what only a whole run gives, so an error of their own
    stops nothing.
    """
    with _nothing_changed(registry.load_method(config.method)) as afresh:
        stages: set[str] = set()
        run = trial(
            config, dataset, lambda event: stages.add(event.stage) if isinstance(event, Epoch) else None
        )
        calls, begun, before = _counted(run.method), _weights(run.method), _random_states()
        try:
            whole, called = learn(run, calls)
            drawn = [name for name, state in _random_states().items() if state != before[name]]
        except Exception as error:
            if isinstance(error, Refused) and not isinstance(error, NotFinite):
                raise
            return (notes.broke_on_noise(run.spec.name, error),)
        missing = [f"task {t}" for t in range(1, TASKS + 1) if called[t] == called[t - 1]]
        refuse_if(
            config.adjust and missing,
            f"--adjust: the loss of {run.spec.name} does not call `self.adjusted` in "
            f"{', '.join(missing)}, so that nothing would change; its cls is, say, "
            "cross_entropy(self.adjusted(out.logits), batch.y)",
        )

        def in_pieces(beside: Collection[str]) -> End:
            return learn_in_pieces(config, dataset, beside, afresh)

        refuse_if(
            run.method.rebalance is not None and "rebalance" not in stages,
            f"--rebalance: `learn` of {run.spec.name} calls neither self.remember(task, data) nor, before it "
            "chooses exemplars, self.rebalance, so that nothing would change",
        )
        found = tuple(_doubts(run, begun, drawn))
        if drawn or same(in_pieces(()), whole):
            return found
        _refuse_lost(run.method, lambda beside: same(in_pieces(beside), whole))
        return (*found, notes.not_resumable(run.spec.name))


def _doubts(run: Run, begun: dict[str, Tensor], drawn: list[str]) -> Iterator[str]:
    """Notes on what is no error and hardly meant."""
    method, spec = run.method, run.spec
    if drawn:
        yield notes.no_run_repeats(spec.name, drawn)
    if spec.memory == "exemplars" and not keeps_nothing(run.config, spec) and not len(method.memory):
        yield notes.nothing_remembered(spec.name)
    for name, p in _own_parameters(method):
        if p.grad is not None and name in begun and torch.equal(p, begun[name]):
            yield notes.never_trained(spec.name, name)


def _own_parameters(method: Method) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters that the method's own attributes hold, by name; not those of networks."""
    own = [(name, value) for name, value in vars(method).items() if not isinstance(value, Net)]
    alone = [(name, value) for name, value in own if isinstance(value, torch.nn.Parameter)]
    return alone + [
        (f"{name}.{part}", p)
        for name, value in own
        if isinstance(value, torch.nn.Module)
        for part, p in value.named_parameters()
    ]


def _weights(method: Method) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in _own_parameters(method)}


def _random_states() -> dict[str, Any]:
    """The states of the generators that belong to nobody."""
    numpy = np.random.get_state(legacy=False)["state"]
    numpys = numpy["key"].tobytes(), numpy["pos"]
    return {"torch": torch.get_rng_state().numpy().tobytes(), "NumPy": numpys, "Python": random.getstate()}


def _refuse_lost(method: Method, ends_alike: Callable[[Collection[str]], bool]) -> None:
    """Refuse a method that ends elsewhere for want of attributes of its own, and only then."""
    names = contract.unnamed(method)
    if not names or not ends_alike(names):
        return
    lost = [name for name in sorted(names) if not ends_alike(names - {name})] or sorted(names)
    odd = [f"{name!r} is or holds a {kind}" for name in lost if (kind := unsaveable(vars(method)[name]))]
    advice = f"; {' and '.join(odd)}, and it takes {SAVEABLE}" if odd else ""
    raise Failed(
        f"{method.spec.name} learns on with {' and '.join(map(repr, lost))}, which a resumed run and a saved "
        f"model lose: name it in `persistent`{advice}"
    )


# --- in one go, and in pieces ---


def learn(run: Run, calls: list[None]) -> tuple[End, list[int]]:
    """Learn every task; count the calls after each."""
    called = [0]
    for _ in range(TASKS):
        run.learn_next()
        called.append(len(calls))
    return ended(run), called


def learn_in_pieces(
    config: Config, dataset: Dataset, beside: Collection[str], afresh: Callable[[], None]
) -> End:
    """Learn every task, each step in a run of its own; `beside`: attributes that go along with its state.

    An error that only pieces have is how they end.
    """
    kept: dict[str, State] = {}
    try:
        while True:
            afresh()
            run = trial(config, dataset)
            checkpointer = StopEachStep(run, kept, beside)
            run.checkpointer = run.engine.checkpointer = checkpointer
            if not checkpointer.resume(lambda text: None):
                checkpointer.begin_task()
            if run.done == TASKS:
                return ended(run)
            try:
                run.learn_next()
                checkpointer.begin_task()
            except Interrupted:
                pass
    except Exception as error:
        if isinstance(error, Refused) and not isinstance(error, NotFinite):
            raise
        return error


class StopEachStep(Checkpointer):
    """Keeps its states in memory, with other attributes of the method beside, and stops after each step."""

    def __init__(self, run: Run, kept: dict[str, State], beside: Collection[str]):
        super().__init__(None, 0.0, run.snapshot, self._take_up)
        self.run, self.kept, self.beside, self.steps = run, kept, beside, 0

    def save_and_stop_if_asked(self, progress: Callable[[], State]) -> None:
        if self.steps == 1:
            self._write("now", self.snapshot() | {"progress": progress()})
            raise Interrupted("stopped")
        self.steps += 1

    def stop_if_asked(self) -> None:
        pass

    def _take_up(self, state: State) -> bool:
        vars(self.run.method).update(state["beside"])
        return self.run.restore(state)

    def _restore_newest(self, note: Callable[[str], None]) -> State | None:
        if not self.kept:
            return None
        self.restore(deepcopy(self.kept["begin"]))
        return self.kept["begin"]

    def _reached(self) -> tuple[str, State | None]:
        name = f"stage{self._stage}" if f"stage{self._stage}" in self.kept else "now"
        return name, deepcopy(self.kept.get(name))

    def _write(self, name: str, state: State) -> None:
        if name == "begin":
            self.kept.clear()
        self.kept.pop("now", None)
        held = vars(self.run.method)
        beside = {each: held[each] for each in self.beside if each in held}
        self.kept[name] = deepcopy(state | {"beside": beside})


def trial(config: Config, dataset: Dataset, callback: Callback | None = None) -> Run:
    """A run on the CPU that learns small tasks of noise, a step an epoch; soon its classes are unequal."""
    spec = find_method(config.method)
    sizes = (CLASSES,) * TASKS
    y = np.repeat(np.arange(sum(sizes)), IMAGES)
    noise = np.random.RandomState(0).randint(0, 256, (len(y), *dataset.shape), np.uint8)
    x, half = noise.astype(dataset.train_x.dtype), (0.5,) * dataset.channels
    images = Dataset("noise", list("abcdef"), x, y, x, y, half, half, Augment())
    train = np.split(np.arange(len(y)), sum(sizes))
    test = [rows[: 1 if k % CLASSES == 0 else 0] for k, rows in enumerate(train)]  # one image a task
    had = {name: getattr(config, name) for name in index.STAGES}
    stages = {name: one.model_copy(update={"epochs": EPOCHS}) for name, one in had.items() if one.epochs}
    memory = {"memory": 0 if keeps_nothing(config, spec) else len(sizes) * CLASSES, "memory_per_class": None}
    short = config.model_copy(
        update=stages
        | {"batch_size": len(y), "augment": "standard", "rebalance_epochs": 1}
        | {**memory, "memory_bytes": None, "exemplar_size": "full"}
    )
    once = Execution("fp32", graph=False, compile=False, parts=1)
    scenario = Scenario(images.classes, sizes, train, test, held_out=False)
    return Run(build.Plan(short, spec, images, scenario, torch.device("cpu"), False, once), callback=callback)


@torch.no_grad()
def ended(run: Run) -> End:
    """The method's state, and its scores of the test images."""
    run.method.net.eval()
    rows = torch.from_numpy(np.concatenate(run.scenario.test))
    return {"state": run.method.state(), "scores": run.method.readouts(run.test.plain(rows))}


def same(one: End, other: End) -> bool:
    """Whether two nested values are equal to the last bit, NaNs included."""
    match one:
        case dict():
            return (
                isinstance(other, dict)
                and one.keys() == other.keys()
                and all(same(value, other[key]) for key, value in one.items())
            )
        case list() | tuple():
            return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(same, one, other))
        case Tensor():
            alike = isinstance(other, Tensor) and one.shape == other.shape and one.dtype == other.dtype
            return alike and bool(((one == other) | ((one != one) & (other != other))).all())
        case _:
            return bool(one == other)


# --- nothing else is changed ---


def _counted(method: Method) -> list[None]:
    """A list that grows with each call of the method's `adjusted`."""
    calls: list[None] = []
    usual = method.adjusted

    def adjusted(logits: Tensor) -> Tensor:
        calls.append(None)
        return usual(logits)

    method.adjusted = adjusted  # type: ignore[method-assign]
    return calls


@contextmanager
def _nothing_changed(method: type[Method]) -> Iterator[Callable[[], None]]:
    """Leave the random numbers of torch, NumPy and Python as they are, and what the class holds.

    Gives what makes both as in a new process: the class as it was, the numbers others.
    """
    own = [cls for cls in method.__mro__ if cls is not object and not registry.is_ours(cls)]
    held = [value for cls in own for value in vars(cls).values() if isinstance(value, (dict, list, set))]
    were, seeds = [value.copy() for value in held], count(1)

    def as_it_was() -> None:
        for value, was in zip(held, were, strict=True):
            value.clear()
            value.extend(was) if isinstance(value, list) else value.update(was)

    def afresh() -> None:
        as_it_was()
        seed = next(seeds)
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)

    python, numpy = random.getstate(), np.random.get_state()
    try:
        with drawing_from(0):
            yield afresh
    finally:
        as_it_was()
        random.setstate(python)
        np.random.set_state(numpy)
