"""Results that are kept in the repository: small copies, or a line for each run."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.results import keep, made
from helpers.scripts import script
from jioc.errors import Refused
from jioc.report import page
from jioc.report.runs import group, read


def test_a_kept_copy_gives_the_same_report_and_is_small(tmp_path: Path) -> None:
    runs = keep(tmp_path / "runs", made(classes=100, tasks=10), made(classes=100, tasks=10, seed=2, done=3))
    assert script("keep").copies([runs], tmp_path / "kept") == (1, 1)
    (copy,) = (tmp_path / "kept").glob("*/result.json")
    whole, small = runs / copy.parent.name / "result.json", copy

    def told(path: Path) -> str:
        (one,) = group(read([path]))
        one.runs[0].path = Path("somewhere/result.json")
        return json.dumps(page.content([one]))

    assert told(whole) == told(small)
    assert small.stat().st_size < whole.stat().st_size / 3 and small.stat().st_size < 100_000


def test_every_run_of_a_study_has_its_line_failures_too(tmp_path: Path) -> None:
    runs = keep(tmp_path / "runs", made(alls=[50.0] * 5), made(select="random"), made(seed=2, done=2))
    (runs / "failures.json").write_text(json.dumps({"run-002": "out of memory", "run-009": "no such data"}))
    assert script("keep").lines([runs], tmp_path / "study.csv") == (4, 0)
    rows = list(csv.DictReader((tmp_path / "study.csv").read_text().splitlines()))
    assert [row["outcome"] for row in rows] == ["finished", "finished", "out of memory", "no such data"]
    assert rows[0]["average"] == "50.00" and rows[1]["select"] == "random" and rows[2]["average"] == ""


def test_runs_of_several_recipes_are_kept_apart_by_their_names(tmp_path: Path) -> None:
    runs, told = keep(tmp_path / "runs", made(), made(seed=2), made(seed=3)), script("keep")
    for folder, name in (("run-000", "best-seed1"), ("run-001", "lt-cil-seed1"), ("run-002", "lt-cil-seed2")):
        (runs / folder).rename(runs / name)
    (runs / "failures.json").write_text(json.dumps({"best-seed2": "out of memory"}))
    assert told.copies([runs], tmp_path / "kept", only=["lt-cil"]) == (2, 0)
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"lt-cil-seed1", "lt-cil-seed2"}
    assert told.lines([runs], tmp_path / "kept.csv", only=["best-*"]) == (2, 0)
    with pytest.raises(Refused, match="no run's name holds 'worst'"):
        told.copies([runs], tmp_path / "kept", only=["worst"])


def test_runs_of_several_folders_are_kept_together_and_no_folder_of_the_machine(tmp_path: Path) -> None:
    place = str(tmp_path / "data")
    first = keep(tmp_path / "a", made(data_dir=place, data_cache=place))
    other = made(seed=2, data_dir=None, precision="fp32")
    second, moved = keep(tmp_path / "b" / "deeper", other), keep(tmp_path / "c", other)
    (moved / "run-000").rename(moved / "run-001")
    told, kept = script("keep"), tmp_path / "kept"
    assert (
        told.copies([first, second.parent], kept)
        == told.lines([first, moved], tmp_path / "both.csv")
        == (2, 0)
    )
    files = [*kept.rglob("result.json"), tmp_path / "both.csv"]
    assert len(files) == 3 and not any(place in file.read_text() for file in files)
    rows = list(csv.DictReader(files[-1].read_text().splitlines()))
    assert [(row["seed"], row["precision"]) for row in rows] == [("1", "–"), ("2", "fp32")]
    with pytest.raises(Refused, match="two runs would be kept in"):
        told.copies([first, second], tmp_path / "neither")
    with pytest.raises(Refused, match="two runs are called 'run-000'"):
        told.lines([first, second], tmp_path / "neither")
    assert not (tmp_path / "neither").exists()


def test_what_is_kept_is_replaced_only_when_asked_for(tmp_path: Path) -> None:
    told, kept, sheet = script("keep"), tmp_path / "kept", tmp_path / "kept.csv"
    first = keep(tmp_path / "a", made(seed=1), made(seed=2, done=2))
    again = keep(tmp_path / "b", made(seed=1), made(seed=2))
    other = keep(tmp_path / "c", made(seed=1, alls=[50.0] * 5))

    def content() -> list[bytes]:
        return [path.read_bytes() for path in [*sorted(kept.glob("*/*")), sheet] if path.exists()]

    for way, target in ((told.copies, kept), (told.lines, sheet)):
        way([first], target)
        way([first], target)
        way([again], target)  # the second run has finished
        before = content()
        with pytest.raises(Refused, match=r"run-000.* \(. such\); --replace"):
            way([other], target)
        assert content() == before
        way([other], target, replace=True)
        assert content() != before
    assert "run-001" in sheet.read_text()


def test_lines_of_other_runs_stay_and_new_ones_fill_their_columns(tmp_path: Path) -> None:
    told, sheet = script("keep"), tmp_path / "kept.csv"
    first = keep(tmp_path / "first", made(seed=1), made(seed=2, select="random"))
    told.lines([first], sheet)
    later = keep(tmp_path / "later", made(seed=3, select="random", precision="fp32"))
    (later / "run-000").rename(later / "run-002")
    assert told.lines([later], sheet) == (1, 0)
    rows = list(csv.DictReader(sheet.read_text().splitlines()))
    assert [row["run"] for row in rows] == ["run-000", "run-001", "run-002"]
    # though the one new run differs from none
    assert [row["select"] for row in rows[1:]] == ["random"] * 2
    again = keep(tmp_path / "again", made(seed=3, select="random"), made(seed=4, precision="fp32"))
    for i, name in ((1, "run-003"), (0, "run-004")):
        (again / f"run-00{i}").rename(again / name)
    assert told.lines([again], sheet) == (2, 0)  # which brings a column that the first lines lack
    assert told.lines([first], sheet) == (2, 0)


def test_nothing_is_kept_among_runs_in_a_file_or_of_runs_that_have_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, live = keep(tmp_path / "runs", made()), keep(tmp_path / "live", made(seed=2))
    (live / "run-000" / "config.yaml").write_text("method: icarl\n")
    (tmp_path / "file").write_text("mine\n")
    unfinished = keep(tmp_path / "unfinished", made(done=2))

    def said(*words: Path) -> str:
        monkeypatch.setattr(sys, "argv", ["keep.py", *map(str, words)])
        assert script("keep").main() > 0
        return capsys.readouterr().err

    assert "is a run's folder" in said(runs, live) and "is a run's folder" in said(runs, live / "run-000")
    for target in ("file", "file/below", "file/lines.csv"):
        assert "cannot be written" in said(runs, tmp_path / target)
    assert "none of the 1 runs is finished" in said(unfinished, tmp_path / "kept")
    assert (tmp_path / "file").read_text() == "mine\n" and not (tmp_path / "kept").exists()
    assert len([*live.rglob("*")]) == 3


def test_an_old_result_without_seconds_and_device_has_empty_cells(tmp_path: Path) -> None:
    old = made()
    del old["environment"], old["tasks"][1]["seconds"]
    script("keep").lines([keep(tmp_path / "runs", old)], tmp_path / "kept.csv")
    (row,) = csv.DictReader((tmp_path / "kept.csv").read_text().splitlines())
    assert (row["seconds"], row["device"], row["outcome"]) == ("", "", "finished")


def test_a_hold_out_is_kept_by_class_too_and_a_test_set_is_not(tmp_path: Path) -> None:
    held, tested = made(holdout=0.1), made(holdout=0.1, judge_by="test")
    held["tasks"][1]["cnn"] |= {"per_class": [10.0, None, 40.0, None]}  # of two classes no image was held out
    older = made(seed=2, holdout=0.1)
    del older["tasks"][0]["cnn"]["per_class"]
    runs = keep(tmp_path / "runs", held, tested, made(), older)
    script("keep").lines([runs], tmp_path / "kept.csv")
    rows = [
        row["by class, after each task"]
        for row in csv.DictReader((tmp_path / "kept.csv").read_text().splitlines())
    ]
    assert rows[0].split()[1] == "25.00" and len(rows[0].split()) == 5 and rows[1:] == ["", "", ""]


def test_lines_kept_before_figures_by_class_are_the_same_lines(tmp_path: Path) -> None:
    told, sheet, runs = script("keep"), tmp_path / "kept.csv", keep(tmp_path / "runs", made(holdout=0.1))
    told.lines([runs], sheet)
    with sheet.open() as file:
        rows = [{k: v for k, v in row.items() if k != told.BY_CLASS} for row in csv.DictReader(file)]
    with sheet.open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    told.lines([runs], sheet)  # which is no change that asks for --replace
    assert next(csv.DictReader(sheet.read_text().splitlines()))[told.BY_CLASS]


NOT_LANDED = {"216471e"}  # docs/results/readings.md says so


def test_every_kept_result_is_of_a_commit_of_this_history() -> None:
    asked = ["git", "-C", str(ROOT), "rev-list", "HEAD"]
    history = subprocess.run(asked, capture_output=True, text=True)
    if history.returncode or (ROOT / ".git" / "shallow").exists():
        pytest.skip("needs a checkout with its history")
    short = {commit[:12] for commit in history.stdout.split()}
    kept = {run.result.commit for run in script("once").read(script("gains").RESULTS)}
    for path in script("gains").RESULTS.glob("*.csv"):
        rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        kept |= {row["commit"] for row in rows if row.get("commit")}
    assert kept - short == NOT_LANDED


def test_a_kept_average_is_that_of_its_tasks() -> None:
    for run in script("once").read(script("gains").RESULTS):
        for name, accuracies in run.readouts.items():
            mean = sum(one.all for one in accuracies) / len(accuracies)
            assert run.result.average[name] == pytest.approx(mean), (run.path, name)


def test_every_kept_result_has_the_command_and_the_machine_of_its_run() -> None:
    for run in script("once").read(script("gains").RESULTS):
        assert run.result.command and run.result.environment["device"], run.path
