"""`jioc evaluate`: the run's own figures for the same images, and nothing that the model has trained on."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import jioc
from helpers.command import refused
from helpers.trees import write_digits
from jioc.cli.main import main
from jioc.errors import Refused
from jioc.results import Evaluation
from jioc.training.judge import calibration


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`data`, a folder of five digits, `csv`, and `run`, a model of them in two tasks."""
    where = tmp_path_factory.mktemp("evaluate")
    write_digits(where / "data", "01234", 30)
    values: dict[str, Any] = {"method": "icarl", "data": str(where / "data"), "task_sizes": (3, 2)}
    values |= {"first": {"epochs": 15}, "later": {"epochs": 8}, "backbone": "tiny", "device": "cpu"}
    jioc.run(**values, memory=20, out=where / "run")
    return where


def evaluated(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["evaluate", *map(str, words), "--json", "--device", "cpu"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("readout", ["cnn", "nme"])
def test_the_folder_that_a_run_learnt_from_gives_the_figures_of_the_run(
    place: Path, readout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    row = json.loads((place / "run" / "result.json").read_bytes())["tasks"][-1]
    found = evaluated(capsys, place / "run", place / "data", "--readout", readout)
    assert found["accuracy"] == row[readout]
    assert found["trained"] == 120 and found["images"] == [6] * 5 and found["sizes"] == [3, 2]
    if readout == "cnn":
        assert found["confusion"] == row["diagnostics"]["confusion"]
        assert found["calibration"]["error"] == pytest.approx(row["diagnostics"]["calibration_error"])
    else:
        assert found["calibration"] is None
    every = evaluated(capsys, place / "run", place / "data", "--readout", readout, "--trained")
    assert sum(every["images"]) == 150 and every["trained"] == 0


def test_the_answers_are_those_of_predict(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = write_digits(tmp_path / "test", "0124", 9, first=40)
    (tmp_path / "test" / "0" / "broken.png").write_bytes(b"GIF89a")
    found = evaluated(capsys, place / "run", test)
    assert main(["predict", str(place / "run"), str(test), "--json"]) == 1
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    classes = jioc.load(place / "run").classes
    counts = np.zeros((5, 5), int)
    for answer in answers:
        counts[classes.index(Path(answer["image"]).parent.name), classes.index(answer["class"])] += 1
    assert found["confusion"] == counts.tolist() and found["images"] == counts.sum(1).tolist()
    assert found["accuracy"]["all"] == pytest.approx(100 * np.trace(counts) / 36)
    assert found["accuracy"]["per_class"][classes.index("3")] is None
    assert [name for name, _ in found["skipped"]] == ["0/broken.png"]
    mean = 100 * sum(answer["score"] for answer in answers) / 36
    assert found["calibration"]["score"] == pytest.approx(mean)


def test_classes_that_the_model_does_not_know_are_named_and_not_counted(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = write_digits(tmp_path / "known", "013", 5, first=50)
    both = Path(shutil.copytree(known, tmp_path / "both"))
    write_digits(both, "67", 3)
    alone, together = (evaluated(capsys, place / "run", folder) for folder in (known, both))
    assert together["not_known"] == {"6": 3, "7": 3} and alone["not_known"] == {}
    same = ("accuracy", "confusion", "images", "calibration", "each_class_alike")
    assert {name: alone[name] for name in same} == {name: together[name] for name in same}
    assert main(["evaluate", str(place / "run"), str(both)]) == 0
    captured = capsys.readouterr().out
    assert "not counted, of classes that the model does not know: 6 (3), 7 (3)\n" in captured
    assert (
        f"all {alone['accuracy']['all']:5.2f}   old" in captured and "expected calibration error" in captured
    )
    shutil.rmtree(both / "0"), shutil.rmtree(both / "1"), shutil.rmtree(both / "3")
    assert "the model knows none of the classes: '6', '7'" in refused(
        ["evaluate", str(place / "run"), str(both)], capsys
    )


def test_a_csv_a_python_file_an_official_set_and_a_test_folder(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = write_digits(tmp_path / "split" / "test", "02", 6, first=60)
    of_folder = evaluated(capsys, place / "run", test)
    write_digits(tmp_path / "split" / "train", "02", 3)  # of which nothing is taken
    assert evaluated(capsys, place / "run", tmp_path / "split")["confusion"] == of_folder["confusion"]
    rows = [f"test/{file.relative_to(test)},{file.parent.name}\n" for file in sorted(test.rglob("*.png"))]
    (tmp_path / "split" / "list.csv").write_text("".join(["path,label\n", *rows]))
    of_csv = evaluated(capsys, place / "run", tmp_path / "split" / "list.csv")
    assert of_csv["confusion"] == of_folder["confusion"]
    x = {name: [np.asarray(Image.open(f)) for f in (test / name).iterdir()] for name in "02"}
    np.savez(tmp_path / "x.npz", **x)
    (tmp_path / "arrays.py").write_text(
        f"import numpy as np\nx = np.load({str(tmp_path / 'x.npz')!r})\n"
        "def load():\n    a = np.stack([*x['0'], *x['2']]); y = np.repeat(['0', '2'], 6)\n"
        "    return 255 - a, y, a, y\n"
    )
    assert evaluated(capsys, place / "run", tmp_path / "arrays.py")["confusion"] == of_folder["confusion"]
    digits = evaluated(capsys, place / "run", "digits")
    assert sum(digits["not_known"].values()) + sum(digits["images"]) + digits["trained"] == 539


def test_from_python_a_folder_or_images_with_names(place: Path, tmp_path: Path) -> None:
    model = jioc.load(place / "run")
    test = write_digits(tmp_path / "test", "14", 7, first=70)
    files = sorted(test.rglob("*.png"))
    found = model.evaluate(test)
    named = model.evaluate(files, [file.parent.name for file in files])
    assert isinstance(found, Evaluation) and found == named and found.counted == 14
    right = np.mean([name == f.parent.name for name, f in zip(model.predict(files), files, strict=True)])
    assert found.accuracy.all == pytest.approx(100 * right)
    with pytest.raises(Refused, match="14 images and 1 label"):
        model.evaluate(files, ["1"])


def test_a_copy_without_its_record_says_so(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in ("model.json", "model.safetensors"):
        shutil.copy(place / "run" / file, tmp_path)
    found = evaluated(capsys, tmp_path, place / "data")
    assert not found["knows_trained"] and sum(found["images"]) == 150
    assert main(["evaluate", str(tmp_path), str(place / "data")]) == 0
    assert "keeps no record of its training images" in capsys.readouterr().out


def test_the_page_is_one_file_and_escapes_names(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(place / "run", tmp_path / "run"))
    odd = "<img src=x onerror=alert(1)>"
    about = json.loads((run / "model.json").read_bytes())
    about["classes"][0] = odd
    (run / "model.json").write_text(json.dumps(about))
    page = tmp_path / "page.html"
    words = ["evaluate", str(run), str(place / "data"), "-o", str(page)]
    assert main(words) == 0 and main(words) == 0  # its own page is replaced
    text = page.read_text()
    assert odd not in text and "&lt;img src=x" in text and "<script" not in text and "http://" not in text
    assert text.count("<tr>") == 2 * 6 and "expected calibration error" in text
    page.write_text("mine")
    assert "this command did not write it; --force" in refused(words, capsys)
    assert page.read_text() == "mine" and main([*words, "--force"]) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere", "{data}"], "there is no model in 'nowhere'"),
        (["{run}", "{data}x"], "data'?"),
        (["{run}"], "the following arguments are required: folder"),
        (["{run}", "{data}", "--readout", "nmm"], "unknown read-out 'nmm'; did you mean 'nme'?"),
        (["{run}", "{data}", "--jsn"], "unknown option '--jsn'; did you mean '--json'?"),
        (["{run}", "{trained}"], "the model has trained on all of the 2 images; --trained counts them"),
        (["{run}", ""], "unknown data set ''"),
        (["{run}", "{data}", "--fit-unknown", "95"], "--fit-unknown: '95' is refused: give a share"),
        (["{run}", "{data}", "--fit-unknown", "0.9", "--trained"], "has not trained on: leave --trained out"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    words: list[str], sentence: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exemplar = jioc.load(place / "run", to_learn=True)
    assert exemplar.exemplars is not None
    (tmp_path / "trained" / exemplar.classes[0]).mkdir(parents=True)
    for i in range(2):
        Image.fromarray(exemplar.exemplars[0][i][0]).save(
            tmp_path / "trained" / exemplar.classes[0] / f"{i}.png"
        )
    named = {"run": place / "run", "data": place / "data", "trained": tmp_path / "trained"}
    assert sentence in refused(["evaluate", *(word.format(**named) for word in words)], capsys)


def test_calibration_compares_scores_with_what_is_right() -> None:
    import torch

    scores, right = torch.tensor([0.9, 0.9, 0.9, 0.9, 0.5, 0.5]), torch.tensor([1, 1, 1, 0, 1, 1]).bool()
    found = calibration(scores, right)
    assert found.score == pytest.approx(100 * 4.6 / 6)
    assert found.error == pytest.approx(100 * (4 * 0.15 + 2 * 0.5) / 6)
    assert [[n, round(s), round(r)] for n, s, r in found.bins] == [[2, 50, 100], [4, 90, 75]]


def test_a_threshold_keeps_the_share_of_right_answers_that_was_asked_for(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(place / "run", tmp_path / "run"))
    test = write_digits(tmp_path / "test", "01234", 20, first=60)
    predict = ["predict", str(run), str(test), "--json"]
    assert "jioc evaluate MODEL FOLDER --fit-unknown 0.95" in refused([*predict, "--unknown", "auto"], capsys)
    write_digits(test, "69", 15)
    fitted = evaluated(capsys, run, test, "--fit-unknown", "0.8")["unknown"]
    assert main(predict) == 0
    plain = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main([*predict, "--unknown", "auto"]) == 0
    cut = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    stays = [answer["class"] != "unknown" for answer in cut]
    for a, b, stay in zip(plain, cut, stays, strict=True):
        assert b == (a if stay else a | {"class": "unknown"}) and stay == (a["score"] >= fitted["score"])
    true = [Path(answer["image"]).parent.name for answer in plain]
    right = [stay for a, name, stay in zip(plain, true, stays, strict=True) if a["class"] == name]
    assert fitted["images"] == len(right) and sum(right) >= 0.8 * len(right) > 0
    assert fitted["right_kept"] == pytest.approx(100 * sum(right) / len(right))
    strange = [not stay for name, stay in zip(true, stays, strict=True) if name in "69"]
    assert fitted["strangers_refused"] == pytest.approx(100 * sum(strange) / 30)
    assert main(["learn", str(run), str(write_digits(tmp_path / "new", "5", 9)), "--device", "cpu"]) == 0
    assert "the threshold for unknown images no longer fits" in " ".join(capsys.readouterr().err.split())
    assert jioc.load(run).unknown == {}


def test_a_threshold_of_ones_own(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = str(place / "data" / "2" / "1.png")
    assert main(["predict", str(place / "run"), image, "--top", "2"]) == 0
    plain = capsys.readouterr().out.rstrip().split("\t")
    assert main(["predict", str(place / "run"), image, "--unknown", "1"]) == 0
    assert capsys.readouterr().out == f"{image}\tunknown\t{plain[2]}\n"
    assert main(["predict", str(place / "run"), image, "--unknown", "1", "--top", "2"]) == 0
    assert capsys.readouterr().out.rstrip().split("\t") == [image, "unknown", plain[2], *plain[1:]]
    assert main(["predict", str(place / "run"), image, "--unknown", "0", "--top", "2"]) == 0
    assert capsys.readouterr().out.rstrip().split("\t") == plain
    words = ["predict", str(place / "run"), image, "--unknown", "often"]
    assert "--unknown: 'often' is refused: give a score up to 1, or auto" in refused(words, capsys)


def test_a_class_called_unknown_makes_it_ambiguous(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in ("model.json", "model.safetensors"):
        shutil.copy(place / "run" / file, tmp_path)
    about = json.loads((tmp_path / "model.json").read_bytes())
    about["classes"][0] = "unknown"
    (tmp_path / "model.json").write_text(json.dumps(about))
    words = ["predict", str(tmp_path), str(place / "data" / "2" / "1.png"), "--unknown", "0.5"]
    assert "the model has a class 'unknown'" in refused(words, capsys)


def test_probabilities_are_those_of_the_head_and_add_up(place: Path) -> None:
    model, files = jioc.load(place / "run"), sorted((place / "data" / "3").iterdir())
    p = model.predict_proba(files)
    assert p.shape == (30, 5) and np.allclose(p.sum(1), 1)
    assert [model.classes[c] for c in p.argmax(1)] == model.predict(files, readout="cnn")
    with pytest.raises(Refused, match="are cosines, not probabilities"):
        model.predict_proba(files, readout="nme")
