"""A method of class-incremental learning: a loss by parts, the events when a task arrives, its read-outs."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jioc.config import Options
from jioc.coordination import JIOC
from jioc.data.loader import TaskData
from jioc.errors import Failed, fail_if
from jioc.memory import Memory, class_means
from jioc.methods.specs import Spec
from jioc.methods.state import load_value, save_value, tensors
from jioc.nets.incremental import Net
from jioc.types import Batch, Output, Task, Terms, Weights

Fit = Callable[..., None]  # `training.engine.Engine.fit`: train the network with the method's loss, and JIOC
Event = Callable[[Task, TaskData], None]
NetPlan = dict[str, Any]  # what a network is made from, see `nets.incremental`


class Method:
    """The parts that every method has, and the defaults of its verbs.

    What must outlive a crash is named in `persistent`, beside what the classes above name there; `state.py`
    says what it may be, `contract.py` what else a method must keep to.
    """

    spec: ClassVar[Spec]
    persistent: ClassVar[tuple[str, ...]] = ("net", "teacher", "means")
    for_learning: ClassVar[tuple[str, ...]] = ("teacher",)  # of these, what a model that only answers lacks
    made: dict[str, Any] | None = None  # shapes of its own modules after `__init__`; None: not checked

    def __init_subclass__(cls) -> None:
        if isinstance(own := cls.persistent, str):
            raise TypeError(f"`persistent` is {own!r}; names are needed, such as ({own!r},)")
        named = [name for base in reversed(cls.__mro__) for name in base.__dict__.get("persistent", ())]
        cls.persistent = tuple(dict.fromkeys(named))

    def __init__(
        self,
        *,
        net: Net,
        memory: Memory,
        options: Options,
        coordination: JIOC | None,
        generator: torch.Generator,
    ):
        self.net, self.memory, self.options, self.coordination = net, memory, options, coordination
        self.generator = generator  # of the weights
        self.teacher: Net | None = None
        self.headline = "cnn"  # the read-out that it is judged by
        self.means: Tensor | None = None  # (K, d), of the exemplars' features
        self.prior: Tensor | None = None  # (K,), what --adjust adds in the task at hand
        self.rebalance: Event | None = None  # what --rebalance does once the task at hand is trained

    @staticmethod
    def plan(plan: NetPlan) -> NetPlan:
        """The network that the method wants, from the plan of a plain one: say, with another head."""
        return plan

    # --- the formula -------------------------------------------------------------------------

    def loss(self, batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        """Give one number per image and term; `old` is the teacher's output on the batch."""
        raise Failed(f"{self.spec.name} has no `loss`")

    def weights(self, task: Task) -> Weights:
        """What the terms' means are multiplied by in the total."""
        return {}

    def shares(self, task: Task) -> Weights:
        """Weigh `cls` and `kd` by the shares of new and old classes, unless JIOC balances them."""
        name = self.spec.name
        fail_if(not self.spec.shares, f"{name} calls self.shares, and its entry does not say shares=True")
        if self.coordination is not None and self.coordination.balances:
            return {}
        return {"cls": 1 - task.old_share, "kd": task.old_share}

    def cls_logits(self, out: Output, task: Task) -> Tensor:
        """What `cls` normalises; JIOC weighs an image by its softmax."""
        return out.logits

    def adjusted(self, logits: Tensor) -> Tensor:
        """Add each class's prior to what `cls` normalises (logit adjustment, Menon et al., ICLR 2021)."""
        return logits if self.prior is None else logits + self.prior

    def teacher_output(self, x: Tensor) -> Output | None:
        """The output of a network apart from the one that learns; a GPU runs both at once."""
        return None if self.teacher is None else self.teacher(x)

    def old_output(self, out: Output, teacher_out: Output | None) -> Output | None:
        """The previous network's output on the batch: the teacher's, or one that the network itself gives."""
        return teacher_out

    def before_step(self, task: Task, epoch: int, epochs: int, step: int) -> None:
        """Change in place, before every training step, the tensors that depend on time."""

    # --- the order of events when a task arrives ------------------------------------------------

    def learn(self, task: Task, data: TaskData, fit: Fit) -> None:
        """Learn a task: grow, train, choose exemplars, keep the teacher."""
        self.net.grow(task.n_new, self.generator)
        fit(self, task, data.with_memory(self.memory))
        self.remember(task, data)
        self.keep_teacher()

    def remember(self, task: Task, data: TaskData) -> None:
        """Rebalance the head if asked; then choose exemplars, and average their features."""
        if self.rebalance is not None:
            self.rebalance(task, data)
        features = partial(data.features, self.net)
        self.memory.update(data.classes, features, data.generator)
        self.means = class_means(self.memory, features, self.net.width) if len(self.memory) else None

    def keep_teacher(self) -> None:
        """Keep a frozen copy of the network, if the method or JIOC distils."""
        wanted = self.spec.distils or (self.coordination is not None and self.coordination.needs_teacher)
        self.teacher = self.net.frozen_copy() if wanted else None

    def rehearsed(self, task: Task, data: TaskData) -> None:
        """Update exemplars and teacher after `net` was trained by plain replay on all images in memory."""
        self.remember(task, data)
        self.keep_teacher()

    # --- the decision -----------------------------------------------------------------------------

    def readouts(self, x: Tensor) -> dict[str, Tensor]:
        """Score images by the head, and by the nearest class mean if there are exemplars: (n, K) each."""
        out = self.net(x)
        scores = {"cnn": out.logits, **self.extra_readouts(out)}
        if self.means is not None:
            scores["nme"] = nearest_mean(out.features, self.means)
        return scores

    def extra_readouts(self, out: Output) -> dict[str, Tensor]:
        """Score images in other ways: say, by the head before a correction."""
        return {}

    def head_weight(self) -> Tensor | None:
        """The classifier's rows, (K, d) or (K, proxies, d), whose norms the diagnostics compare, if any."""
        return self.net.head.rows()

    # --- state --------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Collect what the next step depends on, as tensors and plain data."""
        parts = {name: save_value(name, getattr(self, name)) for name in self.persistent}
        return {"memory": list(self.memory.classes), **parts}

    def load_state(self, state: dict[str, Any], device: torch.device) -> None:
        self.memory.classes = list(state["memory"])
        for name in self.persistent:
            setattr(self, name, load_value(name, state[name], getattr(self, name, None), device))


def own_tensors(method: Method) -> list[Tensor]:
    """The tensors that `persistent` names beside the network and its teacher: a loss may change them."""
    values = (getattr(method, name, None) for name in method.persistent if name not in ("net", "teacher"))
    return [tensor for value in values for tensor in tensors(value)]


def own_modules(method: Method) -> dict[str, nn.Module]:
    """The modules in `persistent` that no plan describes, so that only `__init__` can make them."""
    values = {name: getattr(method, name, None) for name in method.persistent}
    return {name: m for name, m in values.items() if isinstance(m, nn.Module) and not isinstance(m, Net)}


def nearest_mean(features: Tensor, means: Tensor) -> Tensor:
    """Minus the squared distance of unit-norm features to each class mean, -inf if it has none: (n, K)."""
    distance = torch.cdist(F.normalize(features.float(), dim=1), means).square()
    return -distance.nan_to_num(nan=torch.inf)
