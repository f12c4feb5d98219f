"""The command line as a person meets it: one sentence, a status, and no torch before there is work."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jioc.cli.main import main


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["runn"], "unknown command 'runn'; did you mean 'run'?"),
        (["run"], "jioc run needs a method"),
        (["run", "icral"], "unknown method 'icral'; did you mean 'icarl'?"),
        (["run", "icarl", "--mem", "40"], "unknown option '--mem'; did you mean '--memory'?"),
        (["run", "der-publishd"], "unknown method 'der-publishd'; did you mean 'der-published'?"),
        (["run", "er"], "unknown method 'er'; here it is 'replay'"),
        (["run", "icarl", "--memroy", "5"], "unknown option '--memroy'; did you mean '--memory'?"),
        (["run", "icarl", "--memory", "-5"], "--memory: '-5' is refused"),
        (["run", "icarl", "--memory", "many"], "--memory: 'many' is refused"),
        (["run", "icarl", "--memory"], "--memory"),
        (["run", "icarl", "--data", "cifar1000"], "unknown data set 'cifar1000'; did you mean 'cifar100'?"),
        (["run", "icarl", "--data", "imagenet100"], "'imagenet100' is known by its folder alone"),
        (
            ["run", "icarl", "--backbone", "resnet132"],
            "unknown backbone 'resnet132'; did you mean 'resnet32'?",
        ),
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
        (
            ["grid", "table6", "--memory", "2000", "--memory-per-class", "3"],
            "--memory and --memory-per-class exclude",
        ),
        (
            ["run", "icarl", "--gamma1", "2", "--oc-heads", "joint"],
            "--gamma1, --oc-heads: without effect, because",
        ),
        (
            ["run", "podnet", "--milestones", "10,20"],
            "--milestones: without effect, because the rate falls along a",
        ),
        (["run", "podnet", "--second-milestones", "3"], "--second-milestones: without effect, because"),
        (["run", "podnet", "--decay", "steps"], "--decay steps: the rate would never fall, because"),
        (
            ["run", "icarl", "--milestones", "80,170"],
            "--milestones 170: without effect, because there are 170 epochs;",
        ),
        (
            ["run", "icarl", "--milestones", "3,2,2"],
            "--milestones 3,2,2: each should be later than the one before, as",
        ),
        (["run", "icarl", "--first-milestones", "2,2"], "the one before, as in --first-milestones 2\n"),
        (["list", "methodes"], "did you mean 'methods'?"),
        (["completion", "bsh"], "unknown shell 'bsh'; did you mean 'bash'?"),
        (["data", "check"], "needs the name"),
        (["data", "chekc", "digits"], "did you mean 'check'?"),
        (["data", "check", "cifar11"], "unknown data set"),
    ],
)
def test_a_wrong_word_gets_one_sentence_and_status_2(
    words: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    captured = capsys.readouterr().err
    assert sentence in captured and captured.startswith("jioc: ") and captured.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "icral"],
        ["run", "icarl", "--memroy", "5"],
        ["run", "icarl", "--help"],
        ["run", "-h"],
        ["list", "methods"],
    ],
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


def test_an_error_shows_no_traceback_unless_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("jioc.training.run.execute", broken)
    assert main(["run", "icarl", "--out", str(tmp_path / "x")]) == 1
    assert capsys.readouterr().err == "jioc: ZeroDivisionError: a fault of ours; --debug shows where\n"
    with pytest.raises(ZeroDivisionError):
        main(["run", "icarl", "--debug", "--out", str(tmp_path / "x")])
