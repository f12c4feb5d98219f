"""Runs in the time of a borrowed GPU: which are left, in which order, and which are begun."""

import time
from pathlib import Path

import pytest

from helpers.grids import BOTH, job, recipe_file
from helpers.paths import ROOT
from helpers.scripts import script
from jioc import results


def test_the_queue_of_the_columns_is_what_the_estimate_says_is_left(tmp_path: Path) -> None:
    lease = script("lease")
    lines = lease.left("columns", None, None, None)
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")  # current: test_tables.py
    table = page.split("<!-- python benchmarks/minutes.py -->\n\n")[1].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")] for line in table]
    assert len(lines) == sum(int(row[4]) for row in cells[:-1])
    assert int(cells[-1][5]) == round(sum(float(line.split()[0]) for line in lines))
    (tmp_path / "queue").write_text("\n".join(lines))
    queue = lease.read(tmp_path / "queue", None, "data", tmp_path)
    assert sorted(e.job.name for e in queue) == sorted(line.split()[2] for line in lines)
    assert [e.minutes for e in queue] == sorted((e.minutes for e in queue), reverse=True)


def test_no_run_begins_that_would_not_end_and_only_results_stay(tmp_path: Path) -> None:
    lease = script("lease")
    first, long, third = (job(tmp_path / name, later={"epochs": 1}) for name in ("first", "long", "third"))
    queue = [lease.Entry(n, one, 2) for n, one in [(1e6, long), (1e-3, first), (1e6, long), (1e-3, third)]]
    worker = lease.Worker(queue, time.monotonic() + 600, 1, lambda: False)
    worker.work()
    assert not worker.failed
    for name in ("first", "third"):
        assert len(results.read(tmp_path / name / "result.json").tasks) == 2
    assert not long.folder.exists() and not [*tmp_path.rglob("*.safetensors"), *tmp_path.rglob("checkpoint")]
    assert not lease.take(first) and lease.take(long)
    assert queue[1].learnt and not queue[0].learnt


def test_a_failed_run_is_counted_and_the_next_one_runs(tmp_path: Path) -> None:
    lease = script("lease")
    failing, fine = job(tmp_path / "failing"), job(tmp_path / "fine")
    failing.folder.write_text("in the way")
    worker = lease.Worker(
        [lease.Entry(1e-3, one, 1) for one in (failing, fine)], time.monotonic() + 600, 1, bool
    )
    worker.work()
    assert worker.failed == 1 and (fine.folder / "result.json").exists()


def test_a_host_without_figures_by_class_is_run_again_on_the_long_tail() -> None:
    lease = script("lease")
    balanced, tail = (
        "\n".join(lease.left(recipe, None, None, 6)) for recipe in ("components", "components-long-tail")
    )
    assert "der-none" in tail and "der-none" not in balanced
    assert all(line.endswith("-seed1  6") for line in tail.splitlines())


def test_what_cannot_be_run_is_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lease = script("lease")
    assert lease.main(["list", recipe_file(tmp_path, **BOTH)]) == 2
    assert "for an estimate" in capsys.readouterr().err
    where = ["--minutes", "1", "--data-dir", "data", "--out", str(tmp_path / "runs")]
    (tmp_path / "queue").write_text("columns\n")
    for path, why in (("queue", "'columns' is no line of `list`"), ("missing", "No such file")):
        assert lease.main(["run", str(tmp_path / path), *where]) == 2
        assert why in capsys.readouterr().err
