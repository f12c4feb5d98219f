"""The official trees, small but laid out as published."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from helpers.trees import (
    MINI,
    WNIDS,
    colour,
    cub,
    mini_csv,
    mini_folders,
    picture,
    read_official,
    shown,
    tiny_imagenet,
)
from jioc.cli import main as cli
from jioc.data.augment.basic import Augment
from jioc.data.augment.crops import ResizedCrop
from jioc.errors import Refused


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
    ("line", "told"), [("val_0.JPEG", "not a name, a tab and a class"), ("x\tn0", "names 'n0'")]
)
def test_a_torn_line_of_tiny_imagenet_gets_a_sentence(tmp_path: Path, line: str, told: str) -> None:
    (tiny_imagenet(tmp_path) / "val" / "val_annotations.txt").write_text(line + "\n")
    with pytest.raises(Refused, match=told):
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
    told = capsys.readouterr()
    assert "the whole set has 5,994 and 5,794" in told.err and "3 classes, 6 training and 3 test" in told.out


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
