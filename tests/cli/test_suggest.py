"""What a run says that names no method, learns nothing, or will take long."""

import math
from pathlib import Path

import pytest

import jioc
from helpers.learning import new_run
from helpers.photographs import photographs
from helpers.runs import collect_notes
from jioc.cli import dry_run
from jioc.cli.main import main
from jioc.errors import Refused
from jioc.resolve import suggest


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photographs(tmp_path_factory.mktemp("photos"), 10, ("disc", "square", "ring", "star"))


@pytest.mark.parametrize("installed", [True, False])
def test_photographs_without_a_method_get_one_and_the_reason(
    installed: bool, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggest, "package_folder", lambda name: Path() if installed else None)
    settings, why = suggest.method_for(str(photos), trains=False, several=False) or ({}, "")
    if installed:
        assert (
            settings == {"method": "ranpac", "weights": "efficientnet-lite0", "tasks": 1}
            and "trains nothing" in why
        )
    else:
        assert settings == {"method": "icarl", "batch_size": 8, "later": {"lr": 0.1 * 8 / 128}, "tasks": 1}
        assert "jioc[pretrained]" in why
    assert (suggest.method_for(str(photos), trains=True, several=True) or ({}, ""))[0] == {
        "method": "icarl",
        "batch_size": 4,
        "later": {"lr": 0.1 * 4 / 128},
    }
    assert suggest.method_for("digits", trains=False, several=False) is None


def test_a_run_without_a_method_says_what_it_takes_and_flags_stand_over_it(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suggest, "package_folder", lambda name: None)
    words = ["--data", str(photos), "--image-size", "16", "--epochs", "1", "--batch-size", "16"]
    assert main(["run", *words, "--out", str(tmp_path / "run"), "--device", "cpu"]) == 0
    assert "note: no method is named: taking icarl from scratch" in capsys.readouterr().err
    config = (tmp_path / "run" / "config.yaml").read_text()
    assert (
        "method: icarl" in config
        and "batch_size: 16" in config
        and "lr: 0.00625" in config
        and "tasks: 1" in config
    )
    assert main(["run", "--data", "digits"]) == 2
    assert "jioc run needs a method" in capsys.readouterr().err


def test_python_takes_the_same_method_as_the_command(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggest, "package_folder", lambda name: None)
    told: list[str] = []
    result = jioc.run(
        data=str(photos), image_size=16, epochs=1, batch_size=16, device="cpu", callback=collect_notes(told)
    )
    assert result.config["method"] == "icarl" and result.config["batch_size"] == 16
    assert len(result.tasks) == 1 and any("no method is named: taking icarl" in note for note in told)
    with pytest.raises(Refused, match="jioc.run needs a method: .*icarl"):
        jioc.run(data="digits")


def test_a_folder_in_place_of_a_method_is_told_where_it_belongs(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(photos)]) == 2
    assert f"for the folder of that name: jioc run --data {photos}" in capsys.readouterr().err


def test_a_suggested_run_goes_on_though_another_would_be_suggested_now(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line that an interrupt prints holds no method."""
    monkeypatch.setattr(suggest, "package_folder", lambda name: None)
    words = [
        "run",
        "--data",
        str(photos),
        "--image-size",
        "16",
        "--epochs",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main([*words, "--device", "cpu"]) == 0
    monkeypatch.setattr(suggest, "package_folder", lambda name: Path())
    assert main([*words, "--device", "cpu", "--resume"]) == 0


def test_tasks_that_are_asked_for_stand(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, tasks in (
        ([], "1 task of 4"),
        (["--increment", "2"], "2 tasks of 2"),
        (["--tasks", "2"], "2 tasks"),
    ):
        assert main(["run", "--data", str(photos), "--image-size", "16", "--dry-run", *words]) == 0
        assert tasks in capsys.readouterr().out


def test_a_check_shows_what_a_run_would_take(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suggest, "package_folder", lambda name: Path())
    assert main(["data", "check", str(photos)]) == 0
    assert "efficientnet-lite0, imagenet stem; 1 task\n" in capsys.readouterr().out
    assert main(["data", "check", str(photos), "--tasks", "2"]) == 0
    assert "; 2 tasks\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "rate", "told"), [("replay", 1e-9, True), ("replay", 0.1, False), ("podnet", 1e-9, False)]
)
def test_a_cross_entropy_that_has_not_left_chance_is_noted(method: str, rate: float, told: bool) -> None:
    """PODNet's loss has a margin: log K is not what guessing gives."""
    notes: list[str] = []
    jioc.run(
        method=method, data="digits", task_sizes=(3, 7), memory=30, device="cpu", batch_size=400,
        first={"epochs": 5, "lr": rate}, later={"epochs": 1}, callback=collect_notes(notes),
    )  # fmt: skip
    assert any(f"guessing among 3 classes gives {math.log(3):.2f}" in text for text in notes) == told


def test_a_run_of_hours_is_announced_with_what_would_shorten_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = new_run(method="icarl", data="digits", device="cpu")
    monkeypatch.setattr(dry_run, "measured", lambda run: dry_run.Estimate(1_000_000, 7000.0, 300.0))
    dry_run.note_if_long(run.plan)
    assert capsys.readouterr().err == ""  # so little is not even timed
    monkeypatch.setattr(dry_run, "LONG", 0)
    dry_run.note_if_long(run.plan)
    assert "this run will take about 2.0 h here (1,000,000 images" in capsys.readouterr().err
