"""What torchrun tells a process."""

import pytest

from jioc.cli.main import main
from jioc.torchrun import first_process


def test_without_torchrun_an_empty_world_size_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "")
    assert first_process() and main(["list", "recipes"]) == 0
