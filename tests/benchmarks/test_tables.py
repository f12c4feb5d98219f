"""The tables of README and docs, made by commands that a reader can repeat."""

import csv
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.results import keep, made
from helpers.scripts import RESULTS, script
from jioc.cli.main import main as jioc
from jioc.config import Config
from jioc.grid import plan as jobs
from jioc.report.runs import not_begun, read, setting
from jioc.resolve import recipes
from jioc.resolve import repeat as command


def test_the_tables_of_readme_and_docs_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("tables").main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["comparison.py"], ["speeds.py", *map(str, (RESULTS / "speed").glob("*resnet*8.json"))]]
)
def test_a_script_whose_reader_has_left_ends_without_a_word(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, str(ROOT / "benchmarks" / words[0]), *words[1:]]
    unheard = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (unheard.returncode, unheard.stderr) == (128 + signal.SIGPIPE, b"")


def test_a_table_is_what_its_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = keep(tmp_path / "runs", made(seed=1), made(seed=2))
    tables = script("tables")
    empty = f"before\n<!-- jioc table {runs} --format markdown -->\ntyped\n<!-- end of the table -->\nafter\n"
    full = tables.current(empty)
    assert (
        "| iCaRL | 2 |" in full
        and "typed" not in full
        and full.startswith("before\n")
        and full.endswith("after\n")
    )
    assert tables.current(full) == full


@pytest.mark.parametrize(
    "name",
    [
        "baselines",
        "claims",
        "comparison",
        "components",
        "cells",
        "demo",
        "figure4",
        "gains",
        "headline",
        "hosts",
        "mechanisms",
        "minutes",
        "oddities",
        "parity",
        "proxy",
        "readings",
        "resnet18",
        "stems",
        "tables",
        "verdicts",
    ],
)
def test_a_word_that_a_script_does_not_know_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        script(name).main(["--wrote"])
    assert stopped.value.code == 2 and "unrecognized arguments: --wrote" in capsys.readouterr().err


OF_200_EPOCHS = " --first-milestones 60,120,170"  # follow from the epochs of the first task


def wanted(name: str, scale: float, tmp_path: Path) -> dict[str, Config]:
    """The runs of a recipe, by name."""
    recipe = recipes.find_recipe(name)
    planned = jobs.plan(recipe, recipe.seeds, None, scale, lambda spec: {}, tmp_path)
    return {job.name: job.config for job in planned}


@pytest.mark.parametrize("name", ["table6", "table6-controls", "comparison", "columns", "best", "lt-cil"])
def test_the_grid_of_today_has_the_setting_of_every_run_that_is_kept(name: str, tmp_path: Path) -> None:
    of_today = wanted(name, 1, tmp_path)
    if name == "comparison":
        of_today |= wanted("comparison-checks", 1, tmp_path)
    if name == "best":
        of_today |= wanted("best-augmented", 1, tmp_path)
    kept = {run.path.parent.name: run for run in read([ROOT / "benchmarks" / "results" / name])}
    first = {place: run for place, run in kept.items() if place.endswith("seed1")}
    assert len(first) >= 3
    for place, run in first.items():
        assert setting(run) == setting(not_begun(tmp_path, of_today[place])), place


@pytest.mark.parametrize(("name", "scale"), [("study", 0.1), ("parity", 1), ("stems", 1)])
def test_the_grid_of_today_repeats_every_line_that_is_kept(name: str, scale: float, tmp_path: Path) -> None:
    """They were run before a reading had a name, by the formulas as printed."""
    rows = csv.DictReader((ROOT / "benchmarks" / "results" / f"{name}.csv").read_text("utf-8").splitlines())
    kept = {row["run"]: row["command"].replace(OF_200_EPOCHS, "") for row in rows}
    kept = {run: re.sub(r"--coordinate \S+", r"\g<0> --reading printed", line) for run, line in kept.items()}
    lines = {run: command.line(config) for run, config in wanted(name, scale, tmp_path).items()}
    assert kept and kept == {run: lines.get(run) for run in kept}


def test_every_line_of_the_pages_is_one_to_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [
        ROOT / "docs" / "results.md",
        ROOT / "docs" / "coverage.md",
        *(ROOT / "docs" / "results").iterdir(),
    ]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    lines = {*re.findall(r"^(jioc grid .*)$", text, re.MULTILINE), *re.findall(r"`(jioc grid [^`]*)`", text)}
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert jioc([*shlex.split(line, comments=True)[1:], "--dry-run"]) == 0, line
        captured = capsys.readouterr().out
        counted = re.search(r"# (?:the )?(\w+) (?:short )?runs", line)
        if counted is None:
            assert "jioc run" in captured, line
        else:
            number = {"two": 2, "six": 6, "twelve": 12, "eighteen": 18}.get(counted[1]) or int(counted[1])
            assert captured.count("jioc run") == number, line
    assert len(lines) >= 100
