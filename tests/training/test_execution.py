"""How a step is executed: no reading of JIOC sees a part of a batch as a whole one; the commit is ours."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve.derive import resolve
from jioc.training import execution
from jioc.training.run import run


@pytest.mark.parametrize(
    ("readings", "told"),
    [
        ({"coordinate": "jioc", "delta_scale": "mean1"}, "--delta-scale mean1"),
        ({"coordinate": "ic", "delta_scale": "per-class"}, "--delta-scale per-class"),
        ({"coordinate": "oc", "suppress_scale": "batch"}, "--suppress-scale batch"),
        ({"coordinate": "jioc", "suppress_scale": "old-mean"}, "--suppress-scale old-mean"),
    ],
)
def test_what_looks_at_a_whole_batch_is_refused(
    readings: dict[str, str], told: str, small: dict[str, Any], tmp_path: Path
) -> None:
    words = f"^{told} looks at a whole batch, of which --accumulate works through a part at a time$"
    with pytest.raises(Refused, match=words):
        run(method="icarl", accumulate=2, coordination=readings, out=tmp_path / "run", **small)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("coordinate", ["none", "ic"])
def test_a_reading_that_has_no_part_in_the_loss_is_not_refused(coordinate: str) -> None:
    readings = {"coordinate": coordinate, "suppress_scale": "old-mean"}
    config = resolve(settings.make(method="icarl", accumulate=2, coordination=readings))
    assert execution.choose_execution(config, torch.device("cpu"), True).parts == 2


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_the_commit_is_never_that_of_a_project_around_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    here = tmp_path / "lib" / "jioc" / "execution.py"
    here.parent.mkdir(parents=True)
    here.write_text("x = 1\n")
    monkeypatch.setattr(execution, "__file__", str(here))
    monkeypatch.delenv("JIOC_COMMIT", raising=False)
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "somebody's project")
    assert execution.commit() is None
    git("add", "lib")
    git("commit", "-q", "-m", "our source")
    assert execution.commit() == git("rev-parse", "--short=12", "HEAD")
    here.write_text("x = 2\n")
    assert execution.commit() == git("rev-parse", "--short=12", "HEAD") + "+"
    monkeypatch.setenv("JIOC_COMMIT", "abc")
    assert execution.commit() == "abc"
