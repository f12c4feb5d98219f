"""Decoding on every core: the same as in one process, whatever happens to the processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.trees import class_folders, decodings, read_events
from jioc.data.images import cache, decode, workers
from jioc.errors import Failed
from jioc.events import Decoding


def test_workers_decode_what_one_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = class_folders(tmp_path / "many", {"a": 30, "b": 30})
    (place / "a" / "bad\n'one'.png").write_bytes(b"x")
    alone, notes = read_events(place, data_cache=tmp_path / "c1")
    monkeypatch.setattr(workers, "MOST_FILES", 7)
    together, also = read_events(place, data_cache=tmp_path / "c2")
    assert np.array_equal(alone.train_x, together.train_x) and alone.record == together.record
    assert decodings(notes) == 1 and decodings(also) == 9
    last = [event for event in also if isinstance(event, Decoding)][-1]
    assert last.done == last.total == 61


def test_a_worker_that_dies_ends_the_work_with_a_sentence(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dies.py").write_text("import sys\nsys.stdin.readline()\n")
    monkeypatch.setattr(workers, "MOST_FILES", 4)
    monkeypatch.setattr(decode, "__file__", str(tmp_path / "dies.py"))
    with pytest.raises(Failed, match=r"a decoding process died .* on one of \d files between .*png"):
        read_events(folder, data_cache=tmp_path / "c")
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


@pytest.mark.slow
def test_a_worker_that_is_left_without_work_does_not_end_the_command(folder: Path, tmp_path: Path) -> None:
    ended = checks(folder, [tmp_path / f"c{i}" for i in range(4)], chunk=5)  # one worker may take both
    assert ended.returncode == 0, ended
    assert ended.stdout.count("8 training and 2 test images") == 4


@pytest.mark.slow
def test_a_worker_that_dies_between_two_orders_does_not_end_the_command(folder: Path, tmp_path: Path) -> None:
    """As one that is killed for its memory may: it has answered, and no longer reads."""
    dies = tmp_path / "dies.py"
    dies.write_text(
        "import os, sys\n"
        "sys.stdin.readline()\n"
        "os.close(0)\n"
        f"""os.write(1, b'{{"bad": [], "coloured": false, "digests": "{"00" * decode.DIGEST}"}}\\n')\n"""
    )
    ended = checks(folder, [tmp_path / "c"], chunk=1, worker=dies)
    assert ended.returncode == 1
    assert "jioc: a decoding process died (too little memory?) on one of" in ended.stderr
    assert not [f for f in (tmp_path / "c").iterdir() if f.is_dir()]


def test_a_worker_that_cannot_write_says_why(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MOST_FILES", 4)
    ask, nowhere = workers.Workers._ask, {"file": "/dev/full/x"}
    monkeypatch.setattr(
        workers.Workers, "_ask", lambda self, process, order: ask(self, process, order | nowhere)
    )
    with pytest.raises(Failed, match="decoded images cannot be kept: Not a directory"):
        read_events(folder, data_cache=tmp_path / "c")


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    (tmp_path / "pixels").touch()
    order = {"paths": [], "canvas": 1, "grey": False, "file": str(tmp_path / "pixels"), "offset": 0}
    worker = subprocess.Popen([sys.executable, "-P", decode.__file__], stdin=subprocess.PIPE, text=True)
    worker.communicate(json.dumps(order) + "\n", timeout=30)  # closes its orders, as a death would
    assert worker.returncode == 0


def test_every_core_has_a_worker(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    popen = subprocess.Popen
    monkeypatch.setattr(workers, "MOST_FILES", 2)
    monkeypatch.setattr(workers, "cores", lambda: 3)
    monkeypatch.setattr(
        workers.subprocess, "Popen", lambda *w, **k: started.append(popen(*w, **k)) or started[-1]
    )
    read_events(folder, data_cache=tmp_path / "c")
    assert len(started) == 3
    assert all(worker.returncode is not None for worker in started)  # and none is left behind


def test_never_more_than_a_few_parts_are_read_ahead(folder: Path) -> None:
    asked = 0

    def paths() -> Any:
        nonlocal asked
        for _ in range(100_000):
            asked += 1
            yield str(folder / "cat" / "1.png")

    parts = workers.decoded(paths(), 64, grey=False)
    size = len(next(parts).paths)
    next(parts)
    assert asked <= size * (2 * min(workers.cores(), workers.MOST_WORKERS) + 4)
    parts.close()


def test_a_file_that_kills_its_decoder_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, killer = str(folder / "cat" / "1.png"), "killer"
    real = workers.Workers._ask

    def ask(self: workers.Workers, process: Any, order: workers.Order) -> workers.Part:
        if killer in order["paths"]:
            process.kill()
            process.wait()
        return real(self, process, order)

    monkeypatch.setattr(workers.Workers, "_ask", ask)
    monkeypatch.setattr(workers, "MOST_BYTES", 0)  # eight at a time
    paths = [good] * 20 + [killer] + [good] * 9
    parts = list(workers.decoded(paths, 8, grey=True))
    assert [path for part in parts for path in part.paths] == paths
    assert [(part.paths[row], why) for part in parts for row, why in part.bad.items()] == [
        (killer, "ended the process that decoded it")
    ]
    assert all(
        part.pixels[row].any() for part in parts for row in range(len(part.paths)) if row not in part.bad
    )
