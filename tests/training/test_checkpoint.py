"""Checkpoints: what they hold, damaged ones, and a disk that is full."""

import itertools
import os
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from helpers.hostile import Hostile
from helpers.resuming import LONGER, interrupted
from helpers.runs import collect_notes, outcome
from jioc.errors import Failed
from jioc.training.checkpoint import pack, unpack, verified
from jioc.training.run import run


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
