"""Decoded once, whole or not there, the same whoever builds it."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.trees import class_folders, picture
from jioc.config import values as settings
from jioc.data.dataset import Dataset
from jioc.data.images import cache, decode, workers
from jioc.data.load import load
from jioc.errors import Failed, Interrupted, Refused
from jioc.events import Decoding, Event, Note, Waiting
from jioc.training.run import run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return class_folders(tmp_path / "pets", {"cat": 5, "dog": 5})


def read(place: Path, where: Path, **values: Any) -> tuple[Dataset, list[Event]]:
    events: list[Event] = []
    values = {"image_size": 8} | values
    config = settings.make(method="finetune", data=str(place), data_cache=where, **values)
    return load(config, events.append), events


def decodings(events: list[Event]) -> int:
    return sum(isinstance(event, Decoding) and event.done > 0 for event in events)


def test_the_second_start_decodes_nothing(place: Path, tmp_path: Path) -> None:
    first, told = read(place, tmp_path / "c")
    again, then = read(place, tmp_path / "c")
    assert decodings(told) == 1 and decodings(then) == 0
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
    place: Path, tmp_path: Path, change: str
) -> None:
    read(place, tmp_path / "c")
    CHANGES[change](place)
    _, told = read(place, tmp_path / "c")
    assert decodings(told) == 1
    assert len([f for f in (tmp_path / "c").iterdir() if not f.name.startswith(".")]) == 1


@pytest.mark.parametrize(
    "setting", [{"image_size": 10}, {"split_seed": 5}, {"test_share": 0.4}, {"colour": "grey"}]
)
def test_other_settings_have_a_set_of_their_own(place: Path, tmp_path: Path, setting: dict[str, Any]) -> None:
    read(place, tmp_path / "c")
    _, told = read(place, tmp_path / "c", **setting)
    assert decodings(told) == 1
    _, told = read(place, tmp_path / "c")
    assert decodings(told) == 0


@pytest.mark.parametrize("why", [errno.EACCES, errno.EIO])
def test_a_file_that_could_not_be_read_is_used_once_it_can_be(
    place: Path, tmp_path: Path, why: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = os.open

    def fails(path: Any, *how: Any) -> int:
        if str(path).endswith("cat/0.png"):
            raise OSError(why, os.strerror(why))
        return sound(path, *how)

    (place / "dog" / "0.png").write_text("no image")
    with monkeypatch.context() as patch:
        patch.setattr(decode.os, "open", fails)
        d, _ = read(place, tmp_path / "c")
        assert ["cat/0.png", f"cannot be read: {os.strerror(why)}"] in d.record["skipped"] and len(
            d.train_y
        ) == 6
        assert decodings(read(place, tmp_path / "c")[1]) == 0  # still so: nothing is decoded for it
    d, told = read(place, tmp_path / "c")
    assert decodings(told) == 1 and len(d.train_y) == 7
    assert [file for file, _ in d.record["skipped"]] == ["dog/0.png"]
    assert decodings(read(place, tmp_path / "c")[1]) == 0  # what a file holds is not looked at again


DAMAGE = {
    "a bit": lambda f: _flip(f / "pixels.npy"),
    "a label": lambda f: _flip(f / "labels.npy"),
    "cut": lambda f: os.truncate(f / "pixels.npy", 500),
    "empty": lambda f: os.truncate(f / "about.json", 0),
    "half the story": lambda f: os.truncate(f / "about.json", 40),
    "no labels": lambda f: (f / "labels.npy").unlink(),
}


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_set_is_not_used(place: Path, tmp_path: Path, damage: str) -> None:
    right = np.array(read(place, tmp_path / "c")[0].train_x)
    (folder,) = (f for f in (tmp_path / "c").iterdir() if f.is_dir())
    DAMAGE[damage](folder)
    d, told = read(place, tmp_path / "c")
    assert decodings(told) == 1 and np.array_equal(d.train_x, right)
    assert ["is damaged; it is built again" in event.text for event in told if isinstance(event, Note)] == [
        True
    ]
    assert decodings(read(place, tmp_path / "c")[1]) == 0


# --- processes ---

BUILD = """
import sys
from pathlib import Path
from jioc.config import values as settings
from jioc.data.images import workers
from jioc.data.load import load
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
    d, told = read(place, tmp_path / "c")
    assert decodings(told) and len(d.train_y) == 96 and d.train_x.reshape(96, -1).max(1).min() >= 0
    assert [f.suffix for f in (tmp_path / "c").iterdir() if f.is_dir()] == [""]  # the litter is gone


def test_two_processes_that_build_the_same_set_both_end_well(tmp_path: Path) -> None:
    place = class_folders(tmp_path / "many", {"a": 60, "b": 60})
    both = [build(place, tmp_path / "c") for _ in range(2)]
    ends = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    one, two = (out.splitlines() for out, _ in ends)
    assert one[-1] == two[-1] and one[-1].startswith("done ")
    assert [f.suffix for f in (tmp_path / "c").iterdir() if f.is_dir()] == [""]


def test_workers_decode_what_one_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = class_folders(tmp_path / "many", {"a": 30, "b": 30})
    (place / "a" / "bad\n'one'.png").write_bytes(b"x")
    alone, told = read(place, tmp_path / "c1")
    monkeypatch.setattr(workers, "MOST_FILES", 7)
    together, also = read(place, tmp_path / "c2")
    assert np.array_equal(alone.train_x, together.train_x) and alone.record == together.record
    assert decodings(told) == 1 and decodings(also) == 9
    last = [event for event in also if isinstance(event, Decoding)][-1]
    assert last.done == last.total == 61


def test_a_worker_that_dies_ends_the_work_with_a_sentence(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dies.py").write_text("import sys\nsys.stdin.readline()\n")
    monkeypatch.setattr(workers, "MOST_FILES", 4)
    monkeypatch.setattr(decode, "__file__", str(tmp_path / "dies.py"))
    with pytest.raises(Failed, match=r"a decoding process died .* on one of \d files between .*png"):
        read(place, tmp_path / "c")
    assert not [f for f in (tmp_path / "c").iterdir() if f.is_dir()]


COMMAND = """
import sys
from jioc.data.images import decode, workers
worker, chunk, place, *caches = sys.argv[1:]
decode.__file__ = worker or decode.__file__
workers.MOST_FILES, workers.cores = int(chunk), lambda: 4
from jioc.cli.main import main
for where in caches:
    if status := main(["data", "check", place, "--data-cache", where]):
        sys.exit(status)
"""


def checks(
    place: Path, caches: list[Path], chunk: int, worker: Path | str = ""
) -> "subprocess.CompletedProcess[str]":
    """`jioc data check` once for each cache, in a process of its own."""
    words = [sys.executable, "-c", COMMAND, str(worker), str(chunk), str(place), *map(str, caches)]
    env = os.environ | {"PYTHONPATH": str(Path(cache.__file__).parents[3])}
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)


def test_a_worker_that_is_left_without_work_does_not_end_the_command(place: Path, tmp_path: Path) -> None:
    ended = checks(place, [tmp_path / f"c{i}" for i in range(4)], chunk=5)  # one of two workers may take both
    assert ended.returncode == 0, ended
    assert ended.stdout.count("8 training and 2 test images") == 4


def test_a_worker_that_dies_between_two_orders_does_not_end_the_command(place: Path, tmp_path: Path) -> None:
    """As one that is killed for its memory may: it has answered, and no longer reads."""
    dies = tmp_path / "dies.py"
    dies.write_text(
        "import os, sys\n"
        "sys.stdin.readline()\n"
        "os.close(0)\n"
        f"""os.write(1, b'{{"bad": [], "coloured": false, "digests": "{"00" * decode.DIGEST}"}}\\n')\n"""
    )
    ended = checks(place, [tmp_path / "c"], chunk=1, worker=dies)
    assert (
        ended.returncode == 1
        and "jioc: a decoding process died (too little memory?) on one of" in ended.stderr
    )
    assert not [f for f in (tmp_path / "c").iterdir() if f.is_dir()]


def test_a_worker_that_cannot_write_says_why(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MOST_FILES", 4)
    ask, nowhere = workers.Workers._ask, {"file": "/dev/full/x"}
    monkeypatch.setattr(
        workers.Workers, "_ask", lambda self, process, order: ask(self, process, order | nowhere)
    )
    with pytest.raises(Failed, match="decoded images cannot be kept: Not a directory"):
        read(place, tmp_path / "c")


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    order = json.dumps({"paths": [], "canvas": 1, "grey": False, "file": str(tmp_path / "pixels"), "offset": 0})
    (tmp_path / "pixels").touch()
    worker = subprocess.Popen([sys.executable, "-P", decode.__file__], stdin=subprocess.PIPE, text=True)
    worker.communicate(order + "\n", timeout=30)  # closes its orders, as a death would
    assert worker.returncode == 0


def test_a_run_can_be_stopped_while_images_are_decoded(
    place: Path, tmp_path: Path, small: dict[str, Any]
) -> None:
    small |= {"data": str(place), "data_cache": tmp_path / "c", "task_sizes": (1, 1)}
    with pytest.raises(Interrupted, match="stopped before the first task"):
        run(method="replay", out=tmp_path / "run", stop=lambda: True, **small)
    assert not (tmp_path / "run").exists() and not [f for f in (tmp_path / "c").iterdir() if f.is_dir()]


def test_a_place_that_cannot_be_written_gets_a_sentence(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Failed, match="the cache .* cannot be used"):
        read(place, tmp_path / "file" / "c")


def test_too_little_room_is_told_before_any_work(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda where: type("Disk", (), {"free": 100}))
    with pytest.raises(Refused, match="choose another --data-cache or a smaller --image-size"):
        read(place, tmp_path / "c")


def test_waiting_for_another_process_can_be_stopped(place: Path, tmp_path: Path) -> None:
    read(place, tmp_path / "c")
    (lock,) = (tmp_path / "c").glob(".*.lock")
    (folder,) = (f for f in (tmp_path / "c").iterdir() if f.is_dir())
    (folder / "about.json").unlink()

    def tell(event: Event) -> None:
        if isinstance(event, Waiting):
            raise Interrupted("stopped")

    with open(lock, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        config = settings.make(method="finetune", data=str(place), data_cache=tmp_path / "c", image_size=8)
        with pytest.raises(Interrupted):
            load(config, tell)


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


def test_a_run_is_not_resumed_on_other_images(place: Path, tmp_path: Path, small: dict[str, Any]) -> None:
    small |= {"data": str(place), "data_cache": tmp_path / "c", "task_sizes": (1, 1), "image_size": 8}
    small |= {"first": {"epochs": 5}, "later": {"epochs": 1}, "checkpoint_every": 0}
    asked = iter(range(100))
    with pytest.raises(Interrupted):
        run(method="replay", out=tmp_path / "run", stop=lambda: next(asked) > 2, **small)
    picture(place / "cat" / "new.png", 40)
    with pytest.raises(Refused, match="are not those this run began with"):
        run(method="replay", out=tmp_path / "run", resume=True, **small)
    (place / "cat" / "new.png").unlink()
    os.utime(place / "cat" / "0.png", (1, 1))  # decoded again, to the same images
    assert run(method="replay", out=tmp_path / "run", resume=True, **small)["complete"]


def test_every_core_has_a_worker(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    popen = subprocess.Popen
    monkeypatch.setattr(workers, "MOST_FILES", 2)
    monkeypatch.setattr(workers, "cores", lambda: 3)
    monkeypatch.setattr(
        workers.subprocess, "Popen", lambda *w, **k: started.append(popen(*w, **k)) or started[-1]
    )
    read(place, tmp_path / "c")
    assert len(started) == 3 and all(
        worker.returncode is not None for worker in started
    )  # and none is left behind
