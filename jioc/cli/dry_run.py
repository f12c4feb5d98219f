"""`jioc run --dry-run`: print what a run would do, and about how long it would take here."""

import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.cli.console import Progress, print_note, scenario_line
from jioc.config import Config, images_key, index, total_epochs
from jioc.data.catalogue import cache_folder
from jioc.data.dataset import Dataset
from jioc.data.find import find_dataset
from jioc.data.load import load_dataset
from jioc.data.loader import Sampler
from jioc.errors import Refused, refuse_if
from jioc.events import Callback, Decoding, Epoch, Event, Note
from jioc.methods.base import Method
from jioc.nets.incremental import Net
from jioc.terminal import table
from jioc.text import counted, timed
from jioc.training.build import Plan
from jioc.training.evaluate import at_once, map_images
from jioc.training.notes import ALL_KEPT
from jioc.training.preflight import preflight
from jioc.training.runner import Run
from jioc.types import Task

STEPS, SPELL = 2, 0.2  # time at least so many steps and seconds
SLOW = 5.0  # seconds: a first step that is slower counts itself, as its set-up is a small part of it
NOT_DECODED = "their images are not decoded yet; jioc data check does that"
PATIENCE = 30.0  # seconds to time the settings of a grid
LONG = 3e9  # pixels through the network, under which nothing is timed before a run
ON_CPU = 32  # images of a timed step on a CPU, where an image takes as long in a larger batch


@dataclass(frozen=True)
class Estimate:
    """What a run would take here; decoding is done by then, and compiling is not counted."""

    images: int  # that it trains on, in all epochs
    training: float  # seconds
    looking: float  # seconds for passes without training: evaluating, choosing exemplars

    @property
    def seconds(self) -> float:
        return self.training + self.looking


def show(config: Config) -> None:
    """Print the tasks of a run with their images, exemplars and epochs, and the estimated time."""
    with Progress() as tell:
        dataset = load_dataset(config, tell)
    run = Run(preflight(config, dataset))
    if run.keeps_all:
        tell(Note(ALL_KEPT))
    sizes, counts = run.scenario.sizes, run.scenario.counts
    print(scenario_line(list(sizes), counts, config))
    rows, first = [], 0
    for t, size in enumerate(sizes):
        new = sum(counts[first : first + size])
        quota = run.method.memory.quota(first) if first else 0
        exemplars = sum(n if quota is None else min(quota, n) for n in counts[:first])
        classes = ", ".join(_shorten(run.scenario.classes[first : first + size]))
        rows.append([str(t + 1), classes, f"{new:,}", f"{exemplars:,}", str(total_epochs(config, t))])
        first += size
    table(["task", "classes", "new images", "exemplars", "epochs"], rows, text_columns=2)
    found = measured(run)
    rate = (
        f"{found.images:,} images through the network at about {found.images / found.training:,.0f} a second"
    )
    others = "choosing exemplars and evaluating" if run.spec.trains else "evaluating, without solving"
    compiling = ", without compiling" * run.plan.execution.compile
    print(f"{rate} here: {timed(found.seconds)}, with {timed(found.looking)} for {others}{compiling}")
    test = dataset.record.get("split", {}).get("test")
    test = f"{test}, which serves as the test set" if test else "the test set"
    print(f"judged by {'the held-out images' if run.scenario.held_out else test}")


def total_time(configs: list[Config]) -> str:
    """Say how long runs take one after another; each setting is timed once, whatever its seed.

    After `PATIENCE` seconds the settings that were not timed count as the mean of the others. Images are not
    decoded for it: that is the first run's work.
    """
    runs, images = Counter(map(_without_seeds, configs)), dict[str, Dataset]()
    seconds: dict[str, float] = {}
    end = time.monotonic() + PATIENCE
    try:
        with Progress() as tell:
            bar = tell.add_task("timing a few steps", total=len(runs))
            for config in {_without_seeds(config): config for config in configs}.values():
                if seconds and time.monotonic() > end:
                    break
                key = images_key(config)
                if key not in images:
                    images = {key: _decoded(config, tell)}
                seconds[_without_seeds(config)] = measured(Run(preflight(config, images[key]))).seconds
                tell.move(bar, advance=1, parts=[f"{len(seconds)} of {counted(len(runs), 'setting')}"])
    except Refused as error:
        return f"how long they take cannot be told: {error}"
    mean = sum(seconds.values()) / len(seconds)
    whole = sum(n * seconds.get(setting, mean) for setting, n in runs.items())
    timed_ones = "" if len(seconds) == len(runs) else f" of {len(seconds)} of the {len(runs)} settings"
    left = f"{counted(len(configs), 'run')} to go: about {timed(whole)}"
    return f"{left} one after another here, by a few steps{timed_ones}"


def _decoded(config: Config, tell: Callback) -> Dataset:
    """Load a data set; refuse one whose image files would have to be decoded."""

    def tell_of_others(event: Event) -> None:
        refuse_if(isinstance(event, Decoding), NOT_DECODED)
        tell(event)

    read_as_it_is = find_dataset(config.data).source in ("digits", "cifar")
    refuse_if(not read_as_it_is and not cache_folder(config.data_cache).exists(), NOT_DECODED)
    return load_dataset(config, tell_of_others)


def _without_seeds(config: Config) -> str:
    return config.model_dump_json(exclude={*index.SEEDS})


def note_if_long(plan: Plan) -> None:
    """Note the time of a run that will take more than an hour on this CPU, and what would shorten it."""
    config, side = plan.config, plan.config.image_size or 1
    most = sum(plan.scenario.counts) + (config.memory or 0)  # images of an epoch
    visits = most * sum(total_epochs(config, t) for t in range(len(plan.scenario.sizes)))
    if plan.device.type != "cpu" or plan.world.size > 1 or visits * side**2 < LONG:
        return
    try:
        found = measured(Run(plan))
    except Exception:  # a method that is not ours may need real features: the run will tell
        return
    if found.seconds > 3600:
        smaller = f"--image-size {max(32, side // 2)}, " if side > 32 else ""
        with_weights = "" if config.weights else "ranpac with --weights, which trains nothing, "
        print_note(
            Note(
                f"this run will take about {timed(found.seconds)} here ({found.images:,} images through the "
                f"network); shorter: {smaller}fewer --epochs, {with_weights}or a GPU"
            )
        )


def measured(run: Run) -> Estimate:
    """Count the images that a run sees; estimate its seconds by a few steps of tasks 1, 2 and the last.

    The method learns every task without the steps, so that its networks grow as they would. Exemplars are the
    first images of their class, and features are random. Of a method that trains nothing, each image goes
    through the network once.
    """
    if not run.spec.trains:
        index = torch.arange(min(ON_CPU, len(run.train.labels)), device=run.device)
        started = time.perf_counter()
        run.features(run.method.net, index, unit=False)
        one = (time.perf_counter() - started) / len(index)
        images, tests = sum(run.scenario.counts), sum(map(len, run.scenario.test))
        return Estimate(images, images * one, tests * one)
    last, fits = len(run.scenario.sizes) - 1, list[tuple[str, int, int]]()
    paces: dict[str, dict[int, float]] = {}  # seconds an image by stage and task
    looks, glances = Counter[int](), dict[int, float]()  # passes without training: images, seconds an image

    def fit(method: Method, task: Task, sampler: Sampler, *, stage: str | None = None, **how: Any) -> None:
        stage = stage or ("first" if task.n_old == 0 else "later")
        fits.append((stage, task.index, sampler.images * (run.engine.schedules[stage].epochs or 0)))
        if task.index in (0, 1, last) or stage not in paces:
            paces.setdefault(stage, {})[task.index] = pace(run, task, sampler, stage=stage, **how)

    def features(net: Net, index: Tensor, as_trained: bool = False, unit: bool = True) -> Tensor:
        looks[task.index] += len(index)
        values = torch.rand(len(index), net.width, generator=run.generators["order"])
        return (F.normalize(values, dim=1) if unit else values).to(run.device)

    memory = run.method.memory
    herds, memory.select = memory.select == "herding", "first"
    for t in range(last + 1):
        task, data = run.arrival(t)
        run.prepare(task, data, fit)
        run.method.learn(task, replace(data, features=features), fit)
        if herds and memory.quota(task.n_seen):
            looks[t] += len(data.new)
        new = run.scenario.test[task.new] if task.n_old else []  # asked about as the task comes
        looks[t] += sum(map(len, [*run.scenario.test[: task.n_seen], *new]))
        if t in (0, 1, last):
            glances[t] = glance(run, task)

    def at(t: int, measured: dict[int, float]) -> float:
        return float(np.interp(t, list(measured), list(measured.values())))

    training = sum(n * at(t, paces[stage]) for stage, t, n in fits)
    looking = sum(n * at(t, glances) for t, n in looks.items())
    return Estimate(sum(n for _, _, n in fits), training, looking)


def glance(run: Run, task: Task) -> float:
    """Time the seconds an image takes in a pass that evaluates."""
    index = torch.from_numpy(np.concatenate(run.scenario.test[: task.n_seen])[: at_once(run.test)])
    index = index.to(run.device)

    def timed() -> float:
        started = time.perf_counter()
        every = map_images(
            lambda part: run.method.readouts(run.test.plain(part))["cnn"],
            index,
            run.method.net,
            run.test,
            run.world,
        )
        torch.cat(every).sum().item()  # waits for the device
        return time.perf_counter() - started

    return min(timed() for _ in range(1 + STEPS)) / max(1, len(index))


def pace(run: Run, task: Task, sampler: Sampler, *, stage: str, **how: Any) -> float:
    """Time the seconds an image takes in a step of `Engine.fit`, at a learning rate of 0."""
    engine, epochs = run.engine, list[Epoch]()
    set_up = run.plan.execution.graph or run.plan.execution.compile  # in a first epoch that is not timed

    def timed(count: int) -> float:
        usual = engine.schedules, engine.on_epoch
        rateless = engine.schedules[stage].model_copy(update={"epochs": 1 + set_up, "lr": 0.0})
        engine.schedules, engine.on_epoch = {stage: rateless}, epochs.append
        try:
            engine.fit(run.method, task, Repeated(batch, count), stage=stage, **how)
        finally:
            engine.schedules, engine.on_epoch = usual
        return epochs[-1].seconds

    batch = sampler.epoch(run.generators["order"])[0]
    batch = batch[:ON_CPU] if run.device.type == "cpu" else batch
    steps, spent = 1, timed(1)
    if spent < SLOW:
        steps = STEPS + int(SPELL / spent)  # the first call has set up what the later ones use
        spent = timed(steps)
    return spent / (steps * len(batch))


class Repeated:
    """A sampler that repeats one batch."""

    def __init__(self, batch: Tensor, count: int):
        self.batch, self.count, self.batch_size, self.images = batch, count, len(batch), count * len(batch)

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        return [self.batch] * self.count


def _shorten(names: list[str]) -> list[str]:
    return names if len(names) <= 4 else [*names[:3], f"… {len(names) - 3} more"]
