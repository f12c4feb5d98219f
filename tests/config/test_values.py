"""Settings as plain values: wrong names and values are refused in a sentence."""

import re
from pathlib import Path
from typing import Any

import pytest

import jioc
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.methods import SPECS

TINY: dict[str, Any] = {
    "method": "icarl",
    "data": "digits",
    "task_sizes": (5, 5),
    "memory": 20,
    "device": "cpu",
}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epochs", "'later' has 'epochs'"),
        ("first_epochs", "'first' has 'epochs'"),
        ("coordinate", "'coordination' has 'coordinate'"),
        ("sinkhorn", "a method's own are in 'options'"),
        ("memorry", "did you mean 'memory'?"),
        ("epoch", "did you mean 'epochs' in 'later'?"),
        ("later.epochs", "'later' has 'epochs'"),
    ],
)
def test_a_setting_in_the_wrong_place_is_told_where_it_is(setting: str, message: str) -> None:
    with pytest.raises(
        Refused, match=f"^unknown setting '{setting}' in the configuration; {re.escape(message)}$"
    ):
        settings.make(method="icarl", **{setting: 5})


def test_settings_go_by_the_names_of_their_flags_too() -> None:
    given = {"method": "icarl", "coordinate": "jioc", "first_lr": 0.2, "kd_weight": 2.0, "later": {"lr": 0.1}}
    wanted = {"method": "icarl", "coordination": {"coordinate": "jioc"}, "first": {"lr": 0.2}}
    wanted |= {"options": {"kd_weight": 2.0}, "later": {"lr": 0.1, "epochs": 3}}
    assert settings.by_names(given | {"epochs": 3}, SPECS["icarl"].options) == wanted
    assert settings.by_names(wanted, SPECS["icarl"].options) == wanted
    assert jioc.run(**TINY, epochs=2, coordinate="oc")["config"]["coordination"]["coordinate"] == "oc"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"gamma2": 1, "coordination": {"gamma2": 1}},
            "gamma2 is given twice: by its name, and as coordination",
        ),
        ({"gamma2": 1, "coordination": "jioc"}, "give gamma2 within coordination"),
        ({"kd_weight": 2, "method": "der"}, "unknown setting 'kd_weight'"),
    ],
)
def test_a_setting_by_name_is_given_once_and_belongs_to_the_method(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refused, match=re.escape(message)):
        jioc.run(**TINY | values)


@pytest.mark.parametrize("method", ["icarl", Path("icarl")])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("epoch", "did you mean 'epochs'?"),
        ("gama2", "did you mean 'gamma2'?"),
        ("coordinatee", "did you mean 'coordinate'?"),
        ("kd_weigth", "did you mean 'kd_weight'?"),
        ("memorry", "did you mean 'memory'?"),
        ("later.epochs", "give it as epochs=..., or as later={'epochs': ...}"),
        ("options.kd_weight", "give it as kd_weight=..., or as options={'kd_weight': ...}"),
        ("later.epoch", "did you mean 'epochs'?"),
        ("sinkhorn", "names are those of the flags of jioc run, with underscores"),
    ],
)
def test_a_wrong_name_in_python_is_told_the_right_one(method: str | Path, name: str, message: str) -> None:
    for others in ({}, {"gamma2": 1}):
        with pytest.raises(Refused, match=f"^unknown setting '{name}'; {re.escape(message)}$"):
            jioc.run(method=method, **others, **{name: 5})


OWN = """
from dataclasses import replace
import jioc
from jioc.config import Options
from jioc.methods.replay import Replay

class Own(Options):
    strength: float = 1.0

@jioc.register(replace(jioc.methods.SPECS["replay"], name="own", title="Own", options=Own))
class OwnMethod(Replay):
    pass
"""


@pytest.mark.parametrize("kind", [str, Path])
def test_a_method_file_takes_its_own_options_by_name(kind: type, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    with pytest.raises(Refused, match="^--strength: 'much' is refused"):
        jioc.run(**TINY | {"method": kind(file)}, strength="much")
    with pytest.raises(Refused, match="^unknown setting 'strenght'; did you mean 'strength'\\?$"):
        jioc.run(**TINY | {"method": kind(file)}, strenght=1)


def test_an_unknown_setting_in_a_config_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("method: icarl\nmemorry: 5\n")
    assert main(["run", "--config", str(path)]) == 2
    assert "'memorry'" in capsys.readouterr().err
