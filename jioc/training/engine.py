"""The one training loop. Methods call `fit`; it never asks which method it serves."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from jioc.config.schema import Schedule
from jioc.coordination import JIOC
from jioc.data.augment.basic import Augmentation
from jioc.data.loader import Images, Visits
from jioc.device.compile import compiling
from jioc.device.distributed import World
from jioc.device.streams import Beside
from jioc.errors import Failed
from jioc.losses import per_image
from jioc.methods.base import Method
from jioc.methods.state import trained_beside
from jioc.nets.incremental import Net
from jioc.training.checkpoint import Journal
from jioc.training.steps import EagerSteps, GraphSteps, Steps, Sums, graph_refusal
from jioc.types import Batch, Task, Terms

OWN: Any = object()  # "the method's own"


def lr_at(schedule: Schedule, epoch: int) -> float:
    """The learning rate of an epoch, counted from 0."""
    assert schedule.lr is not None and schedule.epochs is not None
    if schedule.decay == "cosine":
        return schedule.lr * 0.5 * (1 + math.cos(math.pi * epoch / schedule.epochs))
    return schedule.lr * 0.1 ** sum(epoch >= m for m in schedule.milestones or ())


@dataclass(frozen=True)
class How:
    """How a step is carried out; none of it changes what is computed, but for rounding."""

    precision: str  # fp32, tf32 or bf16
    graph: bool  # the whole step in a CUDA graph
    compile: bool  # backbones compiled
    parts: int  # a batch in several parts, to save memory; BN then sees a part at a time


class Engine:
    """Trains networks on a device; holds the generators of data order and augmentation."""

    def __init__(
        self,
        *,
        train: Images,
        augment: Augmentation,
        schedules: dict[str, Schedule],
        momentum: float,
        how: How,
        order: torch.Generator,
        noise: torch.Generator,
        journal: Journal,
        on_epoch: Callable[[dict[str, Any]], None],
        note: Callable[[str], None],
        world: World,
    ):
        self.train, self.augment, self.schedules, self.momentum = train, augment, schedules, momentum
        self.how, self.device = how, train.device
        self.order, self.noise, self.journal, self.on_epoch, self.note = order, noise, journal, on_epoch, note
        self.world = world
        self.trained = 0  # images, and the seconds spent on them, in the task at hand
        self.seconds = 0.0

    def fit(
        self,
        method: Method,
        task: Task,
        visits: Visits,
        *,
        stage: str | None = None,
        net: Net | None = None,
        params: Iterable[nn.Parameter] | None = None,
        loss: Callable[..., Terms] | None = None,
        coordination: JIOC | None = OWN,
        train_mode: bool = True,
    ) -> None:
        """Train `net` (or only `params`) on the images visited. `stage` names the schedule: first, later or second.

        A `loss` that is given has factors of its own, not the method's weights. A second stage with one is coordinated
        only where that is asked for.
        """
        stage = stage or ("first" if task.n_old == 0 else "later")
        schedule = self.schedules[stage]
        assert schedule.epochs is not None
        net = method.net if net is None else net
        self._lay_out(net, method)
        trained = [p for p in (net.parameters() if params is None else params) if p.requires_grad]
        loss = loss or method.loss
        if coordination is OWN:
            coordination = None if stage == "second" and loss != method.loss else method.coordination
        nets = [net, *trained_beside(method, trained)]

        saved = self.journal.enter()
        if saved is not None and saved.get("finished"):
            return
        optimiser, set_lr = self._optimiser(trained, schedule.weight_decay or 0.0)
        for part in nets:
            part.train(train_mode)
        shared = self.world.wrap(net, trained)
        body = partial(self.step, method, task, shared, loss, coordination, optimiser)
        steps = self._steps(body, nets, trained, optimiser)
        first_epoch, first_step = 0, 0
        if saved is not None:
            first_epoch, first_step = saved["epoch"], saved["step"]
            self.order.set_state(saved["order"])
            steps.sums = {name: self.world.own(value.view(-1).to(self.device)) for name, value in saved["sums"].items()}
            for p, buffer in zip(trained, saved["momentum"], strict=True):
                optimiser.state[p]["momentum_buffer"].copy_(buffer)

        for epoch in range(first_epoch, schedule.epochs):
            before = self.order.get_state()  # from which this epoch's order can be drawn again
            batches = visits.epoch(self.order)
            set_lr(lr_at(schedule, epoch))
            started = time.perf_counter()
            with self._compiling(visits):
                steps = self._begin(steps, batches, first_step)
                for i in range(first_step, len(batches)):
                    self.journal.leave_if_told(
                        lambda: _progress(epoch, i, self._everyones(steps.sums), optimiser, trained, before)  # noqa: B023
                    )
                    method.before_step(task, epoch, schedule.epochs, i)
                    steps.run(i)
                    if loss == method.loss and (epoch, i) == (first_epoch, first_step):
                        refuse_idle_weights(method, task, steps.sums, coordination)
            self._report(task, stage, epoch, schedule, steps.sums, batches, first_step, started)
            first_step = 0
            if epoch + 1 < schedule.epochs:
                after = self.order.get_state()
                self.journal.epoch(lambda: _progress(epoch + 1, 0, {}, optimiser, trained, after))  # noqa: B023
        for part in nets:
            part.eval()
        self.journal.finish()

    def step(
        self,
        method: Method,
        task: Task,
        net: nn.Module,
        loss: Callable[..., Terms],
        coordination: JIOC | None,
        optimiser: torch.optim.Optimizer,
        index: Tensor,
        sums: Sums,
    ) -> None:
        """One batch: gather, augment, forward, terms, coordination, mean, backward, update."""
        optimiser.zero_grad(set_to_none=True)
        weights, world = method.weights(task) if loss == method.loss else {}, self.world
        parts = self._parts(index)
        for part in parts:
            x = self.train.augmented(part, self.augment, self.noise)
            y = self.train.labels[self.train.own(part)]
            batch = Batch(x, y, y < task.n_old)
            beside = Beside(self.device)
            with world.averaging(net, part is parts[-1]):
                with self.arithmetic():
                    with beside, torch.no_grad():
                        taught = method.teacher_output(x)
                    out = net(x)
                    beside.join()
                    with torch.no_grad():
                        old = method.old_output(out, taught)
                terms = loss(batch, out, old, task)
                per_image(terms, y, method.spec.name)
                if coordination is not None:
                    terms = coordination(terms, batch, out, old, task, method.cls_logits(out, task))
                means = {name: world.mean(term, len(part)) for name, term in terms.items()}  # the only reduction
                total = sum(weights.get(name, 1.0) * mean for name, mean in means.items())
                assert isinstance(total, Tensor)
                if not total.requires_grad:
                    raise Failed(f"the loss of {method.spec.name} has no gradient: no term depends on what is trained")
                (total if len(part) == len(index) else total * (len(part) / len(index))).backward()
            for name, term in terms.items():
                if name not in sums:
                    sums[name] = torch.zeros((), device=self.device)
                sums[name].add_(term.detach().sum())
        optimiser.step()
        world.mix_statistics(net, len(index))

    def _parts(self, index: Tensor) -> tuple[Tensor, ...]:
        """What of a batch goes through the network at once: each so-manyth image, as `World.share` has it."""
        n = self.how.parts
        return tuple(index[i::n] for i in range(min(n, len(index)))) if n > 1 else (index,)

    # --- the machine ---

    def arithmetic(self) -> Any:
        """What a step's forward passes run in."""
        if self.how.precision == "bf16":
            return torch.autocast(self.device.type, torch.bfloat16)
        return nullcontext()

    def _lay_out(self, net: Net, method: Method) -> None:
        """On CUDA, convolutions have their channels innermost, and a teacher's are rounded to bf16 once for all."""
        if self.device.type != "cuda":
            return
        for value in (net, *(getattr(method, name) for name in method.persistent)):
            if isinstance(value, Net):
                value.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if self.how.precision == "bf16" and method.teacher is not None:
            for module in method.teacher.modules():
                if isinstance(module, nn.Conv2d):
                    module.to(torch.bfloat16)

    def _compiling(self, visits: Visits) -> Any:
        if not self.how.compile:
            return nullcontext()
        return compiling(*(len(self.train.own(part)) for part in self._parts(torch.arange(visits.batch_size))))

    def _optimiser(
        self, trained: list[nn.Parameter], weight_decay: float
    ) -> tuple[torch.optim.SGD, Callable[[float], object]]:
        """SGD and what sets its rate. For the graph's sake the rate is a tensor and momentum exists from the start."""
        cuda = self.device.type == "cuda"
        lr: Any = torch.zeros((), device=self.device) if cuda else 0.0
        optimiser = torch.optim.SGD(trained, lr, self.momentum, weight_decay=weight_decay, fused=cuda)
        for p in trained:
            optimiser.state[p]["momentum_buffer"] = torch.zeros_like(p)
        return optimiser, lr.fill_ if cuda else partial(optimiser.param_groups[0].__setitem__, "lr")

    def _steps(
        self, body: Any, nets: Sequence[nn.Module], trained: list[nn.Parameter], optimiser: torch.optim.Optimizer
    ) -> Steps:
        if not self.how.graph:
            return EagerSteps(body, self.device)

        def live() -> list[Tensor]:
            momentum = [optimiser.state[p]["momentum_buffer"] for p in trained]
            held = [t for net in nets for t in net.state_dict(keep_vars=True).values()]
            return [*{id(t): t for t in (*held, *trained, *momentum)}.values()]

        return GraphSteps(body, self.device, self.noise, live)

    def _begin(self, steps: Steps, batches: list[Tensor], first: int) -> Steps:
        """An epoch starts; a step that cannot be captured is taken as it is from here on."""
        try:
            steps.begin(batches, first)
            if isinstance(steps, EagerSteps):
                self.train.prefetch([part for batch in steps.batches[first:] for part in self._parts(batch)])
        except RuntimeError as error:
            if not isinstance(steps, GraphSteps) or isinstance(error, torch.OutOfMemoryError):
                raise
            self.note(f"the step cannot be captured in a CUDA graph, so it runs as it is: {graph_refusal(error)}")
            sums, steps = steps.sums, EagerSteps(steps.body, self.device)
            steps.sums = sums
            steps.begin(batches, first)
        return steps

    def _everyones(self, sums: Sums) -> Sums:
        """Each process's sums: (processes,) of each term."""
        return {name: self.world.gathered(value) for name, value in sums.items()}

    def _report(
        self,
        task: Task,
        stage: str,
        epoch: int,
        schedule: Schedule,
        sums: Sums,
        batches: list[Tensor],
        skipped: int,
        started: float,
    ) -> None:
        """One line for the log, once the epoch is done."""
        images = sum(map(len, batches))
        values = self.world.total(torch.stack(list(sums.values()))).tolist()
        means = {name: value / images for name, value in zip(sums, values, strict=True)}
        for value in sums.values():
            value.zero_()
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


def refuse_idle_weights(method: Method, task: Task, terms: Iterable[str], coordination: JIOC | None) -> None:
    """A weight whose term the method's loss does not have would be ignored. A first task may lack terms of old classes.

    `quiet` is JIOC's, and so may `kd` be, or left out by it.
    """
    known = {*terms, "quiet", *(["kd"] if coordination is not None else [])}
    idle = sorted(method.weights(task).keys() - known) if task.n_old else []
    if idle:
        told = f"weights of {method.spec.name} weigh {', '.join(map(repr, idle))}, which its loss does not return"
        raise Failed(f"{told}; it returns {', '.join(map(repr, terms))}")


def _progress(
    epoch: int, step: int, sums: Sums, optimiser: torch.optim.Optimizer, trained: list[nn.Parameter], order: Tensor
) -> dict[str, Any]:
    """What the rest of the stage depends on beside the run's state; `order`: the generator before the epoch's draw."""
    momentum = [optimiser.state[p]["momentum_buffer"] for p in trained]
    return {"epoch": epoch, "step": step, "sums": dict(sums), "momentum": momentum, "order": order}
