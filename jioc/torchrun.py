"""What torchrun sets in each process of a run: how many there are, and which one this is. No torch here."""

import os


def world_size() -> int:
    """The number of processes of this run."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def local_rank() -> int:
    """The number of this process among those of the run on this machine."""
    return int(os.environ.get("LOCAL_RANK", "0")) if world_size() > 1 else 0


def first_process() -> bool:
    """Whether this process prints and writes: it is the only one of its run, or the first."""
    return world_size() == 1 or os.environ.get("RANK", "0") == "0"
