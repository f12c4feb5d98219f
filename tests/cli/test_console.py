"""What a person sees while a run goes on."""

import sys
from pathlib import Path
from typing import Any

import pytest

from jioc.cli.console import Console, scenario_line, table
from jioc.config import values as settings
from jioc.resolve.derive import resolve
from jioc.text import PLAINLY


def test_the_progress_names_task_epoch_terms_speed_and_time_left(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    config = resolve(settings.make(method="icarl", **small))
    line = {
        "task": 1,
        "stage": "first",
        "epochs": 4,
        "terms": {"cls": 0.5, "kd": 0.25},
        "images_per_second": 5120.4,
    }
    with Console(config, tmp_path) as console:
        console(
            "start", {"sizes": [4, 3, 3], "counts": [9] * 10, "device": "cpu", "precision": "fp32", "done": 0}
        )
        for epoch in (1, 2, 3):
            console("epoch", line | {"epoch": epoch})
        (bar,) = console.bars.tasks
        assert bar.description == "task 1/3"
        assert bar.fields["told"] == "epoch 3/4  cls 0.500  kd 0.250  5,120 images/s"
        assert (bar.completed, bar.total) == (3, 4 + 3 + 3)
        assert bar.time_remaining is not None


def test_one_is_told_as_one() -> None:
    config = settings.make(method="icarl", memory_per_class=1)
    assert scenario_line([1], [1], config) == "1 training image; 1 task of 1 class; 1 exemplar a class"
    told = scenario_line([2, 1], [1000, 1000, 1000], settings.make(method="icarl", memory=2000))
    assert told == "3,000 training images; 2 tasks of 2+1 classes; 2,000 exemplars"


def test_letters_that_an_encoding_lacks_have_stand_ins_and_bytes_of_a_name_stay() -> None:
    told = "12 – 3 ± 4 × 5… ä 猫 \udcff"
    assert told.encode("ascii", PLAINLY) == b"12 - 3 +- 4 x 5... ? ? \xff"
    assert told.encode("latin-1", PLAINLY) == "12 - 3 ± 4 × 5... ä ? ÿ".encode("latin-1")
    assert told.encode("utf-8", PLAINLY) == told.encode("utf-8", "surrogateescape")


def test_where_there_is_no_terminal_a_table_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["jioc run " * 30 + "icarl", "b" * 300], ["c", "d"]]
    title = "what all of these share, " * 30
    table(["alone", "run"], rows, title)
    first, *told = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in told]
    assert first == title and cells == [[], ["alone", "run"], cells[2], *rows, []]
