"""PyCIL's experiment files: each becomes the run that PyCIL makes of it, and no key is passed over."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from helpers.paths import ROOT
from helpers.trees import class_folders
from jioc.cli.main import main
from jioc.config import Config
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve import pycil
from jioc.resolve.derive import resolve

FILE: dict[str, Any] = {  # what every one of them has
    "prefix": "reproduce",
    "dataset": "cifar100",
    "memory_size": 2000,
    "memory_per_class": 20,
    "fixed_memory": False,
    "shuffle": True,
    "init_cls": 10,
    "increment": 10,
    "convnet_type": "resnet32",
    "device": ["0", "1", "2", "3"],
    "seed": [1993],
}
OWN: dict[str, dict[str, Any]] = {  # and what some have beside
    **{name: {} for name in ("finetune", "replay", "lwf", "icarl", "wa", "der", "bic")},
    "podnet": {"convnet_type": "cosine_resnet32"},
    "coil": {
        "convnet_type": "cosine_resnet32",
        "sinkhorn": 0.464,
        "calibration_term": 1.5,
        "norm_term": 3.0,
        "reg_term": 1e-3,
    },
    "foster": {
        "fixed_memory": True,
        "beta1": 0.96,
        "beta2": 0.97,
        "oofc": "ft",
        "is_teacher_wa": False,
        "is_student_wa": False,
        "lambda_okd": 1,
        "wa_value": 1,
        "init_epochs": 200,
        "init_lr": 0.1,
        "init_weight_decay": 5e-4,
        "boosting_epochs": 170,
        "compression_epochs": 130,
        "lr": 0.1,
        "batch_size": 128,
        "weight_decay": 5e-4,
        "num_workers": 8,
        "T": 2,
    },
}
DEPARTURES: dict[str, dict[str, Any]] = {"bic": {"bias_loss": "pycil"}, "podnet": {"nca": "pycil"}}


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(method: str = "icarl", **changes: Any) -> Path:
        path = tmp_path / f"{method}.json"
        path.write_text(json.dumps({**FILE, "model_name": method, **OWN.get(method, {}), **changes}))
        return path

    return write


@pytest.fixture
def run_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The settings that the command makes of a file and flags."""

    def config(path: Path, *flags: str) -> Config:
        shown: list[Config] = []
        monkeypatch.setattr("jioc.cli.dry_run.show", shown.append)
        assert main(["run", "--pycil", str(path), *flags, "--dry-run"]) == 0
        return shown[0]

    return config


def settled(path: Path) -> Config:
    return resolve(settings.make(**pycil.read(path)[0]))


@pytest.mark.parametrize("method", OWN)
def test_each_file_is_our_default_run_and_the_departures_of_the_code(method: str, file: Any) -> None:
    """The schedules of PyCIL's code are the methods' defaults here; departures from the papers are added."""
    memory: dict[str, Any] = {"memory_per_class": 20} if method == "foster" else {"memory": 2000}
    ours = settings.make(
        method=method, data="cifar100", base=10, increment=10, options=DEPARTURES.get(method, {}), **memory
    )
    assert settled(file(method)) == resolve(ours)


def test_a_stage_s_numbers_change_that_stage_alone(file: Any) -> None:
    usual = settled(file())
    changed = settled(
        file(epochs=50, lrate=0.05, milestones=[20, 35], weight_decay=1e-3, T=4, lrate_decay=0.1)
    )
    assert changed.later.model_dump() == {
        "epochs": 50, "lr": 0.05, "decay": "steps", "milestones": (20, 35), "weight_decay": 1e-3,
    }  # fmt: skip
    assert (changed.first, changed.second) == (usual.first, usual.second)
    assert changed.options["kd_temperature"] == 4
    first = settled(file(init_epoch=100, init_lr=0.2, init_milestones=[30, 70], init_weight_decay=0))
    assert (first.first.epochs, first.first.lr, first.first.milestones, first.first.weight_decay) == (
        100,
        0.2,
        (30, 70),
        0,
    )
    assert first.later == usual.later


def test_what_pycil_shares_between_stages_is_shared(file: Any) -> None:
    bic = settled(file("bic", epochs=20, milestones=[10]))
    assert {(s.epochs, s.milestones) for s in (bic.first, bic.later, bic.second)} == {(20, (10,))}
    podnet = settled(file("podnet", epochs=20, ft_epochs=3, weight_decay=1e-4))
    assert [s.epochs for s in (podnet.first, podnet.later, podnet.second)] == [20, 20, 3]
    assert {s.weight_decay for s in (podnet.first, podnet.later, podnet.second)} == {1e-4}
    foster = settled(file("foster", lr=0.05, boosting_epochs=10, compression_epochs=5))
    assert [(s.epochs, s.lr) for s in (foster.first, foster.later, foster.second)] == [
        (200, 0.1),
        (10, 0.05),
        (5, 0.05),
    ]
    assert foster.second.weight_decay == 0


def test_the_seed_is_the_class_order_s(file: Any) -> None:
    config = settled(file(seed=[7]))
    assert (config.order_seed, config.order, config.init_seed, config.data_seed) == (7, None, 1, 1)
    assert settled(file(seed=7)) == config
    assert settled(file(shuffle=False)).order == "original"
    values, _ = pycil.read(file(seed=[1, 2, 3]), ordered=True)
    assert "order_seed" not in values


@pytest.mark.parametrize(
    ("method", "file_has", "flags", "epochs"),
    [
        ("foster", {}, ["--epochs", "17"], (20, 17, 13)),
        ("icarl", {"init_epoch": 100, "epochs": 10}, ["--epochs", "20"], (200, 20, None)),
        ("icarl", {"init_epoch": 100, "epochs": 10}, ["--epochs", "10"], (100, 10, None)),
        (
            "icarl",
            {"init_epoch": 100, "epochs": 10},
            ["--epochs", "20", "--first-epochs", "30"],
            (30, 20, None),
        ),
        ("icarl", {"init_epoch": 100, "epochs": 10}, ["--first-epochs", "50"], (50, 10, None)),
        ("podnet", {"epochs": 20, "ft_epochs": 4}, ["--epochs", "10"], (10, 10, 2)),
    ],
)
def test_our_flag_for_epochs_keeps_the_proportions_of_a_file(
    method: str, file_has: dict[str, Any], flags: list[str], epochs: tuple[Any, ...], file: Any, run_of: Any
) -> None:
    config = run_of(file(method, **file_has), *flags)
    assert (config.first.epochs, config.later.epochs, config.second.epochs) == epochs


def test_what_a_file_says_of_rates_and_milestones_scales_with_our_flags_too(file: Any, run_of: Any) -> None:
    path = file(
        init_epoch=100, init_milestones=[40, 80], init_lr=0.2, epochs=10, milestones=[4, 6], lrate=0.1
    )
    config = run_of(path, "--epochs", "5", "--lr", "0.05")
    assert (config.first.milestones, config.later.milestones) == ((20, 40), (2, 3))
    assert (config.first.lr, config.later.lr) == (0.1, 0.05)
    assert run_of(path) == settled(path)
    assert run_of(file(milestones=[]), "--epochs", "5").later.milestones == ()


@pytest.mark.parametrize(
    ("word", "device"), [(["0"], "auto"), (["3"], "cuda:3"), ([-1], "cpu"), ("-1", "cpu")]
)
def test_the_device_is_a_number_of_a_gpu(word: Any, device: str, file: Any) -> None:
    assert settings.make(**pycil.read(file(device=word))[0]).device == device


def test_coil_keeps_two_thousand_as_in_its_code(file: Any) -> None:
    values, notes = pycil.read(file("coil", memory_size=500))
    assert values["memory"] == 2000
    assert any("whatever the file says" in note for note in notes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model_name": "l2p"}, "unknown model_name in 'icarl.json' 'l2p'; there is bic, coil, der"),
        ({"model_name": "podnett"}, "did you mean 'podnet'?"),
        ({"epoch": 3}, "unknown key in 'icarl.json' for icarl 'epoch'; did you mean 'epochs'?"),
        ({"beta1": 0.9, "tuned_epoch": 3}, "unknown keys in 'icarl.json' for icarl: 'beta1', 'tuned_epoch'"),
        (
            {"dataset": "imagenet100"},
            "'imagenet100' is known by its folder alone, the one that holds train and val",
        ),
        ({"convnet_type": "resnet132"}, "unknown backbone 'resnet132'; did you mean 'resnet32'?"),
        (
            {"convnet_type": "cosine_resnet32"},
            "icarl is here without cosine_ networks; resnet32 would be known",
        ),
        ({"seed": [1993, 1994]}, "lists 2 class orders, and a run has one: choose with --order-seed"),
        (
            {"lrate_decay": 0.2},
            "lrate_decay 0.2 in 'icarl.json' has no counterpart: icarl is here with 0.1 alone",
        ),
        ({"lr": 0.1, "lrate": 0.2}, "lrate and lr in 'icarl.json' contradict each other"),
        ({"fixed_memory": "false"}, "fixed_memory in 'icarl.json' is 'false'; it should be true or false"),
        (
            {"fixed_memory": True, "memory_per_class": None},
            "fixed_memory in 'icarl.json' needs memory_per_class",
        ),
        ({"init_cls": "ten"}, "in 'icarl.json' --base: 'ten' is refused"),
        ({"T": 0}, "in 'icarl.json' --kd-temperature: 0 is refused"),
        ({"device": ["cuda"]}, "names no GPUs by number"),
        ({"lrate": None}, "lrate in 'icarl.json' has no value"),
        ({"lrate": float("nan")}, "in 'icarl.json' --lr: nan is refused"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(
    changes: dict[str, Any], sentence: str, file: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--pycil", str(file(**changes)), "--out", str(tmp_path / "run")]) == 2
    captured = capsys.readouterr().err
    assert sentence in captured and captured.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "there is no PyCIL file"),
        ("{", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("[1]", "no names and values"),
        ("{}", "it has no"),
    ],
)
def test_a_file_that_is_none_of_pycil_s_is_refused(text: str | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refused, match=sentence):
        pycil.read(path)


def test_flags_override_the_file_and_a_run_comes_of_it(file: Any, tmp_path: Path, capsys: Any) -> None:
    path, out = file("bic", seed=[1, 2]), tmp_path / "run"
    flags = "--data digits --backbone tiny --base 4 --increment 3 --epochs 1 --memory 40 --order-seed 5"
    flags += " --device cpu"
    assert main(["run", "--pycil", str(path), *flags.split(), "--coordinate", "ic", "--out", str(out)]) == 0
    assert "note: as in PyCIL's code, --bias-loss pycil" in capsys.readouterr().err
    kept = yaml.safe_load((out / "config.yaml").read_text())
    assert (kept["method"], kept["data"], kept["base"], kept["memory"], kept["order_seed"]) == (
        "bic",
        "digits",
        4,
        40,
        5,
    )
    assert [kept[stage]["epochs"] for stage in ("first", "later", "second")] == [1, 1, 1]
    assert kept["options"]["bias_loss"] == "pycil"
    learnt = json.loads((out / "result.json").read_text())["classes"]
    assert learnt == [str(c) for c in np.random.RandomState(5).permutation(10)]
    assert main(["run", "--pycil", str(path), "--config", str(out / "config.yaml")]) == 2
    capsys.readouterr()
    assert main(["run", "der", "--pycil", str(path), *flags.split()]) == 2
    assert "is an experiment of bic, not of der" in capsys.readouterr().err


@pytest.mark.parametrize("network", ["resnet18", "resnet32"])
def test_other_data_is_learnt_by_the_network_of_the_file(
    network: str, file: Any, run_of: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command and from Python."""
    folder = str(class_folders(tmp_path / "imagenet", {"a": 2, "b": 2}))
    path = file(dataset="imagenet100", convnet_type=network, init_cls=1, increment=1)
    assert run_of(path, "--data", folder).backbone == network
    values, _ = pycil.read(path)
    assert run_of(path, "--data", folder) == resolve(settings.make(**values | {"data": folder}))
    assert run_of(path, "--data", folder, "--backbone", "tiny").backbone == "tiny"
    capsys.readouterr()
    assert main(["run", "--pycil", str(path), "--dry-run"]) == 2
    assert "'imagenet100' is known by its folder alone" in capsys.readouterr().err


def test_the_page_has_a_word_on_every_key() -> None:
    page = (ROOT / "docs" / "pycil.md").read_text()
    keys = {*pycil.NEEDED, *pycil.MORE, *pycil.IGNORED, *pycil.COMMON}
    for known in pycil.METHODS.values():
        keys |= {*known.targets, *known.only, *known.ignored}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []
