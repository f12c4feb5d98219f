"""Settings as plain values: wrong names and values are refused in a sentence."""

import re
from pathlib import Path

import pytest

from jioc.cli.main import main
from jioc.config import values as settings
from jioc.errors import Refused


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("epochs", "'later' has 'epochs'"),
        ("first_epochs", "'first' has 'epochs'"),
        ("coordinate", "'coordination' has 'coordinate'"),
        ("sinkhorn", "a method's own are in 'options'"),
        ("memorry", "did you mean 'memory'?"),
    ],
)
def test_a_setting_in_the_wrong_place_is_told_where_it_is(setting: str, told: str) -> None:
    with pytest.raises(
        Refused, match=f"^unknown setting '{setting}' in the configuration; {re.escape(told)}$"
    ):
        settings.make(method="icarl", **{setting: 5})


def test_an_unknown_setting_in_a_config_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("method: icarl\nmemorry: 5\n")
    assert main(["run", "--config", str(path)]) == 2
    assert "'memorry'" in capsys.readouterr().err
