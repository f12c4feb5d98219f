"""`jioc run --dry-run`: what a run would do, and about how long it would take here."""

import time

import torch

from .config import Config
from .console import scenario_line, table
from .data.dataset import load
from .data_command import Progress
from .resolve import total_epochs
from .runner import Run

STEPS = 5


def show(config: Config) -> None:
    with Progress() as tell:
        dataset = load(config, tell)
    run = Run(config, dataset)
    sizes, counts = run.scenario.sizes, run.scenario.counts
    print(scenario_line(list(sizes), counts, config))
    rows, images, first = [], 0, 0
    for t, size in enumerate(sizes):
        new = sum(counts[first : first + size])
        quota = run.method.memory.quota(first) if first else 0
        held = sum(n if quota is None else min(quota, n) for n in counts[:first])
        epochs = total_epochs(config, run.spec, t)
        rows.append(
            [
                str(t + 1),
                ", ".join(_shorten(run.scenario.classes[first : first + size])),
                f"{new:,}",
                f"{held:,}",
                str(epochs),
            ]
        )
        images, first = images + epochs * (new + held), first + size
    table(["task", "classes", "new images", "exemplars", "epochs"], rows)
    speed = _speed(run)
    judged = "the held-out images" if run.scenario.held_out else "the test set"
    print(f"{images:,} images through the network at about {speed:,.0f} a second here: {_duration(images / speed)}")
    print(f"judged by {judged}")


def _speed(run: Run) -> float:
    """Images a second over a few steps of the first task; later ones add a teacher's forward pass."""
    task, data = run.arrival(0)
    method = run.method
    method.net.grow(task.n_new, method.generator)
    method.net.train()
    optimiser = torch.optim.SGD(method.net.parameters(), lr=1e-3)
    index = data.new[: run.config.batch_size].to(run.device)
    for i in range(STEPS + 1):
        if i == 1:
            _settle(run.device)
            started = time.perf_counter()
        run.engine.step(method, task, method.net, method.loss, None, optimiser, index, {})
    _settle(run.device)
    return STEPS * len(index) / (time.perf_counter() - started)


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


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
