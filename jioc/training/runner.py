"""The page to read first: a run is a loop over tasks. `run.py` starts it."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from jioc import __version__, metrics
from jioc.config import values as settings
from jioc.data.augment.choose import choose_augmentation
from jioc.data.augment.mix import Mix
from jioc.data.loader import TaskData
from jioc.errors import Failed, refuse_if
from jioc.events import Callback, Epoch, Note, Start, TaskEnd, ignore
from jioc.methods import contract, parse_record, record, refuse_changed, registry
from jioc.methods.base import Fit
from jioc.nets.incremental import Net
from jioc.results import FORMAT, DataRecord, Result, TaskRow
from jioc.text import counted
from jioc.training import build, checkpoint, engine, evaluate, execution, finite, model, notes, pulse
from jioc.training.judged import Judging
from jioc.training.rebalance import is_unequal, rebalance, schedule
from jioc.training.store import Store
from jioc.types import Task


class Run:
    """A run with its parts by name: the only place that knows them all."""

    def __init__(
        self,
        plan: build.Plan,
        store: Store | None = None,
        callback: Callback | None = None,
        stop: Callable[[], bool] | None = None,
        command: str | None = None,
    ):
        self.plan, self.store, self.tell, self.command = plan, store, callback or ignore, command
        self.config, self.spec, self.scenario = plan.config, plan.spec, plan.scenario
        self.dataset, self.device, self.world = plan.dataset, plan.device, plan.world
        if self.world.size > 1 and self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        half = build.halves(self.config)
        self.train, self.test = build.images(self.dataset, self.scenario, self.device, plan.streamed, half)
        self.train.share = self.world.share
        self.environment = execution.environment(self.device, plan.execution, self.world.size)
        self.commit, self.record = execution.commit(), record(self.spec, registry.sha256(self.config.method))

        self.generators = build.generators(self.config, self.device)
        self.method = build.make_method(
            self.config, self.dataset.channels, self.generators["weights"], self.device
        )
        build.fit_memory(self.method.memory, self.config, self.train)
        self.method.memory.map = self.world.map_sharded
        self.evaluate = evaluate.Evaluator(self.method, self.test, self.scenario, self.world)
        self.checkpointer = checkpoint.Checkpointer(
            store, self.config.checkpoint_every, self.snapshot, self.restore, stop, self.world
        )
        self.engine = engine.Engine(
            train=self.train,
            augment=choose_augmentation(self.dataset.augment, self.config.augment),
            schedules={
                "first": self.config.first,
                "later": self.config.later,
                "second": self.config.second,
                "rebalance": schedule(self.config.rebalance, self.config.rebalance_epochs),
            },
            momentum=self.config.momentum,
            pretrained_lr=self.config.pretrained_lr or 1.0,
            execution=plan.execution,
            order=self.generators["order"],
            noise=self.generators["noise"],
            checkpointer=self.checkpointer,
            on_epoch=self._on_epoch,
            pulse=pulse.Pulse(self.tell),
            note=self.note,
            world=self.world,
            mix=None if self.config.mix == "none" else Mix(self.config.mix, self.config.mix_alpha),
            ema=self.config.ema,
        )
        self.noted: set[str] = set()
        self.commits: list[str | None] = []  # of the code that trained, the first one first
        self.rows: list[TaskRow] = []  # of the tasks learnt
        self.earlier = 0  # tasks that were learnt before this run
        self.judging = Judging(
            self.dataset.train_x, build.evaluated(self.dataset, self.scenario)[0], self.scenario
        )
        self.spent = 0.0  # seconds that this task took before the last resume
        self.started = time.perf_counter()

    def run_tasks(self) -> Result:
        """Learn every task that is still to learn, in turn."""
        if (finished := self._finished()) is not None:
            return finished
        resumed = self.checkpointer.resume(self.note)
        if self.rows and self.store is not None and not self.store.has_result(len(self.rows)):
            self._save()  # killed after the task's checkpoint, before its result
        self.tell_start()
        if not resumed:
            self.load_weights()
            self.checkpointer.begin_task()
        while self.done < len(self.scenario.sizes):
            self.learn_next()
            self.checkpointer.begin_task()
            self._save()
            self.tell(TaskEnd(self.rows[-1]))
        return self.result()

    def load_weights(self) -> None:
        """Begin with the pretrained weights, if there are any; read them where the run was to go on."""
        weights = self.plan.weights or build.pretrained(self.config, self.dataset.channels)
        if weights is not None:
            self.method.net.load_pretrained(weights)

    def _finished(self) -> Result | None:
        """The result of a run that has ended before: it stays, whatever became of its checkpoints."""
        kept = self.world.broadcast(self.store.finished() if self.store is not None else None)
        if kept is None or len(kept.tasks) != len(self.scenario.sizes):
            return None
        method = parse_record(kept.method)
        self._refuse_others(kept.data.fingerprint, method.sha256 if method else None)
        self.rows = kept.tasks
        self.tell_start()
        self.note("the run is finished; its result and its model stay as they are")
        return kept

    @property
    def done(self) -> int:
        """Tasks learnt so far."""
        return self.earlier + len(self.rows)

    def learn_next(self) -> None:
        """Learn the next task, then evaluate on all classes seen."""
        self.commits = [*dict.fromkeys([*self.commits, self.commit])]
        task, data = self.arrival(self.done)
        before = self.evaluate.scores_of_new(task)
        exemplars = [len(c) for c in self.method.memory.classes] or [0] * task.n_old
        self._learn(task, data)
        finite.check_weights(finite.modules(self.method), f" after task {task.index + 1}", self.world)
        accuracies, diagnostics = self.evaluate(task, before, [*exemplars, *map(len, data.classes)])
        if "nme" not in accuracies and self.spec.memory == "exemplars" and not len(self.method.memory):
            self.note("no exemplar is kept, so there is no nearest-mean read-out")
        self.rows.append(
            TaskRow(
                task=task.index + 1,
                classes=[task.n_old, task.n_seen],
                memory=len(self.method.memory),
                seconds=self.spent + time.perf_counter() - self.started,
                images_per_second=self.engine.trained / max(self.engine.seconds, 1e-9),
                cnn=accuracies.pop("cnn"),
                nme=accuracies.pop("nme", None),
                readouts=accuracies,
                diagnostics=diagnostics,
            )
        )
        self.engine.trained, self.engine.seconds, self.spent, self.started = 0, 0.0, 0.0, time.perf_counter()

    def arrival(self, t: int) -> tuple[Task, TaskData]:
        """The t-th task and its images."""
        sizes = self.scenario.sizes[: t + 1]
        classes = [torch.from_numpy(index) for index in self.scenario.train[sum(sizes[:-1]) : sum(sizes)]]
        task = Task(t, sizes, sum(map(len, classes)), len(self.method.memory))
        order = self.generators["order"]
        return task, TaskData(classes, self.config.batch_size, self.features, order)

    def _learn(self, task: Task, data: TaskData) -> None:
        """Let the method learn; one that is not ours is held to the rules."""
        ours = registry.is_ours(type(self.method))
        fit = self.engine.fit if ours else contract.checked_fit(self.engine.fit)
        self.prepare(task, data, self.engine.fit)
        try:
            self.method.learn(task, data, fit)
        except torch.OutOfMemoryError:
            raise Failed(
                "the device has too little memory for this step; "
                f"--accumulate {2 * self.plan.execution.parts} in another --out halves it"
            ) from None
        if not ours:
            contract.check_state(self.method)

    def prepare(self, task: Task, data: TaskData, fit: Fit) -> None:
        """Give the method what --adjust and --rebalance add to the task at hand."""
        counts = [max(1, len(index)) for index in [*self.method.memory.classes, *data.classes]]
        kind, method = self.config.rebalance, self.method
        method.prior = method.rebalance = None
        if self.config.adjust and min(counts) != max(counts):
            method.prior = self.config.adjust * torch.tensor(counts, device=self.device).log()
        if kind != "none" and is_unequal(counts):
            method.rebalance = lambda task, data: rebalance(kind, method, task, data, fit)

    def features(self, net: Net, index: Tensor, as_trained: bool = False, unit: bool = True) -> Tensor:
        """Features (n, d) of training images, of norm 1 or as they are.

        In fp32; or in a step's precision (`as_trained`), which a teacher that was rounded to bf16 needs.
        """
        stop = self.checkpointer.stop_if_asked if self.world.size == 1 else None
        with self.engine.arithmetic() if as_trained or engine.is_rounded(net) else nullcontext():
            if unit:
                return evaluate.unit_features(net, self.train, index, self.world)
            return evaluate.plain_features(net, self.train, index, self.world, stop)

    def result(self) -> Result:
        """The run as result.json holds it, so far."""
        summary: dict[str, Any] = {**metrics.summary(self.rows, list(self.spec.readouts))}
        return Result(
            format=FORMAT,
            jioc=__version__,
            commit=self.commit,
            commits=self.commits,
            command=self.command,
            config=settings.plain(self.config),
            environment=self.environment,
            method=self.record.model_dump(mode="json"),
            weights=self.method.net.plan.get("weights"),
            headline=self.method.headline,
            classes=self.scenario.classes,
            counts=self.scenario.counts,
            data=DataRecord(**self.dataset.record),
            tasks=self.rows,
            **summary,
            complete=len(self.rows) == len(self.scenario.sizes),
        )

    def classifier(self, earlier: list[int] | None = None, exemplars: bool = True) -> model.Classifier:
        """The classifier learnt so far. `earlier`: counts of the classes that were learnt before the run."""
        sizes = self.scenario.sizes[: self.done]
        n, before, pixels = sum(sizes), earlier or [], self.dataset.train_x
        keep = self.config.keep_test if exemplars else 0
        held = self.method.memory.classes or [torch.zeros(0, dtype=torch.long)] * n
        return model.Classifier(
            config=self.config,
            preprocessing=model.Preprocessing.of(self.dataset, build.halves(self.config)),
            classes=self.scenario.classes[:n],
            sizes=sizes,
            method=self.method,
            device=self.device,
            exemplars=[self.train.exemplars(pixels, index) for index in held] if exemplars else None,
            generators={name: (g.device.type, g.get_state()) for name, g in self.generators.items()},
            counts=[*before, *self.scenario.counts[len(before) : n]],
            judged=self.judging.judged(self.rows, n, keep),
        )

    # --- events ---

    def tell_start(self) -> None:
        """Tell that the run begins, and what to know about it."""
        if self.world.size > 1 and self.device.type == "cuda":
            self.note(notes.PIECE_BY_PIECE)
        if self.keeps_all:
            self.note(notes.ALL_KEPT)
        if not self.spec.trains and self.config.weights is None and not self.done:
            self.note(notes.UNTRAINED)
        if self.store is not None and self.record.sha256 is None and not registry.is_ours(type(self.method)):
            self.note(notes.unreadable_code(self.spec.name))
        for text in self.plan.notes:
            self.note(text)
        self.tell(
            Start(
                sizes=list(self.scenario.sizes),
                classes=self.scenario.classes,
                counts=self.scenario.counts,
                memory=self.method.memory.total,
                device=self.environment.device or "",
                precision=self.plan.execution.precision,
                done=self.done,
            )
        )

    @property
    def keeps_all(self) -> bool:
        """Whether the memory has room for every image of the classes before the last task."""
        old = sum(self.scenario.sizes[:-1])
        if self.spec.memory != "exemplars" or not old or self.earlier:
            return False
        quota = self.method.memory.quota(old)
        return quota is not None and quota >= max(self.scenario.counts[:old])

    def note(self, text: str) -> None:
        """Tell a note, once."""
        if text not in self.noted:
            self.noted.add(text)
            self.tell(Note(text))

    def _on_epoch(self, epoch: Epoch) -> None:
        chance = notes.at_chance(epoch, self.scenario.sizes[: epoch.task], self.spec)
        if chance is not None and self.method.coordination is None:
            self.note(chance)
        if self.store is not None:
            self.store.log(asdict(epoch))
        self.tell(epoch)

    # --- files ---

    def _save(self) -> None:
        """Write the model, then the result: if the result is whole, so is the model."""
        if self.store is None:
            return
        exemplars = self.config.keep_exemplars and self.spec.memory != "all"
        with self.store.writing():
            if model.learnt_more(self.store.folder, len(self.scenario.sizes)):
                self.note("the model here has learnt on since this run ended; it stays as it is")
            else:
                model.save(self.store.folder, self.classifier(exemplars=exemplars))
            self.store.result(self.result())

    def _refuse_others(self, images: str | None, method: str | None) -> None:
        """Refuse to go on with other images, or another method, than those of the given checksums."""
        refuse_if(
            images != self.dataset.record.get("fingerprint"),
            f"the images of {self.config.data!r} are not those this run began with; start another --out",
        )
        refuse_changed(self.config.method, method, self.record.sha256)

    def snapshot(self) -> checkpoint.State:
        """Collect all that the rest of the run depends on."""
        return {
            "device": self.device.type,
            "processes": self.world.size,
            "threads": torch.get_num_threads(),
            "method": self.method.state(),
            "generators": {name: g.get_state() for name, g in self.generators.items()},
            "rows": [row.plain() for row in self.rows],
            "commits": self.commits,
            "images": self.dataset.record.get("fingerprint"),
            "method_sha256": self.record.sha256,
            "log": self.store.log_size if self.store else 0,
            "trained": self.engine.trained,
            "fit_seconds": self.engine.seconds,
            "seconds": self.spent + time.perf_counter() - self.started,
        }

    def restore(self, state: checkpoint.State) -> bool:
        """Take up a snapshot; refuse one of other images, another kind of device, or a changed method.

        Return False where nothing is learnt yet and the method has changed: the run begins with it as it is.
        """
        where = {"cpu": "the CPU", "cuda": "a CUDA device"}[state["device"]]
        refuse_if(
            state["device"] != self.device.type,
            f"this run began on {where}, whose random numbers no other has: --device {state['device']}",
        )
        learnt = state["rows"] or state["trained"] or "progress" in state
        begins = not learnt and state["method_sha256"] != self.record.sha256
        self._refuse_others(state["images"], None if begins else state["method_sha256"])
        if begins:
            return False
        if state["processes"] != self.world.size and self.config.bn == "per-process":
            self.note(
                f"this run began on {counted(state['processes'], 'process')}, "
                "and batch normalisation sees a process's share of a batch"
            )
        if self.device.type == "cpu" and state["threads"] != (now := torch.get_num_threads()):
            self.note(
                f"this run began with {counted(state['threads'], 'thread')} and goes on with {now}, "
                "whose sums are rounded otherwise"
            )
        self.method.load_state(state["method"], self.device)
        self.method.memory.on_change(self.method.memory.index)
        for name, g in self.generators.items():
            g.set_state(state["generators"][name])
        self.rows = [TaskRow.model_validate(row) for row in state["rows"]]
        self.commits = [*dict.fromkeys([*state["commits"], *self.commits])]
        self.engine.trained, self.engine.seconds = int(state["trained"]), float(state["fit_seconds"])
        self.spent, self.started = float(state["seconds"]), time.perf_counter()
        return True
