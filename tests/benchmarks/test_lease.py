"""Runs in the time of a borrowed GPU: which are left, in which order, and which are begun."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from helpers.grids import BOTH, job, recipe_file
from helpers.paths import ROOT
from helpers.scripts import script
from jioc import results
from jioc.grid.local import stop_after
from jioc.grid.progress import LearntEnough
from jioc.stopping import Stop
from jioc.training.run import run


def test_the_queue_of_a_seed_of_the_columns_takes_as_long_as_the_page_says(tmp_path: Path) -> None:
    lease = script("lease")
    lines = lease.left("columns", None, [4], None)
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")  # current: test_tables.py
    table = page.split("<!-- python benchmarks/minutes.py -->\n\n")[1].split("\n\n")[0].splitlines()[2:12]
    assert len(lines) == 100
    told = sum(float(line.split("|")[3]) for line in table)
    assert sum(float(line.split()[0]) for line in lines) == pytest.approx(told, abs=0.5 * len(table))
    (tmp_path / "queue").write_text("\n".join(lines))
    queue = lease.read(tmp_path / "queue", None, "data", tmp_path)
    assert sorted(e.job.name for e in queue) == sorted(line.split()[2] for line in lines)
    assert [e.minutes for e in queue] == sorted((e.minutes for e in queue), reverse=True)


@pytest.fixture
def lease(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, with an estimate that serves the small runs of the tests."""
    module = script("lease")
    monkeypatch.setattr(module.minutes, "minutes", lambda config, tasks: 0.001 * tasks)
    return module


def test_no_run_begins_that_would_not_end_and_only_results_stay(lease: Any, tmp_path: Path) -> None:
    first, long, third = (job(tmp_path / name, later={"epochs": 1}) for name in ("first", "long", "third"))
    queue = [lease.Entry(n, one, 3) for n, one in [(1e6, long), (1e-3, first), (1e-3, third)]]
    worker = lease.Worker(queue, time.time(), time.time() + 600, Stop())
    worker.work()
    assert not worker.failed
    for name in ("first", "third"):
        assert results.read(tmp_path / name / "result.json").complete
    assert not long.folder.exists() and not [*tmp_path.rglob("*.safetensors"), *tmp_path.rglob("checkpoint")]
    assert lease.rest(queue[0]) is None and [lease.rest(entry)[0] for entry in queue[1:]] == [0, 0]
    assert queue[1].learnt and not queue[0].learnt


def test_a_run_is_taken_once_and_begins_only_if_all_at_work_end_in_time(lease: Any, tmp_path: Path) -> None:
    queue = [lease.Entry(4.0, job(tmp_path / name), 2) for name in "abc"]
    now = time.time()
    here, there = (lease.Worker(queue, now, now + 60 * 15, Stop()) for _ in range(2))
    assert (here.take(), there.take()) == (queue[0], queue[1])  # 13 minutes
    assert here.take() is None  # with the third 17
    lease.note(queue[0], 1.0, 4.0)
    lease.note(queue[1], 1.0, 4.0)
    assert there.take() is queue[2]


def test_what_an_earlier_lease_has_done_makes_this_one_no_quicker(lease: Any, tmp_path: Path) -> None:
    queue = [lease.Entry(10.0, job(tmp_path / "a"), 2), lease.Entry(20.0, job(tmp_path / "b"), 2)]
    now = time.time()
    worker = lease.Worker(queue, now - 60, now + 60 * 16, Stop())
    lease.note(queue[0], 2.0, 10.0)
    assert worker.fits(queue[1])
    lease.note(queue[0], 2.0, 2.0)
    assert not worker.fits(queue[1])


def test_after_a_long_run_a_short_one_begins_if_it_fits(lease: Any, tmp_path: Path) -> None:
    """A run is no step: that the last one took most of the time says nothing of the next."""
    queue = [lease.Entry(1e-3, job(tmp_path / name, later={"epochs": 1}), 3) for name in "ab"]
    stop = Stop(600.0)
    worker = lease.Worker(queue, time.time(), time.time() + 540, stop)
    run = worker.run

    def slow(entry: Any) -> None:
        run(entry)
        here = threading.get_ident()
        if here in stop.called:  # as if the run had taken nine minutes
            stop.called[here] -= 540

    worker.run = slow
    worker.work()
    assert all(entry.learnt for entry in queue)


def test_after_a_signal_no_run_begins(lease: Any, tmp_path: Path) -> None:
    queue, stop = [lease.Entry(1e-3, job(tmp_path / "a"), 3)], Stop()
    stop.signal = signal.SIGTERM
    lease.Worker(queue, time.time(), time.time() + 60, stop).work()
    assert not [*tmp_path.iterdir()]


def test_what_has_begun_comes_first_and_then_the_longest(lease: Any, tmp_path: Path) -> None:
    recipe, queue = recipe_file(tmp_path, runs={name: {} for name in "abc"}), tmp_path / "queue"
    queue.write_text(
        f"1.00  {recipe}  a-seed1  3\n3.00  {recipe}  b-seed1  3\n5.00  {recipe}  c-seed1  3\n",
        encoding="utf-8",
    )

    def jobs() -> list[Any]:
        return [entry.job for entry in lease.read(queue, None, "data", tmp_path / "runs")]

    c, b, a = jobs()
    assert [each.name for each in (a, b, c)] == ["a-seed1", "b-seed1", "c-seed1"]
    with pytest.raises(LearntEnough):
        run(a.config, out=a.folder, callback=stop_after(1, lambda job: lambda event: None)(a))
    assert jobs() == [a, c, b]


def test_nobody_waits_for_a_run_whose_process_has_died(lease: Any, tmp_path: Path) -> None:
    queue = [lease.Entry(4.0, job(tmp_path / name), 2) for name in "ab"]
    died = subprocess.Popen([sys.executable, "-c", ""])
    died.wait()
    lease.note(queue[0], 4.0, 4.0)
    worker = lease.Worker(queue, time.time(), time.time() + 60, Stop())
    assert worker.may_fit_later()
    lease.taken(queue[0]).write_text(f"4.0 4.0 {died.pid}\n")
    assert lease.rest(queue[0]) is None and not worker.may_fit_later()


def test_a_process_that_has_died_is_known_while_another_lives(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is asked for, it stays in the list of processes, as if it were alive."""
    codes = [
        "import sys, time; open(sys.argv[-1], 'w').write(str(__import__('os').getpid()))",
        "import os, sys, time\npath = sys.argv[-1]\nwhile not os.path.exists(path): time.sleep(0.05)\n"
        "pid = int(open(path).read() or 0)\n"
        "while os.path.exists(f'/proc/{pid}'): time.sleep(0.05)",
    ]
    commands = iter(codes[::-1])
    start, path = subprocess.Popen, str(tmp_path / "pid")

    def popen(command: list[str], **more: Any) -> Any:
        return start([sys.executable, "-c", next(commands), path])

    monkeypatch.setattr(lease.subprocess, "Popen", popen)
    lease.run_processes([], 2, tmp_path, (0.0, 0.0))  # the first ends once the second has gone


def test_an_error_in_a_thread_of_a_lease_is_its_error(lease: Any, tmp_path: Path) -> None:
    entry = lease.Entry(1e-3, job(tmp_path / "a"), 1)
    tmp_path.joinpath("a.taken").mkdir()  # so that nothing can be noted
    with pytest.raises(OSError):
        lease.work_until([entry], 1, time.time(), time.time() + 60)


def test_nobody_waits_for_a_run_that_ended_in_an_error(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path) -> None:
        raise OSError("No space left on device")

    queue = [lease.Entry(1e-3, job(tmp_path / name, later={"epochs": 1}), 3) for name in "ab"]
    monkeypatch.setattr(lease, "tidy", full)
    worker = lease.Worker(queue, time.time(), time.time() + 600, Stop())
    with pytest.raises(OSError):
        worker.run(queue[0])
    assert lease.rest(queue[0]) is None and not worker.may_fit_later()


def test_runs_that_share_a_gpu_end_later_and_few_do_not_fill_it() -> None:
    until_all_end = script("lease").until_all_end
    assert until_all_end([1.0] * 10) == pytest.approx(10.0)
    assert until_all_end([1.0]) == pytest.approx(2.0)
    assert until_all_end([1.0] * 9 + [2.0]) == pytest.approx(10.0 + 2.0)  # the last minute of work alone
    assert until_all_end([2.0, 1.0]) == until_all_end([1.0, 2.0])


def test_what_is_left_falls_as_a_run_trains(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "EVERY", 0.0)
    entry, left = lease.Entry(5.0, job(tmp_path / "a"), 2), []
    noted = lease.note
    monkeypatch.setattr(
        lease, "note", lambda one, now, at_first: (left.append(now), noted(one, now, at_first))
    )
    lease.Worker([entry], time.time(), time.time() + 1e5, Stop()).work()
    assert left == sorted(left, reverse=True) and left[0] == 5.0 and left[-1] == 0.0
    assert 2.5 in [round(each, 6) for each in left]  # after the first of two tasks


def test_a_failed_run_is_counted_and_the_next_one_runs(lease: Any, tmp_path: Path) -> None:
    failing, fine = job(tmp_path / "failing"), job(tmp_path / "fine")
    failing.folder.write_text("in the way")
    queue = [lease.Entry(1e-3, one, 1) for one in (failing, fine)]
    worker = lease.Worker(queue, time.time(), time.time() + 600, Stop())
    worker.work()
    assert worker.failed == 1 and (fine.folder / "result.json").exists()
    assert lease.rest(queue[0]) is None and lease.rest(queue[1])[0] == 0


def test_what_failed_has_done_no_work(lease: Any, tmp_path: Path) -> None:
    """Else the pace would seem high, and a run would begin that could not end."""
    failing = job(tmp_path / "failing")
    failing.folder.write_text("in the way")
    queue = [lease.Entry(10.0, failing, 1), lease.Entry(20.0, job(tmp_path / "long"), 2)]
    now = time.time()
    worker = lease.Worker(queue, now - 60, now + 60 * 24, Stop())  # alone it takes 40 minutes
    assert not worker.fits(queue[1])
    worker.run(queue[0])
    assert not worker.fits(queue[1])


def test_a_look_at_the_first_tasks_can_be_finished_later(lease: Any, tmp_path: Path) -> None:
    one, end = job(tmp_path / "a", later={"epochs": 1}), time.time() + 600
    for tasks in (1, 3):
        entry = lease.Entry(1e-3, one, tasks)
        lease.Worker([entry], time.time(), end, Stop()).work()
        lease.taken(entry).unlink()
    assert results.read(one.folder / "result.json").complete
    assert not (one.folder / "checkpoint").exists()


def test_a_run_that_does_not_fit_waits_for_those_at_work(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = [lease.Entry(4.0, job(tmp_path / name), 2) for name in "ab"]
    now = time.time()
    here, there = (lease.Worker(queue, now, now + 60 * 9, Stop()) for _ in range(2))
    assert here.take() is queue[0] and there.take() is None and there.may_fit_later()
    monkeypatch.setattr(lease.time, "sleep", lambda seconds: lease.note(queue[0], 0.0, 4.0))
    ran: list[Any] = []
    monkeypatch.setattr(
        lease.Worker, "run", lambda self, entry: (ran.append(entry), lease.note(entry, 0.0, 4.0))
    )
    there.work()
    assert ran == [queue[1]] and not there.may_fit_later()


def test_a_host_without_figures_by_class_is_run_again_on_the_long_tail() -> None:
    lease = script("lease")
    balanced, tail = (
        "\n".join(lease.left(recipe, None, None, 6)) for recipe in ("components", "components-long-tail")
    )
    assert "icarl-none" in tail and "icarl-none" not in balanced
    (line,) = lease.left("components", ["icarl-none"], None, 6, again=True)
    assert "icarl-none" in line
    assert all(line.endswith("-seed1  6") for line in tail.splitlines())


def test_what_cannot_be_run_is_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lease = script("lease")
    assert lease.main(["list", recipe_file(tmp_path, **BOTH)]) == 2
    assert "for an estimate" in capsys.readouterr().err
    where = ["--minutes", "1", "--data-dir", "data", "--out", str(tmp_path / "runs")]
    (tmp_path / "queue").write_text("columns\n")
    (tmp_path / "twice").write_text("  1.00  columns  cifar100-resnet32-1000-der-none-seed1\n" * 2)
    reasons = {"queue": "'columns' is no line of `list`", "missing": "No such file", "twice": "seed1 twice"}
    for path, why in reasons.items():
        assert lease.main(["run", str(tmp_path / path), *where]) == 2
        assert why in capsys.readouterr().err
