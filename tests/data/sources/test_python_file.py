"""Python files with arrays as data sets: checked as folders are, read again once changed."""

import os
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jioc
from jioc.cli.main import main
from jioc.config import make
from jioc.data.load import load_dataset
from jioc.errors import Interrupted, Refused


@pytest.fixture
def data_file(tmp_path: Path) -> Any:
    def write(body: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.write_text(
            "import numpy as np\nx, y = np.zeros((8, 9, 9), np.uint8), np.arange(8) // 2\n" + body
        )
        return path

    return write


def test_the_rows_and_labels_are_those_of_the_file(data_file: Any) -> None:
    path = data_file(
        "x = np.random.default_rng(0).integers(0, 256, (12, 6, 8, 3)).astype(np.uint8)\n"
        "y = np.array(list('cabcabcabcab'), object)\n"
        "load = lambda: (x[:9], y[:9], x[9:], y[9:])\n"
    )
    module = runpy.run_path(str(path))
    dataset = load_dataset(make(method="icarl", data=str(path)))
    assert dataset.classes == ["a", "b", "c"] and dataset.shape == (3, 6, 8)
    np.testing.assert_array_equal(dataset.train_x.transpose(0, 2, 3, 1), module["x"][:9])
    assert [dataset.classes[c] for c in [*dataset.train_y, *dataset.test_y]] == module["y"].tolist()
    np.testing.assert_allclose(dataset.std, (module["x"][:9] / 255).std((0, 1, 2)))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "'mine.py' has no function load()"),
        ("1 / 0", "cannot be imported: ZeroDivisionError"),
        ("def load():\n    return open('/nowhere')", "load() in 'mine.py' fails: FileNotFoundError"),
        ("load = lambda: __import__('sys').exit(3)", "load() in 'mine.py' fails: SystemExit: 3"),
        ("load = lambda: (x, y)", "should return train_x, train_y, test_x, test_y"),
        ("load = lambda: (x / 1.0, y, x, y)", "train_x in 'mine.py' holds float64; images are uint8"),
        ("load = lambda: (x[0], y, x, y)", "has the shape (9, 9)"),
        ("load = lambda: (x[:, :3], y, x, y)", "images of 3x9; the least is 4x4"),
        ("load = lambda: (x.transpose(0, 2, 1)[..., None, :], y, x, y)", "images of 9x1; the least is 4x4"),
        (
            "load = lambda: (np.zeros((8, 4, 9, 9), np.uint8), y, x, y)",
            "has 9 channels, which are the last axis",
        ),
        ("load = lambda: (x, y[:5], x, y)", "train_y in 'mine.py' has the shape (5,); there are 8 images"),
        ("load = lambda: (x, y, x[:, :8], y)", "images to train on are (9, 9, 1) and to test on (8, 9, 1)"),
        ("load = lambda: (x, y, x, y + 1)", "class '4' of the test set in 'mine.py' has no training image"),
        ("load = lambda: (x[:0], y[:0], x[:0], y[:0])", "returns no training image"),
        (
            "load = lambda: (x, np.where(y == 2, np.nan, y), x, y)",
            "train_y in 'mine.py' has no label for image 4: nan",
        ),
        ("load = lambda: (x, y, x, [0, None] * 4)", "test_y in 'mine.py' has no label for image 1: None"),
    ],
)
def test_arrays_that_are_no_data_set_are_refused(
    body: str, sentence: str, data_file: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "icarl", "--data", str(data_file(body)), "--out", str(tmp_path / "run")]) == 2
    captured = capsys.readouterr().err
    assert sentence in captured and captured.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_arrays_are_looked_at_as_folders_are(data_file: Any, tmp_path: Path) -> None:
    path = data_file(
        "x = np.arange(12, dtype=np.uint8).repeat(81).reshape(12, 9, 9)\n"
        "y = ['a', 'a', 'b', 'b', 'c', 'c', 'B\\u00e4r', 'Ba\\u0308r']\n"
        "x[1] = x[5] = x[9]\n"
        "load = lambda: (x[:8], y, x[8:], ['a', 'a', 'b', 'c'])\n"
    )
    told: list[str] = []
    dataset = load_dataset(make(method="icarl", data=str(path)), lambda note: told.append(note.text))
    assert told == [
        "'train_x[1]' is also in the test set, as 'test_x[1]'; it is left out",
        "'train_x[5]' is also in the test set, as 'test_x[1]'; it is left out",
        "'train_x[5]' of class 'c' is the same image as 'train_x[1]' of class 'a': "
        "one of the two labels is wrong",
        "class 'B\u00e4r' has no test image; it is learnt and not judged",
    ]
    assert dataset.classes == ["B\u00e4r", "a", "b", "c"]
    assert dataset.train_y.tolist() == [1, 2, 2, 3, 0, 0] and dataset.train_x[:, 0, 0, 0].tolist() == [
        0,
        2,
        3,
        4,
        6,
        7,
    ]
    assert dataset.test_y.tolist() == [1, 1, 2, 3] and dataset.record["skipped"][0][0] == "train_x[1]"
    with pytest.raises(Refused, match="'train_x\\[1\\]' is also in the test set.*and 1 more.*--on-bad skip"):
        load_dataset(make(method="icarl", data=str(path), on_bad="fail"))
    with pytest.raises(Refused, match="^every training image in 'same.py' is in the test set too$"):
        load_dataset(make(method="icarl", data=str(data_file("load = lambda: (x, y, x, y)", "same.py"))))


def test_a_data_file_that_has_changed_is_read_again(data_file: Any) -> None:
    for when, level in enumerate([3, 7, 7]):
        path = data_file(f"load = lambda: (x + np.uint8({level}), y, x, y)")
        os.utime(path, ns=(when, when))
        assert load_dataset(make(method="icarl", data=str(path))).train_x.max() == level


def test_a_run_goes_on_with_the_same_arrays_alone(data_file: Any, tmp_path: Path) -> None:
    level = tmp_path / "level"
    level.write_text("10")
    path = data_file(
        "x += np.arange(8, dtype=np.uint8)[:, None, None]\n"
        f"load = lambda: (x + np.uint8(__import__('pathlib').Path({str(level)!r}).read_text()), y, x, y)"
    )
    values: dict[str, Any] = {"method": "finetune", "tasks": 2, "later": {"epochs": 2}, "device": "cpu"}
    with pytest.raises(Interrupted):
        jioc.run(data=str(path), out=tmp_path / "run", stop=lambda: True, **values)
    level.write_text("20")
    path.touch()  # a file that has not changed is not asked again
    with pytest.raises(Refused, match="are not those this run began with"):
        jioc.run(data=str(path), out=tmp_path / "run", resume=True, **values)
