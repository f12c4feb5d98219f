"""The command line as a person meets it: sentences, statuses, nothing overwritten, no torch before there is work."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from helpers.results import keep, made
from helpers.trees import class_folders, picture

from jioc.cli.main import main
from jioc.config import files
from jioc.config import values as settings
from jioc.errors import Refused, first_line, sentence
from jioc.torchrun import first_process
from jioc.grid import ray as on_ray
from jioc.grid import slurm as on_slurm
from jioc.grid.options import Where
from jioc.stopping import duration

QUICK = ["--task-sizes", "4,3,3", "--epochs", "2", "--memory", "40", "--device", "cpu"]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["runn"], "unknown command 'runn'; did you mean 'run'?"),
        (["run"], "jioc run needs a method"),
        (["run", "icral"], "unknown method 'icral'; did you mean 'icarl'?"),
        (["run", "er"], "unknown method 'er'; here it is 'replay'"),
        (["run", "icarl", "--memroy", "5"], "unknown option '--memroy'; did you mean '--memory'?"),
        (["run", "icarl", "--memory", "-5"], "--memory: '-5' is refused"),
        (["run", "icarl", "--memory", "many"], "--memory: 'many' is refused"),
        (["run", "icarl", "--memory"], "--memory"),
        (["run", "icarl", "--data", "cifar1000"], "unknown data set 'cifar1000'; did you mean 'cifar100'?"),
        (["run", "icarl", "--data", "imagenet100"], "'imagenet100' is known by its folder alone"),
        (["run", "icarl", "--backbone", "resnet33"], "unknown backbone 'resnet33'; did you mean 'resnet32'?"),
        (["run", "icarl", "--coordinate", "joic"], "did you mean 'jioc'?"),
        (["run", "icarl", "--long-tail", "0.5"], "--long-tail"),
        (["run", "icarl", "--temperature", "0"], "--temperature"),
        (["run", "icarl", "--lr", "nan"], "--lr"),
        (["run", "icarl", "--first-epochs", "0"], "--first-epochs"),
        (["run", "icarl", "--device", "gpu"], "--device"),
        (["run", "finetune", "--coordinate", "jioc"], "finetune keeps no exemplars"),
        (["run", "icarl", "--memory", "0", "--coordinate", "oc"], "--memory 0 keeps no exemplars"),
        (["run", "icarl", "--memory", "9"], "leaves no exemplar for each of 10 classes"),
        (["run", "icarl", "more", "words"], "one word too many"),
        (["run", "icarl", "--config", "nowhere.yaml"], "there is no configuration"),
        (["run", "nowhere.py"], "there is no method file"),
        (["run", "finetune", "--kd-weight", "2"], "unknown option '--kd-weight'"),
        (["run", "--help-me"], "unknown option '--help-me'"),
        (["run", "--memroy", "5", "icarl"], "unknown option '--memroy'; did you mean '--memory'?"),
        (["run", "--bias-loss", "pycil", "icarl"], "unknown option '--bias-loss'"),
        (["run", "--memory", "40", "icral"], "unknown method 'icral'; did you mean 'icarl'?"),
        (["run", "icarl", "--tasks", "11"], "--tasks 11 is more than the 10 classes"),
        (["run", "icarl", "--long-tail", "paper"], "give a factor for digits"),
        (["run", "icarl", "--engine", "graph", "--device", "cpu"], "--engine graph needs a CUDA device"),
        (["run", "icarl", "--memory", "40", "--memory-per-class", "3"], "exclude each other"),
        (["grid", "table6", "--memory", "2000", "--memory-per-class", "3"], "--memory and --memory-per-class exclude"),
        (["run", "icarl", "--gamma1", "2", "--oc-heads", "joint"], "--gamma1, --oc-heads: without effect, because"),
        (["run", "podnet", "--milestones", "10,20"], "--milestones: without effect, because the rate falls along a"),
        (["run", "podnet", "--second-milestones", "3"], "--second-milestones: without effect, because"),
        (["run", "podnet", "--decay", "steps"], "--decay steps: the rate would never fall, because"),
        (["run", "icarl", "--milestones", "80,170"], "--milestones 170: without effect, because there are 170 epochs;"),
        (["run", "icarl", "--milestones", "3,2,2"], "--milestones 3,2,2: each should be later than the one before, as"),
        (["run", "icarl", "--first-milestones", "2,2"], "the one before, as in --first-milestones 2\n"),
        (["list", "methodes"], "did you mean 'methods'?"),
        (["data", "check"], "needs the name"),
        (["data", "chekc", "digits"], "did you mean 'check'?"),
        (["data", "check", "cifar11"], "unknown data set"),
    ],
)
def test_a_wrong_word_gets_one_sentence_and_status_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    told = capsys.readouterr().err
    assert sentence in told and told.startswith("jioc: ") and told.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "idle"),
    [
        (["--coordinate", "none", "--gamma2", "5"], "--gamma2"),
        (["--coordinate", "ic", "--temperature", "4", "--delta", "detached"], "--temperature"),
        (["--coordinate", "oc", "--delta-scale", "mean1"], "--delta-scale"),
        (["--coordinate", "jioc", "--delta-scale", "mean1", "--gamma2", "5"], None),
        (["--coordinate", "oc", "--host-kd", "keep", "--gamma1", "2"], "--gamma1"),
    ],
)
def test_a_flag_that_has_no_part_in_the_chosen_loss_is_noted(
    given: list[str], idle: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "icarl", *QUICK, *given, "--dry-run"]) == 0
    told = capsys.readouterr().err
    why = " ".join(word for word in given[:4] if word in ("--coordinate", given[1], "--host-kd", "keep"))
    assert told == ("" if idle is None else f"note: {idle}: without effect under {why}\n")


@pytest.mark.parametrize(
    ("method", "given", "note"),
    [
        ("podnet", "--decay cosine --milestones 1", "--milestones: without effect under --decay cosine"),
        ("podnet", "--decay steps --milestones 1", None),
        ("podnet", "--decay steps --milestones=", None),
        ("icarl", "--decay steps", None),
        ("icarl", "--milestones 1,2,80", "--milestones 2,80: without effect in 2 epochs"),
        ("icarl", "--first-epochs 1 --first-milestones 1", "--first-milestones 1: without effect in 1 epoch"),
        ("icarl", "--epochs 1", None),  # the usual ones move with it
    ],
)
def test_a_flag_that_leaves_the_rate_as_it_is_is_noted(
    method: str, given: str, note: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", method, *QUICK, *given.split(), "--dry-run"]) == 0
    told = capsys.readouterr().err
    assert told.startswith(f"note: {note}") and told.count("\n") == 1 if note else told == ""


def test_milestones_that_an_older_version_kept_along_a_cosine_change_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    words = ["run", "replay", *QUICK, "--decay", "cosine", "--out", str(first)]
    assert main(words) == 0
    kept = yaml.safe_load((first / "config.yaml").read_text())
    assert kept["later"]["decay"] == "cosine" and kept["later"]["milestones"] is None
    kept["later"]["milestones"] = [1]
    (first / "config.yaml").write_text(yaml.safe_dump(kept))
    assert main(["run", "--config", str(first / "config.yaml"), "--out", str(second)]) == 0
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    assert main([*words, "--resume"]) == 0


@pytest.mark.parametrize(
    "words",
    [["--help"], ["run", "icral"], ["run", "icarl", "--memroy", "5"], ["run", "icarl", "--help"], ["list", "methods"]],
)
def test_help_and_a_wrong_word_import_no_torch(words: list[str]) -> None:
    code = f"""
import sys
from jioc.cli.main import main
try:
    main({words!r})
except SystemExit:
    pass
assert not {{"torch", "numpy", "sklearn"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_only_the_reader_of_its_output_ends_a_command() -> None:
    """Not a pipe to some other process, which breaks inside the library, in a data file or in a method of one's own."""
    broken = (
        "import subprocess, sys; from jioc.cli import main as cli\n"
        "def command(words):\n"
        "    subprocess.run(['true'], input=bytes(10_000_000)); print('goes on', flush=True); return 3\n"
        "cli.COMMANDS['broken'] = command; sys.exit(cli.main(['broken']))"
    )
    program = [sys.executable, "-c", broken]
    first = broken.replace("sys.exit", "print('first'); sys.exit")
    heard = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True)
    assert (heard.returncode, heard.stdout, heard.stderr) == (3, "first\ngoes on\n", "")
    read, write = os.pipe()
    os.close(read)
    unheard = subprocess.run(program, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (unheard.returncode, unheard.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize("how", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_an_output_that_lacks_a_letter_ends_no_command(tmp_path: Path, how: dict[str, str]) -> None:
    keep(tmp_path, made(seed=1, alls=[50.0] * 5), made(seed=2, alls=[60.0] * 5), made("replay", data="日本"))
    code = (
        "import sys; from jioc.cli import main as cli; from jioc.cli.console import task_line\n"
        "row = {'task': 1, 'classes': [0, 2], 'seconds': 1, 'readouts': {}, 'nme': None,\n"
        "       'cnn': {'all': 50, 'old': None, 'new': 50}}\n"
        "cli.COMMANDS['task'] = lambda words: print(task_line(row, 2)) or 0\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    environment = os.environ | {"PYTHONCOERCECLOCALE": "0"} | how
    told = []
    for words in (["task"], ["table", str(tmp_path)]):
        done = subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        told.append(done.stdout.decode("ascii"))
    assert "cnn 50.00 (old     -, new 50.00)" in told[0]
    assert "55.00 +- 7.07" in told[1] and "??" in told[1]


def test_help_shows_the_methods_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for method in ("icarl", "lwf"):
        with pytest.raises(SystemExit):
            main(["run", method, "--help"])
        shown[method] = capsys.readouterr().out
    assert "(80,120)" in shown["icarl"] and "(60,120,180,220)" in shown["lwf"]
    assert "Weight of the distillation (1.0)" in shown["icarl"] and "Weight of the distillation (3.0)" in shown["lwf"]


def test_a_run_and_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert main(["run", "icarl", *QUICK, "--coordinate", "jioc", "--long-tail", "5", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    result = json.loads((out / "result.json").read_bytes())
    assert result["format"] == 1 and result["complete"] and result["headline"] == "cnn"
    assert [row["classes"] for row in result["tasks"]] == [[0, 4], [4, 7], [7, 10]]
    assert [len(row["cnn"]["per_task"]) for row in result["tasks"]] == [1, 2, 3]
    assert all(row["nme"] is not None for row in result["tasks"])
    assert f"{sum(result['counts']):,} training images" in told
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert (
        config == result["config"] and config["init_seed"] == config["data_seed"] == 1 and config["order_seed"] == 1993
    )
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert len(log) == 2 + 2 + 2  # a line an epoch
    assert set(log[-1]["terms"]) == {"cls", "kd", "quiet"} and set(log[0]["terms"]) == {"cls"}
    model = json.loads((out / "model.json").read_bytes())
    assert model["classes"] == result["classes"] and (out / "model.safetensors").exists()


def test_a_folder_that_is_taken_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    words = ["run", "replay", *QUICK, "--out", str(out)]
    assert main(words) == 0
    before = files(out)
    assert main(words) == 2
    assert "holds a run; go on with --resume" in capsys.readouterr().err
    assert main([*words, "--resume", "--lr", "0.2"]) == 2
    assert "holds another run: first.lr, later.lr differ" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0
    assert files(out) == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    monkeypatch.setattr("jioc.training.run.load", lambda *args: pytest.fail("images were read first"))
    assert main(["run", "replay", *QUICK, "--out", str(other)]) == 2
    assert main(["run", "replay", *QUICK, "--out", str(other), "--resume"]) == 2
    assert list(other.iterdir()) == [other / "thesis.tex"]
    assert main(["run", "replay", *QUICK, "--out", str(other / "thesis.tex")]) == 2


def test_a_run_repeats_from_its_config(tmp_path: Path) -> None:
    first, second, changed = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    assert (
        main(["run", "icarl", *QUICK, "--coordinate", "oc", "--gamma2", "0.5", "--seed", "3", "--out", str(first)]) == 0
    )
    config = str(first / "config.yaml")
    assert main(["run", "--config", config, "--out", str(second)]) == 0
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    assert main(["run", "--config", config, "--seed", "4", "--gamma1", "2", "--out", str(changed)]) == 0
    kept = yaml.safe_load((changed / "config.yaml").read_text())
    assert (kept["init_seed"], kept["data_seed"]) == (4, 4)
    assert kept["coordination"]["gamma1"] == 2 and kept["coordination"]["gamma2"] == 0.5


def test_a_flag_over_a_config_also_changes_what_follows_from_it(tmp_path: Path) -> None:
    from jioc.resolve.derive import resolve
    from jioc.resolve.overlay import overlay

    file = settings.plain(resolve(settings.make(method="icarl", data="digits", memory_per_class=3, tasks=5)))
    made = {
        name: resolve(settings.make(**overlay(file, above)))
        for name, above in {
            "epochs": {"later": {"epochs": 34}},
            "lr": {"later": {"lr": 0.01}},
            "memory": {"memory": 500},
            "usual memory": {"memory": 2000},
            "sizes": {"task_sizes": (4, 6)},
            "method": {"method": "replay"},
        }.items()
    }
    assert made["epochs"].later.milestones == (16, 24) and made["epochs"].first.epochs == 40
    assert made["lr"].first.lr == pytest.approx(0.01)
    assert made["memory"].memory_per_class is made["usual memory"].memory_per_class is None
    assert made["sizes"].tasks is None
    assert made["method"] == resolve(settings.make(method="replay", data="digits", memory_per_class=3, tasks=5))


def test_a_setting_given_again_still_rules_out_its_rivals() -> None:
    from jioc.resolve.overlay import overlay

    file = {"seed": 1, "init_seed": 7, "order_seed": 1993, "order": ["a"], "tasks": 5, "later": {"epochs": 9, "lr": 1}}
    found = overlay(file, {"seed": 1, "order_seed": 1993, "later": {"epochs": 9}})
    assert found == {"seed": 1, "order_seed": 1993, "tasks": 5, "later": {"epochs": 9, "lr": 1}}


def test_what_somebody_wrote_holds_for_whichever_method_data_and_length_are_chosen() -> None:
    from jioc.resolve.overlay import overlay

    file = {"backbone": "resnet18", "first": {"epochs": 4}, "options": {"kd_weight": 2}, "second": {"lr": 0.1}}
    file |= {"mean": (0.5,), "canvas": 40, "stem": "imagenet", "coordination": {"host_kd": "add"}}
    above = {"method": "icarl", "data": "cifar100", "image_size": 32, "later": {"epochs": 9, "lr": "0.6"}}
    for before in ({}, {"method": "der", "data": "digits", "image_size": 8, "later": {"epochs": 3, "lr": 0.2}}):
        assert overlay(file | before, above) == file | above


CHOICES: list[dict[str, Any]] = [
    {},
    {"later": {"epochs": 2}},
    {"later": {"epochs": 17, "lr": 0.05}, "first": {"epochs": 9}},
    {"first": {"weight_decay": 0.1}, "later": {"decay": "cosine"}},
    {"later": {"milestones": [100]}, "first": {"milestones": []}},
    {"coordination": {"coordinate": "jioc", "host_kd": "add"}},
    {"options": {"kd_temperature": 4}},
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_what_departs_from_the_method_of_a_run_s_config_was_chosen_and_the_rest_follows_another(
    choice: dict[str, Any],
) -> None:
    from jioc.resolve.derive import resolve
    from jioc.resolve.overlay import overlay

    runs = {method: resolve(settings.make(method=method, **choice)) for method in ("icarl", "wa", "ssil", "bic")}
    for run in runs.values():
        for method, other in runs.items():
            assert resolve(settings.make(**overlay(settings.plain(run), {"method": method}))) == other
    gone = settings.plain(runs["bic"]) | {"method": "gone.py"}  # nobody can tell: the schedules stay
    kept = {name: gone[name] for name in ("later", "first")}
    kept["coordination"] = {"coordinate": runs["bic"].coordination.coordinate}
    assert resolve(settings.make(**overlay(gone, {"method": "wa"}))) == resolve(settings.make(method="wa", **kept))


@pytest.mark.parametrize("choice", [{}, {"backbone": "resnet18"}, {"stem": "imagenet"}, {"flip": False}], ids=str)
def test_what_departs_from_the_data_of_a_run_s_config_was_chosen_and_the_rest_follows_other(
    choice: dict[str, Any], tmp_path: Path
) -> None:
    from jioc.resolve.derive import resolve
    from jioc.resolve.overlay import overlay

    for name, side in [("small", 20), ("large", 36)]:
        for label in "ab":
            picture(tmp_path / name / label / "0.png", size=(side, side))
    folders = [str(tmp_path / "small"), str(tmp_path / "large")]
    runs = {data: resolve(settings.make(method="icarl", data=data, **choice)) for data in ("cifar100", *folders)}
    for run in runs.values():
        for data, other in runs.items():
            assert resolve(settings.make(**overlay(settings.plain(run), {"data": data}))) == other
    sized = [resolve(settings.make(method="icarl", data=data, image_size=32, **choice)) for data in folders]
    assert resolve(settings.make(**overlay(settings.plain(sized[0]), {"data": folders[1]}))) == sized[1]
    gone = settings.plain(sized[0]) | {"data": str(tmp_path / "gone")}  # nobody can tell: it follows
    assert resolve(settings.make(**overlay(gone, {"data": folders[1]}))) == runs[folders[1]]


def test_milestones_of_a_file_move_with_the_epochs_that_they_were_written_for() -> None:
    from jioc.resolve.derive import resolve
    from jioc.resolve.overlay import overlay

    file: dict[str, Any] = {"method": "icarl", "later": {"epochs": 10, "milestones": [4, 8]}}
    for epochs, milestones in [(20, [8, 16]), ("10", [4, 8]), (1, [1]), ("many", [4, 8])]:
        assert overlay(file, {"later": {"epochs": epochs}})["later"] == {"epochs": epochs, "milestones": milestones}
    given = {"later": {"epochs": 20, "milestones": [3]}}
    assert overlay(file, given)["later"] == given["later"]
    assert overlay({"later": {"milestones": [4]}}, {"later": {"epochs": 20}})["later"]["milestones"] == [4]
    run = settings.plain(resolve(settings.make(method="icarl", later={"milestones": [85]}, first={"milestones": [50]})))
    half = resolve(settings.make(**overlay(run, {"later": {"epochs": "85"}})))
    assert (half.later.milestones, half.first.epochs, half.first.milestones) == ((42,), 100, (25,))
    assert resolve(settings.make(**overlay(run, {"method": "replay"}))).later.milestones == (35,)


def test_what_the_method_named_instead_of_a_file_s_lacks_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from jioc.resolve.derive import resolve

    path = tmp_path / "c.yaml"
    own: dict[str, Any] = {"method": "bic", "memory": 40, "second": {"epochs": 3}, "options": {"bias_loss": "pycil"}}
    for values in (own, settings.plain(resolve(settings.make(**own)))):
        for name, told in [
            ("second", "second: wa has no second stage"),
            ("options", "unknown option of wa 'bias_loss'"),
        ]:
            path.write_text(
                yaml.safe_dump({k: v for k, v in values.items() if k not in {"second", "options"} - {name}})
            )
            assert main(["run", "wa", "--config", str(path), "--dry-run"]) == 2
            assert told in capsys.readouterr().err
        path.write_text(yaml.safe_dump(values))
        assert main(["run", "--config", str(path), "--dry-run", "--device", "cpu"]) == 0
        capsys.readouterr()


def test_another_image_size_over_a_config_brings_its_own_canvas_and_network(tmp_path: Path) -> None:
    from jioc.resolve.derive import resolve
    from jioc.resolve.overlay import overlay

    folder = str(class_folders(tmp_path / "pets", {"cat": 2, "dog": 2}))
    for size, other in [(20, 16), (20, 32), (84, 32), (32, 224)]:
        file = settings.plain(resolve(settings.make(method="icarl", data=folder, image_size=size)))
        flags = resolve(settings.make(method="icarl", data=folder, image_size=other))
        assert resolve(settings.make(**overlay(file, {"image_size": str(other)}))) == flags
    chosen = {"image_size": 20, "canvas": 40, "backbone": "resnet18", "stem": "cifar-pool"}
    assert overlay(chosen, {"image_size": 32}) == chosen | {"image_size": 32}
    run = settings.plain(
        resolve(settings.make(method="icarl", data="tinyimagenet", image_size=32, backbone="resnet32"))
    )
    other = resolve(settings.make(**overlay(run, {"image_size": 84})))
    assert (other.image_size, other.canvas, other.backbone) == (84, 96, "resnet32")


def test_settings_filled_in_twice_are_those_filled_in_once(tmp_path: Path) -> None:
    from jioc.resolve.derive import resolve

    large = tmp_path / "large.py"
    large.write_text(
        "import numpy as np\n"
        "def load():\n"
        "    x, y = np.zeros((8, 100, 100, 3), np.uint8), np.arange(8) % 4\n"
        "    return x, y, x, y\n"
    )
    for values in ({"data": str(large), "memory": 8}, {"memory_per_class": 3}, {"method": "foster"}):
        once = resolve(settings.make(**{"method": "icarl", **values}))
        assert resolve(once) == once
    with pytest.raises(Refused, match="^memory 9 and memory_per_class 3: give one of them$"):
        resolve(settings.make(method="icarl", memory_per_class=3, memory=9))


def test_the_method_may_stand_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "icarl.yaml"
    path.write_text("method: icarl\nmemory: 40\ndevice: cpu\n")
    for words in (["--config", str(path), "replay"], ["replay", "--config", str(path)], ["--memory", "40", "replay"]):
        assert main(["run", "--dry-run", *words]) == 0
        assert "40 exemplars" in capsys.readouterr().out
    out = tmp_path / "run"
    assert main(["run", *QUICK, "--out", str(out), "--config", str(path), "replay"]) == 0
    assert yaml.safe_load((out / "config.yaml").read_text())["method"] == "replay"


def test_a_methods_own_flags_are_known_before_its_name_and_beside_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bic.yaml"
    path.write_text("method: bic\nmemory: 40\ndevice: cpu\n")
    file, quick = ["--config", str(path)], ["--dry-run", "--memory", "40"]
    for words in (["--bias-loss", "pycil", "bic"], ["--second-epochs", "2", "bic"], [*file, "--bias-loss", "pycil"]):
        assert main(["run", *quick, *words]) == 0
    capsys.readouterr()
    assert main(["run", *file, "--kd-weight", "2"]) == 2
    assert capsys.readouterr().err.startswith("jioc: unknown option '--kd-weight'")


@pytest.mark.parametrize(
    "wrong",
    [{"later": {"mileston": [3]}}, {"options": {"kd_wait": 2}}, {"memry": 3}, {"second": {"epochs": 3}}],
    ids=str,
)
def test_a_wrong_name_in_a_run_s_config_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    from jioc.resolve.derive import resolve
    from jioc.resolve.overlay import overlay

    run = settings.plain(resolve(settings.make(method="icarl")))
    edited = {name: run.get(name, {}) | value if isinstance(value, dict) else value for name, value in wrong.items()}
    with pytest.raises(Refused, match=r"unknown (setting|option)|has no second stage"):
        resolve(settings.make(**overlay(run | edited, {"method": "replay"})))


@pytest.mark.parametrize("text", ["later: 5\n", "coordination: jioc\n", "options: null\n", "1: 2\n", "memory: many\n"])
def test_a_config_of_wrong_types_is_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("method: icarl\n" + text)
    assert main(["run", "--config", str(path), "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "--:" not in told and not (tmp_path / "run").exists()


def test_an_error_without_words_is_told_by_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wordless(*_: Any, **__: Any) -> Any:
        raise ValueError("\n")

    assert first_line(ValueError("\none\ntwo")) == "one" and first_line(ValueError()) == "ValueError"
    assert sentence(ValueError()) == "ValueError: no message"
    (file := tmp_path / "config.yaml").write_text("method: icarl\n")
    monkeypatch.setattr(yaml, "load", wordless)
    monkeypatch.setattr(on_slurm, "_submitit", lambda: SimpleNamespace(AutoExecutor=wordless))
    for work in (
        lambda: files.read(file),
        lambda: on_slurm.Queue(tmp_path, Where(on="slurm")),
        lambda: on_ray._connect(SimpleNamespace(init=wordless), Where(on="ray")),
    ):
        with pytest.raises(Refused, match=": ValueError$"):
            work()


def test_a_second_stage_is_refused_where_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("method: icarl\nsecond: {epochs: 5}\n")
    assert main(["run", "--config", str(path), "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "jioc: second: icarl has no second stage\n"
    assert main(["run", "--config", str(path), "bic", "--memory", "40", "--dry-run", "--device", "cpu"]) == 0


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("epochs", "'later' has 'epochs'"),
        ("first_epochs", "'first' has 'epochs'"),
        ("coordinate", "'coordination' has 'coordinate'"),
        ("kd_weight", "a method's own are in 'options'"),
        ("memorry", "did you mean 'memory'?"),
    ],
)
def test_a_setting_in_the_wrong_place_is_told_where_it_is(setting: str, told: str) -> None:
    with pytest.raises(Refused, match=f"^unknown setting '{setting}' in the configuration; {re.escape(told)}$"):
        settings.make(method="icarl", **{setting: 5})


def test_without_torchrun_an_empty_world_size_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "")
    assert first_process() and main(["list", "recipes"]) == 0


def test_an_unknown_setting_in_a_config_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("method: icarl\nmemorry: 5\n")
    assert main(["run", "--config", str(path)]) == 2
    assert "'memorry'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["run", "--config"], ["grid"]])
def test_what_is_no_yaml_is_named_with_its_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("method: icarl\nmemory: 5\n  epochs: 3\n")
    assert main([*words, str(path)]) == 2
    assert (
        capsys.readouterr().err
        == f"jioc: '{path}', line 3: cannot be read as YAML: mapping values are not allowed here\n"
    )
    path.write_text("base: &a {method: icarl, later: {epochs: 1}}\nruns:\n  a: {}\n  b: {}\n  a: {memory: 40}\n")
    assert main([*words, str(path)]) == 2
    assert capsys.readouterr().err == f"jioc: '{path}', line 5: cannot be read as YAML: 'a' stands there twice\n"
    path.write_text("method: icarl\nseed: 2020-13-45\n")
    assert main([*words, str(path)]) == 2
    assert capsys.readouterr().err == f"jioc: '{path}' cannot be read as YAML: month must be in 1..12\n"


def test_a_name_of_a_yaml_may_stand_over_the_one_it_takes_along(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("a: &a {x: 1, y: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, x: 3}\n")
    both = {"x": 1, "y": 2}
    assert files.read(path) == {"a": {"x": 1, "y": 1}, "b": both, "c": both | {"x": 3}}


def test_a_dry_run_prints_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "icarl", "--long-tail", "10", "--memory", "40", "--dry-run", "--device", "cpu"]) == 0
    told = capsys.readouterr().out
    assert "5 tasks of 2 classes; 40 exemplars" in told and "a second here" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["ssil", "foster", "der"])
def test_the_images_that_a_dry_run_counts_are_those_that_a_run_trains_on(
    method: str, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from jioc.cli import dry_run as estimate
    from jioc.data.load import load
    from jioc.resolve.derive import resolve
    from jioc.training.preflight import preflight
from jioc.training.run import run
from jioc.training.runner import Run

    trained, wide = [], []
    small |= {"first": {"epochs": 2}, "later": {"epochs": 1}, "task_sizes": (3, 2, 2, 3)}
    run(method=method, callback=lambda kind, what: trained.append(what.get("images", 0)), **small)

    def pace(run: Run, task: Any, visits: Any, net: Any = None, **how: Any) -> float:
        wide.append((net or run.method.net).width)
        return 1.0

    monkeypatch.setattr(estimate, "pace", pace)
    config = resolve(settings.make(method=method, **small))
    assert estimate.measured(Run(preflight(config, load(config)))) == (sum(trained), sum(trained))
    if method == "der":
        assert [w / wide[0] for w in wide] == [1, 2, 4]  # the network is as wide as it will be


@pytest.mark.data
def test_the_papers_long_tail_starts_on_the_official_files(cifar: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--data cifar100 --long-tail paper --tasks 10 --memory 1000 --backbone resnet32 --coordinate jioc --dry-run"
    assert main(["run", "icarl", *words.split(), "--data-dir", str(cifar)]) == 0
    assert "32,775 training images, from 500 to 200 a class; 10 tasks of 10 classes" in capsys.readouterr().out


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_signal_leaves_a_run_that_goes_on(number: signal.Signals, status: int, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["run", "icarl", "--epochs", "12", "--memory", "40", "--device", "cpu", "--out", str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [sys.executable, "-m", "jioc", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    while not (out / "log.jsonl").exists() or not (out / "log.jsonl").stat().st_size:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(number)
    _, told = child.communicate()
    assert child.returncode == status
    assert told == f"jioc: stopped; the run can be resumed; to go on: {shlex.join(['jioc', *words])} --resume\n"
    begun = json.loads((out / "result.json").read_bytes())["tasks"] if (out / "result.json").exists() else []
    assert len(begun) < 5
    assert main(shlex.split(told.split("to go on: ")[1])[1:]) == 0
    assert json.loads((out / "result.json").read_bytes())["complete"]


def test_an_error_shows_no_traceback_unless_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("jioc.training.run.run", broken)
    assert main(["run", "icarl", "--out", str(tmp_path / "x")]) == 1
    assert capsys.readouterr().err == "jioc: ZeroDivisionError: a fault of ours; --debug shows where\n"
    with pytest.raises(ZeroDivisionError):
        main(["run", "icarl", "--debug", "--out", str(tmp_path / "x")])


def test_a_diverging_loss_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "replay", *QUICK, "--lr", "1e30", "--out", str(tmp_path / "x")]) == 1
    assert "not finite in task 1, epoch" in capsys.readouterr().err


def test_a_time_limit_leaves_a_run_that_says_resume_me(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "icarl", "--epochs", "2", "--memory", "40", "--device", "cpu", "--out", str(tmp_path / "run")]
    again = shlex.join(["jioc", *words, "--time-limit", "0.001", "--resume"])
    for given in ([], ["--resume"]):
        assert main([*words, "--time-limit", "0.001", *given]) == 75
        assert capsys.readouterr().err == f"jioc: stopped; the run can be resumed; to go on: {again}\n"
    assert main([*words, "--resume", "--time-limit", "2h"]) == 0
    assert json.loads((tmp_path / "run" / "result.json").read_bytes())["complete"]


@pytest.mark.parametrize(
    ("word", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1:30:05", 5405), ("0", None)]
)
def test_times(word: str, seconds: float | None) -> None:
    if seconds is not None:
        assert duration(word) == seconds
        return
    for wrong in (word, "soon", "-3m", "1:70"):
        with pytest.raises(Refused, match="--time-limit"):
            duration(wrong)
