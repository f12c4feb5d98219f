"""The one training loop. Methods call `fit`; it never asks which method it serves."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from jioc.config import Schedule, lr_at
from jioc.coordination import JIOC, Mean
from jioc.data.augment.basic import Augmentation
from jioc.data.augment.mix import Mix, mixed_terms
from jioc.data.loader import Images, Sampler
from jioc.device import distributed, streams
from jioc.device.compile import compiling
from jioc.errors import Failed, first_line
from jioc.events import Epoch
from jioc.methods.base import Method, own_modules, own_tensors
from jioc.nets import batchnorm
from jioc.nets.incremental import Net
from jioc.training import finite
from jioc.training.averaging import WeightAverage
from jioc.training.batches import Batches, split
from jioc.training.checkpoint import Checkpointer, State
from jioc.training.execution import Body, EagerSteps, Execution, GraphSteps, Sums
from jioc.training.pulse import Pulse
from jioc.types import Batch, Task, Terms

OWN: Any = object()  # "the method's own"


class Engine:
    """Trains networks on a device; holds the generators of data order and augmentation."""

    def __init__(
        self,
        *,
        train: Images,
        augment: Augmentation,
        schedules: dict[str, Schedule],
        momentum: float,
        pretrained_lr: float,
        execution: Execution,
        order: torch.Generator,
        noise: torch.Generator,
        checkpointer: Checkpointer,
        on_epoch: Callable[[Epoch], None],
        pulse: Pulse,
        note: Callable[[str], None],
        world: distributed.World,
        mix: Mix | None = None,
        ema: float = 0.0,
    ):
        self.batches, self.ema = Batches(train, augment, mix, noise), ema
        self.train, self.schedules, self.momentum = train, schedules, momentum
        self.pretrained_lr = pretrained_lr  # as a share of the rate
        self.execution, self.device, self.world = execution, train.device, world
        self.order, self.noise = order, noise
        self.checkpointer, self.on_epoch, self.pulse, self.note = checkpointer, on_epoch, pulse, note
        self.trained, self.seconds = 0, 0.0  # images, and the time spent on them, in this task

    def fit(
        self,
        method: Method,
        task: Task,
        sampler: Sampler,
        *,
        stage: str | None = None,
        net: Net | None = None,
        params: Iterable[nn.Parameter] | None = None,
        loss: Callable[..., Terms] | None = None,
        coordination: JIOC | None = OWN,
        train_mode: bool = True,
    ) -> None:
        """Train `net` (or only `params`) on the sampler's images.

        `stage` names the schedule: first, later, second or rebalance. A `loss` that is given has its own
        factors, not the method's weights; a second stage with one is coordinated only if `coordination` is
        given too. Images are mixed where the whole network trains.
        """
        stage = stage or ("first" if task.n_old == 0 else "later")
        schedule = self.schedules.get(stage)
        if schedule is None or schedule.epochs is None:
            raise Failed(f"{method.spec.name} fits a stage {stage!r}, which its entry does not have")
        net = method.net if net is None else net
        self._round_teacher(method)
        asked = [*(net.parameters() if params is None else params)]
        trained = [p for p in asked if p.requires_grad]
        loss = loss or method.loss
        if coordination is OWN:
            coordination = None if stage == "second" and loss != method.loss else method.coordination
        own = [m for m in own_modules(method).values() if {*m.parameters()} & {*trained}]
        nets = nn.ModuleList([net, *own])

        saved = self.checkpointer.resume_stage()
        if saved is not None and saved.get("finished"):
            return
        optimiser, set_lr = self._optimiser(
            trained, schedule.weight_decay or 0.0, net.pretrained_parameters()
        )
        nets.train(train_mode)
        if self.world.size > 1 and self.world.bn == "synchronised":
            batchnorm.synchronise(net)
        wrapped = self.world.wrap(net, trained)
        whole_net = {*net.parameters()} <= {*asked}  # a stage that corrects a head mixes and averages nothing
        body: Body = partial(self.step, method, task, wrapped, loss, coordination, optimiser, whole_net)
        changing = [optimiser.state[p]["momentum_buffer"] for p in trained]  # beside the weights
        average = WeightAverage(self.ema, trained, nets) if self.ema and whole_net else None
        if average is not None:
            body, changing = average.after(body), [*changing, *average.tensors]
        steps = self._steps(body, nets, [*trained, *changing, *own_tensors(method)])
        progress = partial(self._progress, changing)
        first_epoch, first_step = self._restore(saved, steps, changing) if saved else (0, 0)

        for epoch in range(first_epoch, schedule.epochs):
            before = self.order.get_state()  # to draw this epoch's order again
            batches = sampler.epoch(self.order)
            set_lr(lr_at(schedule, epoch))
            started = time.perf_counter()
            with self._compiling(sampler):
                steps = self._begin(steps, batches, first_step)
                for i in range(first_step, len(batches)):
                    self.checkpointer.save_and_stop_if_asked(partial(progress, epoch, i, before, steps.sums))
                    method.before_step(task, epoch, schedule.epochs, i)
                    steps.run(i)
                    self.pulse(task.index, stage, epoch, schedule.epochs, batches, i)
            self._report(task, stage, epoch, schedule, steps.sums, batches, first_step, started)
            first_step = 0
            if epoch + 1 < schedule.epochs:
                self.checkpointer.end_epoch(partial(progress, epoch + 1, 0, self.order.get_state(), {}))
        nets.eval()
        if average is not None:
            average.hand_over()
        finite.check_weights([net, *own], f" after task {task.index + 1}", self.world)
        self.checkpointer.end_stage()

    def step(
        self,
        method: Method,
        task: Task,
        net: nn.Module,
        loss: Callable[..., Terms],
        coordination: JIOC | None,
        optimiser: torch.optim.Optimizer,
        whole_net: bool,
        index: Tensor,
        sums: Sums,
    ) -> None:
        """One batch: gather, augment, mix, forward, terms, coordination, mean, backward, update."""
        optimiser.zero_grad(set_to_none=True)
        weights, world = method.weights(task) if loss == method.loss else {}, self.world
        parts = split(index, self.execution.parts)
        batches = self.batches.gather(parts, task, mixed=whole_net)
        average = self._averaging(method, task, net, coordination, index, batches)
        for part, batch in zip(parts, batches, strict=True):
            side = streams.SideStream(self.device)
            with world.averaging(net, part is parts[-1]):
                with self.arithmetic():
                    with side, torch.no_grad():
                        teacher_out = method.teacher_output(batch.x)
                    out = net(batch.x)
                    side.join()
                    with torch.no_grad():
                        old = method.old_output(out, teacher_out)
                terms = mixed_terms(loss, batch, out, old, task)
                if coordination is not None:
                    terms = coordination(terms, batch, out, old, task, method.cls_logits(out, task), average)
                # the only reduction: up to here each term has a number per image
                means = {name: world.mean(term, len(part)) for name, term in terms.items()}
                total: Any = sum(weights.get(name, 1.0) * value for name, value in means.items())
                (total if len(part) == len(index) else total * (len(part) / len(index))).backward()
            for name, term in terms.items():
                if name not in sums:
                    sums[name] = torch.zeros((), device=self.device)
                sums[name].add_(term.detach().sum())
        optimiser.step()
        world.average_statistics(net, len(index))

    def _averaging(
        self,
        method: Method,
        task: Task,
        net: nn.Module,
        coordination: JIOC | None,
        index: Tensor,
        batches: list[Batch],
    ) -> Mean:
        """Give what averages input weights over the whole batch.

        The weights of several processes are summed over them. Those of a batch in parts are known only after
        all parts: they go through the network once before, which leaves BN's running statistics as they were.
        """
        if coordination is None or not coordination.averages or task.n_old == 0:
            return torch.mean
        if len(batches) == 1:
            return torch.mean if self.world.size == 1 else lambda w: self.world.sum(w.sum()) / len(index)
        total, buffers = torch.zeros((), device=self.device), [*net.buffers()]
        before = [b.clone() for b in buffers]
        with torch.no_grad():
            for batch in batches:
                with self.arithmetic():
                    out = net(batch.x)
                total += coordination.weight(batch, out, method.cls_logits(out, task)).sum()
            for b, value in zip(buffers, before, strict=True):
                b.copy_(value)
        whole = self.world.sum(total) / len(index)
        return lambda _: whole

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
        """Report an epoch; refuse to go on from a loss that is not finite."""
        images = sum(map(len, batches))
        values = self.world.sum(torch.stack(list(sums.values()))).tolist()
        means = {name: value / images for name, value in zip(sums, values, strict=True)}
        for value in sums.values():
            value.zero_()
        if not all(map(math.isfinite, means.values())):
            raise finite.NotFinite(
                f"the loss is not finite in task {task.index + 1}, epoch {epoch + 1}: {means}; "
                "a smaller --lr may help"
            )
        seconds, here = time.perf_counter() - started, sum(map(len, batches[skipped:]))
        self.trained, self.seconds = self.trained + here, self.seconds + seconds
        self.on_epoch(
            Epoch(
                task=task.index + 1,
                stage=stage,
                epoch=epoch + 1,
                epochs=schedule.epochs or 0,
                lr=lr_at(schedule, epoch),
                images=images,
                terms=means,
                seconds=seconds,
                images_per_second=here / max(seconds, 1e-9),
            )
        )

    # --- the device ---

    def arithmetic(self) -> Any:
        """The context of a step's forward passes: its precision."""
        bf16 = self.execution.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16) if bf16 else nullcontext()

    def _round_teacher(self, method: Method) -> None:
        """On CUDA in bf16, round a teacher's convolutions once instead of in each step."""
        if self.device.type == "cuda" and self.execution.precision == "bf16" and method.teacher is not None:
            round_convolutions(method.teacher)

    def _compiling(self, sampler: Sampler) -> Any:
        """The context in which a full batch, or each part of it, runs compiled."""
        if not self.execution.compile:
            return nullcontext()
        parts = split(torch.arange(sampler.batch_size), self.execution.parts)
        return compiling(*(len(self.train.own(part)) for part in parts))

    def _optimiser(
        self, trained: list[nn.Parameter], weight_decay: float, pretrained: list[nn.Parameter]
    ) -> tuple[torch.optim.SGD, Callable[[float], object]]:
        """Make SGD, and a function that sets its rate; pretrained layers get a share of it.

        A CUDA graph needs the rate in a tensor, and momentum from the start.
        """
        cuda, slow = self.device.type == "cuda", {*pretrained} if self.pretrained_lr != 1 else set()
        both = (
            (1.0, [p for p in trained if p not in slow]),
            (self.pretrained_lr, [p for p in trained if p in slow]),
        )
        groups: list[dict[str, Any]] = [
            {"params": some, "lr": torch.zeros((), device=self.device) if cuda else 0.0}
            for _, some in both if some
        ]  # fmt: skip
        shares = [share for share, some in both if some]
        optimiser = torch.optim.SGD(groups, 0.0, self.momentum, weight_decay=weight_decay, fused=cuda)
        for p in trained:
            optimiser.state[p]["momentum_buffer"] = torch.zeros_like(p)

        def set_lr(lr: float) -> None:
            for group, share in zip(optimiser.param_groups, shares, strict=True):
                group["lr"] = group["lr"].fill_(lr * share) if cuda else lr * share

        return optimiser, set_lr

    def _steps(self, body: Body, nets: nn.ModuleList, others: Sequence[Tensor]) -> EagerSteps:
        """The steps of a stage. `others`: what they may change beside the networks."""
        if not self.execution.graph:
            return EagerSteps(body, self.device)

        def live() -> list[Tensor]:
            weights = nets.state_dict(keep_vars=True).values()
            return [*{id(t): t for t in (*weights, *others)}.values()]

        def feed(batch: Tensor) -> None:
            self.train.feed(split(batch, self.execution.parts))

        return GraphSteps(body, self.device, self.noise, live, feed, self.train.reading_fed)

    def _begin(self, steps: EagerSteps, batches: list[Tensor], first: int) -> EagerSteps:
        """Begin an epoch; fall back to eager steps for good if a step cannot be captured."""
        try:
            steps.begin(batches, first)
        except RuntimeError as error:
            if not isinstance(steps, GraphSteps) or isinstance(error, torch.OutOfMemoryError):
                raise
            why = first_line(error)[:200]
            self.note(f"the step cannot be captured in a CUDA graph, so it runs as it is: {why}")
            steps = EagerSteps(steps.body, self.device, steps.sums)
            steps.begin(batches, first)
        coming = [split(batch, self.execution.parts) for batch in steps.batches[first:]]
        self.train.prefetch([part for parts in coming for part in parts])
        return steps

    # --- resuming a stage ---

    def _progress(self, changing: list[Tensor], epoch: int, step: int, order: Tensor, sums: Sums) -> State:
        """Collect what the rest of the stage depends on, apart from the run's state.

        `order`: the generator's state before the epoch was drawn. Each term has the sums of all processes.
        """
        return {
            "epoch": epoch,
            "step": step,
            "sums": {name: self.world.gather(value) for name, value in sums.items()},
            "changing": changing,
            "order": order,
        }

    def _restore(self, saved: State, steps: EagerSteps, changing: list[Tensor]) -> tuple[int, int]:
        """Put a stage back to where it was saved; return the epoch and the step to go on with."""
        self.order.set_state(saved["order"])
        for name, value in saved["sums"].items():
            steps.sums[name] = self.world.own_part(value.view(-1).to(self.device))
        for live, value in zip(changing, saved["changing"], strict=True):
            live.copy_(value)
        return saved["epoch"], saved["step"]


def round_convolutions(net: Net) -> None:
    """Keep a frozen network's convolutions in bf16; it then answers within `Engine.arithmetic` alone."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            module.to(torch.bfloat16)


def is_rounded(net: Net) -> bool:
    return any(p.dtype == torch.bfloat16 for p in net.parameters())
