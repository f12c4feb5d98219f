"""A setting has one home: what is declared there reaches everything. What was given stays known."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import jioc
from helpers.argv import QUICK
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve.derive import resolve

MADE_UP = '''
    warm_up: Count = setting(0, "training", metavar="EPOCHS")
    """Epochs over which the rate rises."""
'''
BEFORE = "    batch_size: Positive"


@pytest.mark.slow
def test_a_setting_is_added_in_one_file_alone(tmp_path: Path) -> None:
    """In a copy of the package; the flag, the help, config.yaml, tables and the reference page have it."""
    package = Path(jioc.__file__).parent
    shutil.copytree(package, tmp_path / "jioc", ignore=shutil.ignore_patterns("__pycache__"))
    schema = tmp_path / "jioc" / "config" / "schema.py"
    schema.write_text(schema.read_text().replace(BEFORE, MADE_UP + BEFORE, 1))

    def printed(*argv: str) -> str:
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-m", *argv]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    assert "--warm-up EPOCHS" in printed("jioc", "run", "icarl", "--help")
    printed("jioc", "run", "finetune", *QUICK, "--warm-up", "3", "--out", "a")
    config = yaml.safe_load((tmp_path / "a" / "config.yaml").read_text())
    assert config["warm_up"] == 3 and "warm_up" in config["given"]
    result = json.loads((tmp_path / "a" / "result.json").read_text())
    assert result["config"]["warm_up"] == 3 and "--warm-up 3" in result["command"]
    table = printed("jioc", "table", "a", "--format", "csv")
    assert "warm-up 3" in table
    row = "| `--warm-up` | `warm_up` | whole number, at least 0 | `0` | Epochs over which the rate rises. |"
    assert row in printed("jioc.cli.reference")


def test_what_was_given_is_known_from_every_file_and_under_a_flag(tmp_path: Path) -> None:
    out, again = tmp_path / "a", tmp_path / "b"
    assert main(["run", "icarl", *QUICK, "--coordinate", "jioc", "--gamma2", "1", "--out", str(out)]) == 0
    given = {"method", "task_sizes", "later.epochs", "memory", "device"}
    given |= {"coordination.coordinate", "coordination.gamma2"}  # the default, but given
    written = yaml.safe_load((out / "config.yaml").read_text())
    for name in ("result.json", "model.json"):
        assert json.loads((out / name).read_text())["config"]["given"] == written["given"]
    assert {*written["given"]} == given == {*settings.make(**written).given}
    assert resolve(settings.make(**written)).given == tuple(written["given"])
    flags = ["--lr", "0.2", "--memory-per-class", "3"]
    assert main(["run", "--config", str(out / "config.yaml"), *flags, "--out", str(again)]) == 0
    written = yaml.safe_load((again / "config.yaml").read_text())
    assert {*written["given"]} == given - {"memory"} | {"later.lr", "memory_per_class"}


def test_without_the_names_of_what_was_given_all_that_has_a_value_was() -> None:
    values = {
        "method": "icarl",
        "later": {"epochs": 3, "lr": None},
        "options": {"kd_weight": 2},
        "flip": None,
    }
    assert settings.make(**values).given == ("method", "later.epochs", "options.kd_weight")


@pytest.mark.parametrize("given", [5, "method", [5], ["later.epoch"], ["memmory"]])
def test_a_wrong_list_of_what_was_given_is_refused(given: object) -> None:
    with pytest.raises(
        Refused, match=r"^given: .*such as \[method|^given: '.*' is no setting; names are as in"
    ):
        settings.make(method="icarl", given=given)
