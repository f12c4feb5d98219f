"""The study of the paper's readings."""

import csv
import re
import xml.dom.minidom
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.scripts import script
from jioc.errors import Refused
from jioc.grid import plan as jobs
from jioc.resolve import recipes


def study(path: Path, *lines: tuple[str, int, int, str, str, str]) -> Path:
    """A sheet of the study: name, seed, accumulate, loss, gamma2, average; without an average it failed."""
    heads = [
        "run",
        "seed",
        "accumulate",
        "coordination.coordinate",
        "coordination.gamma2",
        "first task",
        "average",
    ]
    heads += ["last, old", "last, new", "nme average", "outcome", "command"]
    with path.open("w", newline="") as file:
        csv.writer(file).writerow(heads)
        for name, seed, half, loss, gamma2, average in lines:
            told = ["50", average, "1", "2", "", "finished" if average else "no memory", f"jioc run {name}"]
            csv.writer(file).writerow([f"{name}-seed{seed}", seed, half, loss, gamma2, *told])
    return path


def test_a_reading_gains_over_the_same_batches_and_seed(tmp_path: Path) -> None:
    readings = script("readings")
    path = study(
        tmp_path / "study.csv",
        ("none", 1, 1, "none", "1", "30.0"),
        ("none", 2, 1, "none", "1", "40.0"),
        ("half", 1, 2, "none", "1", "50.0"),
        ("jioc", 1, 1, "jioc", "1", "31.0"),
        ("jioc", 2, 1, "jioc", "1", "43.0"),
        ("jioc", 3, 1, "jioc", "1", "99.0"),
        ("jioc-half-batch-bn", 1, 2, "jioc", "1", "54.0"),
        ("jioc-gamma2-20", 1, 1, "jioc", "20", "35.0"),
        ("jioc-twenty", 1, 1, "jioc", "20", "36.0"),
        ("jioc-mine", 1, 1, "jioc", "7", "30.5"),
        ("jioc-gamma2-5", 1, 1, "jioc", "5", ""),
    )
    found = readings.read(path)
    told = {r.name: (r.title, r.gains, len(r.rows)) for r in found.readings if r.loss == "jioc"}
    assert told == {
        "jioc-gamma2-20": ("gamma2 20", [5.0], 1),
        "jioc-half-batch-bn": ("accumulate 2", [4.0], 1),
        "jioc": ("as printed", [1.0, 3.0], 3),
        "jioc-mine": ("gamma2 7", [0.5], 1),
    }
    page = readings.table(found)
    assert "| JIOC | as printed | 3 | 57.67 ± 36.30 | +2.00 ± 1.41 | – | 1.00 | 2.00 |" in page
    assert "not counted: `jioc-twenty-seed1` 36.0 (`jioc-gamma2-20-seed1` 35.0)." in page
    assert "did not finish: 1 runs" in page and "without a gain: 1 runs" in page
    assert "`jioc grid study-suppression --scale 0.1 --only jioc-gamma2-20 --seeds 1` |" in page
    assert "`jioc run jioc-mine` |" in page and "--only jioc --seeds 1 2 3` |" in page
    assert b"<svg" in readings.draw(found.readings)


def test_the_lines_of_the_readings_name_one_run_of_a_recipe() -> None:
    readings = script("readings")
    for reading in readings.read().readings:
        found = re.fullmatch(r"jioc grid (\S+) --scale 0.1 --only (\S+)", readings.command(reading))
        assert found is not None
        assert [*jobs.select(recipes.find_recipe(found[1]).make(), [found[2]])] == [reading.name]


def test_a_study_that_is_not_there_or_not_one_is_refused(tmp_path: Path) -> None:
    readings = script("readings")
    with pytest.raises(Refused, match="there is no .*study.csv"):
        readings.read(tmp_path / "study.csv")
    with pytest.raises(Refused, match="has finished"):
        readings.read(study(tmp_path / "study.csv", ("jioc", 1, 1, "jioc", "1", "")))
    with pytest.raises(Refused, match="not a study"):
        readings.read(ROOT / "benchmarks" / "results" / "parity.csv")


def test_the_figure_of_the_readings_shows_what_is_kept() -> None:
    readings = script("readings")
    (drawn,) = xml.dom.minidom.parse(str(readings.FIGURE)).getElementsByTagName("dc:description")
    assert drawn.firstChild is not None
    assert drawn.firstChild.nodeValue == readings.description(readings.read().readings), (
        "python benchmarks/readings.py --draw"
    )
