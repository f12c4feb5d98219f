"""`jioc export --onnx` in onnxruntime, and the example that ends with it."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

import jioc
from helpers.paths import ROOT
from jioc.cli.main import main
from jioc.methods import SPECS


@pytest.fixture
def runtime() -> object:
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    pytest.importorskip("onnxscript", reason="the extra onnx is not installed")
    return pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")


def shapes(folder: Path, names: str, images: int = 24, side: int = 20) -> Path:
    """Pictures of coloured shapes, a folder for each colour and shape."""
    for name in names.split():
        colour, shape = name.split("-")
        draw = random.Random(name)
        (folder / name).mkdir(parents=True)
        for i in range(images):
            picture = Image.new("RGB", (side + draw.randrange(9), side), (draw.randrange(60),) * 3)
            x, y, r = draw.randrange(7, side - 7), draw.randrange(7, side - 7), draw.randrange(4, 8)
            getattr(ImageDraw.Draw(picture), {"disc": "ellipse", "box": "rectangle"}[shape])(
                (x - r, y - r, x + r, y + r), fill=colour
            )
            picture.save(folder / name / f"{i}.png")
    return folder


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.png"))


@pytest.mark.extras
@pytest.mark.parametrize("method", ["icarl", "der", "foster"])
def test_the_example_learns_predicts_learns_on_and_ships(
    method: str, tmp_path: Path, runtime: object
) -> None:
    import onnxruntime

    first = shapes(tmp_path / "first", "red-disc red-box lime-disc lime-box blue-disc blue-box")
    later = shapes(tmp_path / "later", "white-disc white-box")
    out = tmp_path / "model"
    words = [
        "--backbone",
        "tiny",
        "--epochs",
        "12",
        "--batch-size",
        "16",
        "--memory",
        "80",
        "--device",
        "cpu",
    ]
    environment = os.environ | {"JIOC": f"{sys.executable} -m jioc", "PYTHON": sys.executable}
    done = subprocess.run(
        ["sh", str(ROOT / "examples" / "add_classes.sh"), str(first), str(later), str(out), method, *words],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    learner = jioc.load(out)
    assert len(learner.classes) == 8 and set(learner.classes[6:]) == {"white-disc", "white-box"}

    answers = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    assert len(answers) == len(files(first)) + len(files(later))
    right = np.mean([Path(a["image"]).parent.name == a["class"] for a in answers])
    assert right > 3 / 8  # chance is 1/8; twelve epochs of a tiny network
    assert len({a["class"] for a in answers}) > 4

    session = onnxruntime.InferenceSession(out / "model.onnx")
    about = session.get_modelmeta().custom_metadata_map
    assert (
        json.loads(about["classes"]) == learner.classes
        and about["method"] == method
        and about["readout"] == "cnn"
    )
    from jioc.data.images.inputs import pixels_of

    pixels = pixels_of(files(later)[::4], learner.preprocessing.shape)
    (scores,) = session.run(["scores"], {"pixels": pixels.transpose(0, 2, 3, 1)})
    assert np.abs(scores - learner.readouts(pixels)["cnn"].numpy()).max() < 1e-4
    told = [line for line in done.stdout.splitlines() if line.startswith(str(files(later)[0]) + ": ")]
    assert told == [f"{files(later)[0]}: {learner.predict(files(later)[0])[0]}"]


@pytest.mark.extras
@pytest.mark.parametrize(("method", "size"), [*((name, "full") for name in SPECS), ("icarl", "half")])
def test_every_method_and_readout_answers_the_same_in_onnxruntime(
    method: str, size: str, tmp_path: Path, runtime: object, capsys: pytest.CaptureFixture[str]
) -> None:
    import onnxruntime

    from jioc.config import values as settings
    from jioc.data.load import load_dataset

    quick = {
        "task_sizes": (6, 4),
        "memory": 60,
        "first": {"epochs": 1},
        "later": {"epochs": 1},
        "device": "cpu",
    }
    jioc.run(method=method, data="digits", exemplar_size=size, **quick, out=tmp_path / "run")
    pixels = load_dataset(settings.make(method=method)).test_x[:20]
    for name, scores in jioc.load(tmp_path / "run").readouts(pixels).items():
        path = tmp_path / f"{name}.onnx"
        assert main(["export", str(tmp_path / "run"), "--onnx", str(path), "--readout", name]) == 0
        assert "answers as the model does" in capsys.readouterr().out
        session = onnxruntime.InferenceSession(path)
        (got,) = session.run(["scores"], {"pixels": pixels.transpose(0, 2, 3, 1)})
        assert np.abs(got - scores.numpy()).max() < 1e-4 * max(1, scores.abs().max().item())


@pytest.mark.extras
def test_a_file_that_answers_otherwise_is_not_written(
    tmp_path: Path, runtime: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jioc.integrations.onnx.TOLERANCE", -1.0)
    quick = {
        "task_sizes": (6, 4),
        "memory": 60,
        "first": {"epochs": 1},
        "later": {"epochs": 1},
        "device": "cpu",
    }
    jioc.run(method="replay", data="digits", **quick, out=tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--onnx", str(tmp_path / "a.onnx")]) == 1
    assert "does not answer as the model does" in capsys.readouterr().err
    assert not (tmp_path / "a.onnx").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "jioc export needs to know what to write: --onnx FILE"),
        (["--onnx", "{no}/a.onnx"], "there is no folder"),
        (["--onnx", "{here}/a.onnx"], "jioc export --onnx needs the extra onnx: pip install 'jioc[onnx]'"),
        (["--onx", "a"], "unknown option '--onx'; did you mean '--onnx'?"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jioc.cli.export.find_spec", lambda name: None)  # as where the extra is missing
    (tmp_path / "model.json").write_text("{}")
    words = [word.format(no=tmp_path / "no", here=tmp_path) for word in words]
    assert main(["export", str(tmp_path), *words]) == 2
    assert sentence in capsys.readouterr().err
