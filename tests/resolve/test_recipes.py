"""The recipes are the paper's tables, cell by cell; the line that repeats a run repeats it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from helpers.trees import class_folders, tiny_imagenet
from jioc.cli import main as cli
from jioc.cli.flags import idle, said
from jioc.config import values as settings
from jioc.config.schema import MACHINE, Config
from jioc.errors import Refused
from jioc.grid.plan import plan, select
from jioc.methods.specs import SPECS, find
from jioc.report import paper
from jioc.resolve import recipes
from jioc.resolve import repeat as command
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.resolve.validate import unused
from jioc.training.run import run

PAPER = json.loads((Path(paper.__file__).parent / "paper.json").read_text())
TABLES = {"table2": 2, "table3": 3, "table4": 4, "table5": 5, "table6": 6}


def finished(values: dict[str, Any]) -> dict[str, Any]:
    """What result.json would say of the setting of a run that is finished."""
    config = settings.plain(resolve(settings.make(**values)))
    rows = [{"classes": [t, t + 1]} for t in range(config["tasks"])]
    return {"config": config, "tasks": rows, "complete": True}


@pytest.mark.parametrize("name", TABLES)
def test_a_recipe_has_every_cell_of_its_table_once(name: str) -> None:
    """And once more where PyCIL, with which the paper's figures were made, departs from the method as published."""
    cells = [tuple(row[1:7]) for row in [*PAPER["averages"], *PAPER["steps"]] if row[0] == TABLES[name]]
    found = {run: paper.setting(finished(values)) for run, values in recipes.find(name).make().items()}
    coded = {run: where for run, where in found.items() if run.endswith("-pycil")}
    assert sorted(map(str, (found[run] for run in found.keys() - coded.keys()))) == sorted(map(str, cells))
    assert all(found[run.replace("-pycil", "-none")] == where for run, where in coded.items())
    assert {run.split("-")[-2] for run in coded} == (
        {"bic", "podnet"} if name in ("table2", "table3") else set()
    )
    assert all(paper.average(where) is not None for where in found.values())


def test_recipes_agree_on_what_a_name_means() -> None:
    named: dict[str, Any] = {}
    for name in [*TABLES, "figure4", "comparison", "comparison-checks", "table6-controls"]:
        for wanted, values in recipes.find(name).make().items():
            assert named.setdefault(wanted, values) == values


def test_a_setting_of_both_studies_has_one_name_and_a_name_one_setting() -> None:
    named: dict[str, str] = {}
    for recipe in (recipes.find("study"), recipes.find("study-suppression")):
        for name, values in recipe.make().items():
            digest = settings.digest(resolve(settings.make(**values)))
            assert named.setdefault(name, digest) == digest
    assert len(set(named.values())) == len(named)
    both = recipes.study().keys() & recipes.study_suppression().keys()
    assert both == {"none", "oc-suppress-scale-old-mean", "jioc-suppress-scale-old-mean"}


def test_the_comparison_has_two_columns_whole() -> None:
    made = recipes.find("comparison").make()
    for prefix, table in (("cifar100-resnet32-2000", "table3"), ("cifar100-lt-resnet32-1000", "table2")):
        whole = {n for n in made if n.startswith(prefix)}
        assert {n for n in recipes.find(table).make() if n.startswith(prefix)} < whole and len(whole) == 20
        hosts = {n.removesuffix("-jioc") for n in whole if n.endswith("-jioc")}
        assert len(hosts) == 6 and {f"{host}-none" for host in hosts} < whole
    pairs = select(made, ["icarl", "der", "foster"])  # as docs/grid.md asks for them
    assert len(pairs) == 12 and all(name.endswith(("-none", "-jioc")) for name in pairs)


@pytest.mark.parametrize("method", ["bic", "podnet"])
def test_as_published_and_as_pycil_codes_it_stand_beside_the_same_figure(method: str) -> None:
    made = recipes.find("comparison").make()
    ours, coded = (finished(made[f"cifar100-resnet32-2000-{method}-{word}"]) for word in ("none", "pycil"))
    (name,) = settings.differences(ours["config"], coded["config"])
    assert name.startswith("options.") and paper.setting(ours) == paper.setting(coded) is not None


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_every_run_of_a_recipe_is_a_setting_of_its_own(name: str) -> None:
    made = recipes.find(name).make()
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


def repeated(config: Config) -> Config:
    words = command.words(config)
    parser = cli._run_parser(find(words[0]))
    found = parser.parse(words)
    values = said(found, find(words[0]))
    values["method"] = words[0]
    config = resolve(settings.make(**{k: v for k, v in values.items() if k not in ("config", "out")}))
    idle(values, config)  # refuses what has no effect and was not chosen
    return config


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_the_line_of_a_run_gives_its_settings(name: str) -> None:
    for values in list(recipes.find(name).make().values())[::7]:
        config = resolve(settings.make(**values, seed=3))
        assert repeated(config) == config


@given(
    method=st.sampled_from(sorted(SPECS)), seed=st.integers(0, 9), init_seed=st.none() | st.integers(0, 9),
    epochs=st.none() | st.integers(1, 400), first=st.none() | st.integers(1, 400), lr=st.none() | st.floats(1e-4, 1),
    rate=st.fixed_dictionaries(
        {"decay": st.sampled_from([None, "steps", "cosine"]), "milestones": st.sampled_from([None, (), (3, 9), (500,)])}
    ),
    flip=st.none() | st.booleans(), compiled=st.none() | st.booleans(), mean=st.none() | st.just((0.25,)),
    kd_t2=st.booleans(), memory_per_class=st.none() | st.integers(1, 50), data=st.sampled_from(["digits", "cifar100"]),
)  # fmt: skip
@examples(max_examples=40, deadline=None)
def test_the_line_of_any_run_gives_its_settings(
    epochs: int | None,
    first: int | None,
    lr: float | None,
    rate: Any,
    compiled: bool | None,
    kd_t2: bool,
    **other: Any,
) -> None:
    given: dict[str, Any] = {
        "later": {"epochs": epochs, "lr": lr, **rate}, "first": {"epochs": first}, "compile": compiled,
        "coordination": {"coordinate": "none", "kd_t2": kd_t2},
    }  # fmt: skip
    config = resolve(settings.make(**other, **given, device="cpu", checkpoint_every=7))
    differs = settings.differences(settings.plain(repeated(config)), settings.plain(config))
    assert set(differs) <= MACHINE
    assert (
        resolve(settings.make(**overlay(settings.plain(config), {}))) == config
    )  # and so does its config.yaml


def test_the_line_of_a_run_lists_its_data_twice_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_folders(tmp_path, {"a": 1, "b": 1})
    (tmp_path / "x.csv").write_text("path,label\na/0.png,a\nb/0.png,b\n")
    config = resolve(settings.make(method="icarl", data=str(tmp_path / "x.csv"), later={"lr": 0.2}))
    listed: list[Path] = []
    monkeypatch.setattr(
        "jioc.data.images.listing.class_names", lambda place: listed.append(place) or ["a", "b"]
    )
    assert command.words(config) == ["icarl", "--data", str(tmp_path / "x.csv"), "--lr", "0.2", "--seed", "1"]
    assert len(listed) == 2  # at the size it has, and at the one that the settings name


def test_a_class_order_is_repeated_from_the_runs_own_file() -> None:
    config = settings.make(method="icarl", order=tuple(range(10)))
    assert command.line(config) == "jioc run icarl --config config.yaml"


def test_a_column_whose_data_is_elsewhere_runs_on_a_made_tree(tmp_path: Path) -> None:
    tiny_imagenet(tmp_path)
    words = [
        "grid",
        "table3",
        "--only",
        "tinyimagenet-resnet18-1000-icarl-jioc",
        "--seeds",
        "1",
        "--epochs",
        "1",
    ]
    words += ["--data-dir", str(tmp_path), "--tasks", "3", "--backbone", "tiny", "--device", "cpu"]
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 0
    (kept,) = (tmp_path / "out").glob("*/result.json")
    result = json.loads(kept.read_bytes())
    assert (
        result["complete"]
        and len(result["tasks"]) == 3
        and result["config"]["coordination"]["coordinate"] == "jioc"
    )


def test_every_row_of_the_comparison_runs() -> None:
    small: dict[str, Any] = {
        "data": "digits",
        "long_tail": 20.0,
        "tasks": 2,
        "backbone": "tiny",
        "memory": 60,
    }
    small |= {"first": {"epochs": 1}, "later": {"epochs": 1}, "batch_size": 256, "device": "cpu"}
    for values in select(recipes.find("comparison").make(), ["cifar100-lt"]).values():
        result = run(**values | small)
        assert result["complete"] and len(result["tasks"]) == 2


IDLE = "--gamma1: without effect, because nothing is coordinated; add --coordinate jioc, ic or oc"


def planned(path: Path, text: str, **flags: Any) -> dict[str, str]:
    path.write_text(text)
    jobs = plan(
        recipes.find(str(path)), [1], None, 1.0, lambda spec: {"coordination": flags} if flags else {}, path
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
        recipes.find(str(path)), [1], None, 1.0, lambda spec: {"later": {"milestones": [3]}}, tmp_path
    )
    assert (a.config.later.milestones, b.config.later.milestones) == (None, (3,))


@pytest.mark.parametrize(
    ("method", "idle", "told"),
    [
        (
            "podnet",
            {"later": {"milestones": [3]}},
            "--milestones: without effect, because the rate falls along a",
        ),
        (
            "podnet",
            {"second": {"decay": "steps"}},
            "--second-decay steps: the rate would never fall, because",
        ),
        (
            "icarl",
            {"first": {"milestones": [60, 200]}},
            "--first-milestones 200: without effect, because there are",
        ),
    ],
)
def test_schedules_without_effect_are_refused_from_python_and_in_a_config(
    method: str, idle: dict[str, Any], told: str, tmp_path: Path
) -> None:
    values = {"method": method, **idle}
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps(values))
    words = ["--config", str(config), "--dry-run"]
    for attempt in (lambda: cli.run(words), lambda: run(**values), lambda: run(Config(**values))):
        with pytest.raises(Refused, match=f"^{told}"):
            attempt()


@pytest.mark.parametrize(
    ("method", "chosen"),
    [
        ("podnet", {"later": {"decay": "cosine", "milestones": [3]}}),
        ("podnet", {"later": {"decay": "steps", "milestones": []}}),
        ("icarl", {"later": {"epochs": 2, "milestones": [1, 80]}}),
        ("replay", {"later": {"epochs": 70, "milestones": [30, 100]}}),
        ("replay", {"later": {"epochs": 2}, "first": {"epochs": 6, "milestones": [3, 10]}}),
    ],
)
def test_schedules_without_effect_that_were_chosen_can_be_repeated_from_what_was_written(
    method: str, chosen: dict[str, Any]
) -> None:
    given = settings.make(method=method, **chosen)
    used = resolve(given)
    written = settings.plain(used)
    for config in (given, used, settings.make(**written), settings.make(**overlay(written, {}))):
        unused(resolve(config))
        assert resolve(config) == used
    longer = settings.make(**overlay(written, {"later": {"epochs": 30}}))
    unused(resolve(longer))


WRITTEN: dict[str, Any] = {
    "method": "icarl", "data": "cifar10", "memory": 200, "backbone": "resnet18", "first": {"epochs": 50},
    "later": {"epochs": 4}, "options": {"kd_temperature": 4}, "coordination": {"coordinate": "jioc", "host_kd": "add"},
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
    for job in plan(recipes.find(str(path)), [1], None, 1.0, lambda spec: {}, tmp_path):
        values = settings.flat(settings.plain(job.config))
        assert {k: v for k, v in settings.flat(WRITTEN).items() if values[k] != v}.keys() <= changed
    flags = {"later": {"epochs": "3"}, "data": "digits"}
    for job in plan(recipes.find(str(path)), [1], None, 1.0, lambda spec: flags, tmp_path):
        assert (job.config.first.epochs, job.config.later.epochs, job.config.backbone) == (50, 3, "resnet18")


def test_a_run_s_config_may_be_the_base_of_other_methods_and_data(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    choice: dict[str, Any] = {"later": {"epochs": 4}, "memory": 200, "options": {"kd_temperature": 4}}
    base = settings.plain(resolve(settings.make(method="icarl", **choice)))
    path.write_text(
        json.dumps({"base": base, "runs": {"wa": {"method": "wa"}}, "matrix": {"data": ["cifar100"]}})
    )
    (job,) = plan(recipes.find(str(path)), [1], None, 1.0, lambda spec: {}, tmp_path)
    assert job.config == resolve(settings.make(method="wa", data="cifar100", **choice))
    (job,) = plan(recipes.find(str(path)), [1], None, 1.0, lambda spec: {"data": "cifar10"}, tmp_path)
    assert job.config == resolve(settings.make(method="wa", data="cifar10", **choice))


@pytest.mark.parametrize(
    ("base", "told"),
    [
        (
            {"method": "icarl", "options": {"kd_weight": 2}},
            "unknown option of wa 'kd_weight'; there is kd_temperature",
        ),
        ({"method": "bic", "second": {"epochs": 2}}, "second: wa has no second stage"),
    ],
)
def test_what_a_method_of_a_grid_lacks_is_refused_by_run_and_name(
    base: Any, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(json.dumps({"base": base, "matrix": {"method": [base["method"], "wa"]}}))
    with pytest.raises(Refused, match=f"run 'wa': {told}$"):
        recipes.find(str(path))


def test_a_run_of_a_grid_need_not_name_its_method(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    of_all = {"method": "replay", "data": "digits", "memory": 40}
    some = {"a": {"later": {"epochs": 10, "milestones": [5]}}}
    path.write_text(json.dumps({"base": of_all, "runs": some, "matrix": {"later.epochs": [None, 4]}}))
    jobs = plan(recipes.find(str(path)), [1], None, 1.0, lambda spec: {}, tmp_path)
    assert {job.config.method for job in jobs} == {"replay"}


def test_a_run_s_config_keeps_its_schedule_where_its_method_is_gone() -> None:
    base = settings.plain(
        resolve(settings.make(method="icarl", later={"epochs": 4}, options={"kd_temperature": 4}))
    )
    config = settings.make(**overlay(base | {"method": "of_a_notebook"}, {"method": "replay"}))
    assert (config.later.epochs, config.options) == (4, {})


@pytest.mark.parametrize(("epochs", "first"), [(None, 200), ("1", 200), ("17", 20)])
def test_all_stages_of_a_recipe_of_ours_follow_the_flag(
    epochs: str | None, first: int, tmp_path: Path
) -> None:
    flags = {"later": {"epochs": epochs}} if epochs else {}
    for job in plan(recipes.find("stems"), [1], None, 1.0, lambda spec: flags, tmp_path):
        assert (job.config.first.epochs, job.config.later.epochs) == (first, int(epochs or 1))


def test_options_of_jioc_without_effect_are_refused_from_python_and_in_a_config(tmp_path: Path) -> None:
    idle: dict[str, Any] = {"method": "icarl", "coordination": {"gamma1": 2}}
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps(idle))
    for attempt in (
        lambda: run(**idle),
        lambda: run(Config(**idle)),
        lambda: cli.run(["--config", str(config)]),
    ):
        with pytest.raises(Refused, match=f"^{IDLE}$"):
            attempt()
    chosen = settings.make(method="icarl", coordination={"coordinate": "none", "gamma1": 2})
    for once in (resolve(chosen), resolve(settings.make(method="icarl"))):
        assert resolve(once) == resolve(settings.make(**settings.plain(once))) == once
