"""Tables, lines and names that fit, whatever the width."""

import re
import sys
import threading

import pytest

from helpers.results import made, read_out
from jioc.report.lines import task_line
from jioc.results import Result
from jioc.terminal import Bars, fitting, table
from jioc.text import middle_out, timed

HEADS = ["setting", "run", "n", *(f"CNN {i}" for i in range(8))]
ROWS = [
    [
        "long tail paper, 1,000 exemplars",
        "BiC, bias-loss pycil",
        "1",
        *(f"{i}5.1{i} ± 0.3{i}" for i in range(8)),
    ],
    ["", "iCaRL + JIOC, delta-scale mean1", "3", *(f"{i}7.8{i}" for i in range(8))],
]


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 100, 160, 300])
def test_a_table_fits_and_shortens_nothing(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("jioc.terminal.width", lambda stream: columns)
    table(HEADS, ROWS, text_columns=2)
    captured = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert max(map(len, captured.splitlines())) <= columns and "…" not in captured
    for row in ROWS:
        for figure in row[3:]:
            assert captured.count(figure) == 1
        words = [word.strip(",") for word in " ".join(row[:2]).split()]
        assert columns < 60 or all(word in captured for word in words)
    assert columns < 300 or captured.count("BiC") == 1  # one block


def test_a_task_line_tells_less_where_there_is_less_room_and_always_as_much() -> None:
    results = [made("foster", alls=alls, classes=100, tasks=5) for alls in ([97.0] * 5, [5.0] * 5)]
    for result in results:
        read_out(read_out(result, "boosted", 99.0), "compressed", 3.0)
    rows = [row for result in results for row in Result.model_validate(result).tasks]
    for columns in (40, 60, 72, 80, 100, 120, 160):
        lines = [task_line(row, 10, columns) for row in rows]
        assert max(map(len, lines)) <= columns
        assert len({re.sub(r" *[\d.–]+ *", "", line) for line in lines}) == 1, lines
    assert "nme" in task_line(rows[0], 10, 80) and "compressed" in task_line(rows[0], 10, 120)
    assert task_line(rows[0], 10).count("(old") == 4
    assert re.search(
        r"^task  1/10 +20 classes  nme .* cnn .* boosted", task_line(rows[0], 10, headline="nme")
    )
    assert task_line(rows[0], 10, 40, "boosted") == "task  1/10  boosted 99.00"


def test_a_name_loses_its_middle_and_not_its_seed() -> None:
    name = "cifar100-lt-resnet32-1000-bic-bias-loss-pycil-jioc-seed12"
    for most in range(16, 80):
        short = middle_out(name, most)
        assert len(short) <= most and short.endswith("-seed12") and short.startswith("cifar")
    assert middle_out(name, 57) == name


def test_what_has_room_is_told_the_first_parts_first() -> None:
    assert fitting(["epoch 3/4", "cls 0.5", "kd 0.25"], 18) == "epoch 3/4  cls 0.5"
    assert fitting(["epoch 3/4", "cls 0.5"], 17) == "epoch 3/4" and fitting(["epoch 3/4"], 3) == ""
    assert [timed(s) for s in (0.4, 119, 120, 7000, 9000)] == ["0 s", "119 s", "2 min", "117 min", "2.5 h"]


def test_threads_that_print_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its first and its last letter a line has the terminal for itself."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Bars() as bars:
        inside = []

        def other() -> None:
            bars.console.print("b")
            inside.append("b")

        with bars.console:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join(0.05)
            inside.append("a")
        thread.join()
    assert inside == ["a", "b"]
