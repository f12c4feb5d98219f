"""Shared by the tests: one thread (tiny networks are faster so), and small runs on the digits."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from jioc.cli import dry_run

signal.signal(signal.SIGINT, signal.default_int_handler)  # `nohup make test &` ignores both, and so would
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # every command that the tests start and stop
torch.set_num_threads(1)
dry_run.SPELL = 0.0  # no test asks how good an estimate is
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("JIOC_COMMIT", "tested")  # no test but that of the commit waits for git, in every run

SMALL: dict[str, Any] = {
    "data": "digits",
    "task_sizes": (4, 3, 3),
    "memory": 60,
    "later": {"epochs": 3},
    "first": {"epochs": 4},
    "device": "cpu",
}


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Decoded images are kept where the tests end."""
    where = tmp_path_factory.mktemp("cache")
    os.environ["JIOC_CACHE"] = str(where)
    return where


@pytest.fixture
def small() -> dict[str, Any]:
    """Settings of a run that takes about a second."""
    return dict(SMALL)


@pytest.fixture(scope="session")
def cifar() -> Path:
    """The folder that holds cifar-100-python."""
    where = os.environ.get("JIOC_DATA")
    if not where or not (Path(where) / "cifar-100-python").is_dir():
        pytest.skip("JIOC_DATA names no folder with cifar-100-python")
    return Path(where)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))
