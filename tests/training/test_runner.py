"""Whole runs on the digits: what holds for every method."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import jioc
from helpers.learning import new_run, started
from helpers.runs import collect_notes, figures, same, weights
from jioc.config import Config
from jioc.config import values as settings
from jioc.coordination import JIOC
from jioc.data.load import load_dataset
from jioc.errors import Refused
from jioc.events import Epoch, Event, Start, TaskEnd
from jioc.methods import SPECS
from jioc.methods.icarl import ICaRL
from jioc.resolve.overlay import overlay
from jioc.training.build import make_method
from jioc.training.engine import round_convolutions
from jioc.training.preflight import preflight
from jioc.training.run import run
from jioc.training.runner import Run

Weights = dict[str, torch.Tensor]


def attached(coordination: JIOC) -> Any:
    """`make_method` with a coordination of the caller's choice on what it makes."""

    def made(*parts: Any) -> Any:
        method = make_method(*parts)
        method.coordination = coordination
        return method

    return made


@pytest.mark.parametrize("method", [name for name, spec in SPECS.items() if spec.memory == "none"])
def test_same_settings_give_the_same_result_and_jioc_switched_off_is_none(
    method: str, small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They refuse oc, so JIOC is attached by hand. The others: `test_switched_off_is_absent`."""
    small |= {"first": {"epochs": 2}, "later": {"epochs": 1}}
    first = run(method=method, **small, out=tmp_path / "first")
    monkeypatch.setattr("jioc.training.build.make_method", attached(JIOC(coordinate="none")))
    again = run(method=method, **small, out=tmp_path / "again")
    assert figures(first) == figures(again)
    assert same(weights(tmp_path / "first"), weights(tmp_path / "again"))


def test_a_memory_that_leaves_out_no_image_is_noted(small: dict[str, Any]) -> None:
    counts = new_run(method="replay", **small).scenario.counts[:7]
    for memory in (7 * max(counts), 7 * max(counts) - 1):
        notes: list[str] = []
        short = small | {"memory": memory, "first": {"epochs": 1}, "later": {"epochs": 1}}
        result = run(method="replay", **short, callback=collect_notes(notes))
        whole = result["tasks"][1]["memory"] == sum(counts)  # as the last task begins
        assert whole == (memory % 7 == 0) == any("room for every image" in text for text in notes)


def test_settings_without_effect_are_noted_from_python_too(small: dict[str, Any]) -> None:
    notes: list[str] = []
    short = small | {"first": {"epochs": 1}, "later": {"epochs": 1}}
    run(method="icarl", **short, coordinate="ic", temperature=4, callback=collect_notes(notes))
    assert notes == ["--temperature: without effect under --coordinate ic"]


def test_jioc_switched_on_is_not_none(small: dict[str, Any], tmp_path: Path) -> None:
    run(method="icarl", **small, out=tmp_path / "none")
    for part in ("ic", "oc", "jioc"):
        run(method="icarl", **small, coordination={"coordinate": part}, out=tmp_path / part)
        assert not same(weights(tmp_path / "none"), weights(tmp_path / part))


@pytest.mark.parametrize(
    ("changed", "kept"),
    [({"init_seed": 2}, "order of images"), ({"data_seed": 2}, "weights"), ({"seed": 2}, "neither")],
)
def test_seeds_of_weights_and_data_are_apart(
    changed: dict[str, int], kept: str, small: dict[str, Any]
) -> None:
    data = load_dataset(settings.make(method="icarl"))
    a, b = (new_run(data, method="icarl", **small, **more) for more in ({}, changed))
    same_weights = a.method.net.backbone.conv.weight.equal(b.method.net.backbone.conv.weight)
    orders = [r.arrival(0)[1].alone().epoch(r.generators["order"]) for r in (a, b)]
    same_order = torch.cat(orders[0]).equal(torch.cat(orders[1]))
    assert (same_weights, same_order) == {
        "order of images": (False, True),
        "weights": (True, False),
        "neither": (False, False),
    }[kept]


def test_another_class_order_leaves_the_first_weights_and_the_draws(small: dict[str, Any]) -> None:
    data = load_dataset(settings.make(method="icarl"))
    a, b = (new_run(data, method="icarl", **small, order_seed=s) for s in (1993, 5))
    assert a.scenario.classes != b.scenario.classes
    assert a.method.net.backbone.conv.weight.equal(b.method.net.backbone.conv.weight)
    assert all(g.get_state().equal(b.generators[name].get_state()) for name, g in a.generators.items())


def test_learning_beats_chance_and_the_ceiling_beats_the_floor(small: dict[str, Any]) -> None:
    """With small batches, three epochs are enough steps."""
    given = small | {"task_sizes": (5, 5), "memory": 150, "batch_size": 32, "first": {"epochs": 3}}
    last = {m: run(method=m, **given)["tasks"][-1]["cnn"] for m in ("finetune", "icarl", "joint")}
    assert last["joint"]["all"] > 80 and last["icarl"]["new"] > 60
    assert last["finetune"]["old"] < last["icarl"]["old"] < last["joint"]["old"]


@pytest.mark.parametrize(
    "odd",
    [
        {"task_sizes": (2, 2, 2, 2, 2)},
        {"task_sizes": (1, 1, 7, 1)},
        {"task_sizes": (9, 1)},
        {"tasks": 1, "task_sizes": None},
        {"memory": 0},
        {"memory": 10},
        {"long_tail": 40, "memory": 500},
        {"memory_per_class": 50, "long_tail": 40},
        {"batch_size": 1000},
        {"batch_size": 7, "later": {"epochs": 1}, "first": {"epochs": 1}},
        {"holdout": 0.2},
        {"select": "random"},
    ],
    ids=str,
)
@pytest.mark.parametrize("coordinate", ["none", "jioc"])
def test_odd_settings_train_or_are_refused(
    odd: dict[str, Any], coordinate: str, small: dict[str, Any]
) -> None:
    settings = overlay(small | {"later": {"epochs": 2}, "first": {"epochs": 2}}, odd)
    if odd.get("memory") == 0 and coordinate == "jioc":
        with pytest.raises(Refused, match="keeps no exemplars"):
            run(method="icarl", **settings, coordination={"coordinate": coordinate})
        return
    result = run(method="icarl", **settings, coordination={"coordinate": coordinate})
    assert result["complete"] and result["average"]["cnn"] is not None
    assert (result["average"]["nme"] is None) == (odd.get("memory") == 0)


def test_a_last_batch_of_one_image_trains_though_the_network_leaves_one_pixel_of_it(
    small: dict[str, Any],
) -> None:
    data = load_dataset(settings.make(method="icarl"))
    few = replace(data, train_x=data.train_x[:33], train_y=data.train_y[:33])
    small |= {
        "backbone": "resnet18",
        "stem": "imagenet",
        "batch_size": 32,
        "task_sizes": (10,),
        "first": {"epochs": 1},
    }
    assert new_run(few, method="icarl", **small).run_tasks()["complete"]


def test_a_class_of_three_images_and_a_quota_of_fifty(small: dict[str, Any]) -> None:
    result = run(method="icarl", **overlay(small, {"memory_per_class": 50, "long_tail": 42}))
    assert min(result["counts"]) == 3
    assert result["tasks"][-1]["memory"] == sum(min(50, n) for n in result["counts"])


def test_a_holdout_is_what_the_run_is_judged_by(small: dict[str, Any]) -> None:
    data = load_dataset(settings.make(method="replay"))
    held = new_run(data, method="replay", **small, holdout=0.5)
    assert torch.from_numpy(data.train_x).equal(held.test.pixels)  # not one test image is there
    judged, trained = held.test.labels >= 0, held.train.labels >= 0
    assert not (judged & trained).any() and (judged | trained).all()
    blank = replace(data, test_x=data.test_x * 0, test_y=data.test_y * 0)
    assert figures(Run(preflight(held.config, blank)).run_tasks()) == figures(held.run_tasks())


def test_a_callback_sees_every_epoch_and_task(small: dict[str, Any]) -> None:
    events: list[Event] = []
    run(method="replay", **small, callback=events.append)
    kinds = [type(event) for event in events]
    assert kinds.count(Epoch) == 4 + 3 + 3 and kinds.count(TaskEnd) == 3 and kinds[0] is Start


def test_a_teacher_never_changes(small: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[tuple[Weights, Weights]] = []
    real = ICaRL.remember

    def remember(self: ICaRL, *args: Any) -> None:
        if self.teacher is not None:
            states.append((kept[-1], {k: v.clone() for k, v in self.teacher.state_dict().items()}))
        real(self, *args)

    kept: list[Weights] = []
    keep = ICaRL.keep_teacher

    def keep_teacher(self: ICaRL) -> None:
        keep(self)
        assert self.teacher is not None
        kept.append({k: v.clone() for k, v in self.teacher.state_dict().items()})

    monkeypatch.setattr(ICaRL, "remember", remember)
    monkeypatch.setattr(ICaRL, "keep_teacher", keep_teacher)
    run(method="icarl", **small)
    assert len(states) == 2 and all(same(before, after) for before, after in states)


def test_the_public_names() -> None:
    assert all(getattr(jioc, name) is not None for name in jioc.__all__)
    assert set(jioc.__all__) <= set(dir(jioc))
    assert jioc.losses.cross_entropy and callable(jioc.run)
    with pytest.raises(Refused, match="'jiocc' is refused"):
        jioc.JIOC(coordinate="jiocc")
    with pytest.raises(Refused, match="not both: memory"):
        jioc.run(Config(method="icarl"), memory=40)


def test_a_place_may_be_a_path_and_what_is_no_configuration_is_refused(tmp_path: Path) -> None:
    made = settings.make(method=tmp_path / "mine.py", data=tmp_path / "pets")
    assert (made.method, made.data) == (str(tmp_path / "mine.py"), str(tmp_path / "pets"))
    with pytest.raises(
        Refused, match="^jioc.run takes settings by their names, such as method='icarl', or .*; not 'wa'$"
    ):
        run("wa")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="^--data: 5 is refused"):
        settings.make(method="icarl", data=5)


@pytest.mark.parametrize("unit", [True, False])
def test_a_teacher_that_was_rounded_for_the_steps_still_gives_features(unit: bool) -> None:
    """On CUDA in bf16 a stage rounds the teacher's convolutions, and a method may ask for its features."""
    trained = started("icarl", 1, precision="bf16")
    teacher, index = trained.method.teacher, torch.arange(20)
    assert teacher is not None
    before = trained.features(teacher, index, unit=unit)
    round_convolutions(teacher)
    after = trained.features(teacher, index, unit=unit)
    assert after.dtype == torch.float32
    assert 0 < (after - before).norm() < 0.05 * before.norm()


def test_notes_reach_a_program_without_a_callback(
    small: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    short = small | {"first": {"epochs": 1}, "later": {"epochs": 1}}
    run(method="icarl", **short, coordinate="ic", temperature=4)
    assert [record.getMessage() for record in caplog.records if record.name == "jioc"] == [
        "--temperature: without effect under --coordinate ic"
    ]
    caplog.clear()
    run(method="icarl", **short, coordinate="ic", temperature=4, callback=lambda event: None)
    assert not caplog.records
