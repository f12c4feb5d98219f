"""Where the runs of a grid go: here, to a Ray cluster, to Slurm. No torch here, and neither Ray nor submitit.

A launcher is a function `launch(jobs, where, board, stop)` that brings runs to their end and tells `board.ended` of
each, once. The run is `jioc.run` everywhere, in a folder of its own, and goes on from its checkpoint: so whoever dies,
worker or driver, what is lost is the time since the last checkpoint.
"""

import importlib
from collections.abc import Callable
from typing import Any, Literal

from pydantic import ValidationError

from jioc.config.schema import Amount, Count, Options, Positive, refusal
from jioc.errors import Refused
from jioc.grid.plan import Job
from jioc.grid.progress import Board

Launcher = Callable[[list[Job], "Where", Board, Callable[[], bool]], None]


class Where(Options):
    """Where the runs go, and with what. Its fields are flags of `jioc grid`."""

    on: Literal["local", "ray", "slurm"] = "local"
    """Where the runs go: this process, a Ray cluster, or Slurm."""
    pack: Positive = 1
    """Runs at once on one device, in one process or Slurm job."""
    cpus_per_run: Positive = 1
    """Ray, Slurm: cores of a run; of a job with --pack."""
    gpus_per_run: Amount | None = None
    """Ray, Slurm: GPUs likewise, on Ray also a fraction; on Ray one where there are any and --device is not cpu."""
    retries: Count = 3
    """Ray, Slurm: how often a run whose worker dies is tried again, from its checkpoint."""
    address: str | None = None
    """Ray: of a cluster that this machine is a node of, auto or HOST:PORT; without it one is started here."""
    sync_every: Amount = 60.0
    """Ray: least seconds between two copies of a run's checkpoint to the driver, beside that after each task."""
    time_limit: str | None = None
    """Stop before it with checkpoints, status 75: 90m, 2h. Slurm: of each job, which saves and queues again (2h)."""
    executor: Literal["slurm", "local"] = "slurm"
    """Slurm: submitit's executor; local needs no Slurm."""
    at_once: Positive | None = None
    """Slurm: jobs of the array that run at the same time, at most."""
    sbatch: tuple[str, ...] = ()
    """Slurm: anything else, such as partition=gpu,account=lab,mem=32G."""


FOR = {
    "pack": ("local", "slurm"), "cpus_per_run": ("ray", "slurm"), "gpus_per_run": ("ray", "slurm"),
    "retries": ("ray", "slurm"), "address": ("ray",), "sync_every": ("ray",), "executor": ("slurm",),
    "at_once": ("slurm",), "sbatch": ("slurm",),
}  # fmt: skip


def make(**given: Any) -> Where:
    """The checked options; one that means nothing where the runs go is refused."""
    try:
        where = Where.model_validate(given)
    except ValidationError as error:
        raise refusal(error) from None
    for name in given:
        if where.on not in FOR.get(name, (where.on,)):
            raise Refused(f"--{name.replace('_', '-')} means nothing with --on {where.on}; it is for {FOR[name][0]}")
    return where


def find(where: Where) -> Launcher:
    module = where.on
    return importlib.import_module(f"jioc.grid.{module}").launch
