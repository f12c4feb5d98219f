"""A csv of path, label and split."""

from pathlib import Path

import pytest

from helpers.trees import class_folders, colour, read, shown
from jioc.errors import Refused


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
