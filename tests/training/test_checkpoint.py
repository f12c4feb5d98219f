"""Checkpoints: what they hold, damaged ones, and a disk that is full."""

import hashlib
import itertools
import json
import os
import pickle
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors import SafetensorError

from helpers.hostile import Hostile
from helpers.resuming import LONGER, interrupted
from helpers.runs import collect_notes, outcome
from jioc.errors import Failed, Refused
from jioc.files import read_json
from jioc.training.checkpoint import Checkpointer, State, pack, unpack, verified
from jioc.training.run import run
from jioc.training.runner import Run


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
    run(**LONGER, out=stopped, resume=True, callback=collect_notes(notes))
    assert len(notes) == 1 and notes[0].startswith(f"checkpoint {newest.name} is damaged and not used")
    assert outcome(stopped) == outcome(alone)
    assert newest.with_name(f"{newest.name}.damaged").is_dir()  # nothing is thrown away


def test_an_error_of_the_device_costs_no_checkpoint(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, before = interrupted(tmp_path / "run")

    class AcceleratorError(RuntimeError):
        """As torch calls its own."""

    def broken(run: Run, state: State) -> bool:
        raise AcceleratorError("CUDA error: an illegal memory access was encountered")

    with monkeypatch.context() as patch, pytest.raises(AcceleratorError):
        patch.setattr(Run, "restore", broken)
        run(**LONGER, out=tmp_path / "run", resume=True)
    assert verified(newest) and verified(before)
    run(**LONGER, out=tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(alone)


@pytest.mark.parametrize("took, written", [(0.0, True), (1.0, False)])
def test_a_checkpoint_that_takes_long_comes_rarely(took: float, written: bool) -> None:
    saved: list[State] = []
    keeper = Checkpointer(None, 5.0, dict, lambda state: True)
    keeper.store = cast(Any, object())
    keeper._write = lambda name, state: saved.append(state)  # type: ignore[method-assign]
    keeper._last, keeper._took = time.monotonic() - 10.0, took
    keeper.end_epoch(dict)
    assert bool(saved) is written


def edit(checkpoint: Path, name: str, change: Callable[[State], object]) -> None:
    """Change a state, and its checksum with it."""
    state = unpack(checkpoint / name)
    change(state)
    (checkpoint / name).write_bytes(pack(state))
    checksums = read_json(checkpoint / "checksums.json")
    checksums[name] = hashlib.sha256((checkpoint / name).read_bytes()).hexdigest()
    (checkpoint / "checksums.json").write_text(json.dumps(checksums))


@pytest.mark.parametrize(
    "values",
    [{"rows": 5}, {"rows": [{"x": 1}]}, {"method": None}, {"generators": {"order": 1}}, {"trained": {}}],
    ids=str,
)
def test_a_state_of_odd_content_is_damaged_though_its_checksum_is_right(
    values: State, alone: Path, tmp_path: Path
) -> None:
    newest, _ = interrupted(tmp_path / "run")
    edit(newest, "begin", lambda state: state.update(values))
    notes: list[str] = []
    run(**LONGER, out=tmp_path / "run", resume=True, callback=collect_notes(notes))
    assert notes[0].startswith(f"checkpoint {newest.name} is damaged and not used") and "\n" not in notes[0]
    assert outcome(tmp_path / "run") == outcome(alone)


@pytest.mark.parametrize(
    "plan", [{"channels": 10**9}, {"backbone": "nosuch"}, {"backbones": 10**9, "kind": "expanding", "aux": 1}]
)
def test_no_network_is_made_that_its_tensors_do_not_fit(plan: State, tmp_path: Path) -> None:
    newest, before = interrupted(tmp_path / "run")
    for folder in (newest, before):
        edit(folder, "begin", lambda state: state["method"]["net"]["plan"].update(plan))
    with pytest.raises(Failed, match="no whole checkpoint"):
        run(**LONGER, out=tmp_path / "run", resume=True)


@pytest.mark.parametrize("size", [-5, "x", None])
def test_a_log_of_odd_length_is_left_alone(size: object, tmp_path: Path) -> None:
    newest, before = interrupted(tmp_path / "run")
    for folder in (newest, before):
        edit(folder, list(verified(folder))[-1], lambda state: state.update(log=size))
    log = (tmp_path / "run" / "log.jsonl").read_bytes()
    with pytest.raises(Failed, match="no whole checkpoint"):
        run(**LONGER, out=tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "log.jsonl").read_bytes() == log


def test_a_checkpoint_opens_its_own_files_alone(alone: Path, tmp_path: Path) -> None:
    newest, _ = interrupted(tmp_path / "run")
    other = tmp_path / "other"
    other.write_bytes(b"x")
    checksums = read_json(newest / "checksums.json")
    named = {str(other): hashlib.sha256(b"x").hexdigest(), **checksums}
    (newest / "checksums.json").write_text(json.dumps(named))
    notes: list[str] = []
    run(**LONGER, out=tmp_path / "run", resume=True, callback=collect_notes(notes))
    assert notes == [f"checkpoint {newest.name} is damaged and not used: its list of checksums is not whole"]
    assert outcome(tmp_path / "run") == outcome(alone)


@pytest.mark.parametrize("name", ["log.jsonl", ".lock", "checkpoint"])
def test_a_link_in_a_runs_folder_is_not_written_through(name: str, tmp_path: Path) -> None:
    interrupted(tmp_path / "run")
    (tmp_path / "run" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "run" / name).symlink_to(tmp_path / "elsewhere")
    before = tree(tmp_path / "elsewhere")
    with pytest.raises(Refused, match=f"{re.escape(name)}'.* a link"):
        run(**LONGER, out=tmp_path / "run", resume=True)
    assert tree(tmp_path / "elsewhere") == before


def tree(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in [path, *path.rglob("*")] if file.is_file()}


def test_without_a_whole_checkpoint_it_says_so_and_touches_nothing(tmp_path: Path) -> None:
    for folder in interrupted(tmp_path / "run"):
        os.truncate(folder / "begin", 10)
    before = (tmp_path / "run" / "log.jsonl").read_bytes()
    with pytest.raises(Failed, match="no whole checkpoint"):
        run(**LONGER, out=tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "log.jsonl").read_bytes() == before


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
    why = f"the run cannot be kept in {str(full)!r}: No space left on device; with that mended, --resume goes"
    with pytest.raises(Failed, match=f"^{re.escape(why)}"):
        run(**LONGER, out=full)
    monkeypatch.undo()
    assert not list(full.rglob("*.partial"))
    run(**LONGER, out=full, resume=True)
    assert outcome(full) == outcome(alone)
    assert not list(full.rglob("*.partial"))
