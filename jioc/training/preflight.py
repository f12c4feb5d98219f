"""Checks of settings with data and device. They give the plan that the run takes: nothing is built twice.

A method that is not ours learns two small tasks of noise first; the rules are in `methods/contract.py`.
"""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from jioc.config import Config, index
from jioc.data import scenario as scenarios
from jioc.data.augment.basic import Augment
from jioc.data.dataset import Dataset
from jioc.device import distributed, pick
from jioc.errors import Refused, refuse_if
from jioc.methods import Spec, find_method, registry
from jioc.methods.base import Method
from jioc.nets.incremental import drawing_from
from jioc.resolve.validate import small_memory
from jioc.training import build, notes
from jioc.training.execution import Execution, choose_execution, set_up_torch
from jioc.training.finite import NotFinite
from jioc.training.runner import Run


def preflight(
    config: Config,
    dataset: Dataset,
    world: distributed.World = distributed.ALONE,
    scenario: scenarios.Scenario | None = None,
    begins: bool = True,
) -> build.Plan:
    """Refuse what a run would refuse, before it has a folder; set the switches that torch has for a process.

    `scenario`: the tasks, if they do not follow from the settings; `begins`: whether the network is new, so
    that pretrained weights are read.
    """
    scenario = scenario or scenarios.make(dataset, config)
    spec, device = find_method(config.method), pick.pick_device(config.device)
    small_memory(config, len(scenario.classes), spec)
    _exemplars(config, dataset, len(scenario.classes), spec)
    streamed = build.streams(config.stream, dataset, scenario, device)
    execution = choose_execution(config, device, world)
    weights = build.pretrained(config, dataset.channels) if begins else None
    ours = registry.is_ours(registry.load_method(config.method))
    broke = None if ours else try_method(config, dataset)
    if world.size > 1:
        rows = np.concatenate([*scenario.train, *scenario.test, dataset.train_y, dataset.test_y])
        images = dataset.record.get("fingerprint"), hashlib.sha256(rows.tobytes()).hexdigest()
        world.must_agree("code of the method", registry.sha256(config.method))
        world.must_agree("images", images)
        world.must_agree("pretrained weights", weights and weights.about["sha256"])
    set_up_torch(execution, config.deterministic)
    found = () if broke is None else (notes.broke_on_noise(spec.name, broke),)
    return build.Plan(config, spec, dataset, scenario, device, streamed, execution, world, weights, found)


def _exemplars(config: Config, dataset: Dataset, classes: int, spec: Spec) -> None:
    """Refuse bytes that hold no exemplar of each class, and images that cannot be halved."""
    shape = tuple(dataset.train_x.shape[1:])
    if config.memory_bytes is not None and spec.memory == "exemplars":
        one = build.exemplar_bytes(config, shape)
        refuse_if(
            config.memory_bytes < classes * one,
            f"--memory-bytes {config.memory_bytes} leaves no exemplar of {one:,} bytes for each of {classes} "
            f"classes; give at least {classes * one}",
        )
    odd = shape[1] % 2 or shape[2] % 2 or dataset.train_x.dtype != np.uint8
    refuse_if(
        config.exemplar_size == "half" and odd,
        "--exemplar-size half is for images of uint8 whose height and width are even",
    )


# --- the trial of a method that is not ours ---


def try_method(config: Config, dataset: Dataset) -> Exception | None:
    """Let the method learn two tasks of noise, a step for each stage, and refuse it if it breaks a rule.

    Nothing of it reaches the run. Some methods need what only a whole run gives, so an error of their own is
    returned and stops nothing.
    """
    with _random_state_kept():
        run = trial(config, dataset)
        calls, after = _counted(run.method), [0]
        try:
            for _ in range(2):
                run.learn_next()
                after.append(len(calls))
        except Exception as error:
            if isinstance(error, Refused) and not isinstance(error, NotFinite):
                raise
            return error
    missing = [f"task {t}" for t in (1, 2) if after[t] == after[t - 1]]
    refuse_if(
        config.adjust and missing,
        f"--adjust: the loss of {run.spec.name} does not call `self.adjusted` in {' and '.join(missing)}, so "
        "that nothing would change; its cls is, say, cross_entropy(self.adjusted(out.logits), batch.y)",
    )
    return None


def _counted(method: Method) -> list[None]:
    """A list that grows with each call of the method's `adjusted`."""
    calls: list[None] = []
    usual = method.adjusted

    def adjusted(logits: Tensor) -> Tensor:
        calls.append(None)
        return usual(logits)

    method.adjusted = adjusted  # type: ignore[method-assign]
    return calls


def trial(config: Config, dataset: Dataset) -> Run:
    """A run on the CPU that learns twice two classes, with three images of noise each."""
    y = np.repeat(np.arange(4), 3)
    noise = np.random.RandomState(0).randint(0, 256, (len(y), *dataset.shape), np.uint8)
    x, half = noise.astype(dataset.train_x.dtype), (0.5,) * dataset.channels
    images = Dataset("noise", list("abcd"), x, y, x, y, half, half, Augment())
    a, b, c, d = np.split(np.arange(len(y)), 4)
    one_a_task = [a[:1], b[:0], c[:1], d[:0]]
    scenario = scenarios.Scenario(images.classes, (2, 2), [a, b, c, d], one_a_task, held_out=False)
    had = {name: getattr(config, name) for name in index.STAGES}
    stages = {name: one.model_copy(update={"epochs": 1}) for name, one in had.items() if one.epochs}
    short = config.model_copy(
        update=stages
        | {"batch_size": len(y), "augment": "standard"}
        | {"rebalance_epochs": 1, "memory_bytes": None, "exemplar_size": "full"}
    )
    once = Execution("fp32", graph=False, compile=False, parts=1)
    return Run(
        build.Plan(short, find_method(config.method), images, scenario, torch.device("cpu"), False, once)
    )


@contextmanager
def _random_state_kept() -> Iterator[None]:
    """Leave the random numbers of torch, NumPy and Python as they are."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with drawing_from(0):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
