"""How a step is executed: no reading of JIOC sees a part of a batch as a whole one; the commit is ours."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from jioc.config import values as settings
from jioc.coordination import JIOC
from jioc.errors import Refused
from jioc.resolve.derive import resolve
from jioc.training import execution
from jioc.training.engine import Engine
from jioc.training.run import run


@pytest.mark.parametrize(
    ("readings", "message"),
    [
        ({"coordinate": "ic", "delta_scale": "per-class"}, "--delta-scale per-class"),
    ],
)
def test_what_looks_at_a_whole_batch_is_refused(
    readings: dict[str, str], message: str, small: dict[str, Any], tmp_path: Path
) -> None:
    words = f"^{message} looks at a whole batch, of which --accumulate works through a part at a time$"
    with pytest.raises(Refused, match=words):
        run(method="icarl", accumulate=2, coordination=readings, out=tmp_path / "run", **small)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("coordinate", ["none", "oc"])
def test_a_reading_that_has_no_part_in_the_loss_is_not_refused(coordinate: str) -> None:
    readings = {"coordinate": coordinate, "delta_scale": "per-class"}
    config = resolve(settings.make(method="icarl", accumulate=2, coordination=readings))
    assert execution.choose_execution(config, torch.device("cpu")).parts == 2


def test_weights_of_mean_1_are_of_the_whole_batch_however_many_its_parts(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled, mean, weights, touched = JIOC._scaled, Engine._averaging, list[torch.Tensor](), list[bool]()

    def watched(self: JIOC, *args: Any) -> torch.Tensor:
        weights.append(scaled(self, *args))
        return weights[-1]

    def passed(self: Engine, method: Any, task: Any, net: torch.nn.Module, *args: Any) -> Any:
        before = [b.clone() for b in net.buffers()]
        found = mean(self, method, task, net, *args)
        touched.append(not all(map(torch.equal, before, net.buffers())))
        return found

    monkeypatch.setattr(JIOC, "_scaled", watched)
    monkeypatch.setattr(Engine, "_averaging", passed)
    coordination = {"coordinate": "jioc", "delta_scale": "mean1"}
    run(method="icarl", accumulate=3, coordination=coordination, **small)
    assert len(weights) % 3 == 0 and touched and not any(touched)
    for i in range(0, len(weights), 3):
        whole = torch.cat(weights[i : i + 3])
        assert whole.mean().item() == pytest.approx(1, rel=1e-5)
    assert any(abs(part.mean().item() - 1) > 0.01 for part in weights)


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
