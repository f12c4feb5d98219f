"""A small grid: its recipe, its runs, and one that was stopped half way."""

import errno
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from jioc.config import values as settings
from jioc.errors import Interrupted
from jioc.grid.plan import Job
from jioc.resolve.derive import resolve
from jioc.training.run import run

BASE: dict[str, Any] = {
    "method": "icarl", "task_sizes": [4, 3, 3], "memory": 60, "later": {"epochs": 3}, "first": {"epochs": 4},
    "device": "cpu", "checkpoint_every": 0,
}  # fmt: skip
BOTH = {"matrix": {"coordination.coordinate": ["none", "jioc"]}}


def recipe_file(folder: Path, **content: Any) -> str:
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({"base": BASE, "seeds": [1, 2]} | content))
    return str(path)


def job(folder: Path, **change: Any) -> Job:
    return Job(folder.name, resolve(settings.make(**BASE | change)), folder)


def half_way(folder: Path) -> None:
    """Run until the second task and stop there."""
    asked = itertools.count()
    with pytest.raises(Interrupted):
        run(**BASE, out=folder, stop=lambda: next(asked) == 30)


def no_room(*_: Any, **__: Any) -> Any:
    """What a full disk answers."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
