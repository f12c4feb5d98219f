"""Shared by the tests of data: a small folder of images."""

from pathlib import Path

import pytest

from helpers.trees import class_folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sound classes of five."""
    return class_folders(tmp_path / "pets", {"cat": 5, "dog": 5})
