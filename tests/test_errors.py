"""Errors as one sentence."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from jioc.config import files
from jioc.errors import Refused, first_line, sentence
from jioc.grid import ray as on_ray
from jioc.grid import slurm as on_slurm
from jioc.grid.options import LaunchOptions


def test_an_error_without_words_is_told_by_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wordless(*_: Any, **__: Any) -> Any:
        raise ValueError("\n")

    assert first_line(ValueError("\none\ntwo")) == "one" and first_line(ValueError()) == "ValueError"
    assert sentence(ValueError()) == "ValueError: no message"
    (file := tmp_path / "config.yaml").write_text("method: icarl\n")
    monkeypatch.setattr(yaml, "load", wordless)
    monkeypatch.setattr(on_slurm, "_submitit", lambda: SimpleNamespace(AutoExecutor=wordless))
    for work in (
        lambda: files.read(file),
        lambda: on_slurm.Queue(tmp_path, LaunchOptions(on="slurm")),
        lambda: on_ray._connect(SimpleNamespace(init=wordless), LaunchOptions(on="ray")),
    ):
        with pytest.raises(Refused, match=": ValueError$"):
            work()
