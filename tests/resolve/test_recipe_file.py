"""Recipes in YAML files: what is written for every run holds for every run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jioc.config import values as settings
from jioc.errors import Refused
from jioc.grid.plan import plan
from jioc.resolve import recipes
from jioc.resolve.derive import resolve

IDLE = "--gamma1: without effect, because nothing is coordinated; add --coordinate jioc, ic or oc"


def planned(path: Path, text: str, **flags: Any) -> dict[str, str]:
    path.write_text(text)
    jobs = plan(
        recipes.find_recipe(str(path)),
        [1],
        None,
        1.0,
        lambda spec: {"coordination": flags} if flags else {},
        path,
    )
    return {job.name: job.config.coordination.coordinate for job in jobs}


def test_options_of_jioc_without_effect_are_refused_in_a_grid_too(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    kept = settings.plain(
        resolve(settings.make(method="icarl"))
    )  # as config.yaml has it, nothing coordinated
    earlier = f"base: {json.dumps(kept)}\n"
    own = "runs: {plain: {}, strong: {coordination: {gamma1: 2}}}\n"
    for text, where in [
        ("base: {method: icarl}\n" + own, "run 'strong': "),
        ("base: {method: icarl}\nmatrix: {coordination.gamma1: [1, 2]}\n", "run 'gamma1-1': "),
        (earlier + own, "run 'strong': "),
        ("base: {method: icarl, coordination: {gamma1: 2}}\nruns: {a: {}, b: {memory: 40}}\n", ""),
    ]:
        with pytest.raises(Refused, match=f"^{re.escape(f'{str(path)!r}: {where}{IDLE}')}$"):
            planned(path, text)
    both = "runs: {plain: {}, whole: {coordination: {coordinate: jioc}}}\n"
    found = {"plain-seed1": "none", "whole-seed1": "jioc"}
    assert planned(path, "base: {method: icarl, coordination: {gamma1: 2}}\n" + both) == found
    assert planned(path, "base: {method: icarl}\n" + both, gamma1=2) == found  # a flag holds for every run
    assert planned(path, earlier + "runs: {again: {}}\n") == {"again-seed1": "none"}
    with pytest.raises(Refused, match=f"^{IDLE}$"):
        planned(path, "runs: {plain: {method: icarl}}\n", gamma1=2)


def test_a_setting_beside_base_is_told_where_it_belongs(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    with pytest.raises(Refused, match="'memory' is a setting of runs; it stands under 'base'"):
        planned(path, "memory: 40\nbase: {method: icarl}\nruns: {a: {}}\n")
    with pytest.raises(Refused, match="'later.epochs' is a setting of runs; it stands under 'base'"):
        planned(path, "later.epochs: 3\nruns: {a: {}}\n")
    with pytest.raises(Refused, match="'seed' is a setting of runs; it stands in the list 'seeds'"):
        planned(path, "seed: 3\nbase: {method: icarl}\nruns: {a: {}}\n")


def test_a_grid_may_change_parts_of_a_schedule(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    for text, found in [
        ("base: {method: icarl}\nruns: {early: {later.milestones: [60, 100]}}\n", {"early-seed1"}),
        (
            "base: {method: icarl}\nmatrix: {later.decay: [steps, cosine]}\n",
            {"steps-seed1", "cosine-seed1"},
        ),
    ]:
        assert planned(path, text).keys() == found
    path.write_text(
        "runs: {a: {method: podnet}, b: {method: icarl}}\n"
    )  # the flag is idle in the first of them alone
    a, b = plan(
        recipes.find_recipe(str(path)), [1], None, 1.0, lambda spec: {"later": {"milestones": [3]}}, tmp_path
    )
    assert (a.config.later.milestones, b.config.later.milestones) == (None, (3,))


WRITTEN: dict[str, Any] = {
    "method": "icarl", "data": "cifar10", "memory": 200, "backbone": "resnet18", "first": {"epochs": 50},
    "later": {"epochs": 4}, "options": {"kd_temperature": 4},
    "coordination": {"coordinate": "jioc", "host_kd": "add"},
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"runs": {"icarl": {}, "other": {"method": "wa"}}},
        {"matrix": {"method": ["icarl", "wa"]}},
        {"matrix": {"data": ["cifar10", "cifar100"]}},
        {"matrix": {"later.epochs": [4, 8]}},
        {"runs": {"a": {"method": "wa"}, "b": {"data": "cifar100"}}, "matrix": {"later.epochs": [4, 8]}},
    ],
    ids=str,
)
def test_what_is_written_for_every_run_holds_for_every_run(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(json.dumps({"base": WRITTEN} | change))
    changed = {"method", "data", "later.epochs"}
    for job in plan(recipes.find_recipe(str(path)), [1], None, 1.0, lambda spec: {}, tmp_path):
        values = settings.flat(settings.plain(job.config))
        assert {k: v for k, v in settings.flat(WRITTEN).items() if values[k] != v}.keys() <= changed
    flags = {"later": {"epochs": "3"}, "data": "digits"}
    for job in plan(recipes.find_recipe(str(path)), [1], None, 1.0, lambda spec: flags, tmp_path):
        assert (job.config.first.epochs, job.config.later.epochs, job.config.backbone) == (50, 3, "resnet18")


def test_a_run_s_config_may_be_the_base_of_other_methods_and_data(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    choice: dict[str, Any] = {"later": {"epochs": 4}, "memory": 200, "options": {"kd_temperature": 4}}
    base = settings.plain(resolve(settings.make(method="icarl", **choice)))
    path.write_text(
        json.dumps({"base": base, "runs": {"wa": {"method": "wa"}}, "matrix": {"data": ["cifar100"]}})
    )
    (job,) = plan(recipes.find_recipe(str(path)), [1], None, 1.0, lambda spec: {}, tmp_path)
    assert job.config == resolve(settings.make(method="wa", data="cifar100", **choice))
    (job,) = plan(recipes.find_recipe(str(path)), [1], None, 1.0, lambda spec: {"data": "cifar10"}, tmp_path)
    assert job.config == resolve(settings.make(method="wa", data="cifar10", **choice))


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (
            {"method": "icarl", "options": {"kd_weight": 2}},
            "unknown option of wa 'kd_weight'; there is kd_temperature",
        ),
        ({"method": "bic", "second": {"epochs": 2}}, "second: wa has no second stage"),
    ],
)
def test_what_a_method_of_a_grid_lacks_is_refused_by_run_and_name(
    base: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(json.dumps({"base": base, "matrix": {"method": [base["method"], "wa"]}}))
    with pytest.raises(Refused, match=f"run 'wa': {message}$"):
        recipes.find_recipe(str(path))


def test_a_run_of_a_grid_need_not_name_its_method(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    of_all = {"method": "replay", "data": "digits", "memory": 40}
    some = {"a": {"later": {"epochs": 10, "milestones": [5]}}}
    path.write_text(json.dumps({"base": of_all, "runs": some, "matrix": {"later.epochs": [None, 4]}}))
    jobs = plan(recipes.find_recipe(str(path)), [1], None, 1.0, lambda spec: {}, tmp_path)
    assert {job.config.method for job in jobs} == {"replay"}
