"""The device that a run works on."""

import torch

from jioc.errors import Refused
from jioc.text import counted
from jioc.torchrun import local_rank


def pick_device(word: str) -> torch.device:
    """Pick the device that `--device` names. Several processes on a machine get a CUDA device each."""
    if word == "auto":
        word = "cuda" if torch.cuda.is_available() else "cpu"
    if word == "cuda" and local_rank() and torch.cuda.is_available():
        word = f"cuda:{local_rank() % torch.cuda.device_count()}"
    if word.startswith("cuda"):
        if not torch.cuda.is_available():
            raise Refused(f"--device {word}: torch finds no CUDA device here")
        if torch.device(word).index is not None and torch.device(word).index >= torch.cuda.device_count():
            raise Refused(
                f"--device {word}: torch finds {counted(torch.cuda.device_count(), 'CUDA device')} here"
            )
    return torch.device(word)
