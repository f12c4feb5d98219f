"""Regular files are read, and nothing else: a pipe, a socket or a device in place of one is not waited on."""

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jioc
from helpers.command import refused
from helpers.models import QUICK
from helpers.trees import class_folders, cub, decodings, read_events, tiny_imagenet
from jioc import files
from jioc.cli.main import main


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # a whole path may be too long


KINDS: dict[str, Callable[[Path], Any]] = {
    "pipe": os.mkfifo,
    "socket": bind,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """Interrupt a test that waits."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    out = tmp_path_factory.mktemp("finished") / "run"
    jioc.run(method="icarl", **QUICK, out=out)
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


def replaced(path: Path, kind: str = "pipe") -> Path:
    """Something else in the place of a file."""
    path.unlink(missing_ok=True)
    KINDS[kind](path)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "words",
    [
        ["run", "icarl", "--config"],
        ["run", "icarl", "--order"],
        ["run", "--pycil"],
        ["grid"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_named_is_a_regular_one(
    words: list[str],
    kind: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    place = replaced(tmp_path / "file.yaml", kind)
    assert str(place) in refused([*words, str(place)], capsys)
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_a_regular_file(
    kind: str, run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run)
    replaced(run / "result.json", kind)
    for words in (["table", str(run)], ["report", str(run), "-o", str(run / "page.html")]):
        assert main(words) in (0, 2)
        assert "result.json" in capsys.readouterr().err
    picture = class_folders(run.parent / "tree", {"a": 1}) / "a" / "0.png"
    assert main(["predict", str(run), str(picture)]) == 0


@pytest.mark.parametrize("name", ["config.yaml", ".lock", "log.jsonl", "checkpoint/000004/checksums.json"])
def test_the_files_of_a_run_are_regular_ones(
    name: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "result.json").unlink()
    newest = max((run / "checkpoint").iterdir())
    replaced(run / name.replace("000004", newest.name))
    words = ["run", "icarl", "--data", "digits", "--task-sizes", "6,4", "--memory", "60", "--device", "cpu"]
    words += ["--first-epochs", "1", "--epochs", "1", "--out", str(run), "--resume"]
    assert main(words) == (0 if "checksums" in name else 2)
    captured = "".join(capsys.readouterr())
    assert "not a regular file" in captured and "Traceback" not in captured


def test_a_model_is_of_regular_files(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replaced(run / "model.next.safetensors")
    assert main(["predict", str(run), str(run / "config.yaml")]) == 1
    assert "is not an image" in capsys.readouterr().err  # the model itself is read
    for name in ("model.safetensors", "model.json"):
        replaced(run / name)
        refused(["predict", str(run), "x.png"], capsys)


@pytest.mark.parametrize("name", ["about.json", "pixels.npy", "labels.npy"])
def test_a_cache_is_of_regular_files(name: str, tmp_path: Path) -> None:
    place = class_folders(tmp_path / "pets", {"cat": 5, "dog": 5})
    read_events(place, data_cache=tmp_path / "c")
    (cached,) = (f for f in (tmp_path / "c").iterdir() if f.is_dir())
    replaced(cached / name)
    assert decodings(read_events(place, data_cache=tmp_path / "c")[1]) == 1
    assert decodings(read_events(place, data_cache=tmp_path / "c")[1]) == 0


def test_official_files_are_regular_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data-dir", str(tmp_path)]
    replaced(tiny_imagenet(tmp_path) / "wnids.txt")
    assert "not a regular file" in refused(["data", "check", "tinyimagenet", *where], capsys)
    replaced(cub(tmp_path) / "images.txt")
    assert "not a regular file" in refused(["data", "check", "cub200", *where], capsys)
    (tmp_path / "cifar-100-python").mkdir()
    replaced(tmp_path / "cifar-100-python" / "train")
    assert "not a regular file" in refused(["data", "check", "cifar100", *where], capsys)
    replaced(tmp_path / "cifar-10-python.tar.gz")
    assert main(["data", "get", "cifar10", *where]) == 2
    assert "not a regular file" in capsys.readouterr().err


def test_a_file_that_is_read_whole_has_a_largest_size(tmp_path: Path) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", files.MOST_BYTES + 1)
    with pytest.raises(OSError, match="larger than 1,024 MiB"):
        files.read_bytes(tmp_path / "large")
    assert files.read_json(tmp_path / "large") is None
