"""The official trees, small but laid out as published, from folders and archives; fetching and unpacking."""

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

from helpers.trees import WNIDS, colour, picture, shown, tiny_imagenet
from jioc.cli import main as cli
from jioc.config import values as settings
from jioc.data import catalogue
from jioc.data.augment.basic import Augment
from jioc.data.augment.crops import ResizedCrop
from jioc.data.dataset import Dataset
from jioc.data.find import find
from jioc.data.load import load
from jioc.data.sources import archives
from jioc.errors import Failed, Refused
from jioc.resolve.derive import resolve


def read(name: str, folder: Path, **values: Any) -> Dataset:
    return load(resolve(settings.make(method="finetune", data=name, data_dir=folder, **values)))


def near(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """The same colour, after JPEG."""
    return max(abs(i - j) for i, j in zip(a, b, strict=True)) <= 8


def colours(x: np.ndarray) -> list[tuple[int, int, int]]:
    return [shown(image) for image in x]


def match(x: np.ndarray, numbers: list[int]) -> bool:
    return len(x) == len(numbers) and all(
        near(c, colour(n)) for c, n in zip(colours(x), numbers, strict=True)
    )


# --- the trees ---


def cub(folder: Path) -> Path:
    root = folder / "CUB_200_2011"
    names = ["001.Black_footed_Albatross", "002.Laysan_Albatross", "010.Red_winged_Blackbird"]
    images, labels, splits = [], [], []
    for i in range(9):
        path = f"{names[i // 3]}/{names[i // 3][4:]}_{i:04d}.jpg"
        picture(root / "images" / path, i, (50, 40))
        images.append(f"{i + 1} {path}\n")
        labels.append(f"{i + 1} {i // 3 + 1}\n")
        splits.append(f"{i + 1} {int(i % 3 != 1)}\n")
    for name, lines in [("images", images), ("image_class_labels", labels), ("train_test_split", splits)]:
        (root / f"{name}.txt").write_text("".join(lines))
    (root / "classes.txt").write_text("".join(f"{c + 1} {name}\n" for c, name in enumerate(names)))
    return root


MINI = ["n01532829", "n02108089", "n03400231"]


def mini_csv(folder: Path) -> Path:
    root = folder / "miniimagenet"
    number = 0
    for table, names in (
        ("train", MINI[1:2]),
        ("val", MINI[2:]),
        ("test", MINI[:1]),
    ):  # classes are parted, not images
        rows = ["filename,label\n"]
        for name in names:
            for i in range(10):
                picture(root / "images" / f"{name}{i:08d}.jpg", number, (100, 84))
                rows.append(f"{name}{i:08d}.jpg,{name}\n")
                number += 1
        (root / f"{table}.csv").write_text("".join(rows))
    return root


def mini_folders(folder: Path) -> Path:
    root = folder / "mini-imagenet"
    for c, name in enumerate(MINI):
        for i in range(10):
            picture(root / name / f"{name}{i:08d}.jpg", 10 * c + i, (100, 84))
    return root


def mini_parted(folder: Path) -> Path:
    root = folder / "miniimagenet"
    for part, c in (("train", 1), ("val", 2), ("test", 0)):
        for i in range(10):
            picture(root / part / MINI[c] / f"{MINI[c]}{i:08d}.jpg", 10 * c + i, (100, 84))
    return root


# --- what they load as ---


def test_tiny_imagenet(tmp_path: Path) -> None:
    tiny_imagenet(tmp_path)
    d = read("tinyimagenet", tmp_path)
    assert d.classes == ["goldfish", "Egyptian cat", "reel"]  # by sorted number
    assert d.train_x.shape == (12, 3, 64, 64) and d.shape == (3, 64, 64)
    assert np.bincount(d.train_y).tolist() == [4, 4, 4] and match(
        d.train_x, [4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11]
    )
    assert d.test_y.tolist() == [0, 0, 1, 1, 2, 2] and match(d.test_x, [21, 24, 20, 23, 22, 25])
    assert d.augment == Augment(pad=4, flip=True) and d.record["split"] == {"made": False}


@pytest.mark.parametrize(
    ("line", "told"), [("val_0.JPEG", "not a name, a tab and a class"), ("x\tn0", "names 'n0'")]
)
def test_a_torn_line_of_tiny_imagenet_gets_a_sentence(tmp_path: Path, line: str, told: str) -> None:
    (tiny_imagenet(tmp_path) / "val" / "val_annotations.txt").write_text(line + "\n")
    with pytest.raises(Refused, match=told):
        read("tinyimagenet", tmp_path)


def test_tiny_imagenet_with_val_in_class_folders(tmp_path: Path) -> None:
    root = tiny_imagenet(tmp_path)
    before = read("tinyimagenet", tmp_path)
    for i in range(6):
        (root / "val" / WNIDS[i % 3]).mkdir(exist_ok=True)
        (root / "val" / "images" / f"val_{i}.JPEG").rename(root / "val" / WNIDS[i % 3] / f"val_{i}.JPEG")
    (root / "val" / "images").rmdir()
    after = read("tinyimagenet", tmp_path)
    assert np.array_equal(before.test_x, after.test_x) and np.array_equal(before.test_y, after.test_y)


def test_cub(tmp_path: Path) -> None:
    cub(tmp_path)
    d = read("cub200", tmp_path)
    assert d.classes == ["001.Black_footed_Albatross", "002.Laysan_Albatross", "010.Red_winged_Blackbird"]
    assert d.train_x.shape == (6, 3, 256, 256) and d.shape == (3, 224, 224)
    assert d.train_y.tolist() == [0, 0, 1, 1, 2, 2] and match(d.train_x, [0, 2, 3, 5, 6, 8])
    assert d.test_y.tolist() == [0, 1, 2] and match(d.test_x, [1, 4, 7])
    assert d.augment == ResizedCrop(224)


@pytest.mark.parametrize("tree", [mini_csv, mini_folders, mini_parted])
def test_mini_imagenet_in_each_layout(tmp_path: Path, tree: Callable[[Path], Path]) -> None:
    tree(tmp_path)
    d = read("miniimagenet", tmp_path)
    assert d.classes == MINI and d.shape == (3, 84, 84) and d.train_x.shape == (24, 3, 96, 96)
    assert np.bincount(d.train_y).tolist() == [8] * 3 and np.bincount(d.test_y).tolist() == [2] * 3
    assert d.record["split"] == {"made": True, "seed": 1993, "share": 0.2} and d.augment == ResizedCrop(84)
    if tree is not mini_csv:  # there the numbers were given in another order
        both = [
            *zip(colours(d.train_x), d.train_y, strict=True),
            *zip(colours(d.test_x), d.test_y, strict=True),
        ]
        assert all(any(near(c, colour(n)) for n in range(10 * y, 10 * y + 10)) for c, y in both)


def test_mini_imagenet_with_a_split_of_images_keeps_it(tmp_path: Path) -> None:
    for part, count in (("train", 4), ("test", 1)):
        for name in MINI:
            for i in range(count):
                picture(tmp_path / "miniimagenet" / part / name / f"{i}.jpg", i)
    d = read("miniimagenet", tmp_path)
    assert len(d.train_y) == 12 and len(d.test_y) == 3 and d.record["split"] == {"made": False}


@pytest.mark.data
def test_cifar100_from_the_official_files(cifar: Path) -> None:
    d = read("cifar100", cifar)
    assert d.classes[:2] == ["apple", "aquarium_fish"] and d.train_x.shape == (50_000, 3, 32, 32)
    assert np.bincount(d.train_y).tolist() == [500] * 100 and np.bincount(d.test_y).tolist() == [100] * 100


DEFAULTS = {
    "cifar10": (32, "resnet32", "cifar", 5),
    "cifar100": (32, "resnet32", "cifar", 10),
    "tinyimagenet": (64, "resnet18", "cifar", 10),
    "miniimagenet": (84, "resnet18", "cifar", 10),
    "cub200": (224, "resnet18", "imagenet", 10),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_sizes_and_stems_are_recorded_and_can_be_changed(name: str) -> None:
    c = resolve(settings.make(method="icarl", data=name))
    assert (c.image_size, c.backbone, c.stem, find(name).tasks) == DEFAULTS[name]
    if name.startswith("cifar"):
        with pytest.raises(Refused, match="comes as images of 32x32"):
            resolve(settings.make(method="icarl", data=name, image_size=64))
    else:
        c = resolve(settings.make(method="icarl", data=name, image_size=48, stem="cifar-pool"))
        assert (c.image_size, c.canvas, c.stem) == (48, 48, "cifar-pool")


def test_twins_in_an_official_split_are_told_and_kept(tmp_path: Path) -> None:
    root = tiny_imagenet(tmp_path)
    shutil.copy(
        root / "val" / "images" / "val_0.JPEG", root / "train" / WNIDS[0] / "images" / f"{WNIDS[0]}_9.JPEG"
    )
    d = read("tinyimagenet", tmp_path)
    assert len(d.train_y) == 13 and "also in the test set: 1 training image, such as" in d.record["notes"][0]


def test_a_copy_that_is_not_whole_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cub(tmp_path)
    assert cli.main(["data", "check", "cub200", "--data-dir", str(tmp_path), "--tasks", "3"]) == 0
    told = capsys.readouterr()
    assert "the whole set has 5,994 and 5,794" in told.err and "3 classes, 6 training and 3 test" in told.out


@pytest.mark.parametrize(
    "broken", ["images.txt", "classes.txt", "train_test_split.txt", "image_class_labels.txt"]
)
def test_a_torn_list_gets_a_sentence(tmp_path: Path, broken: str) -> None:
    root = cub(tmp_path)
    (root / broken).write_text("1 \n")
    with pytest.raises(Refused, match=broken):
        read("cub200", tmp_path)
    (root / broken).unlink()
    with pytest.raises(Refused, match=broken):
        read("cub200", tmp_path)


# --- archives ---


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
    folder = read(name, tmp_path)
    archive = packed(root, tmp_path / file)
    shutil.rmtree(root)
    unpacked = read(name, tmp_path)
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
    where = archives.locate(find("cifar100"), tmp_path, tmp_path / "cache")
    assert where.name == "cifar-100-python" and sorted(p.name for p in where.iterdir()) == [
        "meta",
        "test",
        "train",
    ]
    with pytest.raises(Refused, match="is damaged: its md5 is not the official file's"):
        read("cifar100", tmp_path)


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


# --- jioc data get ---


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
    assert len(read("cub200", tmp_path / "data").train_y) == 6
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
    ("name", "told"),
    [
        ("miniimagenet", "no official archive: put its images"),
        ("digits", "nothing to fetch"),
        ("cub20", "did you mean 'cub200'"),
        ("nothing", "unknown data set"),
    ],
)
def test_get_says_what_to_do(
    name: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["data", "get", name, "--data-dir", str(tmp_path)]) == 2
    assert told in capsys.readouterr().err


def test_files_that_are_not_there_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="fetch it with jioc data get tinyimagenet"):
        read("tinyimagenet", tmp_path)


def test_the_list_names_every_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in catalogue.DATASETS)


def test_where_official_files_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JIOC_DATA", raising=False)
    assert catalogue.data_folder(None).parts[-2:] == ("jioc", "data")
    (tmp_path / "data").mkdir()
    assert catalogue.data_folder(None) == Path("data")
    monkeypatch.setenv("JIOC_DATA", "/there")
    assert catalogue.data_folder(None) == Path("/there") and catalogue.data_folder(Path("/x")) == Path("/x")
