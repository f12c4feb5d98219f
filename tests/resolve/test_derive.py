"""What follows from what was given."""

from pathlib import Path

import pytest

from jioc.config import READINGS
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay


def test_settings_filled_in_twice_are_those_filled_in_once(tmp_path: Path) -> None:
    large = tmp_path / "large.py"
    large.write_text(
        "import numpy as np\n"
        "def load():\n"
        "    x, y = np.zeros((8, 100, 100, 3), np.uint8), np.arange(8) % 4\n"
        "    return x, y, x, y\n"
    )
    for values in ({"data": str(large), "memory": 8}, {"memory_per_class": 3}, {"method": "foster"}):
        once = resolve(settings.make(**{"method": "icarl", **values}))
        assert resolve(once) == once
    with pytest.raises(Refused, match="^--memory and --memory-per-class exclude each other$"):
        resolve(settings.make(method="icarl", memory_per_class=3, memory=9))


@pytest.mark.parametrize("reading", READINGS)
def test_options_of_jioc_follow_from_the_reading_unless_they_are_given(reading: str) -> None:
    chosen = {"coordinate": "jioc", "reading": reading}
    filled = resolve(settings.make(method="icarl", coordination=chosen)).coordination
    assert {name: getattr(filled, name) for name in READINGS[reading]} == READINGS[reading]
    given = resolve(settings.make(method="icarl", coordination={**chosen, "delta_scale": "mean1"}))
    assert given.coordination == filled.model_copy(update={"delta_scale": "mean1"})


def test_another_length_of_the_first_task_keeps_the_proportions_of_its_milestones() -> None:
    usual = settings.plain(resolve(settings.make(method="icarl")))
    assert usual["first"]["epochs"] == 200 and usual["first"]["milestones"] == [60, 120, 170]
    flag = {"first": {"epochs": 30}}
    for values in ({"method": "icarl", **flag}, overlay(usual, flag)):
        stage = resolve(settings.make(**values)).first
        assert (stage.epochs, stage.milestones) == (30, (9, 18, 26))
