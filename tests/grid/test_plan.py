"""Which runs a grid has, from a recipe and its file."""

from pathlib import Path
from typing import Any

import pytest

from helpers.command import refused
from helpers.grids import BASE, job, recipe_file
from helpers.results import keep, made, runs_of
from jioc.cli import dry_run
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.grid.local import stop_after
from jioc.grid.plan import plan, select
from jioc.grid.progress import GridProgress, LearntEnough
from jioc.methods import find_method
from jioc.report import runs
from jioc.resolve import recipes
from jioc.resolve.derive import resolve
from jioc.resolve.recipe_file import scaled
from jioc.training.run import run
from jioc.training.store import refuse_other_settings


def test_the_settings_of_a_run_serve_as_a_base_and_its_seed_gives_way(tmp_path: Path) -> None:
    kept = settings.plain(resolve(settings.make(**BASE, seed=4)))
    recipe = recipes.find_recipe(
        recipe_file(tmp_path, base=kept, matrix={"coordination.coordinate": ["none"]}, seeds=[1, 2, 2])
    )
    jobs = plan(recipe, recipe.seeds, None, 1, lambda spec: {}, tmp_path)
    assert [(j.config.seed, j.config.init_seed, j.config.data_seed) for j in jobs] == [(1, 1, 1), (2, 2, 2)]
    own = recipe_file(tmp_path, base=BASE | {"seed": 4, "data_seed": 9}, matrix={"init_seed": [5]})
    (one,) = plan(recipes.find_recipe(own), [3], None, 1, lambda spec: {}, tmp_path)
    assert (one.config.seed, one.config.init_seed, one.config.data_seed) == (3, 5, 9)


@pytest.mark.parametrize("content", [{"matrix": {"seed": [1, 2]}}, {"runs": {"a": {"seed": 7}}}])
def test_a_seed_among_the_changes_is_refused(
    content: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "seeds: [1, 2, 3]" in refused(["grid", recipe_file(tmp_path, **content), "--dry-run"], capsys)


def test_a_folder_is_not_the_data_set_of_its_name(tmp_path: Path) -> None:
    ours = settings.plain(resolve(settings.make(method="icarl", data="digits")))
    for kept, wanted in (("lost/digits", "digits"), ("digits", "lost/digits")):
        with pytest.raises(Refused, match="holds another run: data differ"):
            refuse_other_settings(tmp_path, ours | {"data": kept}, settings.make(**ours | {"data": wanted}))
    refuse_other_settings(
        tmp_path, ours | {"data": "lost/own"}, settings.make(**ours | {"data": "found/own"})
    )


def test_a_file_combines_runs_and_matrix(tmp_path: Path) -> None:
    content = {
        "runs": {"a": {}, "b": {"coordination": {"coordinate": "jioc"}}},
        "matrix": {"memory": [40, 50]},
    }
    made = recipes.find_recipe(recipe_file(tmp_path, **content)).make()
    assert list(made) == ["a-memory-40", "a-memory-50", "b-memory-40", "b-memory-50"]
    assert made["b-memory-50"]["memory"] == 50 and made["b-memory-50"]["coordination"] == {
        "coordinate": "jioc"
    }
    with pytest.raises(Refused, match="two runs are called 'memory-40'"):
        recipes.find_recipe(recipe_file(tmp_path, matrix={"memory": [40, 40]}))


def test_only_takes_a_whole_name_before_a_part() -> None:
    named: dict[str, Any] = {"jioc": {}, "jioc-temperature-4": {}, "oc-temperature-4": {}, "none": {}}
    assert list(select(named, ["jioc"])) == ["jioc"]
    assert list(select(named, ["jioc-"])) == ["jioc-temperature-4"]
    assert list(select(named, ["oc-*"])) == ["oc-temperature-4"]
    assert list(select(named, ["none", "jioc*4"])) == ["jioc-temperature-4", "none"]


def test_a_scaled_schedule_is_shorter_throughout() -> None:
    config = resolve(settings.make(**scaled({"method": "foster"}, find_method("foster"), 0.1)))
    assert (config.later.epochs, config.first.epochs, config.second.epochs) == (17, 20, 13)
    given = scaled(
        {"method": "icarl", "first": {"epochs": 100, "milestones": [40, 80]}}, find_method("icarl"), 0.1
    )
    first = resolve(settings.make(**given)).first
    assert (first.epochs, first.milestones) == (10, (4, 8))
    given = scaled(
        {"method": "icarl", "first": {"epochs": 100, "milestones": [40, 80]}}, find_method("icarl"), 0.01
    )
    assert resolve(settings.make(**given)).first.milestones == (1,)


@pytest.mark.parametrize("wrong", [{"later": 3}, {"first": {"milestones": 5}}, {"later": {"epochs": "many"}}])
def test_what_is_no_schedule_is_refused_before_it_is_scaled(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="is refused"):
        scaled({"method": "icarl"} | wrong, find_method("icarl"), 0.1)
    quoted = scaled(
        {"method": "icarl", "later": {"epochs": "17"}}, find_method("icarl"), 0.1
    )  # as YAML may have it
    assert quoted["later"]["epochs"] == 2


def test_a_kept_result_of_the_setting_and_seed_is_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "total_time", lambda left: f"{len(left)} left")
    column = recipes.find_recipe("columns").make()
    names = [f"cifar100-resnet32-1000-{row}-none" for row in ("icarl", "der")]
    configs = [settings.plain(resolve(settings.make(**column[name], seed=1))) for name in names]
    del configs[0]["holdout"]  # as in a result that is older than the setting
    finished, begun = (made(classes=100, tasks=10, done=done) for done in (None, 3))
    place = str(keep(tmp_path / "kept", finished | {"config": configs[0]}, begun | {"config": configs[1]}))
    words = ["grid", "columns", "--seeds", "1", "2", "--kept", place, "--out", str(tmp_path / "out")]
    assert main([*words, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    lines = [line.split() for line in shown.splitlines() if " kept " in line]
    assert [line[0] for line in lines] == ["cifar100-resnet32-1000-icarl-none-seed1"]
    assert shown.endswith("199 left\n")
    only = [*words[:3], "1", *words[5:], "--only", "cifar100-resnet32-1000-icarl-none"]
    assert main(only) == 0 and "nothing to run, 1 run kept elsewhere" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert "there is no run at" in refused(
        [*words[:5], "--kept", str(tmp_path / "none"), "--dry-run"], capsys
    )


def test_a_kept_result_on_somebodys_own_images_counts_for_no_other(tmp_path: Path) -> None:
    config = resolve(settings.make(method="icarl", data="digits"))
    own = config.model_copy(update={"data": "./photos"})
    wanted = [runs.not_begun(tmp_path, config), runs.not_begun(tmp_path, own.model_copy(update={"tasks": 5}))]
    finished = [made(**settings.plain(one) | {"tasks": 5}) for one in (config, own)]
    assert [found is not None for found in runs.counterparts(runs_of(*finished), wanted)] == [True, False]


@pytest.mark.parametrize("split", [{"task_sizes": None}, {"task_sizes": None, "base": 2, "increment": 2}])
def test_a_run_elsewhere_shows_how_many_of_its_tasks_are_learnt(
    split: dict[str, Any], tmp_path: Path
) -> None:
    one = job(tmp_path / "run", **split, first={"epochs": 1}, later={"epochs": 1})
    with pytest.raises(LearntEnough):
        run(one.config, out=one.folder, callback=stop_after(1, lambda job: lambda event: None)(one))
    shown: list[tuple[Any, ...]] = []
    progress = GridProgress([one])
    progress._show = lambda *what: shown.append(what[1:])  # type: ignore[method-assign]
    progress.poll(one)
    assert shown == [(1, 4, ["task 2/5"])]
