"""Where the runs of a grid go: here, to a Ray cluster, to Slurm. No torch here, and neither Ray nor submitit.

A launcher is a function `launch(jobs, options, progress, stop)` that brings runs to their end and calls
`progress.ended` for each, once. A run is `jioc.run` everywhere, in its own folder, and goes on from its
checkpoint: if a worker or the driver dies, no more is lost than the time since that checkpoint.
"""

import importlib
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from jioc.config import Amount, Count, Options, Positive, index, refusal, setting
from jioc.device import RUNS_AT_ONCE
from jioc.errors import Refused
from jioc.grid.plan import Job
from jioc.grid.progress import GridProgress

Launcher = Callable[[list[Job], "LaunchOptions", GridProgress, Callable[[], bool]], None]
CLUSTERS = ("ray", "slurm")


class LaunchOptions(Options):
    """Where the runs go, and with what. Its fields are flags of `jioc grid`."""

    on: Literal["local", "ray", "slurm"] = "local"
    """Where the runs go: this process, a Ray cluster, or Slurm."""
    pack: Annotated[int, Field(ge=1, le=RUNS_AT_ONCE)] = setting(1, only=("local", "slurm"), metavar="RUNS")
    """Runs at once on one device, in one process or Slurm job."""
    cpus_per_run: Positive = setting(1, only=CLUSTERS, metavar="CORES")
    """Ray, Slurm: cores of a run; of a job with --pack."""
    gpus_per_run: Amount | None = setting(None, only=CLUSTERS, metavar="GPUS")
    """Ray, Slurm: GPUs likewise, on Ray also a fraction; on Ray one where there are any and --device is
    not cpu."""
    retries: Count = setting(3, only=CLUSTERS, metavar="TIMES")
    """Ray, Slurm: how often a run whose worker dies is tried again, from its checkpoint."""
    address: str | None = setting(None, only=("ray",), metavar="HOST:PORT")
    """Ray: of a cluster that this machine is a node of, auto or HOST:PORT; without it one is started here."""
    sync_every: Amount = setting(60.0, only=("ray",), metavar="SECONDS")
    """Ray: minimum seconds between copies of a run's checkpoint to the driver, beside that after each
    task."""
    time_limit: str | None = setting(None, metavar="TIME")
    """Stop before it with checkpoints, status 75: 90m, 2h. Slurm: of each job, which saves and queues
    again (2h)."""
    stop_after: Positive | None = setting(None, only=("local",), metavar="TASKS")
    """Stop each run once it has learnt that many tasks, with a checkpoint; without it the grid goes on."""
    time_to_save: Positive = setting(120, only=("slurm",), metavar="SECONDS")
    """Slurm: how long before its time limit a job is told to save."""
    executor: Literal["slurm", "local"] = setting("slurm", only=("slurm",))
    """Slurm: submitit's executor; local needs no Slurm."""
    at_once: Positive | None = setting(None, only=("slurm",), metavar="JOBS")
    """Slurm: jobs of the array that run at the same time, at most."""
    sbatch: tuple[str, ...] = setting((), only=("slurm",), metavar="NAME=VALUE,...")
    """Slurm: anything else, such as partition=gpu,account=lab,mem=32G."""


def make(**given: Any) -> LaunchOptions:
    """Check the options; refuse one that means nothing where the runs go."""
    try:
        options = LaunchOptions.model_validate(given)
    except ValidationError as error:
        raise refusal(error) from None
    for name in given:
        only = index.about(LaunchOptions.model_fields[name]).only
        if only and options.on not in only:
            raise Refused(f"{index.flag(name)} means nothing with --on {options.on}; it is for {only[0]}")
    return options


def launcher(options: LaunchOptions) -> Launcher:
    return importlib.import_module(f"jioc.grid.{options.on}").launch


def package(name: str, title: str, on: str) -> Any:
    """Import the package that a launcher needs; if it is missing, say how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Refused(f"--on {on} needs {title}; install it with: pip install 'jioc[{on}]'") from None
