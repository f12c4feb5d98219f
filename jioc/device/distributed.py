"""One run on several processes: the share of each, and how they agree.

`torchrun --nproc-per-node 2 -m jioc run ...` starts the same command in each process. All of them hold the
same state and draw the same numbers; each takes its share of the images of every step, of the classes whose
exemplars are chosen and of the images that are evaluated. Gradients are averaged by torch's
DistributedDataParallel. The first process alone writes. A world of one is a run as it always was.
"""

import gc
import itertools
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import cache
from inspect import signature
from traceback import clear_frames
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from jioc.errors import (
    Failed,
    Interrupted,
    RankError,
    Refused,
    ReportedElsewhere,
    fail_if,
    first_line,
    refuse_if,
    sentence,
)
from jioc.torchrun import world_size

PATIENCE = timedelta(hours=2)  # one process may be decoding a large folder for all
OWN_BUFFERS: dict[str, Any] = {  # DDP leaves BN's statistics alone; torch 2.13 has a new name for it
    "forward_sync_buffers"
    if "forward_sync_buffers" in signature(DistributedDataParallel).parameters
    else "broadcast_buffers": False
}


class World:
    """All processes of a run, seen from one of them. `bn`: per-process or synchronised."""

    def __init__(self, rank: int = 0, size: int = 1, bn: str = "per-process"):
        self.rank, self.size, self.bn = rank, size, bn
        self._sharing = False  # whether the work at hand was shared out
        self._answer: tuple[Tensor, Any] | None = None

    @property
    def first(self) -> bool:
        return self.rank == 0

    # --- a step ---

    @property
    def share(self) -> slice | None:
        """This process's images of any batch: each W-th of W processes, so that each share is mixed alike."""
        return None if self.size == 1 else slice(self.rank, None, self.size)

    def wrap(self, net: nn.Module, trained: Sequence[nn.Parameter]) -> nn.Module:
        """Wrap the network of a stage, so that backward passes average its gradients over the processes."""
        if self.size == 1:
            return net
        fail_if(
            {*map(id, trained)} - {*map(id, net.parameters())},
            "on several processes a stage can only train parameters of its own network",
        )
        return DistributedDataParallel(net, gradient_as_bucket_view=True, **OWN_BUFFERS)

    def averaging(self, net: nn.Module, last: bool) -> Any:
        """Average gradients once a batch: with the last of its parts."""
        return nullcontext() if last or self.size == 1 else net.no_sync()  # type: ignore[operator]

    def mean(self, term: Tensor, n: int) -> Tensor:
        """This process's part of a term's mean over n images, times the number of processes.

        Times that, because gradients are averaged, not summed. Shares differ in size by one at most; the part
        of an empty one is 0.
        """
        return term.mean() if self.size == 1 else term.sum() * (self.size / n)

    @torch.no_grad()
    def average_statistics(self, net: nn.Module, n: int) -> None:
        """After a step on n images, average BN's running statistics over the processes, weighed by images.

        So all hold the same network after every step.
        """
        if self.size == 1 or self.bn == "synchronised":
            return
        training = [module for module in net.modules() if module.training]
        buffers = [b for module in training for b in module.buffers(recurse=False) if b.is_floating_point()]
        if buffers:
            own = len(range(self.rank, n, self.size))
            means = self.sum(torch.cat([b.flatten() for b in buffers]) * (own / n))
            for b, mean in zip(buffers, means.split([b.numel() for b in buffers]), strict=True):
                b.copy_(mean.view_as(b))

    def sum(self, values: Tensor) -> Tensor:
        if self.size > 1:
            values = values.clone()
            dist.all_reduce(values)
        return values

    def gather(self, value: Tensor) -> Tensor:
        """Gather every process's value: (processes, ...)."""
        every = value.new_zeros((self.size, *value.shape))
        every[self.rank] = value
        return self.sum(every)

    def own_part(self, every: Tensor) -> Tensor:
        """This process's part of what was gathered; if more or fewer processes did it, the first has all."""
        return every[self.rank] if len(every) == self.size else every.sum(0) * self.first

    def any(self, asked: bool) -> bool:
        """Whether some process was asked to stop at the last call.

        This process's answer travels while the next step is taken.
        """
        if self.size == 1:
            return asked
        if self._answer is not None:
            flag, work = self._answer
            work.wait()
            self._answer = None
            if flag.item():
                return True
        flag = torch.tensor(int(asked))
        self._answer = flag, dist.all_reduce(flag, dist.ReduceOp.MAX, async_op=True)
        return False

    # --- sharing work out ---

    def map_sharded(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Apply a function to every item, each in one process, and give all results to all.

        A result is a tensor, or tensors by name. The function itself shares nothing out.
        """
        if self.size == 1 or self._sharing:
            return [function(item) for item in items]
        self._sharing = True
        try:
            mine = {i: function(items[i]) for i in range(self.rank, len(items), self.size)}
        finally:
            self._sharing = False
        described: list[Any] = [None] * self.size
        dist.all_gather_object(described, {i: _described(value) for i, value in mine.items()})
        owners = [i % self.size for i in range(len(items))]
        return [self._sent(mine.get(i), described[owner][i], owner) for i, owner in enumerate(owners)]

    def _sent(self, value: Any, described: Any, owner: int) -> Any:
        if isinstance(described, dict):
            return {name: self._sent(value and value[name], d, owner) for name, d in described.items()}
        shape, dtype, kind = described
        device = torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)
        tensor = torch.empty(shape, dtype=dtype, device=device) if value is None else value.contiguous()
        dist.broadcast(tensor, owner)
        return tensor

    # --- agreement ---

    def broadcast(self, value: Any) -> Any:
        """The first process's value."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, 0)
        return values[0]

    def barrier(self) -> None:
        """Wait until all processes are here, and no message is under way between them."""
        if self._answer is not None:
            self._answer[1].wait()
            self._answer = None
        self.sum(torch.zeros(()))

    def must_agree(self, noun: str, value: Any) -> None:
        """Refuse a value that differs: machines may have other files, or other arguments."""
        if self.size > 1:
            every: list[Any] = [None] * self.size
            dist.all_gather_object(every, value)
            for rank, other in enumerate(every):
                refuse_if(other != every[0], f"process {rank} has other {noun} than process 0")


def _described(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _described(part) for name, part in value.items()}
    return tuple(value.shape), value.dtype, value.device.type


ALONE = World()
_worlds = itertools.count()  # of this process: the store still holds what an earlier one left there


@cache
def _rendezvous() -> tuple[dist.Store, int, int]:
    """Find the other processes: the store that all share, this one's rank, and their number."""
    return next(rendezvous("env://", timeout=PATIENCE))


@contextmanager
def process_group(bn: str) -> Iterator[World]:
    """Enter the world that torchrun has started this process in.

    If the run fails in one process, that process should end: the others notice, and one of them says why.
    """
    if world_size() == 1:
        yield World(bn=bn)
        return
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        refuse_if(
            name not in os.environ,
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {name} is not set; torchrun sets them all",
        )
    own_gpus = torch.cuda.is_available() and torch.cuda.device_count() >= int(
        os.environ.get("LOCAL_WORLD_SIZE", "1")
    )  # NCCL wants a GPU for each process
    store, rank, size = _rendezvous()
    store = dist.PrefixStore(f"jioc{next(_worlds)}", store)
    dist.init_process_group(
        backend="cpu:gloo,cuda:nccl" if own_gpus else "gloo",
        store=store,
        rank=rank,
        world_size=size,
        timeout=PATIENCE,
    )
    world = World(rank, size, bn)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Grad strides do not match")  # of an axis of length one
            yield world
            world.barrier()
    except Exception as error:
        own = _own_error(error, rank, store)
        if not own_gpus or isinstance(error, Interrupted):  # NCCL might wait; it ends with the process
            world._answer = None
            _leave(error)
        if own is error:
            raise
        raise own from error
    _leave()


def _leave(error: BaseException | None = None) -> None:
    """End the group while only this function holds it.

    A DDP that held it last, such as one that dies with an error's frames, would wait for the group's threads
    without letting go of Python's lock, which they may wait for.
    """
    held = dist.group.WORLD
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
    gc.collect()
    dist.destroy_process_group()
    del held


def _is_first(rank: int, store: dist.Store) -> bool:
    try:
        return store.compare_set("failed", "", str(rank)) == str(rank).encode()
    except RuntimeError:
        return True  # the process that held the store is gone


def _own_error(error: Exception, rank: int, store: dist.Store) -> Exception:
    """The error that this process ends with: its own if it is the first to fail, else a silent one."""
    status = error.status if isinstance(error, Refused) else Failed.status
    if isinstance(error, Interrupted):  # all at the same step
        return error if rank == 0 else ReportedElsewhere(status)
    text = first_line(error)
    if "finished reduction" in text:
        error = Failed(
            "on several processes every parameter that is trained must take part in every step's loss"
        )
    elif isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in text):
        error = Failed("another process of this run was lost; --resume goes on from the last checkpoint")
    elif not isinstance(error, Refused) and rank:
        error = Failed(f"{sentence(error)}; --debug shows where")
    if not _is_first(rank, store):
        return ReportedElsewhere(status)
    return RankError(f"process {rank}: {error}", status) if rank else error
