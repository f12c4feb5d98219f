"""The trial of a method that is not ours: three small tasks of noise, before its run has a folder.

It learns them in one go, and again in pieces: a run is stopped after every step, and another one, which has
the checkpoint alone, goes on. Both must end alike, or the method has a state that a resumed run and a saved
model would lose. The rules that it is held to meanwhile are in `methods/contract.py`.
"""

import random
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jioc.config import Config, index
from jioc.data.augment.basic import Augment
from jioc.data.dataset import Dataset
from jioc.data.scenario import Scenario
from jioc.errors import Failed, Interrupted, Refused, refuse_if, sentence
from jioc.methods import contract, find_method, registry
from jioc.methods.base import Method
from jioc.methods.state import SAVEABLE, unsaveable
from jioc.nets import catalogue
from jioc.nets.incremental import Net, drawing_from
from jioc.resolve.validate import keeps_nothing
from jioc.scripts import SCRIPT
from jioc.training import build, notes
from jioc.training.checkpoint import Checkpointer, State
from jioc.training.execution import Execution
from jioc.training.finite import NotFinite
from jioc.training.runner import Run

TASKS, CLASSES, EPOCHS, BATCH = 3, 2, 2, 8  # tasks, classes of each, epochs of every stage, images of a batch
IMAGES = (5, 2)  # of the classes of a task: unequal, so that --adjust and --rebalance have something to do
SIDE = 64  # of the noise at most: larger images take long, and any side suits our networks

_tried: dict[tuple[Any, ...], tuple[str, ...]] = {}  # notes on what was tried in this process


def try_method(config: Config, dataset: Dataset) -> tuple[str, ...]:
    """Refuse a method that breaks a rule, and give notes on what may be a mistake; once in a process.

    What it draws, and changes in its class and its file, is put back. Some methods need what only a whole run
    gives, so an error of their own stops nothing.
    """
    method = registry.load_method(config.method)
    key = method, dataset.shape, config.model_dump_json(exclude={*index.SEEDS})
    if key not in _tried:
        with _put_back(method) as afresh:
            _tried[key] = tuple(_tell(config, dataset, afresh))
    return _tried[key]


def _tell(config: Config, dataset: Dataset, afresh: Callable[[], None]) -> Iterator[str]:
    """Try the method: refuse it, or give notes."""
    name, before = find_method(config.method).name, _random_states()
    try:
        whole = learn(trial(config, dataset))
        drawn = [kind for kind, state in _random_states().items() if state != before[kind]]
    except Exception as error:
        if isinstance(error, Refused) and not isinstance(error, NotFinite):
            raise
        yield notes.broke_on_noise(name, error)
        return
    _refuse_idle(whole, config)
    yield from _doubts(whole)
    if drawn:  # by the method, or by another thread
        afresh()
        if not same(learn(trial(config, dataset)).end, whole.end):
            yield notes.no_run_repeats(name, drawn)
            return

    def in_pieces(beside: Collection[str] = ()) -> Any:
        return learn_in_pieces(config, dataset, afresh, beside)

    if not same(end := in_pieces(), whole.end):
        _refuse_lost(whole.method, lambda beside: same(in_pieces(beside), whole.end))
        yield notes.not_resumable(name, sentence(end) if isinstance(end, Exception) else None)


def _refuse_idle(whole: "Whole", config: Config) -> None:
    """Refuse flags that would change nothing, because the method does not call for what they add."""
    name = whole.method.spec.name
    missing = [f"task {t + 1}" for t, calls in enumerate(whole.adjusted) if not calls]
    refuse_if(
        config.adjust and missing,
        f"--adjust: the loss of {name} does not call `self.adjusted` in {', '.join(missing)}, so that "
        "nothing would change; its cls is, say, cross_entropy(self.adjusted(out.logits), batch.y)",
    )
    refuse_if(
        whole.method.rebalance is not None and "rebalance" not in whole.stages,
        f"--rebalance: `learn` of {name} calls neither self.remember(task, data) nor, before it chooses "
        "exemplars, self.rebalance, so that nothing would change",
    )


def _doubts(whole: "Whole") -> Iterator[str]:
    """Notes on what is no error and hardly meant."""
    method, spec = whole.method, whole.method.spec
    if spec.memory == "exemplars" and not keeps_nothing(whole.config, spec) and not len(method.memory):
        yield notes.nothing_remembered(spec.name)
    for name, p in _own_parameters(method):
        if p.grad is not None and id(p) not in whole.trained:
            yield notes.never_trained(spec.name, name)


def _own_parameters(method: Method) -> list[tuple[str, nn.Parameter]]:
    """The parameters that the method's own attributes hold, by name; not those of networks."""
    own = [(name, value) for name, value in vars(method).items() if not isinstance(value, Net)]
    alone = [(name, value) for name, value in own if isinstance(value, nn.Parameter)]
    return alone + [
        (f"{name}.{part}", p)
        for name, value in own
        if isinstance(value, nn.Module)
        for part, p in value.named_parameters()
    ]


def _refuse_lost(method: Method, ends_alike: Callable[[Collection[str]], bool]) -> None:
    """Refuse a method that ends elsewhere for want of attributes of its own, and only then."""
    names = sorted(contract.unnamed(method))
    if not ends_alike(names):
        return
    lost = sorted(_needed(names, (), ends_alike))
    odd = [f"{name!r} is or holds a {kind}" for name in lost if (kind := unsaveable(vars(method)[name]))]
    advice = f"; {' and '.join(odd)}, and it takes {SAVEABLE}" if odd else ""
    raise Failed(
        f"{method.spec.name} learns on with {' and '.join(map(repr, lost))}, which a resumed run and a saved "
        f"model lose: name it in `persistent`{advice}"
    )


def _needed(
    names: Collection[str], beside: Collection[str], ends_alike: Callable[[Collection[str]], bool]
) -> list[str]:
    """Those of the names that are needed beside some others; halves are tried, as few may be."""
    names, beside = [*names], [*beside]
    if ends_alike(beside):
        return []
    if len(names) == 1:
        return names
    first, second = names[: len(names) // 2], names[len(names) // 2 :]
    of_second = _needed(second, beside + first, ends_alike)
    return _needed(first, beside + of_second, ends_alike) + of_second


# --- in one go, and in pieces ---


@dataclass
class Whole:
    """What a run has shown that learnt every task in one go."""

    method: Method
    config: Config
    adjusted: list[int] = field(default_factory=list)  # calls of the method's `adjusted`, task by task
    stages: set[str | None] = field(default_factory=set)  # that were asked for by name
    trained: dict[int, Tensor] = field(default_factory=dict)  # by their id
    end: Any = None


def learn(run: Run) -> Whole:
    """Learn every task in one go."""
    whole = Whole(run.method, run.config)
    fit, adjusted = run.engine.fit, run.method.adjusted

    def noted_fit(method: Method, *args: Any, **options: Any) -> None:
        params = options.get("params")
        trained = (options.get("net") or method.net).parameters() if params is None else params
        whole.stages.add(options.get("stage"))
        whole.trained |= {id(p): p for p in trained}
        fit(method, *args, **options)

    def noted_adjusted(logits: Tensor) -> Tensor:
        whole.adjusted[-1] += 1
        return adjusted(logits)

    run.engine.fit = noted_fit  # type: ignore[method-assign]
    run.method.adjusted = noted_adjusted  # type: ignore[method-assign]
    for _ in range(TASKS):
        whole.adjusted.append(0)
        run.learn_next()
    whole.end = ended(run)
    return whole


def learn_in_pieces(
    config: Config, dataset: Dataset, afresh: Callable[[], None], beside: Collection[str]
) -> Any:
    """Learn every task, each step in a run of its own; `beside`: attributes that go along with its state.

    An error that only pieces have is how they end.
    """
    kept: dict[str, State] = {}
    while True:
        afresh()
        run = trial(config, dataset)
        checkpointer = StopEachStep(run, kept, beside)
        run.checkpointer = run.engine.checkpointer = checkpointer
        try:
            if not checkpointer.resume(lambda text: None):
                checkpointer.begin_task()
            if run.done == TASKS:
                return ended(run)
            run.learn_next()
            checkpointer.begin_task()
        except Interrupted:
            pass
        except Exception as error:
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
        held, beside = vars(self.run.method), {}
        for each in self.beside:
            try:
                beside[each] = deepcopy(held[each])
            except Exception:  # not yet there, or nothing that can be copied: it does not go along
                continue
        self.kept[name] = deepcopy(state) | {"beside": beside}


def trial(config: Config, dataset: Dataset) -> Run:
    """A run on the CPU that learns small tasks of noise."""
    spec, sizes = find_method(config.method), (CLASSES,) * TASKS
    y = np.repeat(np.arange(sum(sizes)), IMAGES * TASKS)
    noise = np.random.RandomState(0).randint(0, 256, (len(y), *_shape(config, dataset)), np.uint8)
    x, half = noise.astype(dataset.train_x.dtype), (0.5,) * dataset.channels
    images = Dataset("noise", list("abcdef"), x, y, x, y, half, half, Augment())
    train = [np.flatnonzero(y == label) for label in range(sum(sizes))]
    test = [rows[: 1 if k % CLASSES == 0 else 0] for k, rows in enumerate(train)]  # one image a task
    had = {name: getattr(config, name) for name in index.STAGES}
    stages = {name: one.model_copy(update={"epochs": EPOCHS}) for name, one in had.items() if one.epochs}
    short = config.model_copy(
        update=stages
        | {"batch_size": BATCH, "augment": "standard", "rebalance_epochs": 1}
        | {"memory_bytes": None, "exemplar_size": "full"}
    )
    once = Execution("fp32", graph=False, compile=False, parts=1)
    scenario = Scenario(images.classes, sizes, train, test, held_out=False)
    return Run(build.Plan(short, spec, images, scenario, torch.device("cpu"), False, once))


def _shape(config: Config, dataset: Dataset) -> tuple[int, ...]:
    """The shape of an image of noise: that of the data, but smaller where any size will do."""
    form = catalogue.shape(config.backbone or "")
    if isinstance(form, (catalogue.Layers, catalogue.Timm)) or max(dataset.shape[1:]) <= SIDE:
        return tuple(dataset.shape)
    return (dataset.shape[0], SIDE, SIDE)


@torch.no_grad()
def ended(run: Run) -> Any:
    """The method's state, and its scores of the test images: nested tensors and plain data."""
    run.method.net.eval()
    rows = torch.from_numpy(np.concatenate(run.scenario.test))
    return {"state": run.method.state(), "scores": run.method.readouts(run.test.plain(rows))}


def same(one: Any, other: Any) -> bool:
    """Whether two nested values are equal to the last bit, NaNs included."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
        case (list(), list()) | (tuple(), tuple()):
            return len(one) == len(other) and all(map(same, one, other))
        case Tensor(), Tensor():
            alike = one.shape == other.shape and one.dtype == other.dtype
            return alike and bool(((one == other) | ((one != one) & (other != other))).all())
        case _:
            alike = type(one) is type(other) and not isinstance(one, Tensor)
            return alike and bool(one == other or (one != one and other != other))


# --- what is put back ---


def _random_states() -> dict[str, Any]:
    """The states of the generators that belong to nobody."""
    numpy = np.random.get_state(legacy=False)["state"]
    numpys = numpy["key"].tobytes(), numpy["pos"]
    return {"torch": torch.get_rng_state().numpy().tobytes(), "NumPy": numpys, "Python": random.getstate()}


@contextmanager
def _put_back(method: type[Method]) -> Iterator[Callable[[], None]]:
    """Put back what a trial changes: the random numbers of torch, NumPy and Python, the class and its file.

    Gives what makes all of them as in a new process: the class as it was, the random numbers others.
    """
    classes = [cls for cls in method.__mro__ if cls is not object and not registry.is_ours(cls)]
    files = {cls.__module__ for cls in classes if cls.__module__.startswith(SCRIPT)}
    places = [*classes, *(sys.modules[name] for name in files)]
    seen: set[int] = set()
    backs = [back for place in places for back in _bindings(place, seen)]
    seeds, python, numpy = count(1), random.getstate(), np.random.get_state()

    def afresh() -> None:
        for back in backs:
            back()
        seed = next(seeds)
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)

    try:
        with drawing_from(0):
            yield afresh
    finally:
        for back in backs:
            back()
        random.setstate(python)
        np.random.set_state(numpy)


def _bindings(place: Any, seen: set[int]) -> list[Callable[[], None]]:
    """Give what binds the names of a class or module as they are, and refills what they hold."""
    were = {name: value for name, value in vars(place).items() if not name.startswith("__")}

    def back() -> None:
        for name in [name for name in vars(place) if not name.startswith("__") and name not in were]:
            delattr(place, name)
        for name, value in were.items():
            if vars(place).get(name) is not value:
                setattr(place, name, value)

    return [back, *(inner for value in were.values() for inner in _contents(value, seen))]


def _contents(value: Any, seen: set[int]) -> list[Callable[[], None]]:
    """Give what refills a list, dict or set that has changed, and those within."""
    if not isinstance(value, (dict, list, set)) or id(value) in seen:
        return []
    seen.add(id(value))
    was: Any = value.copy()

    def back() -> None:
        if _parts(value) != _parts(was):
            value.clear()
            value.extend(was) if isinstance(value, list) else value.update(was)

    inside = was.values() if isinstance(was, dict) else was
    return [back, *(inner for part in inside for inner in _contents(part, seen))]


def _parts(value: dict[Any, Any] | list[Any] | set[Any]) -> list[int]:
    """The objects that it holds, by their id."""
    if isinstance(value, dict):
        return [id(each) for pair in value.items() for each in pair]
    return [id(each) for each in value]
