"""A method in a file of its own: it runs, takes JIOC by a flag, and a file that is no method is refused."""

import json
import os
from pathlib import Path

import pytest

from jioc.cli import main
from jioc.methods import specs
from jioc.report.runs import group, read

EXAMPLE = Path(__file__).parent.parent / "examples" / "own_method.py"
QUICK = ["--task-sizes", "4,3,3", "--epochs", "2", "--memory", "40", "--device", "cpu"]


@pytest.mark.parametrize(
    ("word", "terms"), [("none", {"cls", "features"}), ("jioc", {"cls", "features", "kd", "quiet"})]
)
def test_the_example_runs_and_takes_jioc(word: str, terms: set[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["run", str(EXAMPLE), *QUICK, "--coordinate", word, "--out", str(out)]) == 0
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert set(log[-1]["terms"]) == terms
    (shown,) = group(read([out]))
    assert shown.name == "Feature replay" + " + JIOC" * (word == "jioc") and shown.scene.endswith(", epochs 2")
    assert main(["run", "--config", str(out / "config.yaml"), "--out", str(tmp_path / "again")]) == 0
    assert (out / "model.safetensors").read_bytes() == (tmp_path / "again" / "model.safetensors").read_bytes()


AVERAGED = """
from dataclasses import replace

import torch.nn.functional as F

import jioc


@jioc.register(replace(jioc.methods.SPECS["replay"], name="averaged", title="Averaged"))
class Averaged(jioc.Method):
    def loss(self, batch, out, old, task):
        return {"cls": F.cross_entropy(out.logits, batch.y)}
"""


def test_a_loss_that_is_averaged_already_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "averaged.py").write_text(AVERAGED)
    assert main(["run", str(tmp_path / "averaged.py"), *QUICK, "--out", str(tmp_path / "run")]) == 1
    assert "the loss 'cls' has the shape (); one number per image is needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("x = 1\n", "registers 0 methods"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)\n", "cannot be imported: SystemExit: 3"),
        ("def (\n", "cannot be imported: SyntaxError"),
    ],
)
def test_a_file_that_is_no_method_is_refused(
    source: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"method_{abs(hash(source))}.py"
    path.write_text(source)
    assert main(["run", str(path), "--out", str(tmp_path / "run")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_method_file_that_has_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specs, "_CLASSES", dict(specs._CLASSES))
    path, source = tmp_path / "mine.py", EXAMPLE.read_text()
    for when, name in enumerate(["FeatureReplay", "AnotherReplay", "FeatureReplay"]):  # of one length
        path.write_text(source.replace("FeatureReplay", name))
        os.utime(path, ns=(when, when))
        assert specs.load(str(path)).__name__ == name
    assert specs.load(str(path)) is specs.load(str(path))
