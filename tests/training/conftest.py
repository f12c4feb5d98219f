"""Runs and models that several tests look at."""

import shutil
from pathlib import Path

import pytest

import jioc
from helpers.models import QUICK
from helpers.resuming import LONGER
from jioc.config import values as settings
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the longer run, left alone."""
    folder = tmp_path_factory.mktemp("runs") / "alone"
    jioc.run(**LONGER, out=folder)
    return folder


@pytest.fixture(scope="session")
def digits() -> Dataset:
    return load_dataset(settings.make(method="icarl", data="digits"))


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    out = tmp_path_factory.mktemp("saved") / "run"
    jioc.run(method="icarl", **QUICK, out=out)
    return out


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    """A copy of the model, without the run."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in ("model.json", "model.safetensors", "exemplars.safetensors", "judged.safetensors"):
        shutil.copy(saved / file, folder)
    return folder
