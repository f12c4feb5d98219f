"""Killed at any moment, a run goes on to the same result and the same weights, bit for bit."""

import importlib
import itertools
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.learning import new_run
from helpers.resuming import LONGER, begun, interrupted
from helpers.runs import collect_notes, outcome, stop_after
from helpers.trees import write_digits
from jioc.errors import Interrupted, Refused
from jioc.report.runs import group, read
from jioc.training.checkpoint import unpack
from jioc.training.run import run
from jioc.training.store import Store

KILLER = """
import json, os, signal, sys, time
from jioc.training.run import run

folder, settings = sys.argv[1], json.loads(sys.argv[2])
for seconds in sys.stdin:
    child = os.fork()  # of a process that has not trained, so that no thread of torch's holds a lock
    if child == 0:
        os._exit(0 if run(**settings, out=folder, resume=True) else 1)
    time.sleep(float(seconds))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    print("killed" if os.WIFSIGNALED(status) else "ended", flush=True)
"""


@pytest.mark.slow
def test_killed_ten_times_ends_as_if_left_alone(alone: Path, tmp_path: Path) -> None:
    often = tmp_path / "often"
    moments, kills = random.Random(0), 0
    words = [sys.executable, "-c", KILLER, str(often), json.dumps(LONGER)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killer:
        assert killer.stdin and killer.stdout
        while kills < 10:
            print(moments.uniform(0.02, 0.3), file=killer.stdin, flush=True)
            told = killer.stdout.readline()
            if told == "killed\n":
                kills += 1
            else:  # it had ended: judge it, and go on killing another
                assert told == "ended\n" and outcome(often) == outcome(alone)
                shutil.rmtree(often)
        killer.stdin.close()
    run(**LONGER, out=often, resume=True)
    assert outcome(often) == outcome(alone)


@pytest.mark.parametrize("steps", [1, 9, 24, 43])
def test_interrupted_within_an_epoch_ends_as_if_left_alone(steps: int, alone: Path, tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"
    with pytest.raises(Interrupted):
        run(**LONGER, out=stopped, stop=stop_after(steps))
    run(**LONGER, out=stopped, resume=True)
    assert outcome(stopped) == outcome(alone)


def test_a_result_names_every_commit_that_trained_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that finds all done is none of them."""
    out = tmp_path / "run"
    for commit, steps in (("abc", 1), ("abc", 24), ("def", 12), ("abc", 2)):
        monkeypatch.setenv("JIOC_COMMIT", commit)
        with pytest.raises(Interrupted):
            run(**LONGER, out=out, resume=True, stop=stop_after(steps))
    for commit in ("ghi", "jkl"):
        monkeypatch.setenv("JIOC_COMMIT", commit)
        assert run(**LONGER, out=out, resume=True)["commits"] == ["abc", "def", "ghi"]
    result = json.loads((out / "result.json").read_bytes())
    assert (result["commit"], result["commits"]) == ("ghi", ["abc", "def", "ghi"])


def test_a_run_goes_on_where_its_folder_of_images_went(
    tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_digits(tmp_path / "photos", "0123", 12)
    there = {
        **small,
        "method": "icarl",
        "task_sizes": (2, 2),
        "memory": 8,
        "backbone": "tiny",
        "first": {"epochs": 40},
    }
    begun(tmp_path / "run", there | {"data": str(tmp_path / "photos")})
    (tmp_path / "moved").mkdir()
    (tmp_path / "photos").rename(tmp_path / "moved" / "photos")
    monkeypatch.chdir(tmp_path / "moved")
    (tmp_path / "others").mkdir()
    write_digits(tmp_path / "others" / "photos", "0123", 13)
    with pytest.raises(Refused, match="not those this run began with"):
        run(**there | {"data": str(tmp_path / "others" / "photos")}, out=tmp_path / "run", resume=True)
    assert run(**there | {"data": "photos"}, out=tmp_path / "run", resume=True)["complete"]


@pytest.mark.parametrize(("here", "place"), [(".", "."), ("0", "..")])
def test_a_folder_without_a_name_is_recorded_by_the_one_it_has(
    here: str, place: str, tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = write_digits(tmp_path / "photos", "0123", 12)
    there = {**small, "data": place, "method": "icarl", "task_sizes": (2, 2), "memory": 8, "backbone": "tiny"}
    monkeypatch.chdir(photos / here)
    run(**there, out=tmp_path / "dot")
    run(**there | {"data": str(photos), "seed": 2}, out=tmp_path / "path")
    (one,) = group(read([tmp_path / "dot", tmp_path / "path"]))
    assert len(one.runs) == 2 and one.place.startswith("photos, ")
    assert f"\ndata: {photos}\n" in (tmp_path / "dot" / "config.yaml").read_text()
    assert run(**there, out=tmp_path / "dot", resume=True)["complete"]


def test_other_threads_than_it_began_with_are_told(
    tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path / "run", small | {"method": "icarl"})
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    notes: list[str] = []
    run(**small, method="icarl", out=tmp_path / "run", resume=True, callback=collect_notes(notes))
    assert any("began with 1 thread and goes on with 7" in text for text in notes)


def test_resume_where_nothing_is_starts_afresh(tmp_path: Path, small: dict[str, Any]) -> None:
    assert run(method="replay", **small, out=tmp_path / "new", resume=True)["complete"]


def test_a_run_killed_before_its_result_was_written_gets_it(tmp_path: Path, small: dict[str, Any]) -> None:
    run(method="replay", **small, out=tmp_path / "run")
    whole = (tmp_path / "run" / "result.json").read_bytes()
    (tmp_path / "run" / "result.json").unlink()
    run(method="replay", **small, out=tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "result.json").read_bytes() == whole


def test_a_run_killed_between_its_last_model_and_its_result_ends_with_both(
    tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(method="replay", **small, out=tmp_path / "alone")
    for name in ("jioc.training.model.save", "jioc.training.store.Store.result"):
        folder, calls = tmp_path / name, itertools.count(1)
        module, function = name.rsplit(".", 1)
        real = getattr(
            importlib.import_module("jioc.training.model") if module == "jioc.training.model" else Store,
            function,
        )

        def dies(*args: Any, calls: Any = calls, real: Any = real) -> None:
            if next(calls) == 3:
                raise KeyboardInterrupt
            real(*args)

        with monkeypatch.context() as patch:
            patch.setattr(name, dies)
            with pytest.raises(KeyboardInterrupt):
                run(method="replay", **small, out=folder)
        run(method="replay", **small, out=folder, resume=True)
        assert outcome(folder) == outcome(tmp_path / "alone")


def test_a_run_killed_before_it_had_begun_begins(tmp_path: Path, small: dict[str, Any]) -> None:
    folder = tmp_path / "run"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / ".lock").touch()
    (folder / ".config.yaml.1.partial").write_text("meth")
    assert run(method="replay", **small, out=folder, resume=True)["complete"]


def test_a_run_that_began_on_another_kind_of_device_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    newest, _ = interrupted(folder)
    with pytest.raises(Refused, match="began on a CUDA device"):
        new_run(**LONGER).restore(unpack(newest / "begin") | {"device": "cuda"})
