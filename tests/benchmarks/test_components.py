"""The table of what each component adds."""

import csv
from pathlib import Path
from statistics import fmean

import pytest

from helpers.results import keep, made
from helpers.scripts import script
from jioc.errors import Refused

COLUMN = "cifar100-lt-resnet32-1000"
HEADS = 'run,after each task,"by class, after each task"'
Cells = dict[str, list[str]]


def cells(folder: Path, title: str = "DER, long tail") -> Cells:
    """The table's cells from that column on, by component."""
    lines = [line[2:-2].split(" | ") for line in script("components").table(folder).splitlines()]
    place = lines[0].index(title)
    return {line[0]: line[place:] for line in lines[2:]}


def sheets(folder: Path, heads: str, **kept: list[str]) -> Path:
    for name, rows in kept.items():
        (folder / f"{name}.csv").write_text("\n".join([heads, *rows]) + "\n")
    return folder


def test_a_component_is_compared_with_its_host_on_the_tasks_that_both_have_learnt(tmp_path: Path) -> None:
    readings = [f"{COLUMN}-der-none-seed1,80 60 40", f"{COLUMN}-der-none-adjust-1-seed1,80 66"]
    fresh = [f"{COLUMN}-der-ema-seed1,82 62 42", f"{COLUMN}-icarl-ema-seed1,82 62"]
    found = cells(sheets(tmp_path, "run,after each task", readings=readings, components=fresh))
    assert found["none"] == ["60.00 (3) †", "–"]
    assert found["adjust-1"] == ["+3.00 (2) †", "–"]
    assert found["ema"] == ["+2.00 (3) †", "–"]  # iCaRL's host was not run
    assert found["cutmix"] == ["–", "–"]


def test_seeds_are_averaged_over_the_tasks_that_all_of_them_have_learnt(tmp_path: Path) -> None:
    fresh = [f"{COLUMN}-der-none-seed1,80 60 10", f"{COLUMN}-der-none-seed2,70 50"]
    fresh += [f"{COLUMN}-der-ema-seed1,82 62 40", f"{COLUMN}-der-ema-seed2,74 54"]
    found = cells(sheets(tmp_path, "run,after each task", components=fresh))
    assert found["none"][0] == "65.00 (2) †" and found["ema"][0] == "+3.00 (2) †"


def test_a_difference_is_of_one_measure(tmp_path: Path) -> None:
    """By class where both runs have it; a run of both studies is taken as its partner needs it."""
    readings = [f"{COLUMN}-der-none-seed1,80 60 40", f"{COLUMN}-der-none-adjust-1-seed1,80 66 46"]
    sheets(tmp_path, "run,after each task", readings=readings)
    fresh = [f"{COLUMN}-der-none-seed1,80 60,70 50", f"{COLUMN}-der-ema-seed1,82 62 42,75 55 35"]
    found = cells(sheets(tmp_path, HEADS, components=[*fresh, f"{COLUMN}-der-cosine-seed1,81 61,"]))
    assert found["none"][0] == "60.00 (2)"
    assert found["ema"][0] == "+5.00 (2)"
    assert found["adjust-1"][0] == "+4.00 (3) †"
    assert found["cosine"][0] == "+1.00 (2) †"  # it was kept without


def test_a_run_of_the_study_stands_before_one_of_the_readings(tmp_path: Path) -> None:
    sheets(tmp_path, "run,after each task", readings=[f"{COLUMN}-icarl-none-adjust-1-seed1,80 60"])
    fresh = [f"{COLUMN}-icarl-none-seed1,50 50,40 40", f"{COLUMN}-icarl-adjust-1-seed1,55 55,41 43"]
    found = cells(sheets(tmp_path, HEADS, components=fresh), "iCaRL, long tail")
    assert found["adjust-1"] == ["+2.00 (2)"]


def test_runs_that_a_grid_stopped_after_six_tasks_are_kept_and_compared(tmp_path: Path) -> None:
    host = made("der", tasks=10, alls=[70.0] * 10, holdout=0.1)
    stopped = made("der", tasks=10, alls=[73.0] * 6, done=6, ema=0.999, holdout=0.1)
    runs = keep(tmp_path / "runs", host, stopped)
    for folder, name in (("run-000", "none"), ("run-001", "ema")):
        (runs / folder).rename(runs / f"cifar100-resnet32-2000-der-{name}-seed1")
    assert script("keep").lines([runs], tmp_path / "components.csv") == (2, 0)
    rows = {
        row["run"][23:]: row for row in csv.DictReader((tmp_path / "components.csv").read_text().splitlines())
    }
    assert rows["der-ema-seed1"]["outcome"] == "stopped after task 6"
    means = [float(word) for word in rows["der-ema-seed1"]["by class, after each task"].split()]
    expected = [fmean(row["cnn"]["per_class"]) for row in stopped["tasks"]]
    assert means == pytest.approx(expected, abs=0.005)
    six = [fmean(row["cnn"]["per_class"]) for row in host["tasks"]][:6]
    gain = f"{fmean(expected) - fmean(six):+.2f} (6)"
    assert cells(tmp_path, "DER, balanced")["ema"][0] == gain


def test_best_is_chosen_by_strength_first_and_then_by_schedule(tmp_path: Path) -> None:
    """A cosine has to be 0.4 points better over the seeds that all its rows have; only six tasks count."""

    def kept(later: str, strength: str, seed: int, balanced: float, tail: float) -> list[str]:
        row = f"der-{later}weight-decay-{strength}-head-seed{seed}"
        figures = {"cifar100-resnet32-2000": f"{balanced} " * 6 + "0 0", COLUMN: f"{tail} " * 6}
        return [f"{column}-{row},{of},{of}" for column, of in figures.items()]

    rows = kept("", "0.0005", 1, 70, 60) + kept("later-cosine-", "0.0005", 1, 75, 60)
    rows += kept("", "0.001", 1, 72, 63) + kept("later-cosine-", "0.001", 1, 72, 62)
    rows += kept("", "0.002", 1, 72, 62) + kept("later-cosine-", "0.002", 1, 71, 61)
    choose = script("components").choose
    told = choose(sheets(tmp_path, HEADS, components=rows)).splitlines()
    assert told[:3] == ["0.0005   66.25", "0.001    67.25", "0.002    66.50"]
    assert told[3] == "weight decay: 0.001" and told[-1] == "decay: steps, by seeds 1"
    rows += kept("", "0.001", 2, 70, 60) + kept("later-cosine-", "0.001", 2, 71.5, 61)
    assert choose(sheets(tmp_path, HEADS, components=rows)).endswith("decay: steps, by seeds 1, 2")
    rows += kept("", "0.001", 3, 70, 60) + kept("later-cosine-", "0.001", 3, 71, 60.5)
    assert choose(sheets(tmp_path, HEADS, components=rows)).endswith("decay: cosine, by seeds 1, 2, 3")
    with pytest.raises(Refused, match="0.002-head-seed1 is not kept with 6 tasks"):
        choose(
            sheets(tmp_path, HEADS, components=[row for row in rows if "later" in row or "0.002" not in row])
        )
