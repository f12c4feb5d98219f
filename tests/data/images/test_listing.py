"""Class folders, and csv files: what is listed, what is left out and named; the label is never wrong."""

from pathlib import Path

import numpy as np
import pytest

from helpers.trees import class_folders, colour, picture, read, shown
from jioc.cli import main as cli
from jioc.errors import Refused


def test_class_folders_are_split_by_class(folder: Path) -> None:
    d, notes = read(folder)
    assert d.classes == ["cat", "dog"] and not notes
    assert np.bincount(d.train_y).tolist() == [4, 4] and np.bincount(d.test_y).tolist() == [1, 1]
    assert d.record["split"] == {"made": True, "seed": 1993, "share": 0.2}


def test_a_class_made_of_several_folders_is_told(folder: Path) -> None:
    for n, name in enumerate(("fox", "fox", "hen", "hen")):
        picture(folder / "animals" / name / f"{n}.png", 20 + n)
    d, notes = read(folder)
    assert d.classes == ["animals", "cat", "dog"]
    there = str(folder / "animals")
    assert notes == [f"all folders below 'animals' are one class; if each is a class, give {there!r}"]
    picture(folder / "animals" / "own.png", 30)
    assert read(folder)[1] == []


def test_every_image_keeps_its_label(folder: Path) -> None:
    d, _ = read(folder)
    of = {colour(n): n // 5 for n in range(10)}
    for x, y in ((d.train_x, d.train_y), (d.test_x, d.test_y)):
        assert [of[shown(image)] for image in x] == y.tolist()


def test_train_and_test_folders_are_taken_as_given(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"b10": 2, "b9": 3})
    class_folders(tmp_path / "test", {"b9": 1, "b10": 1, "new": 1}, first=20)
    (tmp_path / "extra").mkdir()
    d, notes = read(tmp_path)
    assert d.classes == ["b9", "b10"]  # as a person counts
    assert np.bincount(d.train_y).tolist() == [3, 2] and np.bincount(d.test_y).tolist() == [1, 1]
    assert "'test/new' is a class that train does not have; it is left out" in notes
    assert "the folder 'extra' beside 'train' is not used" in notes


def test_train_alone_is_split(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 5, "b": 5})
    d, _ = read(tmp_path)
    assert d.classes == ["a", "b"] and len(d.test_y) == 2


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


def test_a_name_whose_accents_stand_apart_is_the_same_class(tmp_path: Path) -> None:
    joined, apart = "B\u00e4r", "Ba\u0308r"
    class_folders(tmp_path / "train", {joined: 2, "cat": 2})
    class_folders(tmp_path / "test", {apart: 1, "cat": 1}, first=10)
    d, notes = read(tmp_path)
    assert d.classes == [joined, "cat"] and d.test_y.tolist() == [0, 1] and not notes
    class_folders(tmp_path / "train", {apart: 1}, first=20)
    d, _ = read(tmp_path)
    assert d.classes == [joined, "cat"] and d.train_y.tolist() == [0, 0, 0, 1, 1]
    class_folders(tmp_path, {"pool": 4})
    (tmp_path / "list.csv").write_text("".join(f"pool/{i}.png,{(joined, apart)[i % 2]}\n" for i in range(4)))
    assert read(tmp_path / "list.csv")[0].classes == [joined]


@pytest.mark.parametrize(
    "name", ["a b.png", 'it\'s "it".png', "größe-猫.png", "two\nlines.png", "-rf.png", "[1].png"]
)
def test_names_of_any_kind(folder: Path, name: str) -> None:
    picture(folder / f"class {name}" / name, 30)
    d, _ = read(folder)
    assert shown(d.train_x[d.train_y == d.classes.index(f"class {name}")][0]) == colour(30)


def test_a_link_that_stays_is_used(folder: Path) -> None:
    (folder / "bird").mkdir()
    (folder / "bird" / "it.png").symlink_to("../dog/0.png")
    d, notes = read(folder)
    assert shown(d.train_x[d.train_y == 0][0]) == colour(5)
    assert "one of the two labels is wrong" in notes[0]


def test_a_class_folder_that_is_a_link_out_is_left_out(folder: Path, tmp_path: Path) -> None:
    class_folders(tmp_path / "elsewhere", {"bird": 3}, first=40)
    (folder / "bird").symlink_to(tmp_path / "elsewhere" / "bird", target_is_directory=True)
    d, notes = read(folder)
    assert d.classes == ["cat", "dog"]
    assert notes == ["'bird' is a link that leaves the folder; it is left out"]


def test_an_empty_class_folder_is_left_out_and_labels_stay_right(folder: Path) -> None:
    (folder / "bird").mkdir()
    d, notes = read(folder)
    assert d.classes == ["cat", "dog"] and sorted(set(d.train_y)) == [0, 1]
    assert shown(d.train_x[d.train_y == 1][0])[1] <= 40  # the dogs' colours
    assert notes == ["'bird' is an empty class folder; it is left out"]
    with pytest.raises(Refused, match="'bird' is an empty class folder"):
        read(folder, on_bad="fail")


def test_an_image_in_no_class_folder_is_left_out_by_name(folder: Path, tmp_path: Path) -> None:
    picture(folder / "stray.PNG", 40)
    for name in ("README.md", "labels.csv", ".hidden.png"):
        (folder / name).write_text("x")
    d, notes = read(folder)
    assert notes == ["'stray.PNG' lies in no class folder; it is left out"] and len(d.train_y) == 8
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


# --- csv files ---


def test_a_csv_leads_to_no_file_outside_its_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    class_folders(root / "in", {"a": 4})
    class_folders(tmp_path / "out", {"a": 2}, first=8)
    (root / "way_in").symlink_to(root / "in")
    (root / "way_out").symlink_to(tmp_path / "out")
    (root / "one.png").symlink_to(tmp_path / "out/a/0.png")
    inside = ["in/a/0.png", "in/a/1.png", "way_in/a/2.png", "way_in/../in/a/3.png"]
    outside = ["../out/a/0.png", "way_out/a/1.png", "one.png", str(tmp_path / "out/a/1.png")]
    (root / "list.csv").write_text("".join(f"{path},a\n" for path in [*inside, *outside]))
    d, notes = read(root / "list.csv")
    assert len(d.train_y) + len(d.test_y) == len(inside)
    assert sum("lies outside the folder" in line for line in notes) == len(outside)


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
    d, notes = read(tmp_path / "list.csv")
    assert [shown(x) for x in d.test_x] == [colour(2), colour(3)] and not notes
    assert d.record["split"] == {"made": False, "test": "val"}
    rows += ["pool/4.png,a,test\n", "pool/5.png,b,test\n", f"pool/6.png,only-there,{word}\n"]
    (tmp_path / "list.csv").write_text("".join(rows))
    d, notes = read(tmp_path / "list.csv")
    assert [shown(x) for x in d.test_x] == [colour(4), colour(5)] and d.classes == ["a", "b"]
    assert notes == ["validation rows beside test rows are not used: 3"]
    assert d.record["split"] == {"made": False}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("path,label\n", "names its columns and holds no row"),
        ("x.png\n", "row 1 has no path or no label"),
        ("x.png;cat\n", "row 1 has no path or no label; it looks separated by semicolons"),
        ("x.png,a,somewhere\n", "split 'somewhere'"),
        ("x.png,a,train\ny.png,a,\n", "some rows say which split"),
        ("/etc/hostname,a\n", "outside"),
        ("../x.png,a\n", "outside"),
        ("missing.png,a\n", "No such file"),
        ("nul\0.png,a\n", "nul"),
    ],
)
def test_a_wrong_csv_gets_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(Refused, match=message):
        read(tmp_path / "list.csv")
