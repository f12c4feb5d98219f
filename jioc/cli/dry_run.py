"""`jioc run --dry-run`: print what a run would do, and about how long it would take here."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.cli.console import Progress, print_note, scenario_line, table
from jioc.config import Config, total_epochs
from jioc.data.load import load_dataset
from jioc.data.loader import Sampler
from jioc.events import Epoch, Note
from jioc.methods.base import Method
from jioc.nets.incremental import Net
from jioc.training.build import Plan
from jioc.training.preflight import preflight
from jioc.training.runner import ALL_KEPT, Run
from jioc.types import Task

STEPS, SPELL = 2, 0.2  # time at least so many steps and seconds
SLOW = 5.0  # seconds: a first step that is slower counts itself, as its set-up is a small part of it
LONG = 3e9  # pixels through the network, under which nothing is timed before a run
ON_CPU = 32  # images of a timed step on a CPU, where an image takes as long in a larger batch


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
    table(["task", "classes", "new images", "exemplars", "epochs"], rows)
    images, seconds = measured(run)
    compiling = "compiling, " * run.plan.execution.compile
    less = f"{compiling}choosing exemplars and evaluating" if run.spec.trains else "solving"
    rate = f"{images:,} images through the network at about {images / seconds:,.0f} a second here"
    print(f"{rate}: {_duration(seconds)}, without {less}")
    test = dataset.record.get("split", {}).get("test")
    test = f"{test}, which serves as the test set" if test else "the test set"
    print(f"judged by {'the held-out images' if run.scenario.held_out else test}")


def note_if_long(plan: Plan) -> None:
    """Note the time of a run that will take more than an hour on this CPU, and what would shorten it."""
    config, side = plan.config, plan.config.image_size or 1
    most = sum(plan.scenario.counts) + config.memory  # images of an epoch
    visits = most * sum(total_epochs(config, t) for t in range(len(plan.scenario.sizes)))
    if plan.device.type != "cpu" or plan.world.size > 1 or visits * side**2 < LONG:
        return
    images, seconds = measured(Run(plan))
    if seconds > 3600:
        smaller = f"--image-size {max(32, side // 2)}, " if side > 32 else ""
        with_weights = "" if config.weights else "ranpac with --weights, which trains nothing, "
        print_note(
            Note(
                f"this run will take about {_duration(seconds)} here ({images:,} images through the "
                f"network); shorter: {smaller}fewer --epochs, {with_weights}or a GPU"
            )
        )


def measured(run: Run) -> tuple[int, float]:
    """Count the images that a run trains on; estimate its seconds by a few steps of tasks 1, 2 and the last.

    The method learns every task without the steps, so that its networks grow as they would. Exemplars are the
    first images of their class, and features are random. Of a method that trains nothing, each image goes
    through the network once.
    """
    if not run.spec.trains:
        index = torch.arange(min(ON_CPU, len(run.train.labels)), device=run.device)
        started = time.perf_counter()
        run.features(run.method.net, index, unit=False)
        images = sum(run.scenario.counts) + sum(map(len, run.scenario.test))
        return images, images * (time.perf_counter() - started) / ON_CPU
    last, fits = len(run.scenario.sizes) - 1, list[tuple[str, int, int]]()
    paces: dict[str, dict[int, float]] = {}  # seconds an image by stage and task

    def fit(method: Method, task: Task, sampler: Sampler, *, stage: str | None = None, **how: Any) -> None:
        stage = stage or ("first" if task.n_old == 0 else "later")
        fits.append((stage, task.index, sampler.images * (run.engine.schedules[stage].epochs or 0)))
        if task.index in (0, 1, last) or stage not in paces:
            paces.setdefault(stage, {})[task.index] = pace(run, task, sampler, stage=stage, **how)

    def features(net: Net, index: Tensor, as_trained: bool = False) -> Tensor:
        values = torch.rand(len(index), net.width, generator=run.generators["order"])
        return F.normalize(values, dim=1).to(run.device)

    run.method.memory.select = "first"
    for t in range(last + 1):
        task, data = run.arrival(t)
        run.method.learn(task, replace(data, features=features), fit)
    seconds = [n * np.interp(t, list(paces[stage]), list(paces[stage].values())) for stage, t, n in fits]
    return sum(n for _, _, n in fits), float(sum(seconds))


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


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
