"""`jioc grid`: each run as if alone; killed anywhere, it goes on; a failed run does not stop the others."""

import errno
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from helpers.command import refused
from helpers.grids import BASE, BOTH, no_room, recipe_file
from helpers.results import made
from helpers.runs import complete, events, figures, outcome
from helpers.trees import class_folders, write_digits
from jioc.cli import grid
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.errors import Interrupted
from jioc.grid.plan import plan
from jioc.resolve import recipes
from jioc.training.run import run
from jioc.training.store import locked


@pytest.mark.slow
def test_killed_half_way_a_grid_goes_on_and_ends_as_if_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", recipe_file(tmp_path, **BOTH), "--seeds", "1", "--epochs", "20", "--out"]  # long enough
    assert main([*words, str(tmp_path / "alone"), "--pack", "2"]) == 0
    killed = tmp_path / "killed"
    child = subprocess.Popen([sys.executable, "-m", "jioc", *words, str(killed)], stdout=subprocess.DEVNULL)
    while child.poll() is None and not (
        complete(killed) and list(killed.glob("jioc-seed1/checkpoint/*/now"))
    ):
        time.sleep(0.01)
    assert child.poll() is None, "the grid ended before it could be killed"
    child.kill()
    child.wait()
    before = {name: (killed / name / "result.json").stat().st_mtime_ns for name in complete(killed)}
    capsys.readouterr()
    assert main([*words, str(killed)]) == 0
    captured = capsys.readouterr().out
    assert (
        "2 runs" in captured
        and f"{len(before)} finished before" in captured
        and complete(killed) == ["jioc-seed1", "none-seed1"]
    )
    for name in complete(tmp_path / "alone"):
        assert outcome(killed / name) == outcome(tmp_path / "alone" / name)
    noted = [line["run"] for line in events(killed) if line["event"] == "finished"]
    assert len(set(noted)) == len(noted) and set(complete(killed)) - set(noted) <= set(
        before
    )  # killed before its note
    for name, written in before.items():
        assert (killed / name / "result.json").stat().st_mtime_ns == written
        assert f"{name}  finished" not in captured


def test_a_run_of_a_grid_is_the_run_alone_and_its_line_repeats_it(tmp_path: Path) -> None:
    assert (
        main(
            [
                "grid",
                recipe_file(tmp_path, **BOTH),
                "--seeds",
                "3",
                "--only",
                "jioc",
                "--out",
                str(tmp_path / "grid"),
            ]
        )
        == 0
    )
    kept = json.loads((tmp_path / "grid" / "jioc-seed3" / "result.json").read_bytes())
    alone = run(**BASE | {"coordination": {"coordinate": "jioc"}, "seed": 3})
    assert figures(kept) == figures(alone)
    words = kept["command"].split()
    assert words[:3] == ["jioc", "run", "icarl"]
    assert main([*words[1:], "--out", str(tmp_path / "line"), "--device", "cpu"]) == 0
    assert figures(json.loads((tmp_path / "line" / "result.json").read_bytes())) == figures(kept)


def test_other_images_under_the_same_name_are_not_taken_for_a_finished_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, digits in (("here", "0123"), ("there", "0124")):
        (tmp_path / place).mkdir()
        write_digits(tmp_path / place / "photos", digits, 12)
    small = {"task_sizes": [2, 2], "memory": 8, "backbone": "tiny"}
    recipe = recipe_file(tmp_path, base=BASE | small, matrix={"coordination.coordinate": ["none"]}, seeds=[1])
    words = ["grid", recipe, "--out", str(tmp_path / "out"), "--data"]
    monkeypatch.chdir(tmp_path / "here")
    absolute = str(tmp_path / "here" / "photos")
    assert main([*words, absolute]) == main([*words, "photos"]) == main([*words, "photos/"]) == 0
    capsys.readouterr()
    assert "photos' are not those of the run in" in refused(
        [*words, str(tmp_path / "there" / "photos")], capsys
    )
    monkeypatch.chdir(tmp_path / "there")
    assert "'photos' are not those of the run in" in refused([*words, "photos"], capsys)
    (tmp_path / "here" / "photos" / "0" / "3.png").unlink()
    assert "photos' are not those of the run in" in refused([*words, absolute, "--seeds", "1", "2"], capsys)


def test_a_failed_run_is_told_kept_and_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JIOC_DATA", raising=False)
    runs = {"bad": {"data": "cifar10", "data_dir": str(tmp_path), "task_sizes": None, "tasks": 5}, "good": {}}
    words = ["grid", recipe_file(tmp_path, runs=runs, seeds=[1]), "--out", str(tmp_path / "out")]
    assert "1 of 2 runs failed" in refused(words, capsys, status=1)
    assert complete(tmp_path / "out") == ["good-seed1"]
    kept = json.loads((tmp_path / "out" / "failures.json").read_text())
    assert list(kept) == ["bad-seed1"] and "cifar-10-batches-py" in kept["bad-seed1"]
    assert main([*words, "--only", "good"]) == 0 and (tmp_path / "out" / "failures.json").exists()


def test_a_full_disk_does_not_keep_a_grid_from_telling_its_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JIOC_DATA", raising=False)
    monkeypatch.setattr("jioc.files.os.fsync", no_room)
    monkeypatch.setattr("jioc.grid.plan.open", no_room, raising=False)
    bad = {"data": "cifar10", "data_dir": str(tmp_path), "task_sizes": None, "tasks": 5}
    assert main(["grid", recipe_file(tmp_path, runs={"bad": bad}), "--out", str(tmp_path / "out")]) == 1
    captured = capsys.readouterr()
    assert captured.err == "jioc: 2 of 2 runs failed; the same command tries them again\n"
    assert captured.out.count("\nfailed: bad-seed1 and 1 more: cifar10: ") == 1
    assert "failures.json' cannot be brought up to date: No space left on device\n" in captured.out


def test_a_finished_grid_on_a_read_only_disk_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def frozen(*given: Any, **more: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    words = [
        "grid",
        recipe_file(tmp_path, runs={"plain": {}}),
        "--seeds",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(words) == 0
    monkeypatch.setattr(Path, "unlink", frozen)
    monkeypatch.setattr(Path, "mkdir", frozen)
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("the run is finished\n")
    (tmp_path / "out" / "failures.json").write_text('{"plain-seed1": "out of memory"}')
    assert main(words) == 0
    assert "cannot be brought up to date: Read-only file system" in capsys.readouterr().out


def run_until(words: list[str], stop: Callable[[], bool]) -> int:
    """Run a grid to which that says when a signal has come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "signals", lambda: nullcontext(stop))
        return grid.main(words)


def test_an_interrupted_grid_says_so_and_begins_no_other_run(tmp_path: Path) -> None:
    asked = itertools.count()
    with pytest.raises(Interrupted, match="0 of 4 runs are finished"):
        run_until([recipe_file(tmp_path, **BOTH), "--out", str(tmp_path / "out")], lambda: next(asked) > 3)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["grid.jsonl", "none-seed1"]
    assert [line["event"] for line in events(tmp_path / "out")] == ["begins", "stopped"]


def test_a_grid_tells_the_notes_of_its_data_and_can_be_stopped_while_images_are_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = class_folders(tmp_path / "pictures", {"a": 6, "b": 6})
    (pictures / "a" / "broken.png").write_bytes(b"no image")
    few = BOTH | {"base": BASE | {"data": str(pictures), "task_sizes": [1, 1], "image_size": 8, "memory": 4}}
    words = [recipe_file(tmp_path, **few), "--seeds", "1", "--data-cache", str(tmp_path / "cache")]
    words += ["--out", str(tmp_path / "out")]
    asked = itertools.count()
    with pytest.raises(Interrupted, match="0 of 2 runs are finished"):
        run_until(words, lambda: next(asked) > 0)  # once before the run, then as the first image is decoded
    assert not (tmp_path / "out").exists() and not list((tmp_path / "cache").glob("*/about.json"))
    assert run_until(words, lambda: False) == 0
    assert capsys.readouterr().out.count("'a/broken.png'") == 1


def test_a_grid_leaves_before_its_time_limit_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", recipe_file(tmp_path, **BOTH), "--out", str(tmp_path / "out"), "--seeds", "1"]
    assert "0 of 2 runs are finished" in refused([*words, "--time-limit", "0.001"], capsys, status=75)
    assert main([*words, "--time-limit", "1h"]) == 0 and len(complete(tmp_path / "out")) == 2


def test_a_grid_stops_after_some_tasks_and_goes_on_to_the_same_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", recipe_file(tmp_path, **BOTH), "--seeds", "1", "--pack", "2", "--out"]
    stopped, alone = tmp_path / "stopped", tmp_path / "alone"
    assert main([*words, str(stopped), "--stop-after", "2"]) == 0
    told = capsys.readouterr().out
    assert len(re.findall(r"stopped: cnn average \d+\.\d\d, last", told)) == 2
    assert "2 runs stopped as --stop-after asks, 0 finished" in told
    written = {path: path.stat().st_mtime_ns for path in stopped.rglob("*") if path.is_file()}
    for tasks in ("1", "2"):  # they have learnt as much, so nothing is begun
        assert main([*words, str(stopped), "--stop-after", tasks]) == 0
        assert "2 runs stopped as --stop-after asks" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in stopped.rglob("*") if path.is_file()} == written
    (stopped / "jioc-seed1" / "result.json").unlink()  # as if killed between checkpoint and result
    assert main([*words, str(stopped), "--stop-after", "2"]) == 0
    assert len(json.loads((stopped / "jioc-seed1" / "result.json").read_bytes())["tasks"]) == 2
    assert main([*words, str(stopped), "--stop-after", "3"]) == 0 and main([*words, str(alone)]) == 0
    assert capsys.readouterr().out.count("all 2 runs are finished") == 2
    for name in complete(alone):
        assert outcome(stopped / name) == outcome(alone / name)


def test_beside_a_run_that_stops_where_it_should_a_failure_is_one_until_it_gets_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fails = recipe_file(tmp_path, runs={"a": {}, "b": {"first.lr": 0.1, "later.lr": 1e30}})
    words = ["grid", fails, "--seeds", "1", "--stop-after", "1", "--out", str(tmp_path / "out")]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "failures.json").write_text('{"a-seed1": "an earlier failure"}')
    assert main(words) == 0 and not (tmp_path / "out" / "failures.json").exists()
    words[5] = "2"
    assert "1 of 2 runs failed" in refused(words, capsys, status=1)
    assert list(json.loads((tmp_path / "out" / "failures.json").read_bytes())) == ["b-seed1"]


@pytest.mark.parametrize(
    "more", [["--stop-after", "0"], ["--stop-after", "two"], ["--stop-after", "2", "--on", "ray"]]
)
def test_where_to_stop_is_a_number_of_tasks_of_runs_here(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", recipe_file(tmp_path, **BOTH), "--out", str(tmp_path / "out"), *more]
    assert "--stop-after" in refused(words, capsys) and not (tmp_path / "out").exists()


def test_dry_run_lists_and_touches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grid", recipe_file(tmp_path, **BOTH), "--dry-run", "--out", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr().out
    assert (
        captured.count("not begun") == 4
        and "--coordinate jioc --seed 2" in captured
        and not (tmp_path / "out").exists()
    )
    assert re.search(r"\n4 runs to go: about \d+ s one after another here, by a few steps\n$", captured)


def test_what_cannot_be_timed_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JIOC_DATA", raising=False)
    words = ["grid", "table6", "--dry-run", "--data-dir", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    captured = capsys.readouterr().out.splitlines()
    assert (
        captured[-1].startswith("how long they take cannot be told: ") and "cifar-100-python" in captured[-1]
    )
    few = {"data": str(class_folders(tmp_path / "pictures", {"a": 6, "b": 6})), "task_sizes": [1, 1]}
    few |= {"image_size": 8, "backbone": "tiny", "memory": 4}
    cache = tmp_path / "cache"
    words = ["grid", recipe_file(tmp_path, base=BASE | few, runs={"a": {}}), "--data-cache", str(cache)]
    for there in (False, True):
        if there:
            cache.mkdir()
        assert main([*words, "--dry-run"]) == 0
        assert "their images are not decoded yet" in capsys.readouterr().out
        assert not (list(cache.glob("*/about.json")) if there else cache.exists())
    assert main([*words, "--out", str(tmp_path / "out"), "--seeds", "1"]) == 0
    assert main([*words, "--out", str(tmp_path / "out"), "--dry-run"]) == 0
    assert "1 run to go: about " in capsys.readouterr().out


@pytest.mark.parametrize(("recipe", "beside"), [("table6", True), ("study", False)])
def test_a_finished_grid_speaks_of_the_paper_where_the_paper_has_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recipe: str, beside: bool
) -> None:
    wanted = recipes.find_recipe(recipe)
    for job in plan(wanted, (1,), ["*jioc"], wanted.scale, lambda spec: {}, tmp_path):
        job.folder.mkdir()
        ran = made(classes=100, tasks=10) | {"config": settings.plain(job.config)}
        (job.folder / "result.json").write_text(json.dumps(ran))
    assert main(["grid", recipe, "--only", "*jioc", "--seeds", "1", "--out", str(tmp_path)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("the run is finished") and ("--paper" in last) == beside


def test_a_damaged_result_is_left_out_of_the_table_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", recipe_file(tmp_path, **BOTH), "--seeds", "1", "--out", str(tmp_path)]
    recipe = recipes.find_recipe(words[1])
    for job in plan(recipe, (1,), None, 1.0, lambda spec: {}, tmp_path):
        job.folder.mkdir()
        ran = made(classes=10, tasks=2) | {"config": settings.plain(job.config)}
        if job.name == "none-seed1":
            ran |= {"data": [], "tasks": 3}
        (job.folder / "result.json").write_text(json.dumps(ran))
    assert main([*words, "--dry-run"]) == 0
    assert main(words) == 0
    captured = capsys.readouterr().out
    assert (
        "note: left out: " in captured and "none-seed1/result.json" in captured and "iCaRL + JIOC" in captured
    )


def test_a_matrix_of_too_many_runs_is_refused_before_it_is_expanded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    axes = dict.fromkeys(("memory", "order_seed", "batch_size", "data_seed", "init_seed"), [*range(100, 130)])
    answer = refused(["grid", recipe_file(tmp_path, matrix=axes), "--dry-run"], capsys)
    assert "these are 24,300,000 runs, and a grid has at most 10,000" in answer
    seeds = [str(seed) for seed in range(101)]
    words = ["grid", recipe_file(tmp_path, matrix={"memory": [*range(10, 110)]}), "--seeds", *seeds]
    assert "these are 10,100 runs" in refused([*words, "--dry-run"], capsys)


def test_a_signal_ends_a_grid_that_is_still_being_planned(tmp_path: Path) -> None:
    own = tmp_path / "own.py"  # planning reads it, and a signal comes meanwhile
    own.write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)\n")
    recipe = recipe_file(tmp_path, runs={"own": {"method": str(own)}})
    command = [sys.executable, "-m", "jioc", "grid", recipe, "--dry-run"]
    assert subprocess.run(command, timeout=30, check=False).returncode == -signal.SIGTERM


def test_wrong_words_are_refused_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "out")]
    good = recipe_file(tmp_path, **BOTH)
    assert "did you mean 'table6'?" in refused(["grid", "tabel6", *out], capsys)
    assert "did you mean '--seeds'?" in refused(["grid", good, *out, "--seed", "1", "--sees", "2"], capsys)
    assert "takes --seeds" in refused(["grid", good, *out, "--seed", "1"], capsys)
    assert "whole numbers" in refused(["grid", good, *out, "--seeds", "one"], capsys)
    assert "no run's name holds 'oc-x'" in refused(["grid", good, *out, "--only", "oc-x"], capsys)
    assert "at least 1" in refused(["grid", good, *out, "--pack", "0"], capsys)
    assert "at most 16" in refused(["grid", good, *out, "--pack", "17"], capsys)
    assert "above 0" in refused(["grid", good, *out, "--scale", "-1"], capsys)
    assert "--memory" in refused(["grid", good, *out, "--memory", "lots"], capsys)
    assert "did you mean 'slurm'?" in refused(["grid", good, *out, "--on", "slrum"], capsys)
    assert "is for ray" in refused(["grid", good, *out, "--address", "auto"], capsys)
    assert "is for local" in refused(["grid", good, *out, "--on", "ray", "--pack", "2"], capsys)
    assert "as its first word" in refused(["grid", *out], capsys)
    for content, told in [
        ({"rums": {}}, "unknown setting 'rums'"),
        ({}, "neither runs nor a matrix"),
        (BOTH | {"seeds": []}, "nothing to run"),
        ({"matrix": {"memory": []}}, "memory has no values in the matrix"),
        ({"runs": {"a/b": {}}}, "cannot name a folder"),
        ({"runs": {"a": {"method": "icalr"}}}, "'icarl'?"),
        ({"runs": {"a": {"memry": 3}}}, "unknown setting 'memry'"),
        ({"base": {}, "runs": {"a": {}}}, "has no method"),
    ]:
        place = recipe_file(tmp_path, **content)
        said = refused(["grid", place, *out], capsys)
        assert told in said and (place in said or told == "nothing to run")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_another_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "grid",
        recipe_file(tmp_path, **BOTH),
        "--out",
        str(tmp_path / "out"),
        "--only",
        "none",
        "--seeds",
        "1",
    ]
    assert main(words) == 0
    before = (tmp_path / "out" / "none-seed1" / "result.json").read_bytes()
    capsys.readouterr()
    assert "holds another run: memory differ" in refused([*words, "--memory", "50"], capsys)
    assert main([*words, "--checkpoint-every", "9"]) == 0  # the machine's settings may differ
    assert (tmp_path / "out" / "none-seed1" / "result.json").read_bytes() == before


@pytest.mark.parametrize(("place", "extra"), [("ray", "ray"), ("slurm", "submitit")])
def test_without_its_extra_a_launcher_says_what_to_install(
    place: str,
    extra: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    told = refused(
        ["grid", recipe_file(tmp_path, **BOTH), "--on", place, "--out", str(tmp_path / "out")], capsys
    )
    assert f"pip install 'jioc[{place}]'" in told and not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_a_run_that_another_grid_is_at_is_waited_for(
    ends: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ends`: the other has finished it; otherwise it was stopped, and this one goes on."""
    short = {"task_sizes": [5, 5], "first": {"epochs": 1}, "later": {"epochs": 1}}
    words = ["grid", recipe_file(tmp_path, runs={"a": short, "b": short}), "--seeds", "1", "--out"]
    alone, both = tmp_path / "alone", tmp_path / "both"
    assert main([*words, str(alone)]) == 0
    (both / "a-seed1").mkdir(parents=True)
    lock = locked(both / "a-seed1")

    def other() -> None:
        while "b-seed1" not in complete(both):
            time.sleep(0.05)
        if ends:
            shutil.copytree(alone / "a-seed1", both / "a-seed1", dirs_exist_ok=True)
        lock.close()

    thread = threading.Thread(target=other)
    thread.start()
    capsys.readouterr()
    assert main([*words, str(both)]) == 0
    thread.join()
    captured = capsys.readouterr().out
    assert "a-seed1  note: another process is at work on it, and is waited for" in captured
    assert "failed" not in captured and "all 2 runs are finished" in captured
    begun = [line["run"] for line in events(both) if line["event"] == "begins"]
    assert ("a-seed1" in begun) is not ends
    assert outcome(both / "a-seed1") == outcome(alone / "a-seed1")
