"""The page to read first: a run is a loop over tasks.

import jioc
result = jioc.run(method="icarl", data="digits", coordination={"coordinate": "jioc"})
result["average"]["cnn"]
"""

import hashlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from jioc import __version__, diagnostics, metrics
from jioc.config import schema as settings
from jioc.config.schema import Config
from jioc.data import scenario as scenarios
from jioc.data.augment.basic import chosen
from jioc.data.dataset import Dataset, load
from jioc.data.loader import Images, TaskData
from jioc.data.scenario import Scenario
from jioc.data.stream import Streamed
from jioc.device.distributed import ALONE, World, together
from jioc.errors import Failed, Refused
from jioc.events import Callback
from jioc.methods import specs
from jioc.methods.base import Method, looked_at
from jioc.nets.incremental import Net
from jioc.resolve import repeat as command
from jioc.resolve.derive import refuse_idle_schedules, refuse_small_memory, resolve
from jioc.stopping import until
from jioc.text import counted
from jioc.training import model
from jioc.training.checkpoint import Journal, State
from jioc.training.engine import Engine
from jioc.training.execution import commit, environment, how, judging, pick_device, set_up_torch
from jioc.training.learner import AT_ONCE, Learner, make_method
from jioc.training.store import Store, refuse_taken
from jioc.types import Task

Result = dict[str, Any]
"""What result.json holds."""


def run(
    config: Config | None = None,
    *,
    out: Path | None = None,
    resume: bool = False,
    callback: Callback | None = None,
    stop: Callable[[], bool] | None = None,
    **values: Any,
) -> Result:
    """One run, from a configuration or from its values.

    With `out` it is kept there and can be resumed; without, nothing is written. `stop` is asked before every step; when
    it says yes the run saves a checkpoint and raises `Interrupted`. Under torchrun every process calls this alike; the
    first one writes and calls back, and all return the result.
    """
    if config is None:
        config = settings.make(**values)
    elif not isinstance(config, Config):
        raise Refused(
            f"jioc.run takes settings by their names, such as method='icarl', or a jioc.Config; not {config!r}"
        )
    elif values:
        raise Refused(f"give a configuration or its values, not both: {', '.join(values)}")
    given, config = config, resolve(config)
    refuse_idle_schedules(given, config)
    with together(config.bn) as world:
        world.must_agree("settings", settings.digest(config))
        return carry_out(
            config,
            load,
            out=out if world.first else None,
            resume=resume,
            callback=callback if world.first else None,
            stop=stop,
            world=world,
        )


def carry_out(
    config: Config,
    load: Callable[[Config, Callback], Dataset],
    *,
    out: Path | None,
    resume: bool,
    callback: Callback | None,
    stop: Callable[[], bool] | None,
    world: World = ALONE,
    on: Callable[[torch.device], AbstractContextManager[Any]] = nullcontext,
) -> Result:
    """A run of a resolved configuration, with the images that `load` gives, within what `on` gives for its device."""
    if out is not None:
        refuse_taken(Path(out), config, resume)  # before images are decoded
    dataset = load(config, until(stop, callback))
    refuse_early(config, dataset, world)
    store = None if out is None else Store(Path(out), config, resume)
    try:
        with on(pick_device(config.device)):
            return Run(config, dataset, store, callback, stop, world=world).go()
    finally:
        if store is not None:
            store.close()


def refuse_early(config: Config, dataset: Dataset, world: World = ALONE) -> None:
    """What a run would refuse is refused before it has a folder."""
    scenario = scenarios.make(dataset, config)
    refuse_small_memory(config, len(scenario.classes), specs.find(config.method))
    how(config, pick_device(config.device), resident=True, world=world)
    refuse_readouts(config, dataset)
    if world.size > 1:
        rows = np.concatenate([*scenario.train, *scenario.test, dataset.train_y, dataset.test_y])
        world.must_agree("code of the method", specs.sha256(config.method))
        world.must_agree("images", (dataset.record.get("fingerprint"), hashlib.sha256(rows.tobytes()).hexdigest()))


@torch.no_grad()
def refuse_readouts(config: Config, dataset: Dataset) -> None:
    """A method of somebody's own is asked for its read-outs before it trains; some need what only training gives."""
    if specs.ours(specs.load(config.method)):
        return
    method = make_method(config, dataset.channels, torch.Generator(), torch.device("cpu"))
    method.net.eval()
    try:
        method.net.grow(2, torch.Generator())
        scores = method.readouts(torch.zeros(1, *dataset.shape))
    except Exception:
        return
    none_yet = isinstance(scores, dict) and any(isinstance(s, Tensor) and not s.numel() for s in scores.values())
    if not none_yet:
        looked_at(method, scores, 1)


ALL_KEPT = "the memory has room for every image, so each task trains on all that were seen, as joint does"


class Run:
    """The parts of a run put together by name; the only place that knows them all."""

    def __init__(
        self,
        config: Config,
        dataset: Dataset,
        store: Store | None = None,
        callback: Callback | None = None,
        stop: Callable[[], bool] | None = None,
        scenario: Scenario | None = None,
        world: World = ALONE,
    ):
        self.config, self.store, self.world = config, store, world
        self.tell: Callback = callback or (lambda kind, what: None)
        self.spec = specs.find(config.method)
        self.device = pick_device(config.device)
        self.scenario = scenario or scenarios.make(dataset, config)
        self.train, self.test = images(dataset, self.scenario, self.device, config.stream)
        self.train.share = world.share
        self.how = how(config, self.device, self.train.resident, world)
        set_up_torch(self.how, config.deterministic)
        if world.size > 1 and self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        self.environment, self.commit = environment(self.device, self.how) | {"processes": world.size}, commit()
        self.command = command.line(config) if scenario is None else None
        self.told = specs.told(self.spec, specs.sha256(config.method))
        self.dataset = dataset

        self.generators = generators(config, self.device)
        order, noise = self.generators["order"], self.generators["noise"]
        self.method = self._method(self.generators["weights"])
        self.journal = Journal(store, config.checkpoint_every, self.snapshot, self.restore, stop, world)
        self.engine = Engine(
            train=self.train,
            augment=chosen(dataset.augment, config.augment),
            schedules={"first": config.first, "later": config.later, "second": config.second},
            momentum=config.momentum,
            how=self.how,
            order=order,
            noise=noise,
            journal=self.journal,
            on_epoch=self._on_epoch,
            note=self.note,
            world=world,
        )
        self.noted: set[str] = set()
        self.commits: list[str | None] = []  # of all that were at work on it, the first one first
        self.rows: list[dict[str, Any]] = []
        self.earlier = 0  # tasks that were learnt before this run
        self.spent = 0.0  # seconds of the task at hand before the last resume
        self.started = time.perf_counter()

    def go(self) -> Result:
        """Every task that is still to learn, in turn."""
        resumed = self.journal.resume(self.note)
        self.tell_start()
        if not resumed:
            self.journal.begin()
        elif self.rows and self.store is not None and not self.store.has_result(len(self.rows)):
            self._keep(self.result())  # killed after the task's checkpoint, before its result
        while self.done < len(self.scenario.sizes):
            self.learn_next()
            self.journal.begin()
            self._keep(self.result())
            self.tell("task", self.rows[-1])
        return self.result()

    @property
    def done(self) -> int:
        """Tasks learnt so far."""
        return self.earlier + len(self.rows)

    def tell_start(self) -> None:
        if self.world.size > 1 and self.device.type == "cuda":
            self.note("on several processes a step is launched piece by piece, not from a CUDA graph")
        if self.keeps_all:
            self.note(ALL_KEPT)
        if self.store is not None and self.told["sha256"] is None and not specs.ours(type(self.method)):
            self.note(f"the code of {self.spec.name!r} cannot be read, so that a change of it will not be noticed")
        self.tell(
            "start",
            {
                "sizes": list(self.scenario.sizes),
                "classes": self.scenario.classes,
                "counts": self.scenario.counts,
                "device": self.environment["device"],
                "precision": self.how.precision,
                "done": self.done,
            },
        )

    @property
    def keeps_all(self) -> bool:
        """Whether a memory that is to be small leaves out no image: all of the classes before the last task fit in."""
        old = sum(self.scenario.sizes[:-1])
        room = self.method.memory.quota(old) if old and not self.earlier else None
        return self.spec.memory == "exemplars" and room is not None and room >= max(self.scenario.counts[:old])

    def learn_next(self) -> None:
        self.commits = [*dict.fromkeys([*self.commits, self.commit])]
        task, data = self.arrival(self.done)
        before = self.scores_of_new(task)
        held = [len(c) for c in self.method.memory.classes] or [0] * task.n_old
        try:
            self.method.learn(task, data, self.engine.fit)
        except torch.OutOfMemoryError:
            parts = 2 * self.how.parts
            raise Failed(
                f"the device has too little memory for this step; --accumulate {parts} in another --out halves it"
            ) from None
        self.rows.append(self.judge(task, before, [*held, *map(len, data.classes)]))
        self.engine.trained, self.engine.seconds, self.spent, self.started = 0, 0.0, 0.0, time.perf_counter()

    def arrival(self, t: int) -> tuple[Task, TaskData]:
        """The t-th task and its images."""
        first = sum(self.scenario.sizes[:t])
        classes = [torch.from_numpy(index) for index in self.scenario.train[first : first + self.scenario.sizes[t]]]
        task = Task(t, self.scenario.sizes[: t + 1], sum(map(len, classes)), len(self.method.memory))
        return task, TaskData(classes, self.config.batch_size, self.features, self.generators["order"])

    @torch.no_grad()
    def features(self, net: Net, index: Tensor, as_trained: bool = False) -> Tensor:
        """Unit-norm features (n, d) of training images under the test transform. In fp32, or in a step's arithmetic."""
        net.eval()
        parts = index.to(self.device).split(AT_ONCE)
        with judging(), self.engine.arithmetic() if as_trained else nullcontext():
            found = self.world.each(lambda part: net(self.train.plain(part)).features.float(), parts)
        return F.normalize(torch.cat(found), dim=1)

    @torch.no_grad()
    def scores_of_new(self, task: Task) -> Tensor | None:
        """What the network as it is says of the test images of classes it is about to learn: (m, K_old)."""
        if task.n_old == 0:
            return None
        self.method.net.eval()
        index = torch.from_numpy(np.concatenate(self.scenario.test[task.new])).to(self.device)
        parts = index.split(AT_ONCE)
        with judging():
            return torch.cat(self.world.each(lambda part: self.method.readouts(self.test.plain(part))["cnn"], parts))

    @torch.no_grad()
    def judge(self, task: Task, before: Tensor | None, trained_on: list[int]) -> dict[str, Any]:
        """The row of result.json for a task just learnt: every read-out on the test images of all classes seen.

        `before` and `trained_on` are what the diagnostics compare with.
        """
        self.method.net.eval()

        def scored(part: Tensor) -> dict[str, Tensor]:
            scores = looked_at(self.method, self.method.readouts(self.test.plain(part)), len(part))
            ranked = {name: s.topk(min(5, task.n_seen)).indices for name, s in scores.items()}
            return ranked | {"logits": scores["cnn"]}

        index = torch.from_numpy(np.concatenate(self.scenario.test[: task.n_seen])).to(self.device)
        with judging():
            every = self.world.each(scored, index.split(AT_ONCE))
        found = {name: torch.cat([part[name] for part in every]) for name in every[0]}
        logits, y = found.pop("logits"), self.test.labels[index]
        judged = {name: metrics.judge(ranked, y, task.sizes) for name, ranked in found.items()}
        if self.spec.headline not in judged:
            told = f"{self.spec.name} is judged by {self.spec.headline!r}, and its readouts have given"
            why = " (no exemplar is kept)" if not len(self.method.memory) else ""
            raise Failed(f"{told} {', '.join(map(repr, judged))}{why}")
        if "nme" not in judged and self.spec.memory == "exemplars" and not len(self.method.memory):
            self.note("no exemplar is kept, so there is no nearest-mean read-out")
        diagnosed = diagnostics.diagnose(logits, y, task, before, self.method.head_weight(), trained_on)
        thirds = diagnostics.thirds(judged["cnn"]["per_class"], self.scenario.counts[: task.n_seen])
        return {
            "task": task.index + 1,
            "classes": [task.n_old, task.n_seen],
            "memory": len(self.method.memory),
            "seconds": self.spent + time.perf_counter() - self.started,
            "images_per_second": self.engine.trained / max(self.engine.seconds, 1e-9),
            "cnn": judged.pop("cnn"),
            "nme": judged.pop("nme", None),
            "readouts": judged,
            "diagnostics": diagnosed | thirds,
        }

    def result(self) -> Result:
        return {
            "format": Store.FORMAT,
            "jioc": __version__,
            "commit": self.commit,
            "commits": self.commits,
            "command": self.command,
            "config": settings.plain(self.config),
            "environment": self.environment,
            "method": self.told,
            "headline": self.spec.headline,
            "classes": self.scenario.classes,
            "counts": self.scenario.counts,
            "data": self.dataset.record,
            "tasks": self.rows,
            **metrics.summary(self.rows, list(self.spec.readouts)),
            "complete": len(self.rows) == len(self.scenario.sizes),
        }

    def take_up(self, learner: Learner, reseed: bool) -> None:
        """Begin where the learner is; its exemplars are the first images of this run's data set, class after class.

        Generators go on from where it left them. Those of another kind of device have other numbers: they begin
        afresh, as all do with `reseed`, from the seeds and the number of tasks done.
        """
        self.earlier = len(learner.sizes)
        self.method.load_state(learner.method.state(), self.device)
        if self.method.teacher is None:
            self.method.keep_teacher()  # coordination may be new to the method
        for name, g in generators(self.config, self.device, self.earlier).items():
            kind, state = learner.generators[name]
            try:
                self.generators[name].set_state(g.get_state() if reseed or kind != g.device.type else state)
            except (RuntimeError, TypeError):
                raise Refused("the saved random numbers are damaged; --seed begins with others") from None

    # --- what a resumed run needs ---

    def snapshot(self) -> State:
        return {
            "device": self.device.type,
            "processes": self.world.size,
            "threads": torch.get_num_threads(),
            "method": self.method.state(),
            "generators": {name: g.get_state() for name, g in self.generators.items()},
            "rows": self.rows,
            "commits": self.commits,
            "images": self.dataset.record.get("fingerprint"),
            "method_sha256": self.told["sha256"],
            "log": self.store.log_size if self.store else 0,
            "trained": self.engine.trained,
            "fit_seconds": self.engine.seconds,
            "seconds": self.spent + time.perf_counter() - self.started,
        }

    def restore(self, state: State) -> None:
        if state["device"] != self.device.type:
            where = {"cpu": "the CPU", "cuda": "a CUDA device"}[state["device"]]
            raise Refused(f"this run began on {where}, whose random numbers no other has: --device {state['device']}")
        if state["images"] != self.dataset.record.get("fingerprint"):
            raise Refused(f"the images of {self.config.data!r} are not those this run began with; start another --out")
        checksum, learnt = state.get("method_sha256"), state["rows"] or state["trained"] or "progress" in state
        if not learnt and checksum not in (None, self.told["sha256"]):
            return  # begin with the method as it is
        specs.refuse_changed(self.config.method, checksum, self.told["sha256"])
        began = state.get("processes", 1)
        if began != self.world.size and self.config.bn == "per-process":
            on = counted(began, "process")
            self.note(f"this run began on {on}, and batch normalisation sees a process's share of a batch")
        threads, now = state.get("threads"), torch.get_num_threads()
        if self.device.type == "cpu" and threads not in (None, now):
            before = counted(threads, "thread")
            self.note(f"this run began with {before} and goes on with {now}, whose sums are rounded otherwise")
        self.method.load_state(state["method"], self.device)
        for name, g in self.generators.items():
            g.set_state(state["generators"][name])
        self.rows = state["rows"]
        before = state.get("commits", [None] * bool(learnt))  # earlier versions did not say
        self.commits = [*dict.fromkeys([*before, *self.commits])]
        self.engine.trained, self.engine.seconds = state["trained"], state["fit_seconds"]
        self.spent, self.started = state["seconds"], time.perf_counter()

    # --- parts ---

    def _method(self, generator: torch.Generator) -> Method:
        method = make_method(self.config, self.dataset.channels, generator, self.device)
        method.memory.each = self.world.each
        return method

    def note(self, text: str) -> None:
        """Something that a person should know, said once."""
        if text not in self.noted:
            self.noted.add(text)
            self.tell("note", {"text": text})

    def _on_epoch(self, line: dict[str, Any]) -> None:
        if self.store is not None:
            self.store.log(line)
        self.tell("epoch", line)

    def _keep(self, result: Result) -> None:
        if self.store is None:
            return
        kept = self.config.keep_exemplars and self.spec.memory != "all"
        with self.store.writing():
            if model.learnt_on(self.store.folder, len(self.scenario.sizes)):
                self.note("the model here has learnt on since this run ended; it stays as it is")
            else:
                model.save(self.store.folder, Learner.of(self, exemplars=kept))
            self.store.result(result)  # last: where it is whole, so is the model


def generators(config: Config, device: torch.device, after: int = 0) -> dict[str, torch.Generator]:
    """The only sources of randomness, seeded for a run that begins after so many tasks."""
    later = [after] if after else []
    order, noise = np.random.SeedSequence([config.data_seed or 0, *later]).generate_state(2)
    weights = (
        np.random.SeedSequence([config.init_seed or 0, *later]).generate_state(1)[0] if later else config.init_seed
    )
    return {
        "order": torch.Generator().manual_seed(int(order)),
        "noise": torch.Generator(device).manual_seed(int(noise)),
        "weights": torch.Generator().manual_seed(int(weights or 0)),
    }


def images(dataset: Dataset, scenario: Scenario, device: torch.device, stream: str = "auto") -> tuple[Images, Images]:
    """Training images, and those that the run is judged by, labelled in the order of learning."""
    judged_x, judged_y = (dataset.train_x, dataset.train_y) if scenario.held_out else (dataset.test_x, dataset.test_y)
    kind = Streamed if _streams(stream, dataset.train_x.nbytes + judged_x.nbytes, device) else Images

    def labelled(x: np.ndarray, y: np.ndarray, classes: list[np.ndarray]) -> Images:
        labels = np.full(len(y), -1, np.int64)
        for c, index in enumerate(classes):
            labels[index] = c
        return kind(x, labels, dataset.mean, dataset.std, device, dataset.size)

    return labelled(dataset.train_x, dataset.train_y, scenario.train), labelled(judged_x, judged_y, scenario.test)


RESIDENT_SHARE = 0.6  # of a device's free memory that images may take; the network needs the rest


def _streams(word: str, size: int, device: torch.device) -> bool:
    """On a CPU the memory map itself is resident: the system reads what is used."""
    if word != "auto" or device.type != "cuda":
        return word == "yes"
    return size > RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0]
