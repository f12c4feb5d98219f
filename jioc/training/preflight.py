"""Checks of settings with data and device. What passes them is a plan, which the run takes: nothing is built twice."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jioc.config.schema import Config
from jioc.data import scenario as scenarios
from jioc.data.augment.basic import Augment
from jioc.data.dataset import Dataset
from jioc.data.loader import Images, Sampler, TaskData
from jioc.data.scenario import Scenario
from jioc.device.distributed import ALONE, World
from jioc.device.pick import pick_device
from jioc.errors import Refused
from jioc.events import ignore
from jioc.losses import check_terms
from jioc.methods import contract, registry, source
from jioc.methods.base import Method
from jioc.methods.specs import Spec
from jioc.resolve.validate import small_memory
from jioc.training.build import make_method, streams
from jioc.training.checkpoint import Checkpointer
from jioc.training.engine import Engine
from jioc.training.evaluate import unit_features
from jioc.training.execution import Execution, choose_execution
from jioc.types import Batch, Output, Task, Terms

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Plan:
    """What a run is made from."""

    config: Config
    spec: Spec
    dataset: Dataset
    scenario: Scenario
    device: torch.device
    streamed: bool  # whether batches come from the disk
    execution: Execution
    world: World = ALONE


def preflight(
    config: Config, dataset: Dataset, world: World = ALONE, scenario: Scenario | None = None
) -> Plan:
    """Refuse what a run would refuse, before it has a folder. `scenario`: where the settings do not say the tasks."""
    scenario = scenario or scenarios.make(dataset, config)
    spec, device = registry.find(config.method), pick_device(config.device)
    small_memory(config, len(scenario.classes), spec)
    streamed = streams(config.stream, dataset, scenario, device)
    execution = choose_execution(config, device, not streamed, world)
    if not source.is_ours(registry.load(config.method)):
        try_method(config, dataset)
    if world.size > 1:
        rows = np.concatenate([*scenario.train, *scenario.test, dataset.train_y, dataset.test_y])
        world.must_agree("code of the method", registry.sha256(config.method))
        world.must_agree(
            "images", (dataset.record.get("fingerprint"), hashlib.sha256(rows.tobytes()).hexdigest())
        )
    return Plan(config, spec, dataset, scenario, device, streamed, execution, world)


# --- a method of somebody's own ---

CLASSES, PER_CLASS = 2, 3  # of each of two tasks


def try_method(config: Config, dataset: Dataset) -> None:
    """Let the method learn two small tasks of noise, a step for each stage, and check all that it gives.

    Some need what only a whole run gives: an error of their own says nothing here.
    """
    method = make_method(config, dataset.channels, torch.Generator().manual_seed(0), CPU)
    try:
        with torch.random.fork_rng(devices=[]):
            Trial(config, dataset, method).learn()
    except Refused:
        raise
    except Exception:
        return


class Trial:
    """Two tasks of noise, learnt by the same engine as a run's."""

    def __init__(self, config: Config, dataset: Dataset, method: Method):
        self.method = method
        method.loss = self.checked(method.loss, own=True)  # type: ignore[method-assign]
        pixels = np.random.RandomState(0).randint(0, 256, (2 * CLASSES * PER_CLASS, *dataset.shape), np.uint8)
        labels = np.repeat(np.arange(2 * CLASSES), PER_CLASS)
        unit = (0.5,) * dataset.channels
        self.images = Images(pixels.astype(dataset.train_x.dtype), labels, unit, unit, CPU)
        stages = {name: getattr(config, name) for name in ("first", "later", "second")}
        self.engine = Engine(
            train=self.images,
            augment=Augment(),
            schedules={name: stage.model_copy(update={"epochs": 1}) for name, stage in stages.items()},
            momentum=config.momentum,
            execution=Execution("fp32", graph=False, compile=False, parts=1),
            order=torch.Generator().manual_seed(0),
            noise=torch.Generator().manual_seed(0),
            checkpointer=Checkpointer(None, 0.0, dict, ignore_state),
            on_epoch=ignore,
            note=lambda text: None,
            world=ALONE,
        )

    def learn(self) -> None:
        rows = torch.arange(len(self.images.labels)).view(2, CLASSES, PER_CLASS)
        for t in range(2):
            task = Task(t, (CLASSES,) * (t + 1), CLASSES * PER_CLASS, len(self.method.memory))
            self.method.learn(task, TaskData(list(rows[t]), 128, self.features, self.engine.order), self.fit)
            contract.check_state(self.method)
            self.method.net.eval()
            with torch.no_grad():
                contract.check_readouts(
                    self.method, self.method.readouts(self.images.plain(rows[0, 0])), PER_CLASS
                )

    def features(self, net: Any, index: Tensor, as_trained: bool = False) -> Tensor:
        return unit_features(net, self.images, index, ALONE)

    def fit(self, method: Method, task: Task, sampler: Sampler, **how: Any) -> None:
        """Check what a stage trains, and its loss in the one step."""
        net, params = how.get("net") or method.net, how.get("params")
        trained = [p for p in (net.parameters() if params is None else params) if p.requires_grad]
        contract.check_trained(method, trained)
        contract.check_state(method)
        if how.get("loss") not in (None, method.loss):
            how["loss"] = self.checked(how["loss"], own=False)
        self.engine.fit(method, task, sampler, **how | ({} if params is None else {"params": trained}))

    def checked(self, loss: Callable[..., Terms], own: bool) -> Callable[..., Terms]:
        def checked_loss(batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
            terms = loss(batch, out, old, task)
            check_terms(terms, batch.y, self.method.spec.name)
            contract.check_gradient(self.method, terms)
            if own:
                contract.check_weights(self.method, task, terms)
            return terms

        return checked_loss


def ignore_state(state: dict[str, Any]) -> None:
    """A trial is never resumed."""
