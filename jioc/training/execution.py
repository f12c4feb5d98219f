"""How a training step is executed on a device: the choice, the steps, what result.json says of both.

A step runs as it is, or is replayed from a CUDA graph. A graph holds the whole step: the draw of a batch from
the epoch's order, augmentation, forward pass, teacher, terms, coordination, backward pass and update. Python
then launches one thing a step instead of a thousand. The epoch's order, the place in it, the learning rate
and the sums of the terms are tensors that stay where they are; images that come from the disk are put where
the graph reads them before each step. A batch of another size, such as an epoch's last, has a graph of its
own.
"""

import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from jioc.config import Config, Coordination, index
from jioc.device import distributed, streams
from jioc.device.compile import keep_compiled
from jioc.errors import refuse_if
from jioc.results import Environment

Sums = dict[str, Tensor]
Body = Callable[[Tensor, Sums], None]  # a step on a batch of indices; it adds each term's sum to the sums

WARM_UP = 3
AHEAD = 3  # steps launched before the first is done; with whole epochs, packed runs held each other up
_capturer = ThreadPoolExecutor(1, "capture")  # one thread for all runs: cuDNN chooses its kernels per thread


# --- the choice ---


@dataclass(frozen=True)
class Execution:
    """How a step is executed: nothing here changes what is computed, except rounding."""

    precision: str  # fp32, tf32 or bf16
    graph: bool  # the whole step in a CUDA graph
    compile: bool  # backbones compiled
    parts: int  # of a batch, one at a time, to save memory; BN then sees a part


def choose_execution(
    config: Config, device: torch.device, world: distributed.World = distributed.ALONE
) -> Execution:
    """Decide what `auto` means; refuse what cannot be."""
    cuda, alone = device.type == "cuda", world.size == 1
    if not alone:
        _refuse_whole_batch(config.coordination, "each of several processes sees a share")
        refuse_if(config.compile and config.bn == "synchronised", "--bn synchronised cannot be compiled")
        refuse_if(
            ":" in config.device,
            f"--device {config.device} names one device for several processes; --device cuda gives each one",
        )
    if config.accumulate > 1:
        _refuse_whole_batch(config.coordination, "--accumulate works through a part at a time")
    can_graph = cuda and alone
    refuse_if(
        config.engine == "graph" and not can_graph,
        "--engine graph needs a CUDA device" + " and one process" * (not alone),
    )
    graph = can_graph and config.engine != "eager"
    precision = ("bf16" if cuda else "fp32") if config.precision == "auto" else config.precision
    return Execution(precision, graph, graph if config.compile is None else config.compile, config.accumulate)


def _refuse_whole_batch(c: Coordination, why: str) -> None:
    """Refuse the reading of JIOC that would mean something else on a part of a batch."""
    idle = index.without_effect(c.coordinate)
    refuse_if(
        c.delta_scale == "per-class" and "delta_scale" not in idle,
        f"{index.flag('delta_scale')} per-class looks at a whole batch, of which {why}",
    )


def set_up_torch(execution: Execution, deterministic: bool) -> None:
    """Set the switches that torch keeps for the whole process."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = execution.precision != "fp32"
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic
    if execution.compile:
        keep_compiled()
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
    torch.use_deterministic_algorithms(deterministic, warn_only=True)


@contextmanager
def cudnn_benchmark_off(device: torch.device) -> Iterator[None]:
    """Keep cuDNN from measuring its algorithms again for each new size of batch, within."""
    if device.type != "cuda":
        yield
        return
    with streams.capture_lock():
        before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = False
        try:
            yield
        finally:
            torch.backends.cudnn.benchmark = before


# --- the steps ---


class EagerSteps:
    """Steps launched piece by piece."""

    def __init__(self, body: Body, device: torch.device, sums: Sums | None = None):
        self.body, self.device, self.sums = body, device, sums or {}

    def begin(self, batches: list[Tensor], first: int) -> None:
        """Begin an epoch of these batches of indices, at the batch `first`."""
        whole = torch.cat(batches).to(self.device, non_blocking=True)
        self.batches: tuple[Tensor, ...] = whole.split([len(b) for b in batches])

    def run(self, i: int) -> None:
        self.body(self.batches[i], self.sums)


class GraphSteps(EagerSteps):
    """Steps replayed from CUDA graphs.

    `live` gives the tensors that a step changes: they are put back after the steps that warm a graph up.
    `feed` puts the images of a batch where the graph reads them, and within `reading_fed` a step does.
    """

    def __init__(
        self,
        body: Body,
        device: torch.device,
        noise: torch.Generator,
        live: Callable[[], list[Tensor]],
        feed: Callable[[Tensor], object] = lambda batch: None,
        reading_fed: Callable[[], AbstractContextManager[object]] = nullcontext,
    ):
        super().__init__(body, device)
        self.noise, self.live, self.feed, self.reading_fed = noise, live, feed, reading_fed
        self.order = torch.zeros(0, dtype=torch.long, device=device)
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self.sizes: list[int] = []
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}  # by the images of a batch
        self.done: list[torch.cuda.Event] = []

    def begin(self, batches: list[Tensor], first: int) -> None:
        self.batches, self.sizes = tuple(batches), [len(b) for b in batches]
        whole = torch.cat(batches)
        if len(whole) != len(self.order):
            assert not self.graphs, "every epoch of a stage visits as many images"
            self.order = torch.empty_like(whole, device=self.device)
        self.order.copy_(whole, non_blocking=True)
        self.place.fill_(sum(self.sizes[:first]))
        for size in sorted(set(self.sizes), reverse=True):
            if size not in self.graphs:
                self.feed(batches[self.sizes.index(size)])
                self.graphs[size] = self._capture(size)

    def run(self, i: int) -> None:
        self.feed(self.batches[i])
        self._replay(i)

    def _replay(self, i: int) -> None:
        done = self.done[i % AHEAD]
        done.synchronize()
        self.graphs[self.sizes[i]].replay()
        done.record(torch.cuda.current_stream(self.device))

    def _capture(self, size: int) -> torch.cuda.CUDAGraph:
        self.done = self.done or [torch.cuda.Event(blocking=True) for _ in range(AHEAD)]
        # the future has no name: an error in it would keep itself alive, and the step's tensors
        here = torch.cuda.current_stream(self.device)
        return _capturer.submit(copy_context().run, self._captured, size, here).result()

    def _step(self, size: int) -> None:
        index = self.order[(self.place + torch.arange(size, device=self.device)) % len(self.order)]
        self.place.add_(size)
        with self.reading_fed():
            self.body(index, self.sums)

    def _captured(self, size: int, caller: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # an epoch's last, odd batch is one of many: measuring algorithms for it costs more than it saves
        tuning = nullcontext() if size == self.sizes[0] else cudnn_benchmark_off(self.device)
        with streams.capture_lock(), tuning, torch.cuda.stream(stream := streams.capture_stream(caller)):
            stream.wait_stream(caller)
            noise, live = self.noise.get_state(), [*self.live(), self.place]
            sums = {name: value.clone() for name, value in self.sums.items()}
            before = [t.detach().clone() for t in live]  # a gradient would tie the graph to this stream
            graph.register_generator_state(self.noise)
            try:
                for _ in range(WARM_UP):
                    self._step(size)
                with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                    self._step(size)
            except BaseException:
                # a state that was being captured refuses to be drawn from
                fresh = torch.Generator(self.device)
                self.noise.graphsafe_set_state(fresh.graphsafe_get_state())
                raise
            finally:
                with torch.no_grad():
                    for t, value in zip(live, before, strict=True):
                        t.copy_(value)
                    for name, value in self.sums.items():
                        value.copy_(sums[name]) if name in sums else value.zero_()
                self.noise.set_state(noise)
                caller.wait_stream(stream)
        return graph


# --- what result.json says ---


def environment(device: torch.device, execution: Execution, processes: int) -> Environment:
    return Environment(
        torch=torch.__version__,
        python=platform.python_version(),
        device=device_name(device),
        threads=torch.get_num_threads(),
        precision=execution.precision,
        engine=("graph" if execution.graph else "eager") + (", compiled" if execution.compile else ""),
        processes=processes,
    )


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU"


def commit() -> str | None:
    """Find the commit of this source, with a + if it was changed. JIOC_COMMIT names it for a bare copy.

    None if git does not know this file: installed within a project, the commit would be the project's.
    """
    if os.environ.get("JIOC_COMMIT"):
        return os.environ["JIOC_COMMIT"]

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        changed = git("status", "--porcelain", "--untracked-files=no", "..")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
