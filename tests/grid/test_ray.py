"""Ray without a cluster: the folders on the driver's node, and a run on another."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.grids import BASE, half_way, job, no_room
from helpers.runs import events
from jioc.grid import options as launch
from jioc.grid import ray as on_ray
from jioc.grid.folder import read_files
from jioc.grid.ray import RunFolders
from jioc.training.run import run


def test_without_an_address_a_cluster_is_started_whatever_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    asked = []
    ray = SimpleNamespace(init=lambda address, **options: asked.append(address))
    on_ray._connect(ray, launch.make(on="ray"))
    on_ray._connect(ray, launch.make(on="ray", address="auto"))
    assert asked == ["local", "auto"]


def test_what_another_try_has_overtaken_is_turned_away(tmp_path: Path) -> None:
    half_way(tmp_path / "first")
    old = read_files(tmp_path / "first", whole=False)
    run(**BASE, out=tmp_path / "first", resume=True)
    done = read_files(tmp_path / "first", whole=True)
    (tmp_path / "kept").mkdir()
    folders = RunFolders([job(tmp_path / "kept" / "a")])
    first = folders.begin("a", "here", 1)
    assert first == (1, {}) and folders.save("a", 1, old, None) is None and folders.may_go_on("a", 1)
    second = folders.begin("a", "there", 2)
    assert second is not None and second[0] == 2 and second[1].keys() == old.keys()
    overtaken = "another try has overtaken this one"
    assert not folders.may_go_on("a", 1) and folders.save("a", 1, done, "finished") == overtaken
    assert folders.save("a", 2, done, "finished") is None and folders.save("a", 2, old, None) == overtaken
    assert folders.begin("a", "here", 3) is None  # finished
    assert [line["event"] for line in events(tmp_path / "kept")] == ["begins", "begins", "finished"]


def test_a_folder_has_one_grid_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    first, second = (RunFolders([job(tmp_path / "a")]) for _ in range(2))
    assert first.lock() is None and second.lock() == f"another grid is at work in {str(tmp_path)!r}"
    first.lock_file.close()  # its process died
    assert second.lock() is None
    second.lock_file.close()


AGAIN = "No space left on device; with that mended, the same command goes on"


def test_a_full_disk_under_the_folders_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    folders = RunFolders([job(out / "a")])
    monkeypatch.setattr(Path, "mkdir", no_room)
    assert folders.lock() == f"the runs' folder {str(out)!r} cannot be used: No space left on device"
    folders.begin("a", "here", 1)
    files = {"config.yaml": b"method: icarl"}
    assert folders.save("a", 1, files, None) == f"the run cannot be kept in {str(out / 'a')!r}: {AGAIN}"


def test_a_run_whose_folder_cannot_be_kept_says_so_and_is_not_tried_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray := SimpleNamespace(get=lambda found: found))
    monkeypatch.setattr(ray, "exceptions", SimpleNamespace(RayError=RuntimeError), raising=False)
    folders = RunFolders([job(tmp_path / "out" / "a")])
    there = SimpleNamespace(
        **{name: SimpleNamespace(remote=getattr(folders, name)) for name in ("begin", "may_go_on", "save")}
    )
    config = folders.jobs["a"].config
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("in the way")
    told = on_ray.run_on_node("a", config, there, 60.0, os.getcwd(), {})
    assert told is not None and told.startswith(
        f"the run cannot be kept in {str(tmp_path / 'out' / 'a')!r}: "
    )
    monkeypatch.setattr(on_ray, "write_files", no_room)
    told = on_ray.run_on_node("a", config, there, 60.0, os.getcwd(), {})
    assert told is not None and told.endswith("cannot be used: No space left on device")
