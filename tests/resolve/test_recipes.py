"""The recipes are the paper's tables, cell by cell."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.trees import cub, mini_csv, tiny_imagenet
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.grid.plan import plan, select
from jioc.report import paper
from jioc.resolve import recipes
from jioc.resolve.derive import resolve
from jioc.results import Accuracy, Result, TaskRow
from jioc.training.run import run

PAPER = json.loads((Path(paper.__file__).parent / "paper.json").read_text())


TABLES = {"table2": 2, "table3": 3, "table4": 4, "table5": 5, "table6": 6}


def finished(values: dict[str, Any]) -> Result:
    """The result of a finished run of the setting."""
    config = settings.plain(resolve(settings.make(**values)))
    rows = [TaskRow(task=t + 1, classes=[t, t + 1], cnn=Accuracy(all=50.0)) for t in range(config["tasks"])]
    return Result(config=config, classes=[], tasks=rows, complete=True)


@pytest.mark.parametrize("name", TABLES)
def test_a_recipe_has_every_cell_of_its_table_once(name: str) -> None:
    """And once more where PyCIL departs from the method as published, and by the formulas as printed."""
    cells = [tuple(row[1:7]) for row in [*PAPER["averages"], *PAPER["steps"]] if row[0] == TABLES[name]]
    found = {run: paper.setting(finished(values)) for run, values in recipes.find_recipe(name).make().items()}
    coded = {run: where for run, where in found.items() if run.endswith("-pycil")}
    printed = {run: where for run, where in found.items() if run.endswith("-printed")}
    once = found.keys() - coded.keys() - printed.keys()
    assert sorted(str(found[run]) for run in once) == sorted(map(str, cells))
    assert all(found[run.replace("-pycil", "-none")] == where for run, where in coded.items())
    assert all(found[run.removesuffix("-printed")] == where for run, where in printed.items())
    assert {run.split("-")[-2] for run in coded} == (
        {"bic", "podnet"} if name in ("table2", "table3") else set()
    )
    assert all(paper.average(where) is not None for where in found.values())


def test_the_columns_are_every_cifar_cell_of_tables_2_and_3_once() -> None:
    found = [paper.setting(finished(values)) for values in recipes.find_recipe("columns").make().values()]
    cells = [where for _, where in paper.printed_cells() if where[0].startswith("cifar")]
    assert len(found) == 100 and sorted(map(str, found)) == sorted(map(str, cells))


def test_every_resnet18_of_a_recipe_has_imagenets_stem_unless_the_stem_is_its_question() -> None:
    for name in recipes.RECIPES.keys() - {"stems"}:
        for values in recipes.find_recipe(name).make().values():
            assert values.get("stem") == ("imagenet" if values["backbone"] == "resnet18" else None)


def test_recipes_agree_on_what_a_name_means() -> None:
    named: dict[str, Any] = {}
    for name in [*TABLES, "columns", "figure4", "comparison", "comparison-checks", "table6-controls"]:
        for wanted, values in recipes.find_recipe(name).make().items():
            assert named.setdefault(wanted, values) == values


def test_a_setting_of_both_studies_has_one_name_and_a_name_one_setting() -> None:
    named: dict[str, str] = {}
    for recipe in (recipes.find_recipe("study"), recipes.find_recipe("study-suppression")):
        for name, values in recipe.make().items():
            digest = settings.digest(resolve(settings.make(**values)))
            assert named.setdefault(name, digest) == digest
    assert len(set(named.values())) == len(named)
    both = recipes.study().keys() & recipes.study_suppression().keys()
    assert both == {"none", "oc-suppress-scale-old-mean", "jioc-suppress-scale-old-mean"}


def test_the_comparison_has_two_columns_whole() -> None:
    made = recipes.find_recipe("comparison").make()
    for prefix, table in (("cifar100-resnet32-2000", "table3"), ("cifar100-lt-resnet32-1000", "table2")):
        whole = {n for n in made if n.startswith(prefix)}
        assert {n for n in recipes.find_recipe(table).make() if n.startswith(prefix)} < whole
        assert len(whole) == 26
        hosts = {n.removesuffix("-jioc") for n in whole if n.endswith("-jioc")}
        assert len(hosts) == 6
        assert {f"{host}-{word}" for host in hosts for word in ("none", "jioc-printed")} < whole
    pairs = select(made, ["icarl", "der", "foster"])  # as docs/grid.md asks for them
    assert len(pairs) == 18 and all(name.endswith(("-none", "-jioc", "-jioc-printed")) for name in pairs)


@pytest.mark.parametrize("method", ["bic", "podnet"])
def test_as_published_and_as_pycil_codes_it_stand_beside_the_same_figure(method: str) -> None:
    made = recipes.find_recipe("comparison").make()
    ours, coded = (finished(made[f"cifar100-resnet32-2000-{method}-{word}"]) for word in ("none", "pycil"))
    (name,) = settings.differences(ours.config, coded.config)
    assert name.startswith("options.") and paper.setting(ours) == paper.setting(coded) is not None


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_every_run_of_a_recipe_is_a_setting_of_its_own(name: str) -> None:
    made = recipes.find_recipe(name).make()
    assert len({settings.digest(resolve(settings.make(**values))) for values in made.values()}) == len(made)


def test_the_study_changes_one_thing_at_a_time() -> None:
    made = {
        name: settings.plain(resolve(settings.make(**values))) for name, values in recipes.study().items()
    }
    for name, config in made.items():
        assert config["holdout"] == 0.1
        host = made[name.split("-")[0]]
        assert len(settings.differences(host, config)) == (
            0 if name in ("none", "ic", "oc", "jioc") else 1
        ), name


@pytest.mark.parametrize(
    ("name", "tree"),
    [
        ("tinyimagenet-resnet18-1000", tiny_imagenet),
        ("miniimagenet-resnet18-2000", mini_csv),
        ("cub200-resnet18-500", cub),
    ],
)
def test_a_column_whose_data_is_elsewhere_runs_on_a_made_tree(
    name: str, tree: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JIOC_CACHE", str(tmp_path / "cache"))
    tree(tmp_path)
    words = ["grid", "table3", "--only", f"{name}-icarl-jioc", "--seeds", "1", "--epochs", "1"]
    words += ["--data-dir", str(tmp_path), "--tasks", "3", "--backbone", "tiny", "--device", "cpu"]
    words += ["--image-size", "32", "--canvas", "32"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    (kept,) = (tmp_path / "out").glob("*/result.json")
    result = json.loads(kept.read_bytes())
    assert result["complete"] and len(result["tasks"]) == 3
    config = result["config"]
    assert (config["coordination"]["coordinate"], config["stem"]) == ("jioc", "imagenet")


def test_every_row_of_the_comparison_runs() -> None:
    small: dict[str, Any] = {
        "data": "digits",
        "long_tail": 20.0,
        "tasks": 2,
        "backbone": "tiny",
        "memory": 60,
    }
    small |= {"first": {"epochs": 1}, "later": {"epochs": 1}, "batch_size": 256, "device": "cpu"}
    for values in select(recipes.find_recipe("comparison").make(), ["cifar100-lt"]).values():
        result = run(**values | small)
        assert result["complete"] and len(result["tasks"]) == 2


@pytest.mark.parametrize(("epochs", "first"), [(None, 200), ("1", 200), ("17", 20)])
def test_all_stages_of_a_recipe_of_ours_follow_the_flag(
    epochs: str | None, first: int, tmp_path: Path
) -> None:
    flags = {"later": {"epochs": epochs}} if epochs else {}
    for job in plan(recipes.find_recipe("stems"), [1], None, 1.0, lambda spec: flags, tmp_path):
        assert (job.config.first.epochs, job.config.later.epochs) == (first, int(epochs or 1))
