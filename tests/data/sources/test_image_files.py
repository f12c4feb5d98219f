"""A folder of images as a data set: sizes, colour, statistics, and whole runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers.runs import figures
from helpers.trees import class_folders, picture, read
from jioc.cli import main as cli
from jioc.config import values as settings
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
