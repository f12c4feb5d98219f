"""Flags made from the settings."""

from pathlib import Path

import pytest
import yaml

from helpers.argv import QUICK
from jioc.cli.main import main


def test_help_shows_the_methods_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for method in ("icarl", "lwf"):
        with pytest.raises(SystemExit):
            main(["run", method, "--help"])
        shown[method] = capsys.readouterr().out
    assert "(80,120)" in shown["icarl"] and "(60,120,180,220)" in shown["lwf"]
    assert (
        "Weight of the distillation (1.0)" in shown["icarl"]
        and "Weight of the distillation (3.0)" in shown["lwf"]
    )


def test_the_method_may_stand_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "icarl.yaml"
    path.write_text("method: icarl\nmemory: 40\ndevice: cpu\n")
    for words in (
        ["--config", str(path), "replay"],
        ["replay", "--config", str(path)],
        ["--memory", "40", "replay"],
    ):
        assert main(["run", "--dry-run", *words]) == 0
        assert "40 exemplars" in capsys.readouterr().out
    out = tmp_path / "run"
    assert main(["run", *QUICK, "--out", str(out), "--config", str(path), "replay"]) == 0
    assert yaml.safe_load((out / "config.yaml").read_text())["method"] == "replay"


def test_a_methods_own_flags_are_known_before_its_name_and_beside_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bic.yaml"
    path.write_text("method: bic\nmemory: 40\ndevice: cpu\n")
    file, quick = ["--config", str(path)], ["--dry-run", "--memory", "40"]
    for words in (
        ["--bias-loss", "pycil", "bic"],
        ["--second-epochs", "2", "bic"],
        [*file, "--bias-loss", "pycil"],
    ):
        assert main(["run", *quick, *words]) == 0
    capsys.readouterr()
    assert main(["run", *file, "--kd-weight", "2"]) == 2
    assert capsys.readouterr().err.startswith("jioc: unknown option '--kd-weight'")
