"""Archives are as good as their folders, fetched with their checksum; nothing lands outside."""

import hashlib
import io
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.trees import (
    cub,
    mini_csv,
    mini_folders,
    read_official,
    tiny_imagenet,
)
from jioc.cli import main as cli
from jioc.data import catalogue
from jioc.data.find import find_dataset
from jioc.data.sources import archives
from jioc.errors import Failed, Refused


def new_tar(path: Path) -> tarfile.TarFile:
    if not hasattr(tarfile, "data_filter"):
        pytest.skip("Python before 3.11.4 cannot unpack tar archives safely, and jioc refuses to")
    return tarfile.open(path, "w:gz")


def packed(root: Path, archive: Path) -> Path:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as z:
            for path in sorted(root.rglob("*")):
                z.write(path, path.relative_to(root.parent))
    else:
        with new_tar(archive) as t:
            t.add(root, root.name)
    return archive


@pytest.mark.parametrize(
    ("name", "tree", "file"),
    [
        ("tinyimagenet", tiny_imagenet, "tiny-imagenet-200.zip"),
        ("cub200", cub, "CUB_200_2011.tgz"),
        ("miniimagenet", mini_csv, "miniimagenet.tar.gz"),
        ("miniimagenet", mini_folders, "mini-imagenet.zip"),
    ],
)
def test_an_archive_is_as_good_as_its_folder(
    tmp_path: Path, name: str, tree: Callable[[Path], Path], file: str
) -> None:
    root = tree(tmp_path)
    folder = read_official(name, tmp_path)
    archive = packed(root, tmp_path / file)
    shutil.rmtree(root)
    unpacked = read_official(name, tmp_path)
    assert unpacked.classes == folder.classes
    for a, b in [(folder.train_x, unpacked.train_x), (folder.test_y, unpacked.test_y)]:
        assert np.array_equal(a, b)
    assert sorted(tmp_path.iterdir()) == [archive]  # nothing is left beside it


def test_cifar_is_found_in_its_archive(tmp_path: Path) -> None:
    for name in ("train", "test", "meta"):
        (tmp_path / "cifar-100-python").mkdir(exist_ok=True)
        (tmp_path / "cifar-100-python" / name).write_bytes(b"x")
    packed(tmp_path / "cifar-100-python", tmp_path / "cifar-100-python.tar.gz")
    shutil.rmtree(tmp_path / "cifar-100-python")
    where = archives.locate(find_dataset("cifar100"), tmp_path, tmp_path / "cache")
    assert where.name == "cifar-100-python" and sorted(p.name for p in where.iterdir()) == [
        "meta",
        "test",
        "train",
    ]
    with pytest.raises(Refused, match="is damaged: its md5 is not the official file's"):
        read_official("cifar100", tmp_path)


def hostile_zip(path: Path, member: str) -> None:
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("good.txt", "x")
        z.writestr(member, "x")


def hostile_tar(path: Path, member: str) -> None:
    with new_tar(path) as t:
        for name in ("good.txt", member):
            info = tarfile.TarInfo(name)
            info.size = 1
            t.addfile(info, io.BytesIO(b"x"))


def linked_tar(path: Path, member: str) -> None:
    with new_tar(path) as t:
        info = tarfile.TarInfo("way")
        info.type, info.linkname = tarfile.SYMTYPE, member
        t.addfile(info)
        inside = tarfile.TarInfo("way/x")
        inside.size = 1
        t.addfile(inside, io.BytesIO(b"x"))


@pytest.mark.parametrize("make", [hostile_zip, hostile_tar, linked_tar])
@pytest.mark.parametrize("member", ["../../x", "/tmp/jioc-escaped", "a/../../../x", "..\\..\\x", "C:\\x"])
def test_nothing_lands_outside(tmp_path: Path, make: Callable[[Path, str], None], member: str) -> None:
    make(tmp_path / "bad.archive", member)
    into = tmp_path / "a" / "b" / "c"
    into.parent.mkdir(parents=True)
    with pytest.raises(Refused, match="nothing is unpacked"):
        archives.unpack(tmp_path / "bad.archive", into)
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")) == [
        "a",
        "a/b",
        "bad.archive",
    ]
    assert not Path("/tmp/jioc-escaped").exists()


@pytest.mark.parametrize("raw", [b"", b"hello", b"PK\x05\x06" + b"\0" * 5, b"\x1f\x8b\x08\0broken"])
def test_no_archive_at_all_gets_a_sentence(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(raw)
    with pytest.raises(Refused, match="x.zip"):
        archives.unpack(tmp_path / "x.zip", tmp_path / "into")
    assert [p.name for p in tmp_path.iterdir()] == ["x.zip"]


def test_a_truncated_archive_leaves_nothing(tmp_path: Path) -> None:
    archive = packed(cub(tmp_path), tmp_path / "CUB_200_2011.tgz")
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(Failed, match="cannot be unpacked"):
        archives.unpack(archive, tmp_path / "into")
    assert not (tmp_path / "into").exists() and not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_an_archive_with_a_flipped_bit_is_not_unpacked(tmp_path: Path, packing: str) -> None:
    new_tar(tmp_path / "probe").close()
    with tarfile.open(tmp_path / "x.tgz", f"w:{packing}") as t:  # type: ignore[call-overload]
        info = tarfile.TarInfo("images.bin")
        info.size = 4000
        t.addfile(info, io.BytesIO(np.random.RandomState(0).bytes(info.size)))
    raw = (tmp_path / "x.tgz").read_bytes()
    for at in (len(raw) // 3, len(raw) // 2, len(raw) - 6):  # in the data, and in the checksum after them
        (tmp_path / "x.tgz").write_bytes(raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :])
        with pytest.raises(Refused, match="cannot be unpacked|neither a zip nor a tar"):
            archives.unpack(tmp_path / "x.tgz", tmp_path / "into")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["probe", "x.tgz"]


def test_a_tar_that_ends_after_a_member_or_in_a_damaged_header_is_not_unpacked(tmp_path: Path) -> None:
    new_tar(tmp_path / "probe").close()
    with tarfile.open(tmp_path / "x.tar", "w") as t:
        for name in ("a", "b"):
            info = tarfile.TarInfo(name)
            info.size = 600
            t.addfile(info, io.BytesIO(bytes(info.size)))
    raw, second = (tmp_path / "x.tar").read_bytes(), 512 + 1024
    for content in (raw[:second], raw[:second] + b"c" + raw[second + 1 :]):
        (tmp_path / "x.tar").write_bytes(content)
        with pytest.raises(Failed, match="truncated|a header is damaged"):
            archives.unpack(tmp_path / "x.tar", tmp_path / "into")


def test_a_zip_with_a_broken_stream_gets_a_sentence(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a", "b" * 1000)
    raw = bytearray((tmp_path / "x.zip").read_bytes())
    raw[31] = 0x07  # the stream begins after 30 bytes and the name: a block of a kind that there is not
    (tmp_path / "x.zip").write_bytes(raw)
    with pytest.raises(Failed, match="cannot be unpacked"):
        archives.unpack(tmp_path / "x.zip", tmp_path / "into")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address at which its files are served."""
    where = tmp_path / "served"
    where.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *parts: Any):
            super().__init__(*parts, directory=str(where))

        def log_message(self, *parts: Any) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield where, f"http://127.0.0.1:{serving.server_address[1]}"
    serving.shutdown()
    serving.server_close()


def offer(server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, md5: str | None = None) -> None:
    where, address = server
    archive = packed(cub(where / "tree"), where / "CUB_200_2011.tgz")
    told = md5 or hashlib.md5(archive.read_bytes()).hexdigest()
    entry = replace(catalogue.DATASETS["cub200"], archive=(f"{address}/{archive.name}", archive.name, told))
    monkeypatch.setitem(catalogue.DATASETS, "cub200", entry)


def test_get_fetches_checks_and_unpacks(
    server: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    offer(server, monkeypatch)
    words = ["data", "get", "cub200", "--data-dir", str(tmp_path / "data")]
    assert cli.main(words) == 0 and "cub200 lies in" in capsys.readouterr().out
    assert len(read_official("cub200", tmp_path / "data").train_y) == 6
    shutil.rmtree(server[0])
    assert cli.main(words) == 0 and "nothing is fetched" in capsys.readouterr().out
    shutil.rmtree(tmp_path / "data" / "CUB_200_2011")
    assert cli.main(words) == 0 and "nothing is fetched" not in capsys.readouterr().out  # from the archive


def test_a_wrong_checksum_is_refused_and_the_file_removed(
    server: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    offer(server, monkeypatch, md5="0" * 32)
    (tmp_path / "data").mkdir()
    assert cli.main(["data", "get", "cub200", "--data-dir", str(tmp_path / "data")]) == 1
    assert "its md5 is wrong; it was removed" in capsys.readouterr().err
    assert not list((tmp_path / "data").iterdir())


def test_an_address_that_does_not_answer_gets_a_sentence(
    server: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    offer(server, monkeypatch)
    (server[0] / "CUB_200_2011.tgz").unlink()
    assert cli.main(["data", "get", "cub200", "--data-dir", str(tmp_path)]) == 1
    assert "cannot be fetched: 404" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("miniimagenet", "no official archive: put its images"),
        ("digits", "nothing to fetch"),
        ("cub20", "did you mean 'cub200'"),
        ("nothing", "unknown data set"),
    ],
)
def test_get_says_what_to_do(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["data", "get", name, "--data-dir", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_files_that_are_not_there_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="fetch it with jioc data get tinyimagenet"):
        read_official("tinyimagenet", tmp_path)
