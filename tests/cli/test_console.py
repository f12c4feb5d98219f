"""What a person sees while a run goes on."""

import sys
from pathlib import Path
from typing import Any

import pytest

from jioc.cli.console import Console, scenario_line, table
from jioc.config import values as settings
from jioc.events import Epoch, Start
from jioc.resolve.derive import resolve


def test_the_progress_names_task_epoch_terms_speed_and_time_left(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    config = resolve(settings.make(method="icarl", **small))
    with Console(config, tmp_path) as console:
        console(Start([4, 3, 3], list("0123456789"), [9] * 10, device="cpu", precision="fp32", done=0))
        for epoch in (1, 2, 3):
            terms = {"cls": 0.5, "kd": 0.25}
            console(Epoch(1, "first", epoch, 4, 0.1, 36, terms, seconds=1.0, images_per_second=5120.4))
        (bar,) = console.tasks
        assert bar.description == "task 1/3"
        assert bar.fields["status"] == "epoch 3/4  cls 0.500  kd 0.250  5,120 images/s"
        assert (bar.completed, bar.total) == (3, 4 + 3 + 3)
        assert bar.time_remaining is not None


def test_one_is_told_as_one() -> None:
    config = settings.make(method="icarl", memory_per_class=1)
    assert scenario_line([1], [1], config) == "1 training image; 1 task of 1 class; 1 exemplar a class"
    told = scenario_line([2, 1], [1000, 1000, 1000], settings.make(method="icarl", memory=2000))
    assert told == "3,000 training images; 2 tasks of 2+1 classes; 2,000 exemplars"


def test_where_there_is_no_terminal_a_table_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["jioc run " * 30 + "icarl", "b" * 300], ["c", "d"]]
    title = "what all of these share, " * 30
    table(["alone", "run"], rows, title)
    first, *told = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in told]
    assert first == title and cells == [[], ["alone", "run"], cells[2], *rows, []]
