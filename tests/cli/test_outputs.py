"""Where a command writes: through links, over files of its own, and over nothing else."""

import os
import stat
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from helpers.argv import QUICK
from helpers.command import refused
from helpers.grids import recipe_file
from helpers.results import keep, made
from jioc.cli.main import main

SHORT = {"task_sizes": [5, 5], "first": {"epochs": 1}, "later": {"epochs": 1}}


@pytest.fixture
def report(tmp_path: Path) -> list[str]:
    return ["report", str(keep(tmp_path / "runs", made())), "-o"]


def test_a_report_replaces_pages_and_nothing_else(
    report: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, notes = tmp_path / "page.html", tmp_path / "notes"
    for _ in range(2):
        assert main([*report, str(page)]) == 0
    notes.write_text("jioc report runs -o page.html")
    assert "this command did not write it; --force replaces it" in refused([*report, str(notes)], capsys)
    assert notes.read_text().startswith("jioc report")
    assert main([*report, str(notes), "--force"]) == 0 and "<title>" in notes.read_text()
    (tmp_path / "empty").touch()
    assert main([*report, str(tmp_path / "empty")]) == 0


def test_a_report_is_written_through_a_link(report: list[str], tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "page.html")
    for _ in range(2):
        assert main([*report, str(tmp_path / "link")]) == 0
    assert (tmp_path / "link").is_symlink() and "<title>" in (tmp_path / "there" / "page.html").read_text()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["page.html"]


def test_a_report_replaces_no_device_and_no_pipe(
    report: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to(os.devnull)
    for place in (tmp_path / "pipe", tmp_path / "null", Path(os.devnull)):
        for force in ([], ["--force"]):
            assert "is a device or a pipe" in refused([*report, str(place), *force], capsys)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode) and (tmp_path / "null").is_symlink()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be written: Is a directory" in refused([*report, "."], capsys, 1)
    assert "cannot be written: Too many levels" in refused([*report, str(tmp_path / "loop")], capsys, 1)


def test_figures_replace_figures_and_nothing_else(
    report: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jioc.report.figures.draw", lambda groups: {"tasks": Figure(figsize=(1, 1))})
    page, folder = tmp_path / "page.html", tmp_path / "figures"
    words = [*report, str(page), "--figures", str(folder)]
    for _ in range(2):
        assert main(words) == 0
    for kind in ("pdf", "svg", "png"):
        drawn = (folder / f"tasks.{kind}").read_bytes()
        (folder / f"tasks.{kind}").write_text("drawn by hand")
        page.unlink(missing_ok=True)
        capsys.readouterr()
        assert f"tasks.{kind}' is there, and this command did not write it" in refused(words, capsys)
        assert (folder / f"tasks.{kind}").read_text() == "drawn by hand" and not page.exists()
        (folder / f"tasks.{kind}").write_bytes(drawn)
    (folder / "tasks.svg").write_text("drawn by hand")
    assert main([*words, "--force"]) == 0 and (folder / "tasks.svg").read_bytes() != b"drawn by hand"


@pytest.mark.parametrize("name", ["report.html", "icarl-jioc-2/result.json", "icarl-none-3/config.yaml"])
def test_the_demo_replaces_a_demo_and_nothing_else(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / name).parent.mkdir(parents=True)
    (tmp_path / "out" / name).write_text("years of work")
    refused(["demo", "--out", str(tmp_path / "out")], capsys)
    assert (tmp_path / "out" / name).read_text() == "years of work"


def test_an_export_replaces_no_file_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.json").write_text("{}")
    (tmp_path / "notes").write_text("years of work")
    os.mkfifo(tmp_path / "pipe")
    words = ["export", str(tmp_path), "--onnx"]
    assert "this command did not write it" in refused([*words, str(tmp_path / "notes")], capsys)
    assert "is a device or a pipe" in refused([*words, str(tmp_path / "pipe")], capsys)
    assert (tmp_path / "notes").read_text() == "years of work"


def test_a_run_takes_no_folder_with_another_programs_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "replay", *QUICK, "--resume", "--out", str(tmp_path / "out")]
    for name in ("checkpoint/epoch-1", ".download.partial", "film.partial"):
        place = tmp_path / "out" / name
        place.parent.mkdir(parents=True)
        place.write_text("years of work")
        assert "holds other files" in refused(words, capsys)
        assert place.read_text() == "years of work"
        place.unlink()
        place.parent.rmdir()
        (tmp_path / "out").exists() and (tmp_path / "out").rmdir()


def test_a_grid_leaves_files_of_others_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = ["grid", recipe_file(tmp_path, runs={"a": SHORT}), "--seeds", "1", "--out", str(tmp_path / "out")]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "failures.json").write_text("years of work")
    os.mkfifo(tmp_path / "out" / "grid.jsonl")
    assert main(grid) == 0
    assert "failures.json' cannot be brought up to date: jioc did not write it" in capsys.readouterr().out
    assert (tmp_path / "out" / "failures.json").read_text() == "years of work"


def test_a_pipe_in_the_place_of_a_log_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "replay", *QUICK, "--out", str(tmp_path / "out"), "--resume"]
    assert main([*words, "--time-limit", "0.001"]) == 75
    for name in ("log.jsonl", ".lock"):
        (tmp_path / "out" / name).unlink()
        os.mkfifo(tmp_path / "out" / name)
        capsys.readouterr()
        assert f"{name}' cannot be opened: it is not a regular file" in refused(words, capsys)
        (tmp_path / "out" / name).unlink()
        (tmp_path / "out" / name).touch()
