"""How a training step is executed on a device: precision, CUDA graph, compilation, parts of a batch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from jioc.config import Config, Coordination, index
from jioc.device.distributed import ALONE, World
from jioc.device.streams import capture_lock
from jioc.errors import Refused


@dataclass(frozen=True)
class Execution:
    """How a step is executed: nothing here changes what is computed, except rounding."""

    precision: str  # fp32, tf32 or bf16
    graph: bool  # the whole step in a CUDA graph
    compile: bool  # backbones compiled
    parts: int  # of a batch, one at a time, to save memory; BN then sees a part


def choose_execution(config: Config, device: torch.device, resident: bool, world: World = ALONE) -> Execution:
    """Decide what `auto` means; refuse what cannot be. `resident`: whether the device holds all images."""
    cuda, alone = device.type == "cuda", world.size == 1
    if not alone:
        _refuse_shared(config)
    if config.accumulate > 1:
        _refuse_whole_batch(config.coordination, "--accumulate works through a part at a time")
    if config.engine == "graph" and not (cuda and resident and alone):
        raise Refused(
            "--engine graph needs a CUDA device that holds all images" + " and one process" * (not alone)
        )
    graph = cuda and resident and alone and config.engine != "eager"
    precision = ("bf16" if cuda else "fp32") if config.precision == "auto" else config.precision
    return Execution(precision, graph, graph if config.compile is None else config.compile, config.accumulate)


def _refuse_shared(config: Config) -> None:
    """Refuse what several processes cannot do."""
    _refuse_whole_batch(config.coordination, "each of several processes sees a share")
    if config.compile and config.bn == "synchronised":
        raise Refused("--bn synchronised cannot be compiled")
    if ":" in config.device:
        raise Refused(
            f"--device {config.device} names one device for several processes; --device cuda gives each one"
        )


def _refuse_whole_batch(c: Coordination, why: str) -> None:
    """Refuse readings of JIOC that would mean something else on a part of a batch."""
    idle = index.without_effect(c.coordinate, c.host_kd)
    for name, word, of_an_image in (
        ("delta_scale", c.delta_scale, "plain"),
        ("suppress_scale", c.suppress_scale, "task"),
    ):
        if word != of_an_image and name not in idle:
            raise Refused(f"{index.flag(name)} {word} looks at a whole batch, of which {why}")


def set_up_torch(execution: Execution, deterministic: bool) -> None:
    """Set the switches that torch keeps for the whole process."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = execution.precision != "fp32"
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
    torch.use_deterministic_algorithms(deterministic, warn_only=True)


@contextmanager
def cudnn_benchmark_off() -> Iterator[None]:
    """Keep cuDNN from measuring its algorithms again for each new size of batch, within."""
    with capture_lock():
        before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = False
        try:
            yield
        finally:
            torch.backends.cudnn.benchmark = before
