"""`jioc predict`: the run's own answers for the same files, whatever lies among them, a few at a time."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jioc
from helpers.trees import write_digits
from jioc.cli.main import main
from jioc.errors import Interrupted


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`data`, a folder of four digits with a test set, and `run`, a model of them."""
    where = tmp_path_factory.mktemp("predict")
    write_digits(where / "data" / "train", "0123", 20)
    write_digits(where / "data" / "test", "0123", 30, first=20)
    values: dict[str, Any] = {"method": "icarl", "data": str(where / "data"), "tasks": 2, "memory": 20}
    values |= {"first": {"epochs": 8}, "later": {"epochs": 4}, "backbone": "tiny", "device": "cpu"}
    jioc.run(**values, out=where / "run")
    return where


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("readout", ["cnn", "nme"])
def test_files_are_answered_as_the_run_was_judged(
    place: Path, readout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = json.loads((place / "run" / "result.json").read_bytes())
    judged = result["tasks"][-1][readout]["per_class"]
    for name, right in zip(result["classes"], judged, strict=True):
        test = place / "data" / "test" / name
        assert main(["predict", str(place / "run"), str(test), "--json", "--readout", readout]) == 0
        found = lines(capsys)
        assert len(found) == 30 and 100 * sum(f["class"] == name for f in found) / 30 == pytest.approx(right)


def test_the_model_of_an_unfinished_run_says_so(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["predict", str(tmp_path / "run"), str(place / "data" / "test" / "0" / "0.png")]
    values: dict[str, Any] = {
        "method": "icarl",
        "data": str(place / "data"),
        "memory": 20,
        "backbone": "tiny",
    }
    values |= {"task_sizes": (1, 3), "first": {"epochs": 1}, "later": {"epochs": 1}, "out": tmp_path / "run"}
    with pytest.raises(Interrupted):
        jioc.run(**values, device="cpu", stop=(tmp_path / "run" / "result.json").exists)
    assert main(words) == 0
    assert capsys.readouterr().err == "note: the run is not finished: after task 1 it knows 1 of 4 classes\n"
    jioc.run(**values, device="cpu", resume=True)
    assert main(words) == 0 and capsys.readouterr().err == ""


def test_a_thousand_images_some_of_them_broken(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = sorted((place / "data" / "train").rglob("*.png"))
    names = []
    for i in range(1000):
        names.append(tmp_path / f"{i}.png")
        names[-1].symlink_to(good[i % len(good)])
    broken = {3: b"", 260: good[0].read_bytes()[:40], 511: b"GIF89a", 999: b"hello"}
    for i, content in broken.items():
        names[i].unlink()
        names[i].write_bytes(content)
    names[700].unlink()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(map(str, names)).encode())))
    assert main(["predict", str(place / "run"), "-", "--json"]) == 1
    out, err = capsys.readouterr()
    found = [json.loads(line) for line in out.splitlines()]
    bad = {*broken, 700}
    assert [f["image"] for f in found] == [str(name) for i, name in enumerate(names) if i not in bad]
    assert [line.split("'")[1] for line in err.splitlines()] == [str(names[i]) for i in sorted(bad)]
    learner = jioc.load(place / "run")
    alone = dict(zip(map(str, good), learner.predict(good), strict=True))
    assert all(f["class"] == alone[os.path.realpath(f["image"])] for f in found)


def test_lines_for_people_and_for_programs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, image = str(place / "run"), str(place / "data" / "train" / "2" / "10.png")
    assert main(["predict", model, image, "--top", "3"]) == 0
    cells = capsys.readouterr().out.rstrip("\n").split("\t")
    assert main(["predict", model, image, "--top", "30", "--json"]) == 0
    (found,) = lines(capsys)
    assert cells[0] == found["image"] == image and cells[1] == found["class"] == found["top"][0]["class"]
    assert cells[2] == f"{found['score']:.4f}" and cells[5:] == [found["top"][2]["class"], cells[6]]
    scores = [t["score"] for t in found["top"]]
    assert len(scores) == 4 and scores == sorted(scores, reverse=True) and sum(scores) == pytest.approx(1)


def test_any_file_name_is_printed(
    place: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\ttab.png"
    os.symlink(os.fsencode(place / "data" / "train" / "2" / "10.png"), odd)
    assert main(["predict", str(place / "run"), os.fsdecode(odd)]) == 0
    assert capsysbinary.readouterr().out.split(b"\t")[0] == os.fsencode(tmp_path) + b"/\xff tab.png"


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["nowhere", "a.png"], 2, "there is no model in 'nowhere': there is no such folder"),
        ([".", "a.png"], 2, "there is no model in '.': it has no model.json"),
        (["{run}"], 2, "the following arguments are required: image"),
        (["{run}", "a.png", "--top", "0"], 2, "--top: '0' is no number of classes"),
        (["{run}", "a.png", "--readout", "nnn"], 2, "unknown read-out 'nnn'"),
        (["{run}", "a.png", "--device", "gpu"], 2, "--device: 'gpu' is refused"),
        (["{run}", "a.png", "--tpo", "2"], 2, "unknown option '--tpo'; did you mean '--top'?"),
        (["{run}", "a.png"], 1, "'a.png' cannot be read: No such file or directory"),
        (["{run}", "{empty}"], 1, "is a folder without an image"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    words: list[str],
    status: int,
    sentence: str,
    place: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [word.format(run=place / "run", empty=tmp_path) for word in words]
    assert main(["predict", *words]) == status
    out, err = capsys.readouterr()
    assert out == "" and sentence in err and err.count("\n") == 1


def test_a_folder_that_cannot_be_listed_is_named_and_all_else_answered(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    month = write_digits(tmp_path / "month", "123", 2)
    closed = str(month / "2")

    def refusing(sound: Any) -> Any:
        def listed(path: Any) -> Any:
            if os.fspath(path) == closed:
                raise PermissionError(13, "Permission denied", path)
            return sound(path)

        return listed

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    told = f"jioc: {closed!r} cannot be listed: Permission denied\n"
    assert main(["predict", str(place / "run"), str(month), "--json"]) == 1
    out, err = capsys.readouterr()
    assert [json.loads(line)["image"].split("/")[-2] for line in out.splitlines()] == ["1", "1", "3", "3"]
    assert err == told
    assert main(["predict", str(place / "run"), closed]) == 1
    assert capsys.readouterr() == ("", told)


def test_a_folder_on_standard_input_is_as_one_among_the_words(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, image = str(place / "data" / "test" / "1"), str(place / "data" / "test" / "0" / "3.png")
    assert main(["predict", str(place / "run"), folder, image]) == 0
    among_words = capsys.readouterr().out
    assert among_words.count("\n") == 31
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{folder}\r\n{image}\n".encode())))
    assert main(["predict", str(place / "run"), "-"]) == 0
    assert capsys.readouterr().out == among_words


def test_no_paths_at_all(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    assert main(["predict", str(place / "run"), "-"]) == 2
    assert capsys.readouterr().err == "jioc: there is no image to look at\n"


def test_an_image_on_standard_input_is_told_from_paths(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = (place / "data" / "test" / "0" / "3.png").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(image)))
    assert main(["predict", str(place / "run"), "-"]) == 2
    assert capsys.readouterr().err == (
        "jioc: - reads paths from standard input, one a line, and this is no text\n"
    )


def test_wrong_words_do_not_wait_for_torch() -> None:
    code = "import sys\nfrom jioc.cli.main import main\nmain(sys.argv[1:])\nprint('torch' in sys.modules)"
    for words in (
        ["predict", "nowhere", "x"],
        ["learn", "nowhere", "x"],
        ["export", "nowhere"],
        ["evaluate", "nowhere", "x"],
        ["predict", "--top"],
    ):
        told = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert told.stdout == "False\n"
