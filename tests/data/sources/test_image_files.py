"""Image files as a data set: sizes, colour, statistics, whole runs; small trees laid out as published."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers.runs import figures
from helpers.trees import (
    MINI,
    WNIDS,
    class_folders,
    colour,
    cub,
    mini_csv,
    mini_folders,
    picture,
    read,
    read_official,
    shown,
    tiny_imagenet,
)
from jioc.cli import main as cli
from jioc.config import values as settings
from jioc.data.augment.basic import Augment
from jioc.data.augment.crops import ResizedCrop
from jioc.errors import Refused
from jioc.training.run import run


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
    captured = capsys.readouterr().out
    assert "ant 16" in captured and "cat 4" in captured and "dog 4" in captured  # 16, 8 and 4 wanted; 4 there


def test_the_counts_table_shows_any_name(capsys: pytest.CaptureFixture[str]) -> None:
    from jioc.cli.console import counts_table

    counts_table(["[red]a", "two\nlines", "esc\x1b[31m", "[/]"], [4, 3, 2, 1], [2, 2])
    captured = capsys.readouterr().out
    assert "[red]a 4, two lines 3" in captured and "esc [31m 2, [/] 1" in captured


def test_class_names_reach_the_saved_model(folder: Path, tmp_path: Path, small: dict[str, Any]) -> None:
    import json

    small |= {"data": str(folder), "task_sizes": (1, 1), "later": {"epochs": 1}, "first": {"epochs": 1}}
    run(method="replay", out=tmp_path / "run", **small)
    about = json.loads((tmp_path / "run" / "model.json").read_bytes())
    assert sorted(about["classes"]) == ["cat", "dog"] and about["image"] == [3, 8, 8] and about["canvas"] == 8
    result = json.loads((tmp_path / "run" / "result.json").read_bytes())
    assert result["data"]["layout"] == "class folders" and result["data"]["split"]["seed"] == 1993


# --- official sets ---


def near(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """The same colour, after JPEG."""
    return max(abs(i - j) for i, j in zip(a, b, strict=True)) <= 8


def colours(x: np.ndarray) -> list[tuple[int, int, int]]:
    return [shown(image) for image in x]


def match(x: np.ndarray, numbers: list[int]) -> bool:
    return len(x) == len(numbers) and all(
        near(c, colour(n)) for c, n in zip(colours(x), numbers, strict=True)
    )


def mini_parted(folder: Path) -> Path:
    root = folder / "miniimagenet"
    for part, c in (("train", 1), ("val", 2), ("test", 0)):
        for i in range(10):
            picture(root / part / MINI[c] / f"{MINI[c]}{i:08d}.jpg", 10 * c + i, (100, 84))
    return root


def test_tiny_imagenet(tmp_path: Path) -> None:
    tiny_imagenet(tmp_path)
    d = read_official("tinyimagenet", tmp_path)
    assert d.classes == ["goldfish", "Egyptian cat", "reel"]  # by sorted number
    assert d.train_x.shape == (12, 3, 64, 64) and d.shape == (3, 64, 64)
    assert np.bincount(d.train_y).tolist() == [4, 4, 4] and match(
        d.train_x, [4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11]
    )
    assert d.test_y.tolist() == [0, 0, 1, 1, 2, 2] and match(d.test_x, [21, 24, 20, 23, 22, 25])
    assert d.augment == Augment(pad=4, flip=True) and d.record["split"] == {"made": False}


@pytest.mark.parametrize(
    ("line", "message"), [("val_0.JPEG", "not a name, a tab and a class"), ("x\tn0", "names 'n0'")]
)
def test_a_torn_line_of_tiny_imagenet_gets_a_sentence(tmp_path: Path, line: str, message: str) -> None:
    (tiny_imagenet(tmp_path) / "val" / "val_annotations.txt").write_text(line + "\n")
    with pytest.raises(Refused, match=message):
        read_official("tinyimagenet", tmp_path)


def test_tiny_imagenet_with_val_in_class_folders(tmp_path: Path) -> None:
    root = tiny_imagenet(tmp_path)
    before = read_official("tinyimagenet", tmp_path)
    for i in range(6):
        (root / "val" / WNIDS[i % 3]).mkdir(exist_ok=True)
        (root / "val" / "images" / f"val_{i}.JPEG").rename(root / "val" / WNIDS[i % 3] / f"val_{i}.JPEG")
    (root / "val" / "images").rmdir()
    after = read_official("tinyimagenet", tmp_path)
    assert np.array_equal(before.test_x, after.test_x) and np.array_equal(before.test_y, after.test_y)


def test_cub(tmp_path: Path) -> None:
    cub(tmp_path)
    d = read_official("cub200", tmp_path)
    assert d.classes == ["001.Black_footed_Albatross", "002.Laysan_Albatross", "010.Red_winged_Blackbird"]
    assert d.train_x.shape == (6, 3, 256, 256) and d.shape == (3, 224, 224)
    assert d.train_y.tolist() == [0, 0, 1, 1, 2, 2] and match(d.train_x, [0, 2, 3, 5, 6, 8])
    assert d.test_y.tolist() == [0, 1, 2] and match(d.test_x, [1, 4, 7])
    assert d.augment == ResizedCrop(224)


@pytest.mark.parametrize("tree", [mini_csv, mini_folders, mini_parted])
def test_mini_imagenet_in_each_layout(tmp_path: Path, tree: Callable[[Path], Path]) -> None:
    tree(tmp_path)
    d = read_official("miniimagenet", tmp_path)
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
    d = read_official("miniimagenet", tmp_path)
    assert len(d.train_y) == 12 and len(d.test_y) == 3 and d.record["split"] == {"made": False}


def test_twins_in_an_official_split_are_told_and_kept(tmp_path: Path) -> None:
    root = tiny_imagenet(tmp_path)
    shutil.copy(
        root / "val" / "images" / "val_0.JPEG", root / "train" / WNIDS[0] / "images" / f"{WNIDS[0]}_9.JPEG"
    )
    d = read_official("tinyimagenet", tmp_path)
    assert len(d.train_y) == 13 and "also in the test set: 1 training image, such as" in d.record["notes"][0]


def test_a_copy_that_is_not_whole_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cub(tmp_path)
    assert cli.main(["data", "check", "cub200", "--data-dir", str(tmp_path), "--tasks", "3"]) == 0
    captured = capsys.readouterr()
    assert (
        "the whole set has 5,994 and 5,794" in captured.err
        and "3 classes, 6 training and 3 test" in captured.out
    )


@pytest.mark.parametrize(
    "broken", ["images.txt", "classes.txt", "train_test_split.txt", "image_class_labels.txt"]
)
def test_a_torn_list_gets_a_sentence(tmp_path: Path, broken: str) -> None:
    root = cub(tmp_path)
    (root / broken).write_text("1 \n")
    with pytest.raises(Refused, match=broken):
        read_official("cub200", tmp_path)
    (root / broken).unlink()
    with pytest.raises(Refused, match=broken):
        read_official("cub200", tmp_path)
