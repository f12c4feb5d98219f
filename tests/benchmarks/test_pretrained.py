"""The benchmark of pretrained features runs, on drawn photographs with weights that nobody trained."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.paths import ROOT
from helpers.photographs import photographs
from jioc.nets.incremental import backbone


def test_the_benchmark_runs_and_prints_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setenv("JIOC_CACHE", str(tmp_path / "cache"))
    import pretrained

    benchmark: Any = pretrained
    plan = {"backbone": "efficientnet-lite0", "stem": "", "channels": 3, "cosine": False, "maps": False}
    torch.save(backbone(plan, torch.Generator().manual_seed(0)).state_dict(), tmp_path / "weights.pth")
    words = [
        "--out",
        str(tmp_path / "runs"),
        "--data",
        str(photographs(tmp_path / "photos", 3, ("disc", "star"))),
    ]
    words += ["--tasks", "2", "--short", "--weights", str(tmp_path / "weights.pth"), "--only", "simplecil"]
    assert benchmark.main(words) == 0
    assert benchmark.main(["--out", str(tmp_path / "runs"), "--table"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("| simplecil | ") and last.endswith("| 61.50 |")
    assert sys.modules.pop("pretrained") is benchmark
