"""What torchrun tells each process of a run: how many there are, and which one this is. No torch here."""

import os


def world_size() -> int:
    """How many processes share this run."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def local_rank() -> int:
    """Which of this machine's processes this one is."""
    return int(os.environ.get("LOCAL_RANK", "0")) if world_size() > 1 else 0


def first_process() -> bool:
    """Whether this process is the only one of its run, or the first: the one that prints and writes."""
    return world_size() == 1 or os.environ.get("RANK", "0") == "0"
