"""`jioc run --dry-run`: what a run would do, and about how long it would take here."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.cli.console import Progress, scenario_line, table
from jioc.config.schedule import total_epochs
from jioc.config.schema import Config
from jioc.data.load import load
from jioc.data.loader import Sampler
from jioc.events import Epoch, Note
from jioc.methods.base import Method
from jioc.nets.incremental import Net
from jioc.training.preflight import preflight
from jioc.training.runner import ALL_KEPT, Run
from jioc.types import Task

STEPS, SPELL = 2, 0.2  # steps that are timed at least, and seconds
SLOW = 5.0  # seconds of a first step that is timed itself: what it has to set up is a small part of it
ON_CPU = 32  # images of a step that is timed on a CPU, where an image of a larger one takes as long


def show(config: Config) -> None:
    with Progress() as tell:
        dataset = load(config, tell)
    run = Run(preflight(config, dataset))
    if run.keeps_all:
        tell(Note(ALL_KEPT))
    sizes, counts = run.scenario.sizes, run.scenario.counts
    print(scenario_line(list(sizes), counts, config))
    rows, first = [], 0
    for t, size in enumerate(sizes):
        new = sum(counts[first : first + size])
        quota = run.method.memory.quota(first) if first else 0
        held = sum(n if quota is None else min(quota, n) for n in counts[:first])
        epochs = total_epochs(config, t)
        rows.append(
            [
                str(t + 1),
                ", ".join(_shorten(run.scenario.classes[first : first + size])),
                f"{new:,}",
                f"{held:,}",
                str(epochs),
            ]
        )
        first += size
    table(["task", "classes", "new images", "exemplars", "epochs"], rows)
    images, seconds = measured(run)
    given = dataset.record.get("split", {}).get("test")
    judged = f"{given}, which serves as the test set" if given else "the test set"
    judged = "the held-out images" if run.scenario.held_out else judged
    told = f"{images:,} images through the network at about {images / seconds:,.0f} a second here"
    compiling = "compiling, " * run.plan.execution.compile
    print(f"{told}: {_duration(seconds)}, without {compiling}choosing exemplars and judging")
    print(f"judged by {judged}")


def measured(run: Run) -> tuple[int, float]:
    """The images that a run's stages train on, and the seconds they take by a few steps of tasks 1, 2 and the last.

    The method learns every task with the steps left out, so that its networks grow as they would; exemplars are the
    first images of their class, and features are drawn.
    """
    last, fits = len(run.scenario.sizes) - 1, list[tuple[str, int, int]]()
    paces: dict[str, dict[int, float]] = {}  # of each stage, by task

    def fit(method: Method, task: Task, sampler: Sampler, *, stage: str | None = None, **how: Any) -> None:
        stage = stage or ("first" if task.n_old == 0 else "later")
        fits.append((stage, task.index, sampler.images * (run.engine.schedules[stage].epochs or 0)))
        if task.index in (0, 1, last) or stage not in paces:
            paces.setdefault(stage, {})[task.index] = pace(run, task, sampler, stage=stage, **how)

    def drawn(net: Net, index: Tensor, as_trained: bool = False) -> Tensor:
        return F.normalize(torch.rand(len(index), net.width, generator=run.generators["order"]), dim=1).to(
            run.device
        )

    run.method.memory.select = "first"
    for t in range(last + 1):
        task, data = run.arrival(t)
        run.method.learn(task, replace(data, features=drawn), fit)
    seconds = [n * np.interp(t, list(paces[stage]), list(paces[stage].values())) for stage, t, n in fits]
    return sum(n for _, _, n in fits), float(sum(seconds))


def pace(run: Run, task: Task, sampler: Sampler, *, stage: str, **how: Any) -> float:
    """Seconds an image takes in a step of `Engine.fit`, which trains at a rate of 0 here."""
    engine, lines = run.engine, list[Epoch]()
    set_up = run.plan.execution.graph or run.plan.execution.compile  # in a first epoch that is not timed

    def timed(count: int) -> float:
        usual = engine.schedules, engine.on_epoch
        rateless = engine.schedules[stage].model_copy(update={"epochs": 1 + set_up, "lr": 0.0})
        engine.schedules, engine.on_epoch = {stage: rateless}, lines.append
        try:
            engine.fit(run.method, task, Again(batch, count), stage=stage, **how)
        finally:
            engine.schedules, engine.on_epoch = usual
        return lines[-1].seconds

    batch = sampler.epoch(run.generators["order"])[0]
    batch = batch[:ON_CPU] if run.device.type == "cpu" else batch
    steps, spent = 1, timed(1)
    if spent < SLOW:
        steps = STEPS + int(SPELL / spent)  # the first sets up what others find
        spent = timed(steps)
    return spent / (steps * len(batch))


class Again:
    """One batch, over and over."""

    def __init__(self, batch: Tensor, count: int):
        self.batch, self.count, self.batch_size, self.images = batch, count, len(batch), count * len(batch)

    def epoch(self, generator: torch.Generator) -> list[Tensor]:
        return [self.batch] * self.count


def _shorten(names: list[str]) -> list[str]:
    return names if len(names) <= 4 else [*names[:3], f"… {len(names) - 3} more"]


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
