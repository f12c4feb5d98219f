"""Runs that are stopped before their end."""

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
    "later": {"epochs": 12},
    "coordination": {"coordinate": "jioc"},
    "checkpoint_every": 0,
    "device": "cpu",
}


def interrupted(folder: Path, steps: int = 40) -> list[Path]:
    """Stop the longer run half-way; return its checkpoints, newest first."""
    begun(folder, LONGER, steps)
    return sorted((folder / "checkpoint").iterdir(), reverse=True)


def begun(folder: Path, settings: dict[str, Any], steps: int = 21) -> None:
    """Begin a run and stop it after this many steps."""
    with pytest.raises(Interrupted):
        run(**settings, out=folder, stop=stop_after(steps))
