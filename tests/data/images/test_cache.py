"""Decoded once, whole or not there, the same whoever builds it."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.trees import class_folders, decodings, picture, read_events
from jioc.config import values as settings
from jioc.data.images import cache, decode
from jioc.data.load import load_dataset
from jioc.errors import Failed, Interrupted, Refused
from jioc.events import Event, Note, Waiting
from jioc.training.run import run


def test_the_second_start_decodes_nothing(folder: Path, tmp_path: Path) -> None:
    first, notes = read_events(folder, data_cache=tmp_path / "c")
    again, then = read_events(folder, data_cache=tmp_path / "c")
    assert decodings(notes) == 1 and decodings(then) == 0
    assert isinstance(again.train_x, np.memmap) and np.array_equal(first.train_x, again.train_x)
    assert first.classes == again.classes and first.record == again.record


CHANGES = {
    "added": lambda root: picture(root / "cat" / "new.png", 40),
    "changed": lambda root: picture(root / "cat" / "0.png", 41, (9, 9)),
    "removed": lambda root: (root / "cat" / "0.png").unlink(),
    "renamed": lambda root: (root / "cat" / "0.png").rename(root / "cat" / "zero.png"),
    "moved": lambda root: (root / "cat" / "0.png").rename(root / "dog" / "zero.png"),
    "touched": lambda root: os.utime(root / "cat" / "0.png", (1, 1)),
    "class renamed": lambda root: (root / "cat").rename(root / "kitten"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_source_is_decoded_again_and_the_old_set_dropped(
    folder: Path, tmp_path: Path, change: str
) -> None:
    read_events(folder, data_cache=tmp_path / "c")
    CHANGES[change](folder)
    _, notes = read_events(folder, data_cache=tmp_path / "c")
    assert decodings(notes) == 1
    assert len([f for f in (tmp_path / "c").iterdir() if not f.name.startswith(".")]) == 1


@pytest.mark.parametrize(
    "setting", [{"image_size": 10}, {"split_seed": 5}, {"test_share": 0.4}, {"colour": "grey"}]
)
def test_other_settings_have_a_set_of_their_own(
    folder: Path, tmp_path: Path, setting: dict[str, Any]
) -> None:
    read_events(folder, data_cache=tmp_path / "c")
    _, notes = read_events(folder, data_cache=tmp_path / "c", **setting)
    assert decodings(notes) == 1
    _, notes = read_events(folder, data_cache=tmp_path / "c")
    assert decodings(notes) == 0


@pytest.mark.parametrize("why", [errno.EACCES, errno.EIO])
def test_a_file_that_could_not_be_read_is_used_once_it_can_be(
    folder: Path, tmp_path: Path, why: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = os.open

    def fails(path: Any, *how: Any) -> int:
        if str(path).endswith("cat/0.png"):
            raise OSError(why, os.strerror(why))
        return sound(path, *how)

    (folder / "dog" / "0.png").write_text("no image")
    with monkeypatch.context() as patch:
        patch.setattr(decode.os, "open", fails)
        d, _ = read_events(folder, data_cache=tmp_path / "c")
        assert ["cat/0.png", f"cannot be read: {os.strerror(why)}"] in d.record["skipped"]
        assert len(d.train_y) == 6
        _, notes = read_events(folder, data_cache=tmp_path / "c")
        assert decodings(notes) == 0  # still so: nothing is decoded for it
    d, notes = read_events(folder, data_cache=tmp_path / "c")
    assert decodings(notes) == 1 and len(d.train_y) == 7
    assert [file for file, _ in d.record["skipped"]] == ["dog/0.png"]
    _, notes = read_events(folder, data_cache=tmp_path / "c")
    assert decodings(notes) == 0  # what a file holds is not looked at again


DAMAGE = {
    "a bit": lambda f: _flip(f / "pixels.npy"),
    "a label": lambda f: _flip(f / "labels.npy"),
    "cut": lambda f: os.truncate(f / "pixels.npy", 500),
    "empty": lambda f: os.truncate(f / "about.json", 0),
    "half the story": lambda f: os.truncate(f / "about.json", 40),
    "no labels": lambda f: (f / "labels.npy").unlink(),
    "a class": lambda f: _about(f, lambda about: about["classes"].__setitem__(0, "lion")),
    "no mean": lambda f: _about(f, lambda about: about["record"].__setitem__("mean", [float("nan")] * 3)),
    "no record": lambda f: _about(f, lambda about: about.__setitem__("record", None)),
    "fewer to train": lambda f: _about(f, lambda about: about.__setitem__("train", 1)),
    "no checksum": lambda f: _about(f, lambda about: about.pop("digest")),
    "a list": lambda f: (f / "about.json").write_text("[1]"),
    "nothing at all": lambda f: (f / "about.json").write_text("null"),
    "a deep story": lambda f: (f / "about.json").write_text("[" * 100_000),
    "a folder for the story": lambda f: ((f / "about.json").unlink(), (f / "about.json").mkdir()),
    "signed levels": lambda f: _replace(f / "pixels.npy", b"|u1", b"|i1"),
    "a head that is no head": lambda f: _replace(f / "labels.npy", b"descr", b"de cr"),
    "more labels than there can be": lambda f: _replace(f / "labels.npy", b"(10,), }   ", b"(10000,), }"),
}


def _about(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    values = json.loads((folder / "about.json").read_bytes())
    change(values)
    (folder / "about.json").write_text(json.dumps(values))


def _replace(path: Path, old: bytes, new: bytes) -> None:
    assert old in (raw := path.read_bytes())
    path.write_bytes(raw.replace(old, new, 1))


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_set_is_not_used(folder: Path, tmp_path: Path, damage: str) -> None:
    right = np.array(read_events(folder, data_cache=tmp_path / "c")[0].train_x)
    (cached,) = (f for f in (tmp_path / "c").iterdir() if f.is_dir())
    DAMAGE[damage](cached)
    d, events = read_events(folder, data_cache=tmp_path / "c")
    assert decodings(events) == 1 and np.array_equal(d.train_x, right)
    notes = [event.text for event in events if isinstance(event, Note)]
    assert ["is damaged; it is built again" in text for text in notes] == [True]
    assert decodings(read_events(folder, data_cache=tmp_path / "c")[1]) == 0


BUILD = """
import sys
from pathlib import Path
from jioc.config import values as settings
from jioc.data.images import workers
from jioc.data.load import load_dataset as load
from jioc.events import Waiting
workers.MOST_FILES = 5
place, where = sys.argv[1:]
def tell(event):
    if not isinstance(event, Waiting) and getattr(event, "done", None) != 0:
        print(type(event).__name__, flush=True)
        sys.stdin.readline()  # halted until told to go on
d = load(settings.make(method="finetune", data=place, data_cache=where, image_size=8), tell)
print("done", int(d.train_x.sum()), len(d.train_y), flush=True)
"""


def build(place: Path, where: Path, halted: bool = False) -> "subprocess.Popen[str]":
    """A process that builds the set; halted, it stays where its first images are decoded."""
    root = Path(cache.__file__).parents[3]
    command = [sys.executable, "-c", BUILD, str(place), str(where)]
    env = os.environ | {"PYTHONPATH": str(root)}
    pipe, orders = subprocess.PIPE, subprocess.PIPE if halted else subprocess.DEVNULL
    return subprocess.Popen(command, stdin=orders, stdout=pipe, stderr=pipe, text=True, env=env)


def test_a_set_of_a_killed_process_is_not_used(tmp_path: Path) -> None:
    place = class_folders(tmp_path / "many", {"a": 60, "b": 60})
    killed = build(place, tmp_path / "c", halted=True)
    assert killed.stdout is not None and killed.stdout.readline() == "Decoding\n"  # half-way
    killed.kill()
    killed.communicate()
    left = list((tmp_path / "c").iterdir())
    assert [f.suffix for f in left if f.is_dir()] == [".partial"]
    d, notes = read_events(place, data_cache=tmp_path / "c")
    assert decodings(notes) and len(d.train_y) == 96 and d.train_x.reshape(96, -1).max(1).min() >= 0
    assert [f.suffix for f in (tmp_path / "c").iterdir() if f.is_dir()] == [""]  # the litter is gone


def test_two_processes_that_build_the_same_set_both_end_well(tmp_path: Path) -> None:
    place = class_folders(tmp_path / "many", {"a": 60, "b": 60})
    both = [build(place, tmp_path / "c") for _ in range(2)]
    ends = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    one, two = (out.splitlines() for out, _ in ends)
    assert one[-1] == two[-1] and one[-1].startswith("done ")
    assert [f.suffix for f in (tmp_path / "c").iterdir() if f.is_dir()] == [""]


def test_a_run_can_be_stopped_while_images_are_decoded(
    folder: Path, tmp_path: Path, small: dict[str, Any]
) -> None:
    small |= {"data": str(folder), "data_cache": tmp_path / "c", "task_sizes": (1, 1)}
    with pytest.raises(Interrupted, match="stopped before the first task"):
        run(method="replay", out=tmp_path / "run", stop=lambda: True, **small)
    assert not (tmp_path / "run").exists() and not [f for f in (tmp_path / "c").iterdir() if f.is_dir()]


def test_a_place_that_cannot_be_written_gets_a_sentence(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Failed, match="the cache .* cannot be used"):
        read_events(folder, data_cache=tmp_path / "file" / "c")


def test_too_little_room_is_told_before_any_work(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda where: type("Disk", (), {"free": 100}))
    with pytest.raises(Refused, match="choose another --data-cache or a smaller --image-size"):
        read_events(folder, data_cache=tmp_path / "c")


def test_too_little_room_for_the_images_that_are_kept_is_told_and_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "dog" / "0.png").write_text("no image")  # so that the others are copied
    free = iter([10_000, 100])
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda where: type("Disk", (), {"free": next(free)}))
    with pytest.raises(Refused, match="1.7 KiB more; .* has 100 bytes left"):
        read_events(folder, data_cache=tmp_path / "c")
    assert [f.suffix for f in (tmp_path / "c").iterdir()] == [".lock"]


FULL = """
mount -t tmpfs -o size=300k none "$1" || exit 77
"$2" -m jioc data check "$3" --image-size 32 --data-cache "$1"
echo "status $?, left: $(cd "$1" && find . -name '*.npy' -o -name '*.partial')"
"""


def test_a_disk_that_is_full_while_images_are_kept_ends_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    class_folders(folder, {"emu": 60}, first=20)
    (folder / "dog" / "0.png").write_text("no image")
    (tmp_path / "disk").mkdir()
    words = ["sh", "-c", FULL, "sh", str(tmp_path / "disk"), sys.executable, str(folder)]
    env = os.environ | {"PYTHONPATH": str(Path(cache.__file__).parents[3])}
    try:
        done = subprocess.run(
            ["unshare", "--mount", *words], capture_output=True, text=True, env=env, timeout=60
        )
    except FileNotFoundError:
        pytest.skip("unshare is not here, so that no small disk can be made")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no small disk can be made here: {done.stderr.strip()}")
    assert done.stdout == "status 2, left: \n" and done.stderr.startswith("jioc: decoded, the images take")


def test_waiting_for_another_process_can_be_stopped(folder: Path, tmp_path: Path) -> None:
    read_events(folder, data_cache=tmp_path / "c")
    (lock,) = (tmp_path / "c").glob(".*.lock")
    (cached,) = (f for f in (tmp_path / "c").iterdir() if f.is_dir())
    (cached / "about.json").unlink()

    def tell(event: Event) -> None:
        if isinstance(event, Waiting):
            raise Interrupted("stopped")

    with open(lock, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        config = settings.make(method="finetune", data=str(folder), data_cache=tmp_path / "c", image_size=8)
        with pytest.raises(Interrupted):
            load_dataset(config, tell)


@pytest.mark.slow
def test_a_process_that_waits_takes_over_from_one_that_is_killed(tmp_path: Path) -> None:
    place = class_folders(tmp_path / "many", {"a": 60, "b": 60})
    first = build(place, tmp_path / "c", halted=True)
    assert first.stdout is not None and first.stdout.readline() == "Decoding\n"
    second = build(place, tmp_path / "c")
    assert second.stdout is not None and second.stdout.readline() == "Note\n"  # it waits
    first.kill()
    out, error = second.communicate(timeout=60)
    first.communicate()
    assert second.returncode == 0 and out.splitlines()[-1].startswith("done"), error


def test_a_run_is_not_resumed_on_other_images(folder: Path, tmp_path: Path, small: dict[str, Any]) -> None:
    small |= {"data": str(folder), "data_cache": tmp_path / "c", "task_sizes": (1, 1), "image_size": 8}
    small |= {"first": {"epochs": 5}, "later": {"epochs": 1}, "checkpoint_every": 0}
    asked = iter(range(100))
    with pytest.raises(Interrupted):
        run(method="replay", out=tmp_path / "run", stop=lambda: next(asked) > 2, **small)
    picture(folder / "cat" / "new.png", 40)
    with pytest.raises(Refused, match="are not those this run began with"):
        run(method="replay", out=tmp_path / "run", resume=True, **small)
    (folder / "cat" / "new.png").unlink()
    os.utime(folder / "cat" / "0.png", (1, 1))  # decoded again, to the same images
    assert run(method="replay", out=tmp_path / "run", resume=True, **small)["complete"]


def test_statistics_of_large_images_are_those_of_a_grid() -> None:
    levels = np.random.default_rng(0).integers(0, 256, (40, 3, 130, 130), np.uint8)
    mean, std = cache.statistics(levels)
    grid = levels[:, :, ::3, ::3] / 255
    assert mean == [round(float(m), 4) for m in grid.mean((0, 2, 3))]
    assert std == [round(float(s), 4) for s in grid.std((0, 2, 3))]
    assert cache.statistics(levels[:, :, :9, :1])[0] == [
        round(float(m), 4) for m in levels[:, :, :9, :1].mean((0, 2, 3)) / 255
    ]
