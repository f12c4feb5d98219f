"""Runs in the time of a borrowed GPU: which are left, in which order, and which are begun."""

import time
from pathlib import Path

import pytest

from helpers.grids import BOTH, job, recipe_file
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
    queue = [(1e6, long), (1e-3, first), (1e6, long), (1e-3, third)]
    worker = lease.Worker(queue, time.time() + 600, 1, 2, lambda: False)
    worker.work()
    assert not worker.failed
    assert [len(read(tmp_path / name / "result.json").tasks) for name in ("first", "third")] == [2, 2]
    assert not long.folder.exists() and not [*tmp_path.rglob("*.safetensors"), *tmp_path.rglob("checkpoint")]
    assert not lease.take(first) and lease.take(long)


def test_a_failed_run_is_counted_and_the_next_one_runs(tmp_path: Path) -> None:
    lease = script("lease")
    failing = job(tmp_path / "failing")
    failing.folder.write_text("in the way")
    queue = [(1e-3, failing), (1e-3, job(tmp_path / "fine"))]
    worker = lease.Worker(queue, time.time() + 600, 1, 1, lambda: False)
    worker.work()
    assert worker.failed == 1 and (tmp_path / "fine" / "result.json").exists()


def test_a_host_without_figures_by_class_is_run_again_on_the_long_tail(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lease = script("lease")
    names = {}
    for recipe in ("components", "components-long-tail"):
        assert lease.main([recipe, "--list"]) == 0
        names[recipe] = capsys.readouterr().out
    assert "der-none" in names["components-long-tail"] and "der-none" not in names["components"]


def test_other_data_are_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script("lease").main([recipe_file(tmp_path, **BOTH), "--list"]) == 2
    assert "for an estimate" in capsys.readouterr().err


def test_a_lease_needs_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("lease").main(["columns"]) == 2
    assert capsys.readouterr().err == "give --minutes and --data-dir, or --list\n"
