"""JIOC for Avalanche's strategies that replay exemplars: the criterion and the callback in one object.

    from avalanche.training import Replay
    strategy = Replay(model=model, optimizer=optimizer, criterion=JIOCPlugin(), mem_size=200, ...)

Avalanche calls a criterion that is a plugin as both. The formula is `coordination.JIOC`. Here is what it
needs: which classes came when, which images are old, how many of each there are, and the outputs of the
network as it was before the task.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from jioc.coordination import JIOC
from jioc.errors import refuse_if
from jioc.losses import cross_entropy
from jioc.types import Batch, Output, Task

try:
    from avalanche.models import MultiTaskModule
    from avalanche.training.plugins import SupervisedPlugin
except ModuleNotFoundError as error:
    raise ImportError(
        f"jioc.integrations.avalanche needs Avalanche (no {error.name!r}): pip install 'jioc[avalanche]'"
    ) from None


class JIOCPlugin(SupervisedPlugin):
    """JIOC as a strategy's `criterion`, with the options of `jioc.JIOC`: `JIOCPlugin(coordinate="oc")`.

    The host's loss is the cross-entropy of the model's outputs, as it is Avalanche's; evaluation and the
    first experience have no other. Units of classes not seen yet stay in that softmax, as in the host's, and
    out of the two output terms. Class labels may come in any order.
    """

    def __init__(self, **options: Any):
        super().__init__()
        self.jioc = JIOC(**options)
        self.learnt: list[int] = []  # labels of past experiences, in the order of learning
        self.sizes: tuple[int, ...] = ()  # classes of each past experience
        self.new: list[int] = []  # labels of the experience at hand
        self.task: Task | None = None
        self.teacher: nn.Module | None = None
        self.x: Tensor | None = None  # of the training step at hand; None in evaluation
        self.teacher_out: Tensor | None = None  # the teacher's outputs on it

    def before_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        data, held = strategy.experience.dataset, exemplars(strategy)
        self.new = sorted(map(int, data.targets.uniques))
        again = min(set(self.new) & set(self.learnt), default=None)
        lacking = self.learnt and not held and (self.jioc.distils or self.jioc.suppresses)
        refuse_if(
            strategy._criterion is not self,
            "JIOCPlugin is the loss as well: give it to the strategy as criterion=, not among plugins= alone",
        )
        refuse_if(
            isinstance(strategy.model, MultiTaskModule),
            "JIOCPlugin needs a model with one head for all classes, not one for each task label",
        )
        refuse_if(
            again is not None,
            f"class {again} comes again; JIOCPlugin needs each class in one experience alone",
        )
        refuse_if(
            lacking, "the strategy holds no exemplars, so outputs cannot be coordinated; coordinate='ic' can"
        )
        self.task = Task(len(self.sizes), (*self.sizes, len(self.new)), len(data), held)

    def after_forward(self, strategy: Any, **kwargs: Any) -> None:
        self.x = strategy.mb_x
        if self.teacher is not None:
            with torch.no_grad():
                self.teacher_out = self.teacher(self.x)

    def before_eval_forward(self, strategy: Any, **kwargs: Any) -> None:
        self.x = self.teacher_out = None

    def after_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        assert self.task is not None
        self.learnt, self.sizes = [*self.learnt, *self.new], self.task.sizes
        self.x = self.teacher_out = None
        if self.jioc.needs_teacher:
            self.teacher = copy.deepcopy(strategy.model).eval().requires_grad_(False)

    def __call__(self, outputs: Tensor, y: Tensor) -> Tensor:
        terms = {"cls": cross_entropy(outputs, y)}
        if self.x is not None and self.task is not None:
            seen = [*self.learnt, *self.new]
            unseen = set(range(outputs.shape[1])) - set(seen)
            units = torch.tensor([*seen, *sorted(unseen)], device=outputs.device)  # in the order of learning
            logits, labels = outputs[:, units], units.argsort()[y]
            batch = Batch(self.x, labels, labels < self.task.n_old)
            out = Output(logits[:, : len(seen)])
            teacher_out = None if self.teacher_out is None else Output(self.teacher_out[:, self.learnt])
            terms = self.jioc(terms, batch, out, teacher_out, self.task, cls_logits=logits)
        return torch.stack([term.mean() for term in terms.values()]).sum()


def exemplars(strategy: Any) -> int:
    """Count the images that the strategy's plugins hold for replay."""
    policies = [getattr(plugin, "storage_policy", None) for plugin in strategy.plugins]
    return sum(len(getattr(policy, "buffer", ())) for policy in policies)
