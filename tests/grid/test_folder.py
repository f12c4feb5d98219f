"""A run's folder, sent as files and put in place elsewhere."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.grids import BASE, half_way
from helpers.runs import outcome
from jioc.errors import Interrupted
from jioc.grid import folder as run_folder
from jioc.grid.folder import newest_checkpoint, read_files, scratch, write_files
from jioc.training.run import run


def test_a_run_goes_on_from_its_packed_folder(tmp_path: Path) -> None:
    run(**BASE, out=tmp_path / "alone")
    half_way(tmp_path / "here")
    write_files(read_files(tmp_path / "here", whole=False), tmp_path / "there")
    assert len(list((tmp_path / "there" / "checkpoint").iterdir())) == 1
    run(**BASE, out=tmp_path / "there", resume=True)
    write_files(read_files(tmp_path / "there", whole=True), tmp_path / "here")  # over what was there
    assert outcome(tmp_path / "here") == outcome(tmp_path / "there") == outcome(tmp_path / "alone")


def test_a_folder_whose_unpacking_was_cut_short_anywhere_goes_on_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the driver is killed while it writes."""
    short = BASE | {"task_sizes": [5, 5], "memory": 20, "first": {"epochs": 1}, "later": {"epochs": 2}}
    run(**short, out=tmp_path / "alone")
    asked = itertools.count()
    with pytest.raises(Interrupted):
        run(**short, out=tmp_path / "run", stop=lambda: next(asked) == 10)
    files = read_files(tmp_path / "run", whole=False)
    assert "result.json" in files and f"checkpoint/{newest_checkpoint(tmp_path / 'run')}/now" in files
    for cut in range(len(files)):
        writes = itertools.count()

        def write(path: Path, content: bytes, writes: Any = writes, cut: int = cut) -> None:
            if next(writes) == cut:
                raise InterruptedError
            path.write_bytes(content)

        with monkeypatch.context() as patched:
            patched.setattr(run_folder, "write", write)
            with pytest.raises(InterruptedError):
                write_files(files, tmp_path / f"{cut}")
        write_files(read_files(tmp_path / f"{cut}", whole=True), tmp_path / f"{cut}-on")
        run(**short, out=tmp_path / f"{cut}-on", resume=True)
        assert outcome(tmp_path / f"{cut}-on") == outcome(tmp_path / "alone"), cut


def test_a_complete_result_travels_with_its_model_or_not_at_all(tmp_path: Path) -> None:
    run(**BASE, out=tmp_path / "run")
    assert not {"result.json", "model.safetensors"} & read_files(tmp_path / "run", whole=False).keys()
    write_files(read_files(tmp_path / "run", whole=True), tmp_path / "copy")
    names = {path.name for path in (tmp_path / "run").iterdir()} - {".lock"}
    assert (
        {path.name for path in (tmp_path / "copy").iterdir()} == names > {"result.json", "model.safetensors"}
    )


def test_what_changes_while_it_is_packed_is_not_sent_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(**BASE, out=tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    complete = path.read_bytes()
    path.write_text(json.dumps(json.loads(complete) | {"complete": False}))

    def read_json(at: Path) -> Any:
        found = json.loads(at.read_bytes())
        if at == path:
            path.write_bytes(complete)  # the run ends now
        return found

    monkeypatch.setattr(run_folder, "read_json", read_json)
    assert not json.loads(read_files(tmp_path / "run", whole=False)["result.json"])["complete"]
    assert "result.json" not in read_files(tmp_path / "run", whole=False)
    next((tmp_path / "run" / "checkpoint").glob(f"{newest_checkpoint(tmp_path / 'run')}/begin")).unlink()
    with pytest.raises(FileNotFoundError):
        read_files(tmp_path / "run", whole=False)


HOLD = """
import sys
from jioc.grid.folder import scratch

with scratch() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_scratch_folder_of_a_killed_process_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    killed, working = (subprocess.Popen([sys.executable, "-c", HOLD], **pipes) for _ in range(2))
    folders = [Path(child.stdout.readline().strip()) for child in (killed, working)]
    others = tmp_path / "jioc-scratch-link"
    others.symlink_to(tmp_path.parent, target_is_directory=True)
    killed.kill()
    killed.communicate()
    for folder in folders:
        (folder / "run").mkdir()
        os.utime(folder, (0, 0))
    with scratch() as own:
        assert [folder.exists() for folder in folders] == [False, True] and own.is_dir()
    assert not own.exists() and others.is_symlink()
    working.communicate()
    assert working.returncode == 0 and not folders[1].exists()
