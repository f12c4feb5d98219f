"""What a person sees while a run goes on."""

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from helpers.results import made
from helpers.screen import show
from jioc.cli.console import Console, scenario_line
from jioc.cli.learn import LearnConsole
from jioc.config import values as settings
from jioc.events import Epoch, Start, Training
from jioc.resolve.derive import resolve
from jioc.results import Result
from jioc.terminal import table


def test_the_progress_names_task_epoch_terms_speed_and_time_left(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    config = resolve(settings.make(method="icarl", **small))
    with Console(config, tmp_path) as console:
        console(
            Start([4, 3, 3], list("0123456789"), [9] * 10, memory=60, device="cpu", precision="fp32", done=0)
        )
        for epoch in (1, 2, 3):
            terms = {"cls": 0.5, "kd": 0.25}
            console(Epoch(1, "first", epoch, 4, 0.1, 36, terms, seconds=1.0, images_per_second=5120.4))
        (bar,) = console.tasks
        assert bar.description == "task 1/3"
        assert bar.fields["parts"] == ["epoch 3/4", "5,120 images/s", "cls 0.500", "kd 0.250"]
        later = 3 * (27 + 36) + 3 * (27 + 56)  # all that is kept of four classes; 60 // 7 of seven
        assert (bar.completed, bar.total) == (3 * 36, 4 * 36 + later)
        console(Training(1, "first", 4, 4, done=18, total=36))
        assert bar.completed == 3 * 36 + 18 and bar.time_remaining is not None


def test_a_file_gets_lines_within_an_epoch_and_the_next_steps(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("jioc.cli.console.PLAIN_EVERY", 0.0)
    config = resolve(settings.make(method="icarl", **small))
    with Console(config, Path("a folder")) as console:
        console(
            Start([4, 3, 3], list("0123456789"), [9] * 10, memory=60, device="cpu", precision="fp32", done=0)
        )
        for done in (9, 18, 27):
            time.sleep(0.002)
            console(Training(1, "first", 1, 4, done, total=36))
        console.finish(Result.model_validate(made()))
    captured = capsys.readouterr().out.splitlines()
    lines = [line for line in captured if line.startswith("task  1/3  epoch 1/4")]
    assert len(lines) == 3 and re.search(r" [\d,]+ images/s  \d+ %, \d+ s left$", lines[-1])
    assert captured[-2:] == ["next: jioc report 'a folder'", "      jioc predict 'a folder' IMAGE"]


def test_lines_go_to_the_file_and_bars_to_the_terminal(tmp_path: Path) -> None:
    code = "from jioc.terminal import Bars\n"
    code += "with Bars() as bars: bars.add_task('x', total=1); print('a line')"
    out = tmp_path / "out"
    seen = show(["-c", f"import sys; sys.stdout = open({str(out)!r}, 'w')\n{code}"], 80)
    assert out.read_text() == "a line\n" and "a line" not in seen.text and seen.bars()


def test_one_is_told_as_one() -> None:
    config = settings.make(method="icarl", memory_per_class=1)
    assert scenario_line([1], [1], config) == "1 training image; 1 task of 1 class; 1 exemplar a class"
    told = scenario_line([2, 1], [1000, 1000, 1000], settings.make(method="icarl", memory=2000))
    assert told == "3,000 training images; 2 tasks of 2+1 classes; 2,000 exemplars"


def test_where_there_is_no_terminal_a_table_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["jioc run " * 30 + "icarl", "b" * 300], ["c", "d"]]
    title = "what all of these share, " * 30
    table(["alone", "run"], rows, title)
    first, *captured = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in captured]
    assert first == title and cells == [[], ["alone", "run"], cells[2], *rows, []]


@pytest.mark.parametrize(
    ("method", "kept", "line"),
    [
        ("icarl", 30, "30 exemplars of 6 classes; images of new ones: g (9), h (9)"),
        ("simplecil", 0, "6 classes known; images of new ones: g (9), h (9)"),
        ("simplecil", 6, "6 classes known, 6 more images of them; images of new ones: g (9), h (9)"),
    ],
)
def test_learning_begins_with_what_is_known_and_what_is_new(
    method: str, kept: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = [kept // 6] * 6 + [9, 9]
    with LearnConsole(resolve(settings.make(method=method, data="digits")), Path("a folder")) as console:
        console(Start([6, 2], list("abcdefgh"), counts, memory=0, device="cpu", precision="fp32", done=1))
    assert line in capsys.readouterr().out
