"""Which image trains and which tests: the split, files that are there twice, classes without images."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.trees import class_folders, picture, read, shown
from jioc.cli import main as cli
from jioc.errors import Refused
from jioc.training.run import run


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


def test_a_class_of_broken_images_is_told_though_its_test_folder_is_empty(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 3, "b": 3})
    class_folders(tmp_path / "test", {"a": 1, "b": 1}, first=20)
    (tmp_path / "test" / "c").mkdir()
    (tmp_path / "train" / "c").mkdir()
    (tmp_path / "train" / "c" / "0.png").write_text("no image")
    d, notes = read(tmp_path)
    assert d.classes == ["a", "b"]
    assert notes[-1] == "class 'c' has no usable training image; it is left out" and len(notes) == 3
    (tmp_path / "train" / "c" / "0.png").unlink()
    assert read(tmp_path)[1] == [
        f"'{part}/c' is an empty class folder; it is left out" for part in ("train", "test")
    ]


def test_a_class_with_one_image_is_learnt_and_not_judged(folder: Path, small: dict[str, Any]) -> None:
    picture(folder / "bird" / "only.png", 30)
    d, notes = read(folder)
    assert d.classes == ["bird", "cat", "dog"] and notes == [
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
    d, notes = read(tmp_path)
    assert len(d.train_y) == 6 and notes == [
        "'train/b/again.png' is also in the test set, as 'test/b/0.png'; it is left out"
    ]
    with pytest.raises(Refused, match="is also in the test set"):
        read(tmp_path, on_bad="fail")


def test_a_file_twice_in_a_class_cannot_be_on_both_sides_of_a_split(folder: Path) -> None:
    (folder / "cat" / "9.png").write_bytes((folder / "cat" / "0.png").read_bytes())
    d, notes = read(folder)
    assert notes == ["'cat/9.png' is the same file as 'cat/0.png'; it is left out"]
    assert not set(map(shown, d.train_x)) & set(map(shown, d.test_x))


def test_one_picture_under_two_names_of_classes_is_told(folder: Path) -> None:
    (folder / "dog" / "9.png").write_bytes((folder / "cat" / "0.png").read_bytes())
    assert "'dog/9.png' of class 'dog' is the same image as 'cat/0.png' of class 'cat'" in read(folder)[1][0]


def test_a_check_names_all_that_is_left_out_and_a_dry_run_where_that_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for i in range(8):
        (folder / "cat" / f"bad{i}.png").write_text("x")
    named = [f"note: 'cat/bad{i}.png' is not an image of a known format; it is left out" for i in range(8)]
    words = ["--data", str(folder), "--dry-run", "--epochs", "1", "--memory", "2", "--device", "cpu"]
    assert cli.main(["run", "replay", *words]) == 0
    captured = capsys.readouterr().err.splitlines()
    assert captured == [*named[:5], "note: left out besides: 3; jioc data check names them all"]
    assert cli.main(["data", "check", str(folder)]) == 0
    assert capsys.readouterr().err.splitlines() == named


def test_copies_of_files_are_noted_once_and_a_check_names_them_all(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for i in range(7, 10):
        (folder / "cat" / f"{i}.png").write_bytes((folder / "cat" / "0.png").read_bytes())
    assert read(folder)[1] == [
        "'cat/7.png' is the same file as 'cat/0.png' (and 2 more such); it is left out"
    ]
    assert cli.main(["data", "check", str(folder)]) == 0
    captured = capsys.readouterr().err.splitlines()
    assert captured == [
        f"note: 'cat/{i}.png' is the same file as 'cat/0.png'; it is left out" for i in (7, 8, 9)
    ]


def test_classes_that_differ_in_case_alone_are_noted(tmp_path: Path) -> None:
    for i, name in enumerate(("Dog", "cat")):
        class_folders(tmp_path / "a", {name: 3}, first=10 * i)
    rows = [
        f"a/{name}/{i}.png,{label}\n" for name, label in (("Dog", "Dog"), ("cat", "dog")) for i in range(3)
    ]
    (tmp_path / "list.csv").write_text("".join(["path,label\n", *rows]))
    d, notes = read(tmp_path / "list.csv")
    assert d.classes == ["Dog", "dog"]
    assert notes == ["the classes 'Dog' and 'dog' differ in case alone, and are taken for two"]
    assert read(tmp_path / "a")[1] == []


def test_a_check_of_very_few_images_tells_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = class_folders(tmp_path / "ones", {"a": 1, "b": 1})
    assert cli.main(["data", "check", str(place), "--counts"]) == 0
    out, err = capsys.readouterr()
    assert "ones: 2 classes, 2 training and 0 test images" in out
    assert "there is no image to judge by" in " ".join(err.split())


def test_a_check_names_a_few_classes_and_many_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, named in ((20, True), (21, False)):
        place = class_folders(tmp_path / str(number), {f"class{c}": 2 for c in range(number)})
        assert cli.main(["data", "check", str(place)]) == 0
        assert ("class7 1" in capsys.readouterr().out) == named
