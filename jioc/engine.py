"""The one training loop. Methods call `fit`; it never asks which method it serves."""

import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .checkpoint import Journal
from .config import Schedule
from .coordination import JIOC
from .data.dataset import Augmentation
from .data.loader import Images, Stream
from .errors import Failed
from .methods.base import Method
from .nets.incremental import Net
from .types import Batch, Task, Terms

OWN: Any = object()  # "the method's own"


def lr_at(schedule: Schedule, epoch: int) -> float:
    """The learning rate of an epoch, counted from 0."""
    assert schedule.lr is not None and schedule.epochs is not None
    if schedule.decay == "cosine":
        return schedule.lr * 0.5 * (1 + math.cos(math.pi * epoch / schedule.epochs))
    return schedule.lr * 0.1 ** sum(epoch >= m for m in schedule.milestones or ())


class Engine:
    """Trains networks on a device; holds the generators of data order and augmentation."""

    def __init__(
        self,
        *,
        train: Images,
        augment: Augmentation,
        schedules: dict[str, Schedule],
        momentum: float,
        precision: str,
        order: torch.Generator,
        noise: torch.Generator,
        journal: Journal,
        on_epoch: Callable[[dict[str, Any]], None],
    ):
        self.train, self.augment, self.schedules, self.momentum, self.precision = (
            train,
            augment,
            schedules,
            momentum,
            precision,
        )
        self.order, self.noise, self.journal, self.on_epoch = order, noise, journal, on_epoch
        self.trained = 0  # images, and the seconds spent on them, in the task at hand
        self.seconds = 0.0

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.train.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def fit(
        self,
        method: Method,
        task: Task,
        stream: Stream,
        *,
        stage: str | None = None,
        net: Net | None = None,
        params: Iterable[nn.Parameter] | None = None,
        loss: Callable[..., Terms] | None = None,
        coordination: JIOC | None = OWN,
        train_mode: bool = True,
    ) -> None:
        """Train `net` (or only `params`) on the stream. `stage` names the schedule: first, later or second."""
        stage = stage or ("first" if task.n_old == 0 else "later")
        schedule = self.schedules[stage]
        net = method.net if net is None else net
        trained = [p for p in (net.parameters() if params is None else params) if p.requires_grad]
        optimiser = torch.optim.SGD(trained, lr=0.0, momentum=self.momentum, weight_decay=schedule.weight_decay or 0.0)
        coordination = method.coordination if coordination is OWN else coordination

        saved = self.journal.enter()
        if saved is not None and saved.get("finished"):
            return
        first_epoch, first_step = 0, 0
        sums: dict[str, Tensor] = {}
        if saved is not None:
            first_epoch, first_step = saved["epoch"], saved["step"]
            self.order.set_state(saved["order"])
            sums = {name: value.to(self.train.device) for name, value in saved["sums"].items()}
            for p, buffer in zip(trained, saved["momentum"], strict=True):
                if buffer is not None:
                    optimiser.state[p]["momentum_buffer"] = buffer.to(p.device)

        net.train(train_mode)
        step = partial(self.step, method, task, net, loss or method.loss, coordination, optimiser)
        assert schedule.epochs is not None
        for epoch in range(first_epoch, schedule.epochs):
            before = self.order.get_state()  # from which this epoch's order can be drawn again
            batches = [index.to(self.train.device) for index in stream.epoch(self.order)]
            self.train.prefetch(batches[first_step:])
            for group in optimiser.param_groups:
                group["lr"] = lr_at(schedule, epoch)
            started, skipped = time.perf_counter(), first_step
            for i in range(first_step, len(batches)):
                self.journal.leave_if_told(lambda: _progress(epoch, i, sums, optimiser, trained, before))  # noqa: B023
                method.before_step(task, epoch, schedule.epochs, i)
                for name, value in step(batches[i]).items():
                    sums[name] = sums[name] + value if name in sums else value
            self._report(task, stage, epoch, schedule, sums, batches, skipped, started)
            sums, first_step = {}, 0
            if epoch + 1 < schedule.epochs:
                after = self.order.get_state()
                self.journal.epoch(lambda: _progress(epoch + 1, 0, {}, optimiser, trained, after))  # noqa: B023
        net.eval()
        self.journal.finish()

    def step(
        self,
        method: Method,
        task: Task,
        net: Net,
        loss: Callable[..., Terms],
        coordination: JIOC | None,
        optimiser: torch.optim.Optimizer,
        index: Tensor,
    ) -> Terms:
        """One batch: gather, augment, forward, terms, coordination, mean, backward, update.

        Returns the sum of each term over the batch.
        """
        x = self.train.augmented(index, self.augment, self.noise)
        y = self.train.labels[index]
        batch = Batch(x, y, y < task.n_old)
        with self.autocast():
            out = net(x)
            with torch.no_grad():
                old = method.old_output(x, out)
        terms = loss(batch, out, old, task)
        if coordination is not None:
            terms = coordination(terms, batch, out, old, task, method.cls_logits(out, task))
        weights = method.weights(task)
        total = sum(weights.get(name, 1.0) * term.mean() for name, term in terms.items())  # the only reduction
        assert isinstance(total, Tensor)
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        optimiser.step()
        return {name: term.detach().sum() for name, term in terms.items()}

    def _report(
        self,
        task: Task,
        stage: str,
        epoch: int,
        schedule: Schedule,
        sums: dict[str, Tensor],
        batches: list[Tensor],
        skipped: int,
        started: float,
    ) -> None:
        """One line for the log; the epoch's only wait for the device."""
        images = sum(map(len, batches))
        means = {name: value.item() / images for name, value in sums.items()}
        if not all(map(math.isfinite, means.values())):
            where = f"task {task.index + 1}, epoch {epoch + 1}"
            raise Failed(f"the loss is not finite in {where}: {means}; a smaller --lr may help")
        seconds = time.perf_counter() - started
        here = sum(map(len, batches[skipped:]))
        self.trained, self.seconds = self.trained + here, self.seconds + seconds
        self.on_epoch(
            {
                "task": task.index + 1,
                "stage": stage,
                "epoch": epoch + 1,
                "epochs": schedule.epochs,
                "lr": lr_at(schedule, epoch),
                "images": images,
                "terms": means,
                "seconds": seconds,
                "images_per_second": here / max(seconds, 1e-9),
            }
        )


def _progress(
    epoch: int,
    step: int,
    sums: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    trained: list[nn.Parameter],
    order: Tensor,
) -> dict[str, Any]:
    """What the rest of the stage depends on beside the run's state; `order`: the generator before the epoch's draw."""
    momentum = [optimiser.state[p].get("momentum_buffer") if p in optimiser.state else None for p in trained]
    return {"epoch": epoch, "step": step, "sums": sums, "momentum": momentum, "order": order}
