"""Runs that are stopped before their end."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helpers.runs import stop_after
from jioc.errors import Interrupted
from jioc.training.run import run

LONGER: dict[str, Any] = {
    "method": "icarl",
    "memory": 40,
    "long_tail": 5,
    "task_sizes": (3, 3, 2, 2),
    "later": {"epochs": 7},
    "coordination": {"coordinate": "jioc"},
    "checkpoint_every": 0,
    "device": "cpu",
}


def interrupted(folder: Path, steps: int = 24) -> list[Path]:
    """Stop the longer run half-way; return its checkpoints, newest first. It is run once, and copied."""
    shutil.copytree(Path(_stopped(steps).name) / "run", folder)
    return sorted((folder / "checkpoint").iterdir(), reverse=True)


@cache
def _stopped(steps: int) -> "tempfile.TemporaryDirectory[str]":
    where = tempfile.TemporaryDirectory()
    begun(Path(where.name) / "run", LONGER, steps)
    return where


def begun(folder: Path, settings: dict[str, Any], steps: int = 21) -> None:
    """Begin a run and stop it after this many steps."""
    with pytest.raises(Interrupted):
        run(**settings, out=folder, stop=stop_after(steps))
