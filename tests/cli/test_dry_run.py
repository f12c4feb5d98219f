"""What a dry run times is what a run does."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch

from jioc.cli import dry_run as estimate
from jioc.config import values as settings
from jioc.data.load import load
from jioc.methods.specs import SPECS
from jioc.resolve.derive import resolve
from jioc.training.runner import Run


def test_the_steps_that_are_timed_are_those_of_fit_and_train_nothing(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: set[int] = set()
    monkeypatch.setattr(
        "jioc.training.engine.compiling", lambda *sizes: compiled.update(sizes) or nullcontext()
    )
    monkeypatch.setattr(estimate, "SPELL", 0.01)
    config = resolve(settings.make(method="icarl", compile=True, **small))
    run = Run(preflight(config, load(config)))
    task, data = run.arrival(0)
    run.method.net.grow(task.n_new, run.method.generator)
    before, usual = [p.clone() for p in run.method.net.parameters()], dict(run.engine.schedules)
    assert estimate.pace(run, task, data.alone(), stage="first") > 0
    assert compiled == {estimate.ON_CPU}
    assert all(map(torch.equal, before, run.method.net.parameters()))
    assert run.engine.schedules == usual and run.engine.on_epoch == run._on_epoch


@pytest.mark.parametrize("method", SPECS)
def test_every_method_can_be_timed(
    method: str, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "SPELL", 0.0)
    word = "ic" if SPECS[method].memory == "none" else "jioc"
    config = resolve(settings.make(method=method, coordination={"coordinate": word}, **small))
    images, seconds = estimate.measured(Run(preflight(config, load(config))))
    assert images > 0 and seconds > 0


@pytest.mark.parametrize("memory", [60, 2000])
def test_a_dry_run_tells_where_the_memory_has_room_for_every_image(
    memory: int, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(estimate, "SPELL", 0.0)
    estimate.show(resolve(settings.make(method="icarl", **(small | {"memory": memory}))))
    assert ("note: the memory has room for every image" in capsys.readouterr().err) == (memory == 2000)
