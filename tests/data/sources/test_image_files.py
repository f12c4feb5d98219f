"""Anybody's images: every kind of file is used as it looks, or named in one sentence; the label is never wrong."""

import io
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from sklearn.datasets import load_digits

from helpers.paths import ROOT
from helpers.runs import figures
from helpers.trees import class_folders, colour, picture, shown
from jioc.cli import main as cli
from jioc.config import values as settings
from jioc.data.dataset import Dataset
from jioc.data.images import decode
from jioc.data.load import load
from jioc.errors import Refused
from jioc.events import Event, Note
from jioc.training.run import run


def read(place: Path, **values: Any) -> tuple[Dataset, list[str]]:
    """The data set, and what was told about it."""
    events: list[Event] = []
    config = settings.make(method="finetune", data=str(place), **({"image_size": 8} | values))
    dataset = load(config, events.append)
    return dataset, [event.text for event in events if isinstance(event, Note)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sound classes of five."""
    return class_folders(tmp_path / "pets", {"cat": 5, "dog": 5})


# --- the layouts ---


def test_class_folders_are_split_by_class(folder: Path) -> None:
    d, told = read(folder)
    assert d.classes == ["cat", "dog"] and not told
    assert np.bincount(d.train_y).tolist() == [4, 4] and np.bincount(d.test_y).tolist() == [1, 1]
    assert d.record["split"] == {"made": True, "seed": 1993, "share": 0.2}


def test_every_image_keeps_its_label(folder: Path) -> None:
    d, _ = read(folder)
    of = {colour(n): n // 5 for n in range(10)}
    for x, y in ((d.train_x, d.train_y), (d.test_x, d.test_y)):
        assert [of[shown(image)] for image in x] == y.tolist()


def test_the_split_of_a_class_is_its_own(folder: Path) -> None:
    before, _ = read(folder)
    class_folders(folder, {"ant": 5}, first=50)
    after, _ = read(folder)
    assert after.classes == ["ant", "cat", "dog"]
    assert np.array_equal(after.test_x[after.test_y > 0], before.test_x)


def test_the_split_follows_its_seed(tmp_path: Path) -> None:
    place = class_folders(tmp_path / "d", {"a": 20, "b": 20})
    one, same, other = (read(place, split_seed=s)[0] for s in (1, 1, 2))
    assert np.array_equal(one.test_x, same.test_x) and not np.array_equal(one.test_x, other.test_x)
    assert len(read(place, test_share=0.5)[0].test_y) == 20


def test_train_and_test_folders_are_taken_as_given(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"b10": 2, "b9": 3})
    class_folders(tmp_path / "test", {"b9": 1, "b10": 1, "new": 1}, first=20)
    (tmp_path / "extra").mkdir()
    d, told = read(tmp_path)
    assert d.classes == ["b9", "b10"]  # as a person counts
    assert np.bincount(d.train_y).tolist() == [3, 2] and np.bincount(d.test_y).tolist() == [1, 1]
    assert "'test/new' is a class that train does not have; it is left out" in told
    assert "the folder 'extra' beside 'train' is not used" in told


def test_train_alone_is_split(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 5, "b": 5})
    d, _ = read(tmp_path)
    assert d.classes == ["a", "b"] and len(d.test_y) == 2


@pytest.mark.parametrize("head", ["", "path,label,split\n", "filename, class , split\n"])
def test_csv_with_and_without_names(tmp_path: Path, head: str) -> None:
    class_folders(tmp_path, {"pool": 4})
    rows = [f"pool/{i}.png,{'ab'[i % 2]},{'train' if i < 2 else 'test'}\n" for i in range(4)]
    (tmp_path / "list.csv").write_text(head + "".join(rows))
    d, _ = read(tmp_path / "list.csv")
    assert d.classes == ["a", "b"] and d.train_y.tolist() == [0, 1] == d.test_y.tolist()
    assert [shown(x) for x in d.train_x] == [colour(0), colour(1)]


@pytest.mark.parametrize("word", ["val", "Validation"])
def test_rows_of_validation_serve_as_test_only_where_there_is_no_other(tmp_path: Path, word: str) -> None:
    class_folders(tmp_path, {"pool": 7})
    rows = [f"pool/{i}.png,{'ab'[i % 2]},{split}\n" for i, split in enumerate(["train"] * 2 + [word] * 2)]
    (tmp_path / "list.csv").write_text("".join(rows))
    d, told = read(tmp_path / "list.csv")
    assert [shown(x) for x in d.test_x] == [colour(2), colour(3)] and not told
    assert d.record["split"] == {"made": False, "test": "val"}
    rows += ["pool/4.png,a,test\n", "pool/5.png,b,test\n", f"pool/6.png,only-there,{word}\n"]
    (tmp_path / "list.csv").write_text("".join(rows))
    d, told = read(tmp_path / "list.csv")
    assert [shown(x) for x in d.test_x] == [colour(4), colour(5)] and d.classes == ["a", "b"]
    assert told == ["validation rows beside test rows are not used: 3"]
    assert d.record["split"] == {"made": False}


@pytest.mark.parametrize(
    ("word", "judge", "given"),
    [("val", "val, which serves as the test set", " (val)"), ("test", "the test set", "")],
)
def test_validation_that_serves_as_the_test_set_is_named(
    tmp_path: Path, word: str, judge: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = class_folders(tmp_path / "tree" / "train", {"a": 2, "b": 2}).parent
    class_folders(tree / word, {"a": 1, "b": 1}, first=4)
    rows = [(path, *path.parts[-3:-1]) for path in tree.rglob("*.png")]
    (tmp_path / "list.csv").write_text("".join(f"{path},{label},{split}\n" for path, split, label in rows))
    for place in (str(tree), str(tmp_path / "list.csv")):
        words = ["--image-size", "8", "--memory", "0", "--epochs", "1", "--device", "cpu", "--dry-run"]
        assert cli.main(["run", "replay", "--data", place, *words]) == 0
        assert f"\njudged by {judge}\n" in capsys.readouterr().out
        assert cli.main(["data", "check", place, "--image-size", "8"]) == 0
        assert f"test set as given{given};" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("path,label\n", "names its columns and holds no row"),
        ("x.png\n", "row 1 has no path or no label"),
        ("x.png,a,somewhere\n", "split 'somewhere'"),
        ("x.png,a,train\ny.png,a,\n", "some rows say which split"),
        ("/etc/hostname,a\n", "outside"),
        ("../x.png,a\n", "outside"),
        ("missing.png,a\n", "No such file"),
        ("nul\0.png,a\n", "nul"),
    ],
)
def test_a_wrong_csv_gets_a_sentence(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(Refused, match=told):
        read(tmp_path / "list.csv")


def test_a_name_whose_accents_stand_apart_is_the_same_class(tmp_path: Path) -> None:
    joined, apart = "B\u00e4r", "Ba\u0308r"
    class_folders(tmp_path / "train", {joined: 2, "cat": 2})
    class_folders(tmp_path / "test", {apart: 1, "cat": 1}, first=10)
    d, told = read(tmp_path)
    assert d.classes == [joined, "cat"] and d.test_y.tolist() == [0, 1] and not told
    class_folders(tmp_path / "train", {apart: 1}, first=20)
    d, _ = read(tmp_path)
    assert d.classes == [joined, "cat"] and d.train_y.tolist() == [0, 0, 0, 1, 1]
    class_folders(tmp_path, {"pool": 4})
    (tmp_path / "list.csv").write_text("".join(f"pool/{i}.png,{(joined, apart)[i % 2]}\n" for i in range(4)))
    assert read(tmp_path / "list.csv")[0].classes == [joined]


# --- kinds of pictures: what each looks like at 8x8 ---

GREY, RED = (128, 128, 128), (255, 0, 0)


def _rotated(path: Path) -> None:
    """Stored lying on its side, with the EXIF word that says so; as seen, the left half is red."""
    seen = Image.new("RGB", (8, 8))
    seen.paste(RED, (0, 0, 4, 8))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees, clockwise
    seen.transpose(Image.Transpose.ROTATE_90).save(path.with_suffix(".png"), exif=exif)


def _animated(path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), c) for c in (RED, (0, 0, 255))]
    frames[0].save(path.with_suffix(".gif"), save_all=True, append_images=frames[1:])


def _palette(path: Path) -> None:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 255, 255, 0, 0])
    image.save(path.with_suffix(".png"))


def _see_through_palette(path: Path) -> None:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 255, 255, 0, 0])
    image.save(path.with_suffix(".png"), transparency=1)


def _wide(path: Path) -> None:
    """Only the centred square counts, and it is grey, with the few pixels beside it that antialiasing sees."""
    image = Image.new("RGB", (48, 16), RED)
    image.paste(GREY, (12, 0, 36, 16))
    image.save(path.with_suffix(".png"))


PICTURES: dict[str, tuple[Callable[[Path], Any], tuple[int, int, int]]] = {
    "grey": (lambda p: Image.new("L", (8, 8), 128).save(p.with_suffix(".png")), GREY),
    "one bit": (lambda p: Image.new("1", (8, 8), 1).save(p.with_suffix(".png")), (255, 255, 255)),
    "palette": (_palette, RED),
    "palette, transparent": (_see_through_palette, (255, 255, 255)),
    "cmyk": (lambda p: Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(p.with_suffix(".tif")), RED),
    "16 bit": (
        lambda p: Image.fromarray(np.full((8, 8), 32896, np.uint16)).save(p.with_suffix(".png")),
        GREY,
    ),
    "alpha": (
        lambda p: Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(p.with_suffix(".png")),
        (255, 255, 255),
    ),
    "half alpha": (lambda p: Image.new("LA", (8, 8), (0, 127)).save(p.with_suffix(".png")), GREY),
    "animated": (_animated, RED),
    "wrong extension": (lambda p: Image.new("RGB", (8, 8), RED).save(p.with_suffix(".jpg"), "PNG"), RED),
    "no extension": (lambda p: Image.new("RGB", (8, 8), RED).save(p, "PNG"), RED),
    "jpeg, large": (lambda p: Image.new("RGB", (300, 200), GREY).save(p.with_suffix(".jpg")), GREY),
    "wide": (_wide, GREY),
    "webp": (lambda p: Image.new("RGB", (8, 8), GREY).save(p.with_suffix(".webp"), lossless=True), GREY),
}


def _noise(levels: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(0).randint(0, levels, shape)


MORE: dict[str, tuple[np.ndarray, str, Any]] = {  # pixels, ending, and what of them is transparent
    "grey, one level transparent": (_noise(4, 9, 12).astype(np.uint8), ".png", 2),
    "one colour transparent": (255 * _noise(2, 9, 12, 3).astype(np.uint8), ".png", (255, 255, 0)),
    "16 bit, every level": (np.arange(1 << 16).reshape(256, 256).astype(np.uint16), ".png", None),
    "16 bit tiff": (_noise(1 << 16, 9, 12).astype(np.uint16), ".tif", None),
    "jpeg, sharp and large": (_noise(256, 150, 99, 3).astype(np.uint8), ".jpg", None),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_is_used_as_it_looks(folder: Path, kind: str) -> None:
    write, seen = PICTURES[kind]
    (folder / "odd").mkdir()
    write(folder / "odd" / "it")
    d, told = read(folder)
    assert shown(d.train_x[d.train_y == 2][0]) == seen
    assert told == ["class 'odd' has no test image; it is learnt and not judged"]


def test_the_lines_beside_an_exported_model_give_the_pixels_of_training(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "models.md").read_text()
    (shown_there,) = [
        lines for lines in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def pixels_of" in lines
    ]
    assert shown_there in (ROOT / "examples" / "add_classes.sh").read_text()
    names: dict[str, Any] = {"np": np, "Image": Image, "ImageOps": ImageOps}
    exec(shown_there, names)
    for name, write in [*((kind, write) for kind, (write, _) in PICTURES.items()), ("rotated", _rotated)]:
        (tmp_path / name).mkdir()
        write(tmp_path / name / "it")
    for name, (pixels, ending, transparent) in MORE.items():
        how = {} if transparent is None else {"transparency": transparent}
        Image.fromarray(pixels).save(tmp_path / f"{name}{ending}", **how)
    for file in filter(Path.is_file, tmp_path.rglob("*")):
        for canvas, grey in [(8, False), (5, True), (256, True)]:
            pixels, _ = decode.square(file.read_bytes(), canvas, grey)
            found = names["pixels_of"](file, canvas, 1 if grey else 3)
            assert np.array_equal(found.transpose(2, 0, 1), pixels), file


def test_a_picture_is_turned_as_its_exif_says(folder: Path) -> None:
    (folder / "odd").mkdir()
    _rotated(folder / "odd" / "it")
    image = read(folder)[0].train_x[-1]
    assert (image[0, :, :4] == 255).all() and (image[0, :, 4:] == 0).all()


@pytest.mark.parametrize(
    "name", ["a b.png", 'it\'s "it".png', "größe-猫.png", "two\nlines.png", "-rf.png", "[1].png"]
)
def test_names_of_any_kind(folder: Path, name: str) -> None:
    picture(folder / f"class {name}" / name, 30)
    d, _ = read(folder)
    assert shown(d.train_x[d.train_y == d.classes.index(f"class {name}")][0]) == colour(30)


# --- what cannot be used ---


def _png(width: int, height: int, data: bytes = b"") -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def _truncated(path: Path, kind: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.random.RandomState(0).randint(0, 255, (32, 32, 3), np.uint8)).save(buffer, kind)
    path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])


UNUSABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "truncated jpeg": (lambda p: _truncated(p, "JPEG"), "is truncated"),
    "truncated png": (lambda p: _truncated(p, "PNG"), "is truncated"),
    "zero bytes": (lambda p: p.write_bytes(b""), "is empty"),
    "no image": (lambda p: p.write_text("hello"), "is not an image of a known format"),
    "bomb": (lambda p: p.write_bytes(_png(30_000, 30_000)), "is not opened"),
    "smaller bomb": (lambda p: p.write_bytes(_png(10_000, 10_000)), "10,000 x 10,000 pixels"),
    "postscript": (
        lambda p: p.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n"),
        "is not an image",
    ),
    "32 bit": (lambda p: Image.new("F", (8, 8), 0.5).save(p, "TIFF"), "has 32-bit levels"),
    "pipe": (os.mkfifo, "is not a regular file"),
    "link to nothing": (lambda p: p.symlink_to("nowhere"), "is a link to nothing"),
    "link that leaves": (lambda p: p.symlink_to("/etc/hostname"), "is a link that leaves the folder"),
    "linked folder": (lambda p: p.symlink_to("../cat", target_is_directory=True), "is a link to a folder"),
    "loop": (lambda p: p.symlink_to(p.name), "is a link to nothing"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_an_unusable_file_is_named_and_left_out_or_ends_the_run(folder: Path, kind: str) -> None:
    make, why = UNUSABLE[kind]
    make(folder / "dog" / "bad.jpg")
    d, told = read(folder)
    assert len(d.train_y) + len(d.test_y) == 10 and len(told) == 1
    assert told[0].startswith("'dog/bad.jpg' ") and why in told[0] and told[0].endswith("; it is left out")
    assert [file for file, _ in d.record["skipped"]] == ["dog/bad.jpg"]
    with pytest.raises(Refused, match="dog/bad.jpg.*--on-bad skip leaves such files out"):
        read(folder, on_bad="fail")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_damage_anywhere_is_an_image_or_a_reason(kind: str) -> None:
    draw = np.random.RandomState(0)
    buffer = io.BytesIO()
    Image.fromarray(draw.randint(0, 255, (24, 20, 3), np.uint8)).save(buffer, kind)
    for _ in range(60):
        raw = bytearray(buffer.getvalue())
        for at in draw.randint(0, len(raw), draw.randint(1, 6)):
            raw[at] = draw.randint(256)
        raw = raw[: draw.randint(1, len(raw))] if draw.rand() < 0.3 else raw
        try:
            pixels, _ = decode.square(bytes(raw), 8, grey=False)
            assert pixels.shape == (3, 8, 8) and pixels.dtype == np.uint8
        except decode.Unusable as why:
            assert "\n" not in str(why)


def test_a_link_that_stays_is_used(folder: Path) -> None:
    (folder / "bird").mkdir()
    (folder / "bird" / "it.png").symlink_to("../dog/0.png")
    d, told = read(folder)
    assert shown(d.train_x[d.train_y == 0][0]) == colour(5)
    assert "one of the two labels is wrong" in told[0]


def test_a_class_folder_that_is_a_link_out_is_left_out(folder: Path, tmp_path: Path) -> None:
    class_folders(tmp_path / "elsewhere", {"bird": 3}, first=40)
    (folder / "bird").symlink_to(tmp_path / "elsewhere" / "bird", target_is_directory=True)
    d, told = read(folder)
    assert d.classes == ["cat", "dog"]
    assert told == ["'bird' is a link that leaves the folder; it is left out"]


def test_an_empty_class_folder_is_left_out_and_labels_stay_right(folder: Path) -> None:
    (folder / "bird").mkdir()
    d, told = read(folder)
    assert d.classes == ["cat", "dog"] and sorted(set(d.train_y)) == [0, 1]
    assert shown(d.train_x[d.train_y == 1][0])[1] <= 40  # the dogs' colours
    assert told == ["'bird' is an empty class folder; it is left out"]
    with pytest.raises(Refused, match="'bird' is an empty class folder"):
        read(folder, on_bad="fail")


def test_an_image_in_no_class_folder_is_left_out_by_name(folder: Path, tmp_path: Path) -> None:
    picture(folder / "stray.PNG", 40)
    for name in ("README.md", "labels.csv", ".hidden.png"):
        (folder / name).write_text("x")
    d, told = read(folder)
    assert told == ["'stray.PNG' lies in no class folder; it is left out"] and len(d.train_y) == 8
    assert d.record["skipped"] == [["stray.PNG", "lies in no class folder"]]
    with pytest.raises(Refused, match="'stray.PNG' lies in no class folder"):
        read(folder, on_bad="fail")
    parts = tmp_path / "parts"
    for part, first in (("train", 50), ("test", 60)):
        class_folders(parts / part, {"a": 2, "b": 2}, first)
    for i, name in enumerate(["a.jpg", "train/a.jpg", "test/a.jpg"]):
        picture(parts / name, 70 + i)
    assert read(parts)[1] == [
        f"{name!r} lies in no class folder; it is left out" for name in ("a.jpg", "train/a.jpg", "test/a.jpg")
    ]


def test_a_check_names_all_that_is_left_out_and_a_dry_run_where_that_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for i in range(8):
        (folder / "cat" / f"bad{i}.png").write_text("x")
    named = [f"note: 'cat/bad{i}.png' is not an image of a known format; it is left out" for i in range(8)]
    words = ["--data", str(folder), "--dry-run", "--epochs", "1", "--memory", "2", "--device", "cpu"]
    assert cli.main(["run", "replay", *words]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told == [*named[:5], "note: left out besides: 3; jioc data check names them all"]
    assert cli.main(["data", "check", str(folder)]) == 0
    assert capsys.readouterr().err.splitlines() == named


def test_a_memory_needs_room_for_the_classes_that_are_left(
    folder: Path, tmp_path: Path, small: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bird").mkdir()
    (folder / "cow").mkdir()
    (folder / "cow" / "0.png").write_text("no image")
    small |= {"data": str(folder), "task_sizes": (1, 1), "first": {"epochs": 1}, "later": {"epochs": 1}}
    assert run(method="replay", **(small | {"memory": 2}))["complete"]
    told = "memory 1 leaves no exemplar for each of 2 classes; give at least 2, or 0 for none"
    with pytest.raises(Refused, match=told):
        run(method="replay", out=tmp_path / "run", **(small | {"memory": 1}))
    assert not (tmp_path / "run").exists()
    assert (
        cli.main(["run", "replay", "--data", str(folder), "--memory", "1", "--dry-run", "--device", "cpu"])
        == 2
    )
    assert told in capsys.readouterr().err


def test_a_class_of_broken_images_is_told_though_its_test_folder_is_empty(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 3, "b": 3})
    class_folders(tmp_path / "test", {"a": 1, "b": 1}, first=20)
    (tmp_path / "test" / "c").mkdir()
    (tmp_path / "train" / "c").mkdir()
    (tmp_path / "train" / "c" / "0.png").write_text("no image")
    d, told = read(tmp_path)
    assert d.classes == ["a", "b"]
    assert told[-1] == "class 'c' has no usable training image; it is left out" and len(told) == 3
    (tmp_path / "train" / "c" / "0.png").unlink()
    assert read(tmp_path)[1] == [
        f"'{part}/c' is an empty class folder; it is left out" for part in ("train", "test")
    ]


def test_a_class_with_one_image_is_learnt_and_not_judged(folder: Path, small: dict[str, Any]) -> None:
    picture(folder / "bird" / "only.png", 30)
    d, told = read(folder)
    assert d.classes == ["bird", "cat", "dog"] and told == [
        "class 'bird' has no test image; it is learnt and not judged"
    ]
    small |= {"data": str(folder), "task_sizes": (3,), "first": {"epochs": 1}}
    result = run(method="finetune", **small)
    assert result["tasks"][0]["cnn"]["per_class"][result["classes"].index("bird")] is None
    with pytest.raises(Refused, match="no class of task . has an image to judge by"):
        run(method="finetune", **(small | {"task_sizes": (1, 1, 1)}))


@pytest.mark.parametrize("tasks", [1, 2])
def test_where_nothing_can_be_judged_other_tasks_are_no_advice(
    tasks: int, tmp_path: Path, small: dict[str, Any]
) -> None:
    place = class_folders(tmp_path / "ones", {"a": 1, "b": 1})
    with pytest.raises(Refused, match="there is no image to judge by: .*no class has two images"):
        run(method="finetune", **(small | {"data": str(place), "task_sizes": None, "tasks": tasks}))


def test_a_file_in_train_and_test_is_not_trained_on(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 3, "b": 3})
    class_folders(tmp_path / "test", {"a": 1, "b": 1}, first=20)
    (tmp_path / "train" / "b" / "again.png").write_bytes((tmp_path / "test" / "b" / "0.png").read_bytes())
    d, told = read(tmp_path)
    assert len(d.train_y) == 6 and told == [
        "'train/b/again.png' is also in the test set, as 'test/b/0.png'; it is left out"
    ]
    with pytest.raises(Refused, match="is also in the test set"):
        read(tmp_path, on_bad="fail")


def test_a_file_twice_in_a_class_cannot_be_on_both_sides_of_a_split(folder: Path) -> None:
    (folder / "cat" / "9.png").write_bytes((folder / "cat" / "0.png").read_bytes())
    d, told = read(folder)
    assert told == ["'cat/9.png' is the same file as 'cat/0.png'; it is left out"]
    assert not set(map(shown, d.train_x)) & set(map(shown, d.test_x))


def test_one_picture_under_two_names_of_classes_is_told(folder: Path) -> None:
    (folder / "dog" / "9.png").write_bytes((folder / "cat" / "0.png").read_bytes())
    assert "'dog/9.png' of class 'dog' is the same image as 'cat/0.png' of class 'cat'" in read(folder)[1][0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{}/nowhere/at/all"], "there is no folder"),
        (["missing.csv"], "--data: there is no file 'missing.csv'"),
        (["{}/missing.py"], "there is no file"),
        (["{}/file.txt"], "is a file; give a folder"),
        (["{}/empty"], "holds no class folders"),
        (["{}/flat"], "holds no class folders"),
        (["{}/hollow"], "holds no image to train on"),
        (["{}/broken"], "holds no usable training image"),
        (["{}/pets", "--image-size", "2"], "--image-size"),
        (["{}/pets", "--image-size", "64", "--canvas", "32"], "--canvas 32 is smaller"),
        (["cifar1000"], "did you mean 'cifar100'"),
    ],
)
def test_a_wrong_place_gets_one_sentence(
    folder: Path, tmp_path: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    picture(tmp_path / "flat" / "0.png")
    (tmp_path / "hollow" / "a").mkdir(parents=True)
    (tmp_path / "broken" / "a").mkdir(parents=True)
    (tmp_path / "broken" / "a" / "x.png").write_text("x")
    assert cli.main(["data", "check", *(word.format(tmp_path) for word in words)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert told in said[-1] and said[-1].startswith("jioc: ")


# --- sizes, colour, whole runs ---


def test_sizes_networks_and_tasks_by_default(tmp_path: Path) -> None:
    from jioc.resolve.derive import resolve

    for side, want in [
        (8, (8, 8, "tiny", "cifar")),
        (32, (32, 32, "resnet32", "cifar")),
        (100, (84, 96, "resnet18", "cifar")),
        (300, (224, 256, "resnet18", "imagenet")),
    ]:
        for i in range(4):
            picture(tmp_path / str(side) / "ab"[i % 2] / f"{i}.png", i, (side, side + 20))
        c = resolve(settings.make(method="icarl", data=str(tmp_path / str(side)), memory=10))
        assert (c.image_size, c.canvas, c.backbone, c.stem) == want


def test_grey_where_all_are_and_colour_as_soon_as_one_is(tmp_path: Path) -> None:
    for name in "ab":
        for i in range(2):
            (tmp_path / name).mkdir(exist_ok=True)
            Image.new("L", (8, 8), 60 * i + ord(name)).save(tmp_path / name / f"{i}.png")
    assert read(tmp_path)[0].channels == 1 and read(tmp_path, colour="rgb")[0].channels == 3
    picture(tmp_path / "b" / "2.png", 30)
    assert read(tmp_path)[0].channels == 3 and read(tmp_path, colour="grey")[0].channels == 1


def test_statistics_are_those_of_the_training_images(folder: Path) -> None:
    d, _ = read(folder)
    levels = d.train_x / 255
    assert d.mean == pytest.approx(levels.mean((0, 2, 3)), abs=1e-4)
    assert d.std == pytest.approx(levels.std((0, 2, 3)).clip(0.01), abs=1e-4)


@pytest.fixture(scope="module")
def digits_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("digits")
    digits = load_digits()
    x = np.round(digits.images * (255 / 16)).astype(np.uint8)
    for c in range(10):
        of = np.flatnonzero(digits.target == c)
        for i, row in enumerate(of):
            side = "train" if i < round(0.7 * len(of)) else "test"
            where = root / side / str(c)
            where.mkdir(parents=True, exist_ok=True)
            Image.fromarray(x[row]).save(where / f"{i}.png", compress_level=0)
    return root


AS_DIGITS = {"mean": (0.3053,), "std": (0.3762,), "flip": False}


@pytest.mark.parametrize("tail", [None, 10])
def test_digits_as_a_folder_are_the_digits(
    digits_folder: Path, small: dict[str, Any], tail: float | None
) -> None:
    small["long_tail"] = tail
    own = run(method="icarl", **small, coordination={"coordinate": "jioc"})
    theirs = run(
        method="icarl",
        **(small | AS_DIGITS | {"data": str(digits_folder)}),
        coordination={"coordinate": "jioc"},
    )
    both = [figures(own), figures(theirs)]
    for row in [row for result in both for row in result["tasks"]]:
        del row["diagnostics"]  # sums over the same images in another order
    assert both[0] == both[1]
    if tail:
        assert own["counts"] == theirs["counts"] and max(own["counts"]) / min(own["counts"]) > 9


def test_the_command_line_prints_the_long_tail(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class_folders(folder, {"ant": 20}, first=60)
    words = [
        str(folder),
        "--long-tail",
        "4",
        "--long-tail-order",
        "original",
        "--tasks",
        "1",
        "--image-size",
        "8",
    ]
    assert cli.main(["data", "check", *words]) == 0
    told = capsys.readouterr().out
    assert "ant 16" in told and "cat 4" in told and "dog 4" in told  # 16, 8 and 4 wanted; 4 there


def test_the_counts_table_shows_any_name(capsys: pytest.CaptureFixture[str]) -> None:
    from jioc.cli.console import counts_table

    counts_table(["[red]a", "two\nlines", "esc\x1b[31m", "[/]"], [4, 3, 2, 1], [2, 2])
    told = capsys.readouterr().out
    assert "[red]a 4, two lines 3" in told and "esc [31m 2, [/] 1" in told


def test_class_names_reach_the_saved_model(folder: Path, tmp_path: Path, small: dict[str, Any]) -> None:
    import json

    small |= {"data": str(folder), "task_sizes": (1, 1), "later": {"epochs": 1}, "first": {"epochs": 1}}
    run(method="replay", out=tmp_path / "run", **small)
    about = json.loads((tmp_path / "run" / "model.json").read_bytes())
    assert sorted(about["classes"]) == ["cat", "dog"] and about["image"] == [3, 8, 8] and about["canvas"] == 8
    result = json.loads((tmp_path / "run" / "result.json").read_bytes())
    assert result["data"]["layout"] == "class folders" and result["data"]["split"]["seed"] == 1993


def test_a_jpeg_read_at_a_smaller_scale_looks_the_same() -> None:
    rows, cols = np.mgrid[0:512, 0:512] / 511
    image = Image.fromarray((255 * np.stack([rows, cols, (rows + cols) / 2], 2)).astype(np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=95)
    small, _ = decode.square(buffer.getvalue(), 32, grey=False)
    whole = np.asarray(image.resize((32, 32), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(small.astype(int) - whole).max() <= 4
