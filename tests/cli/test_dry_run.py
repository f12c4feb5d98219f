"""What a dry run times is what a run does."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.learning import most_coordination
from jioc.cli import dry_run as estimate
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.data.load import load_dataset
from jioc.methods import SPECS
from jioc.resolve.derive import resolve
from jioc.training.evaluate import map_images
from jioc.training.preflight import preflight
from jioc.training.run import run
from jioc.training.runner import Run


def test_a_dry_run_prints_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "icarl", "--long-tail", "10", "--memory", "40", "--dry-run", "--device", "cpu"]) == 0
    captured = capsys.readouterr().out
    assert "5 tasks of 2 classes; 40 exemplars" in captured and "a second here" in captured
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["ssil", "foster", "der"])
def test_the_images_that_a_dry_run_counts_are_those_that_a_run_trains_on(
    method: str, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, wide = [], []
    small |= {"first": {"epochs": 2}, "later": {"epochs": 1}, "task_sizes": (3, 2, 2, 3)}
    run(method=method, callback=lambda event: trained.append(getattr(event, "images", 0)), **small)

    def pace(run: Run, task: Any, sampler: Any, net: Any = None, **how: Any) -> float:
        wide.append((net or run.method.net).width)
        return 1.0

    monkeypatch.setattr(estimate, "pace", pace)
    config = resolve(settings.make(method=method, **small))
    found = estimate.measured(Run(preflight(config, load_dataset(config))))
    assert (found.images, found.training) == (sum(trained), sum(trained))
    if method == "der":
        assert [w / wide[0] for w in wide] == [1, 2, 4]  # the network is as wide as it will be


def test_the_steps_that_are_timed_are_those_of_fit_and_train_nothing(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: set[int] = set()
    monkeypatch.setattr(
        "jioc.training.engine.compiling", lambda *sizes: compiled.update(sizes) or nullcontext()
    )
    monkeypatch.setattr(estimate, "SPELL", 0.01)
    config = resolve(settings.make(method="icarl", compile=True, **small))
    run = Run(preflight(config, load_dataset(config)))
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
    word = most_coordination(method)
    config = resolve(settings.make(method=method, coordination={"coordinate": word}, **small))
    found = estimate.measured(Run(preflight(config, load_dataset(config))))
    assert found.images > 0 and found.training > 0 and found.looking > 0


def test_passes_without_training_are_counted_as_a_run_makes_them(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def watched(function: Any, index: torch.Tensor, *rest: Any) -> Any:
        seen.append(len(index))
        return map_images(function, index, *rest)

    monkeypatch.setattr("jioc.training.evaluate.map_images", watched)
    small |= {"first": {"epochs": 1}, "later": {"epochs": 1}}
    run(method="icarl", **small)
    monkeypatch.setattr(estimate, "SPELL", 0.0)
    monkeypatch.setattr(estimate, "glance", lambda run, task: 1.0)
    config = resolve(settings.make(method="icarl", **small))
    assert estimate.measured(Run(preflight(config, load_dataset(config)))).looking == sum(seen)


@pytest.mark.parametrize("memory", [60, 2000])
def test_a_dry_run_tells_where_the_memory_has_room_for_every_image(
    memory: int, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(estimate, "SPELL", 0.0)
    estimate.show(resolve(settings.make(method="icarl", **(small | {"memory": memory}))))
    assert ("note: the memory has room for every image" in capsys.readouterr().err) == (memory == 2000)


LOOKS = """
from dataclasses import replace
import jioc
from jioc.losses import cross_entropy
from jioc.methods import SPECS

@jioc.register(replace(SPECS["replay"], name="looks", title="Looks", adjusts=False))
class Looks(jioc.Method):
    def loss(self, batch, out, old, task):
        return {"cls": cross_entropy(out.logits, batch.y)}

    def learn(self, task, data, fit):
        super().learn(task, data, fit)
        data.features(self.net, data.new, unit=False)
"""


def test_a_method_that_asks_for_plain_features_can_be_measured(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "looks.py").write_text(LOOKS)
    monkeypatch.setattr(estimate, "pace", lambda *parts, **how: 1.0)
    config = resolve(settings.make(method=str(tmp_path / "looks.py"), **small))
    assert estimate.measured(Run(preflight(config, load_dataset(config)))).images > 0


def test_a_hint_that_cannot_be_measured_stops_no_run(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Run] = []

    def broken(run: Run) -> None:
        asked.append(run)
        raise IndexError("no features of noise")

    monkeypatch.setattr(estimate, "measured", broken)
    monkeypatch.setattr(estimate, "LONG", 0)
    config = resolve(settings.make(method="icarl", **small))
    estimate.note_if_long(preflight(config, load_dataset(config)))
    assert asked
