"""The benchmarks of speed and of several processes."""

from argparse import Namespace
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.scripts import script


def test_the_benchmark_of_processes_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    words = Namespace(backbone="tiny", stem="cifar", device="cpu", batch_size=128, epochs=2, each=5)
    found = script("scale").work("one process", words)
    assert found["images_per_second"] > 0 and found["gradient_bytes"] > found["statistics_bytes"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--epochs", "1"], "the first is not timed"),
        (["--json", "nowhere/speed.json"], "there is no folder 'nowhere'"),
        (["--backbone", "resnet33"], "resnet33"),
    ],
)
def test_speeds_that_cannot_be_measured_or_kept_are_refused_first(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script("speed").main(["--device", "cpu", *words]) == 2
    found = capsys.readouterr()
    assert sentence in found.err and not found.out


def test_a_file_of_no_speeds_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text("{}")
    for name in ("other.json", "missing.json"):
        assert script("speeds").main([str(tmp_path / name)]) == 2
        assert "is not what speed.py --json writes" in capsys.readouterr().err
