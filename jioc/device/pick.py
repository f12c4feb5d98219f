"""The device that a run works on, and the processor cores that this process may use."""

import os

import torch

from jioc.errors import refuse_if
from jioc.text import counted
from jioc.torchrun import local_rank


def pick_device(word: str) -> torch.device:
    """Pick the device that `--device` names. Several processes on a machine get a CUDA device each."""
    if word == "auto":
        word = "cuda" if torch.cuda.is_available() else "cpu"
    if word.startswith("cuda"):
        refuse_if(not torch.cuda.is_available(), f"--device {word}: torch finds no CUDA device here")
        devices = torch.cuda.device_count()
        if word == "cuda" and local_rank():
            word = f"cuda:{local_rank() % devices}"
        refuse_if(
            (torch.device(word).index or 0) >= devices,
            f"--device {word}: torch finds {counted(devices, 'CUDA device')} here",
        )
    return torch.device(word)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
