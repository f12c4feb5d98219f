"""The recipes towards the best accuracy, and presets: what a name stands for, laid open in config.yaml."""

import itertools
import re
from pathlib import Path

import pytest
import yaml

import jioc
from helpers.command import refused
from jioc.cli.main import main
from jioc.config import Config, files
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve import components, presets, recipes, repeat
from jioc.resolve.derive import resolve

BEST = presets.Preset(
    "best",
    "made up",
    {
        "method": "der",
        "ema": 0.99,
        "rebalance": "head",
    },
)


@pytest.mark.parametrize("name", ["components", "components-long-tail"])
def test_a_study_changes_its_host_by_a_component_alone(name: str) -> None:
    made = {
        run: settings.plain(resolve(settings.make(**values)))
        for run, values in recipes.find_recipe(name).make().items()
    }
    follow = {"later.milestones", "first.milestones", "rebalance_epochs"}
    for run, config in made.items():
        assert config["holdout"] == 0.1 and config["judge_by"] == "holdout"  # the test set stays unread
        prefix, host, component = run.partition("-der-") if "-der-" in run else run.partition("-icarl-")
        changed = {*settings.differences(made[f"{prefix}{host}none"], config)} - follow
        assert changed == {*components.CHANGES[component]}, run


def test_every_component_is_run_alone_on_each_host() -> None:
    made, column = recipes.find_recipe("components").make(), "cifar100-resnet32-2000"
    alone = "none adjust-1 rebalance-head rebalance-scale ema cosine weight-decay"
    extra = "half-size mixup cutmix autoaugment autoaugment-cutout"
    for host, name in itertools.product(components.HOSTS, f"{alone} {extra}".split()):
        assert f"{column}-{host}-{name}" in made


def test_adjusted_logits_stand_alone_and_beside_a_new_head_on_a_host_that_aligns_its_own() -> None:
    made = recipes.find_recipe("components-long-tail").make()
    adjusted = {
        host: {run for run in made if f"-{host}-" in run and "adjust" in run} for host in ("der", "icarl")
    }
    names = {"adjust-1", "together-head-adjust", "weight-decay-0.001-head-adjust"}
    names |= {name for name in components.CANDIDATES if "adjust" in name}
    der = {f"cifar100-lt-resnet32-1000-der-{name}" for name in names}
    assert adjusted["der"] == der and len(adjusted["icarl"]) == 3


def test_half_size_exemplars_take_the_bytes_of_the_others() -> None:
    half = recipes.find_recipe("components").make()["cifar100-resnet32-2000-der-half-size"]
    assert "memory" not in half and half["memory_bytes"] == 2000 * 32 * 32 * 3


def test_lt_cil_has_each_host_with_and_without_jioc_in_both_orders() -> None:
    made = recipes.find_recipe("lt-cil").make()
    hosts = {run.split("-")[4] for run in made}
    assert hosts == {"icarl", "podnet", "der", "best"} and len(made) == 32
    assert {run.rpartition("-")[2] for run in made} == {"none", "jioc"}
    for run, values in made.items():
        config = resolve(settings.make(**values))
        assert (config.base, config.increment) == (50, 5 if "-10-" in run else 10)
        assert config.order == ("original" if "ordered" in run else None)
        assert config.first == config.later and config.later.weight_decay == 5e-4
        assert not config.judged_by_holdout and config.memory_per_class == 20


def test_best_is_one_entry_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(presets.PRESETS, "best", BEST)
    made = {recipe.name: recipe for recipe in components.recipes()}
    assert made["best"].seeds == made["best-augmented"].seeds == (1, 2, 3)
    plain, augmented = made["best"].make(), made["best-augmented"].make()
    assert list(plain) == ["cifar100-resnet32-2000-best", "cifar100-lt-resnet32-1000-best"]
    for values, more in zip(plain.values(), augmented.values(), strict=True):
        assert values["ema"] == 0.99 and more == values | {"augment": "autoaugment"}
        resolve(settings.make(**more))
    rows = made["lt-cil"].make()
    assert len(rows) == 32
    row = resolve(settings.make(**rows["lt-cil-shuffled-5-best-jioc"]))
    assert (row.ema, row.later.epochs, row.coordination.coordinate) == (0.99, 160, "jioc")
    for values in rows.values():
        resolve(settings.make(**values))


def test_a_preset_is_run_and_every_setting_of_it_is_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Config] = []
    monkeypatch.setattr("jioc.cli.run._run", lambda config, *others: runs.append(config))
    assert main(["run", "der-published", "--data", "digits", "--epochs", "17", "--seed", "4"]) == 0
    kept = yaml.safe_load(files.text(runs[0]))
    assert kept["method"] == "der" and kept["rebalance"] == "head" and kept["rebalance_epochs"] == 30
    assert kept["later"]["milestones"] == [10, 12] and kept["later"]["weight_decay"] == 5e-4
    assert {"rebalance", "later.weight_decay", "later.milestones", "seed"} <= {*kept["given"]}
    assert "--rebalance head" in repeat.line(runs[0]) and "published" not in repeat.line(runs[0])


@pytest.mark.parametrize(
    "words",
    [["best", "--data", "digits"], ["--data", "digits", "best"], ["--resume", "--data=digits", "best"]],
)
def test_a_preset_may_stand_wherever_a_method_may(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Config] = []
    monkeypatch.setattr("jioc.cli.run._run", lambda config, *others: runs.append(config))
    assert main(["run", *words, "--weight-decay", "0.002"]) == 0
    assert (runs[0].method, runs[0].headline, runs[0].later.weight_decay) == ("der", "nme", 0.002)


def test_a_preset_is_run_from_python_and_settings_stand_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Config] = []
    monkeypatch.setattr("jioc.training.run.execute", lambda config, **others: runs.append(config))
    jioc.run(method="best", data="digits", weight_decay=0.002)
    assert (runs[0].method, runs[0].headline, runs[0].later.weight_decay) == ("der", "nme", 0.002)
    assert runs[0].head == "cosine"
    with pytest.raises(Refused, match="unknown method 'bset'; did you mean 'best'"):
        jioc.run(method="bset", data="digits")


def test_the_help_of_a_preset_shows_its_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    decays = []
    for word in ("der", "best"):
        with pytest.raises(SystemExit):
            main(["run", word, "--help"])
        told = " ".join(capsys.readouterr().out.split())
        decays.append(re.findall(r"Weight decay of SGD \((\S+)\)", told))
    assert decays == [["0.0002"], ["0.001"]]
    assert (
        "with the preset best" in told and "class's weights (cosine)" in told and "mostly cnn (nme)" in told
    )


def test_a_preset_takes_no_file_and_an_unknown_one_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text("method: der\n")
    words = ["run", "der-published", "--config", str(tmp_path / "config.yaml")]
    assert "exclude each other" in refused(words, capsys)
    assert "unknown method 'beset'" in refused(["run", "beset"], capsys)


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "presets"]) == 0
    assert {"best", "der-published"} <= {*capsys.readouterr().out.split()}
