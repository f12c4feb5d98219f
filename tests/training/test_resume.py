"""Killed at any moment, a run goes on to the same result and the same weights, bit for bit."""

import errno
import importlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError

from helpers.runs import outcome
from helpers.trees import write_digits
from jioc.config import values as settings
from jioc.data import dataset
from jioc.data.loader import TaskData
from jioc.errors import Failed, Interrupted, Refused
from jioc.memory import class_means
from jioc.methods.foster import FOSTER
from jioc.report.runs import group, read
from jioc.resolve.derive import resolve
from jioc.training.checkpoint import pack, unpack, verified
from jioc.training.model import load
from jioc.training.run import run
from jioc.training.runner import Run
from jioc.training.store import Store
from jioc.types import Task

LONGER: dict[str, Any] = {
    "method": "icarl",
    "memory": 40,
    "long_tail": 5,
    "task_sizes": (3, 3, 2, 2),
    "later": {"epochs": 12},
    "coordination": {"coordinate": "jioc"},
    "checkpoint_every": 0,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the longer run, left alone."""
    folder = tmp_path_factory.mktemp("runs") / "alone"
    run(**LONGER, out=folder)
    return folder


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


@pytest.mark.parametrize("steps", [1, 9, 40, 67])
def test_interrupted_within_an_epoch_ends_as_if_left_alone(steps: int, alone: Path, tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"
    asked = itertools.count()
    with pytest.raises(Interrupted):
        run(**LONGER, out=stopped, stop=lambda: next(asked) == steps)
    run(**LONGER, out=stopped, resume=True)
    assert outcome(stopped) == outcome(alone)


def after(steps: int) -> Callable[[], bool]:
    """Whether to stop: yes once that many steps are done."""
    asked = itertools.count()
    return lambda: next(asked) == steps


def test_a_result_names_every_commit_that_trained_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that finds all done is none of them."""
    out = tmp_path / "run"
    for commit, steps in (("abc", 1), ("abc", 40), ("def", 20), ("abc", 3)):
        monkeypatch.setenv("JIOC_COMMIT", commit)
        with pytest.raises(Interrupted):
            run(**LONGER, out=out, resume=True, stop=after(steps))
    for commit in ("ghi", "jkl"):
        monkeypatch.setenv("JIOC_COMMIT", commit)
        assert run(**LONGER, out=out, resume=True)["commits"] == ["abc", "def", "ghi"]
    result = json.loads((out / "result.json").read_bytes())
    assert (result["commit"], result["commits"]) == ("ghi", ["abc", "def", "ghi"])
    older = unpack(max((out / "checkpoint").iterdir()) / "begin")
    del older["commits"]
    config = resolve(settings.make(**LONGER))
    goes_on = Run(config, dataset.load(config))
    goes_on.restore(older)
    assert goes_on.commits == [None]


def interrupted(folder: Path, steps: int = 40) -> list[Path]:
    """A run that was stopped half-way; its checkpoints, newest first."""
    with pytest.raises(Interrupted):
        run(**LONGER, out=folder, stop=after(steps))
    return sorted((folder / "checkpoint").iterdir(), reverse=True)


@pytest.mark.parametrize(
    "harm", ["truncated", "altered", "missing", "manifest {", "manifest []", "manifest {}"]
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    harm: str, alone: Path, tmp_path: Path
) -> None:
    stopped = tmp_path / "stopped"
    newest, before = interrupted(stopped)
    for state in newest.glob("*"):
        if harm.startswith("manifest"):
            (newest / "checksums.json").write_text(harm.split()[1])
        elif state.name == "checksums.json":
            continue
        elif harm == "missing":
            state.unlink()
        elif harm == "truncated":
            os.truncate(state, state.stat().st_size // 2)
        else:
            content = bytearray(state.read_bytes())
            content[-3] ^= 1
            state.write_bytes(content)
    assert verified(before)
    notes: list[str] = []
    run(
        **LONGER,
        out=stopped,
        resume=True,
        callback=lambda kind, what: notes.append(what["text"]) if kind == "note" else None,
    )
    assert len(notes) == 1 and notes[0].startswith(f"checkpoint {newest.name} is damaged and not used")
    assert outcome(stopped) == outcome(alone)


def begun(folder: Path, settings: dict[str, Any], steps: int = 20) -> None:
    asked = itertools.count()
    with pytest.raises(Interrupted):
        run(**settings, out=folder, stop=lambda: next(asked) > steps)


def test_a_run_whose_settings_an_older_version_wrote_goes_on(tmp_path: Path, small: dict[str, Any]) -> None:
    begun(tmp_path / "run", small | {"method": "icarl"})
    path = tmp_path / "run" / "config.yaml"
    kept = [
        line
        for line in path.read_text().splitlines()
        if line.strip().split(":")[0] not in ("host_kd", "balance")
    ]
    path.write_text("\n".join(kept))
    with pytest.raises(Refused, match="another run: options.balance differ"):
        run(**small, method="icarl", options={"balance": 0.9}, out=tmp_path / "run", resume=True)
    assert run(**small, method="icarl", out=tmp_path / "run", resume=True)["complete"]


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
    assert len(one.runs) == 2 and one.scene.startswith("photos, ")
    kept = tmp_path / "dot" / "config.yaml"
    text, recorded = kept.read_text(), f"\ndata: {photos}\n"
    assert recorded in text
    kept.write_text(text.replace(recorded, f"\ndata: {place}\n"))  # as an older version did
    assert run(**there, out=tmp_path / "dot", resume=True)["complete"]


def test_other_threads_than_it_began_with_are_told(
    tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path / "run", small | {"method": "icarl"})
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    told: list[Any] = []
    run(
        **small,
        method="icarl",
        out=tmp_path / "run",
        resume=True,
        callback=lambda kind, what: told.append((kind, what)),
    )
    assert any("began with 1 thread and goes on with 7" in str(what) for kind, what in told if kind == "note")


def test_without_a_whole_checkpoint_it_says_so_and_touches_nothing(tmp_path: Path) -> None:
    for folder in interrupted(tmp_path / "run"):
        os.truncate(folder / "begin", 10)
    before = (tmp_path / "run" / "log.jsonl").read_bytes()
    with pytest.raises(Failed, match="no whole checkpoint"):
        run(**LONGER, out=tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "log.jsonl").read_bytes() == before


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
    config = resolve(settings.make(**LONGER))
    with pytest.raises(Refused, match="began on a CUDA device"):
        Run(config, dataset.load(config)).restore(unpack(newest / "begin") | {"device": "cuda"})


def test_one_folder_one_writer(
    tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    run(method="replay", **small, out=folder)
    from jioc.config import values as settings
    from jioc.resolve.derive import resolve

    config = resolve(settings.make(method="replay", **small))
    first = Store(folder, config, resume=True)
    with pytest.raises(Refused, match="another process is writing"):
        Store(folder, config, resume=True)
    first.close()
    Store(folder, config, resume=True).close()
    unable = OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))  # a file system without locks
    monkeypatch.setattr("fcntl.flock", lambda *args: (_ for _ in ()).throw(unable))
    with pytest.raises(Refused, match="cannot be locked.*: Function not implemented"):
        Store(folder, config, resume=True)


def test_a_disk_that_is_full_leaves_the_checkpoint_before(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    real, left = os.fsync, itertools.count()

    def fsync(handle: int) -> None:
        if next(left) == 60:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    told = f"the run cannot be kept in {str(full)!r}: No space left on device; with that mended, --resume goes on"
    with pytest.raises(Failed, match=f"^{re.escape(told)}"):
        run(**LONGER, out=full)
    monkeypatch.undo()
    assert not list(full.rglob("*.partial"))
    run(**LONGER, out=full, resume=True)
    assert outcome(full) == outcome(alone)
    assert not list(full.rglob("*.partial"))


@pytest.mark.parametrize(
    "place", ["jioc.training.checkpoint._carry", "jioc.training.store.Store.result", "log.jsonl"]
)
def test_wherever_a_disk_is_full_it_is_a_sentence(
    place: str, tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device", "a", None, "b")

    out = tmp_path / "run"
    if place == "log.jsonl":
        out.mkdir()
        (out / place).symlink_to("/dev/full")
        monkeypatch.setattr("jioc.training.store._begun", lambda path: True)
        monkeypatch.setattr(Store, "cut_log", lambda *args: None)  # a device cannot be cut
    else:
        monkeypatch.setattr(place, fails)
    with pytest.raises(
        Failed, match="^the run cannot be kept in .*run': No space left on device; with that mended"
    ):
        run(method="replay", **small, out=out)


def test_a_state_survives_packing(tmp_path: Path) -> None:
    state = {
        "a": torch.arange(6).view(2, 3).t(),
        "b": [None, 1.5, "x", {"deep/er": torch.tensor(True)}, torch.zeros(0)],
        "c": {},
    }
    (tmp_path / "s").write_bytes(pack(state))
    back = unpack(tmp_path / "s")
    assert back["a"].equal(state["a"]) and back["b"][:3] == [None, 1.5, "x"] and back["c"] == {}
    assert back["b"][3]["deep/er"].item() is True and back["b"][4].numel() == 0


def test_a_pickle_in_place_of_a_state_is_not_executed(tmp_path: Path) -> None:
    import pickle

    from helpers.hostile import Hostile

    (tmp_path / "s").write_bytes(pickle.dumps(Hostile(str(tmp_path / "harm"))))
    with pytest.raises(SafetensorError):
        unpack(tmp_path / "s")
    assert not (tmp_path / "harm").exists()


def test_two_checkpoints_never_share_a_file(tmp_path: Path) -> None:
    newest, before = interrupted(tmp_path / "run")
    shared = {p.stat().st_ino for p in newest.iterdir()} & {p.stat().st_ino for p in before.iterdir()}
    assert not shared
    shutil.rmtree(newest)
    assert verified(before)


def test_what_foster_kept_in_earlier_versions_is_passed_over(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small |= {"method": "foster", "first": {"epochs": 1}, "later": {"epochs": 1}, "checkpoint_every": 0}
    before, remember, asked = tmp_path / "before", FOSTER.remember, itertools.count()

    def remember_more(self: FOSTER, task: Task, data: TaskData) -> None:
        remember(self, task, data)
        self.means = class_means(self.memory, partial(data.features, self.net), self.net.width)

    with monkeypatch.context() as earlier:
        earlier.setattr(FOSTER, "persistent", ("net", "boosted", "means", "boosted_means"))
        earlier.setattr(FOSTER, "remember", remember_more)
        with pytest.raises(Interrupted):
            run(**small, out=before, stop=lambda: next(asked) == 10)  # while the second task is compressed
    newest = max((before / "checkpoint").iterdir())
    states = [unpack(newest / name)["method"] for name in ("begin", "stage0", "now")]
    for state in (*states, unpack(before / "model.safetensors")):
        assert state["means"].shape[0] == 4
    assert len(load(before, to_learn=True).classes) == 4
    run(**small, out=before, resume=True)
    run(**small, out=tmp_path / "now")
    assert outcome(before) == outcome(tmp_path / "now")
