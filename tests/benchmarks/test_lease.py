"""Runs in the time of a borrowed GPU: which are left, in which order, and which are begun."""

import time
from pathlib import Path

import pytest

from helpers.grids import job
from helpers.scripts import script
from jioc.results import read


def test_the_queue_of_the_columns_is_what_the_estimate_says_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lease = script("lease")
    assert lease.main(["columns", "--list"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    costs = [float(line.split()[0]) for line in lines]
    assert costs == sorted(costs, reverse=True)
    table = lease.minutes.cifar().splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")] for line in table]
    assert int(cells[-1][5]) == round(float(last.split()[0]))
    assert len(lines) == sum(int(row[4]) for row in cells[:-1]) == int(last.split()[-1])


def test_no_run_begins_that_would_not_end_and_only_results_stay(tmp_path: Path) -> None:
    lease = script("lease")
    first, long, third = (job(tmp_path / name, later={"epochs": 1}) for name in ("first", "long", "third"))
    worker = lease.Worker([(1.0, first), (1e6, long), (1.0, third)], time.time() + 600, 2, lambda: False)
    worker.work()
    assert [len(read(tmp_path / name / "result.json").tasks) for name in ("first", "third")] == [2, 2]
    assert not long.folder.exists() and not [*tmp_path.rglob("*.safetensors"), *tmp_path.rglob("checkpoint")]
    assert not lease.take(first) and lease.take(long)


def test_a_lease_needs_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("lease").main(["columns"]) == 2
    assert capsys.readouterr().err == "give --minutes and --data-dir, or --list\n"
