"""Kept results are read once by a process, and again after a change."""

import json
from pathlib import Path

import pytest

from helpers.results import keep, made
from helpers.scripts import script
from jioc.errors import Refused
from jioc.report import runs


def test_a_result_is_read_once_and_again_after_a_change(tmp_path: Path) -> None:
    once, place = script("once"), keep(tmp_path / "runs", made(seed=1), made(seed=2))
    first, again = once.read(place), once.read(place)
    assert first == runs.read([place]) and all(a is b for a, b in zip(first, again, strict=True))
    (place / "run-001" / "result.json").write_text(json.dumps(made(seed=30)))
    assert [run.config["seed"] for run in once.read(place, place)] == [1, 30]


def test_a_place_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"there is no result\.json at or below"):
        script("once").read(tmp_path)
