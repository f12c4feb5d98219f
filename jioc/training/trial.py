"""The trial of a method that is not ours: it learns two small tasks before a run has a folder.

The rules that it must keep to are in `methods/contract.py`.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from jioc.config import Config
from jioc.data.augment.basic import Augment
from jioc.data.dataset import Dataset
from jioc.data.loader import Images, TaskData
from jioc.device.distributed import ALONE
from jioc.errors import Refused
from jioc.events import ignore
from jioc.methods import contract
from jioc.methods.base import Method
from jioc.nets.incremental import Net, drawing_from
from jioc.training.build import make_method
from jioc.training.checkpoint import Checkpointer
from jioc.training.engine import Engine, NotFinite
from jioc.training.evaluate import unit_features
from jioc.training.execution import Execution
from jioc.types import Task

CPU = torch.device("cpu")
CLASSES, PER_CLASS = 2, 3  # of each of the two tasks


def try_method(config: Config, dataset: Dataset) -> None:
    """Let the method learn two tasks of noise, a step for each stage, and refuse it if it breaks a rule.

    Nothing of it reaches the run. Some methods need what only a whole run gives: an error of their own says
    nothing here, and the run follows.
    """
    with _random_state_kept():
        method = make_method(config, dataset.channels, torch.Generator().manual_seed(0), CPU)
        try:
            Trial(config, dataset, method).learn()
        except Exception as error:
            if isinstance(error, Refused) and not isinstance(error, NotFinite):
                raise


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


class Trial:
    """Two tasks of noise, learnt on the CPU by the engine of a run."""

    def __init__(self, config: Config, dataset: Dataset, method: Method):
        self.method = method
        shape = (2 * CLASSES * PER_CLASS, *dataset.shape)
        pixels = np.random.RandomState(0).randint(0, 256, shape, np.uint8).astype(dataset.train_x.dtype)
        labels = np.repeat(np.arange(2 * CLASSES), PER_CLASS)
        half = (0.5,) * dataset.channels
        self.images = Images(pixels, labels, mean=half, std=half, device=CPU)
        stages = {name: getattr(config, name) for name in ("first", "later", "second")}
        self.engine = Engine(
            train=self.images,
            augment=Augment(),
            schedules={name: stage.model_copy(update={"epochs": 1}) for name, stage in stages.items()},
            momentum=config.momentum,
            execution=Execution("fp32", graph=False, compile=False, parts=1),
            order=torch.Generator().manual_seed(0),
            noise=torch.Generator().manual_seed(0),
            checkpointer=Checkpointer(store=None, every=0.0, snapshot=dict, restore=lambda state: None),
            on_epoch=ignore,
            note=lambda text: None,
            world=ALONE,
        )

    def learn(self) -> None:
        rows = torch.arange(len(self.images.labels)).view(2, CLASSES, PER_CLASS)
        fit = contract.checked_fit(self.engine.fit)
        for t in range(2):
            task = Task(t, (CLASSES,) * (t + 1), CLASSES * PER_CLASS, len(self.method.memory))
            data = TaskData(list(rows[t]), len(self.images.labels), self.features, self.engine.order)
            self.method.learn(task, data, fit)
            contract.check_state(self.method)
            self.check_readouts(rows[0, 0, :1])

    @torch.no_grad()
    def check_readouts(self, index: Tensor) -> None:
        self.method.net.eval()
        contract.check_readouts(self.method, self.method.readouts(self.images.plain(index)), len(index))

    def features(self, net: Net, index: Tensor, as_trained: bool = False) -> Tensor:
        return unit_features(net, self.images, index, ALONE)
