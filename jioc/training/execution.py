"""The machine that a run is on: its device, how a step is carried out there, and what result.json tells of it."""

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from jioc.config.schema import Config, without_effect
from jioc.device.distributed import ALONE, World, local_rank
from jioc.device.streams import undisturbed
from jioc.errors import Refused
from jioc.text import counted
from jioc.training.engine import How


def pick_device(word: str) -> torch.device:
    """Of several processes on a machine, each has a CUDA device of its own, as far as they go."""
    if word == "auto":
        word = "cuda" if torch.cuda.is_available() else "cpu"
    if word == "cuda" and local_rank() and torch.cuda.is_available():
        word = f"cuda:{local_rank() % torch.cuda.device_count()}"
    if word.startswith("cuda"):
        if not torch.cuda.is_available():
            raise Refused(f"--device {word}: torch finds no CUDA device here")
        if torch.device(word).index is not None and torch.device(word).index >= torch.cuda.device_count():
            raise Refused(f"--device {word}: torch finds {counted(torch.cuda.device_count(), 'CUDA device')} here")
    return torch.device(word)


def how(config: Config, device: torch.device, resident: bool, world: World = ALONE) -> How:
    """What `auto` means here."""
    cuda, alone = device.type == "cuda", world.size == 1
    if not alone:
        _refuse_shared(config)
    if config.accumulate > 1:
        _refuse_whole_batch(config, "--accumulate works through a part at a time")
    if config.engine == "graph" and not (cuda and resident and alone):
        raise Refused("--engine graph needs a CUDA device that holds all images" + " and one process" * (not alone))
    graph = cuda and resident and alone and config.engine != "eager"
    precision = ("bf16" if cuda else "fp32") if config.precision == "auto" else config.precision
    return How(precision, graph, graph if config.compile is None else config.compile, config.accumulate)


def _refuse_shared(config: Config) -> None:
    """What several processes cannot do."""
    _refuse_whole_batch(config, "each of several processes sees a share")
    if config.compile and config.bn == "synchronised":
        raise Refused("--bn synchronised cannot be compiled")
    if ":" in config.device:
        raise Refused(f"--device {config.device} names one device for several processes; --device cuda gives each one")


def _refuse_whole_batch(config: Config, why: str) -> None:
    """Readings of JIOC that would mean something else on a part of a batch."""
    c = config.coordination
    idle = without_effect(c.coordinate, c.host_kd)
    for name, word, of_an_image in (("delta_scale", c.delta_scale, "plain"), ("quiet_scale", c.quiet_scale, "task")):
        if word != of_an_image and name not in idle:
            flag = f"--{name.replace('_', '-')} {word}"
            raise Refused(f"{flag} looks at a whole batch, of which {why}")


def set_up_torch(how: How, deterministic: bool) -> None:
    """The switches that torch keeps for the whole process."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = how.precision != "fp32"
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
    torch.use_deterministic_algorithms(deterministic, warn_only=True)


@contextmanager
def judging() -> Iterator[None]:
    """Passes over batches of ever other sizes, for each of which cuDNN would measure its algorithms anew."""
    with undisturbed():
        measured = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = False
        try:
            yield
        finally:
            torch.backends.cudnn.benchmark = measured


def environment(device: torch.device, how: How) -> dict[str, Any]:
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU",
        "threads": torch.get_num_threads(),
        "precision": how.precision,
        "engine": ("graph" if how.graph else "eager") + (", compiled" if how.compile else ""),
    }


def commit() -> str | None:
    """The commit of the source this runs from, with + where it was changed. JIOC_COMMIT names it for a bare copy.

    None where git does not know this file: installed within somebody's project, the commit would be the project's.
    """
    if os.environ.get("JIOC_COMMIT"):
        return os.environ["JIOC_COMMIT"]
    here = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return git("rev-parse", "--short=12", "HEAD") + (
            "+" if git("status", "--porcelain", "--untracked-files=no", ".") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return None
