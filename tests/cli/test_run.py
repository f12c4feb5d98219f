"""`jioc run`: its folder, its config.yaml, and how it stops and goes on."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from helpers.argv import QUICK
from jioc.cli.main import main
from jioc.resolve.derive import Known


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_run_and_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert main(["run", "icarl", *QUICK, "--coordinate", "jioc", "--long-tail", "5", "--out", str(out)]) == 0
    captured = capsys.readouterr().out
    result = json.loads((out / "result.json").read_bytes())
    assert result["format"] == 1 and result["complete"] and result["headline"] == "cnn"
    assert [row["classes"] for row in result["tasks"]] == [[0, 4], [4, 7], [7, 10]]
    assert [len(row["cnn"]["per_task"]) for row in result["tasks"]] == [1, 2, 3]
    assert all(row["nme"] is not None for row in result["tasks"])
    assert f"{sum(result['counts']):,} training images" in captured
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert (
        config == result["config"]
        and config["init_seed"] == config["data_seed"] == 1
        and config["order_seed"] == 1993
    )
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert len(log) == 2 + 2 + 2  # a line an epoch
    assert set(log[-1]["terms"]) == {"cls", "kd", "suppress"} and set(log[0]["terms"]) == {"cls"}
    model = json.loads((out / "model.json").read_bytes())
    assert model["classes"] == result["classes"] and (out / "model.safetensors").exists()


@pytest.mark.parametrize("file", [False, True])
def test_settings_are_filled_in_three_times_at_most(
    file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Known] = []
    fill = Known.fill
    monkeypatch.setattr(Known, "fill", lambda known: calls.append(known) or fill(known))
    (tmp_path / "c.yaml").write_text("memory: 40\nfirst: {milestones: [1]}\n")
    words = ["--config", str(tmp_path / "c.yaml")] * file
    assert main(["run", "icarl", *QUICK, *words, "--out", str(tmp_path / "run")]) == 0
    assert 1 <= len(calls) <= 3


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
    monkeypatch.setattr("jioc.training.run.load_dataset", lambda *args: pytest.fail("images were read first"))
    assert main(["run", "replay", *QUICK, "--out", str(other)]) == 2
    assert main(["run", "replay", *QUICK, "--out", str(other), "--resume"]) == 2
    assert list(other.iterdir()) == [other / "thesis.tex"]
    assert main(["run", "replay", *QUICK, "--out", str(other / "thesis.tex")]) == 2


def test_a_finished_run_stays_though_its_checkpoints_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["run", "replay", *QUICK, "--out", str(out), "--resume"]
    assert main(words) == 0
    shutil.rmtree(out / "checkpoint")
    before = files(out)
    assert main(words) == 0
    assert "the run is finished; its result and its model stay as they are" in capsys.readouterr().err
    assert files(out) == before
    unfinished = json.loads((out / "result.json").read_bytes()) | {"complete": False}
    (out / "result.json").write_text(json.dumps(unfinished))
    before = files(out)
    for held in ("result.json", "model.json"):
        assert main(words) == 1, held
        assert "no whole checkpoint is left" in capsys.readouterr().err
        assert files(out) == before
        (out / "result.json").unlink(missing_ok=True)
        before.pop("result.json", None)


def test_a_run_repeats_from_its_config(tmp_path: Path) -> None:
    first, second, changed = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    assert (
        main(
            [
                "run",
                "icarl",
                *QUICK,
                "--coordinate",
                "oc",
                "--gamma2",
                "0.5",
                "--seed",
                "3",
                "--out",
                str(first),
            ]
        )
        == 0
    )
    config = str(first / "config.yaml")
    assert main(["run", "--config", config, "--out", str(second)]) == 0
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    assert main(["run", "--config", config, "--seed", "4", "--gamma1", "2", "--out", str(changed)]) == 0
    kept = yaml.safe_load((changed / "config.yaml").read_text())
    assert (kept["init_seed"], kept["data_seed"]) == (4, 4)
    assert kept["coordination"]["gamma1"] == 2 and kept["coordination"]["gamma2"] == 0.5


def test_milestones_in_a_config_with_a_cosine_change_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    words = ["run", "replay", *QUICK, "--decay", "cosine", "--out", str(first)]
    assert main(words) == 0
    kept = yaml.safe_load((first / "config.yaml").read_text())
    assert kept["later"]["decay"] == "cosine" and kept["later"]["milestones"] is None
    kept["later"]["milestones"] = [1]
    (first / "config.yaml").write_text(yaml.safe_dump(kept))
    assert main(["run", "--config", str(first / "config.yaml"), "--out", str(second)]) == 0
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()


@pytest.mark.data
def test_the_papers_long_tail_starts_on_the_official_files(
    cifar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--data cifar100 --long-tail paper --tasks 10 --memory 1000 --backbone resnet32 --coordinate jioc"
    assert main(["run", "icarl", *words.split(), "--dry-run", "--data-dir", str(cifar)]) == 0
    assert (
        "32,775 training images, from 500 to 200 a class; 10 tasks of 10 classes" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGTERM, 75, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 75, marks=pytest.mark.slow),
        (signal.SIGINT, 130),
    ],
)
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
    assert (
        told == f"jioc: stopped; the run can be resumed; to go on: {shlex.join(['jioc', *words])} --resume\n"
    )
    begun = json.loads((out / "result.json").read_bytes())["tasks"] if (out / "result.json").exists() else []
    assert len(begun) < 5 and list(out.glob("checkpoint/*"))
    if number == signal.SIGTERM:  # a checkpoint is one, whatever the signal
        assert main(shlex.split(told.split("to go on: ")[1])[1:]) == 0
        assert json.loads((out / "result.json").read_bytes())["complete"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_two_steps_leaves_a_run_that_goes_on(
    number: signal.Signals,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same within this process, which needs no start."""
    words = ["run", "icarl", *QUICK, "--out", str(tmp_path / "run")]
    with monkeypatch.context() as patch:
        patch.setattr("jioc.methods.icarl.ICaRL.before_step", lambda *a: os.kill(os.getpid(), number))
        assert main(words) == 75
    again = [*words, "--resume"]
    line = shlex.join(["jioc", *again])
    assert capsys.readouterr().err == f"jioc: stopped; the run can be resumed; to go on: {line}\n"
    assert list((tmp_path / "run").glob("checkpoint/*"))
    assert main(again) == 0
    assert json.loads((tmp_path / "run" / "result.json").read_bytes())["complete"]


def test_a_time_limit_leaves_a_run_that_says_resume_me(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "run",
        "icarl",
        "--epochs",
        "2",
        "--memory",
        "40",
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "run"),
    ]
    again = shlex.join(["jioc", *words, "--time-limit", "0.001", "--resume"])
    for given in ([], ["--resume"]):
        assert main([*words, "--time-limit", "0.001", *given]) == 75
        (tmp_path / "run" / "checkpoint" / "²").mkdir(exist_ok=True)  # a digit that is no number
        assert capsys.readouterr().err == f"jioc: stopped; the run can be resumed; to go on: {again}\n"
    assert main([*words, "--resume", "--time-limit", "2h"]) == 0
    assert json.loads((tmp_path / "run" / "result.json").read_bytes())["complete"]


def test_a_diverging_loss_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "replay", *QUICK, "--lr", "1e30", "--out", str(tmp_path / "x")]) == 1
    assert "not finite in task 1, epoch" in capsys.readouterr().err


ONE_STEP = ["--data", "digits", "--task-sizes", "10", "--first-epochs", "1", "--batch-size", "2000"]


@pytest.mark.parametrize(
    ("lr", "why"), [("1e6", "scores of the read-out 'cnn' are not finite"), ("1e38", "are not finite")]
)
def test_a_model_that_diverges_in_its_last_step_is_not_kept(
    lr: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*ONE_STEP, "--memory", "0", "--device", "cpu", "--lr", lr, "--out", str(tmp_path / "x")]
    assert main(["run", "finetune", *words]) == 1
    captured = capsys.readouterr().err
    assert why in captured and "training has diverged; a smaller --lr may help" in captured
    assert not (tmp_path / "x" / "result.json").exists() and not (tmp_path / "x" / "model.json").exists()


def test_a_run_is_resumed_by_its_folder_alone_and_runs_no_file_that_it_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["run", "replay", *QUICK, "--seed", "3", "--out", str(out)]) == 0
    before = files(out)
    assert main(["run", "--out", str(out), "--resume"]) == 0
    assert files(out) == before and "the run is finished" in " ".join(capsys.readouterr().err.split())
    assert main(["run", f"--out={out}", "--resume", "--memory", "50"]) == 2
    assert "holds another run: memory differ" in capsys.readouterr().err
    assert main(["run", "--out", str(tmp_path / "none"), "--resume"]) == 2
    assert "jioc run needs a method" in capsys.readouterr().err
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    config = yaml.safe_load((out / "config.yaml").read_text())
    for name in ("method", "data"):
        (out / "config.yaml").write_text(yaml.safe_dump(config | {name: str(trap)}))
        assert main(["run", "--out", str(out), "--resume"]) == 2
        assert f"the {name} of the run in" in capsys.readouterr().err and not (tmp_path / "sprung").exists()
