"""The losses with which every stage of training began and ended."""

import json
from pathlib import Path

import pytest

from helpers.results import keep, made
from helpers.scripts import script
from jioc.errors import Refused


def test_losses_are_kept_as_every_stage_began_and_ended_with_them(tmp_path: Path) -> None:
    losses, folder = script("losses"), tmp_path / "runs" / "a"
    keep(tmp_path / "runs", made())
    (tmp_path / "runs" / "run-000").rename(folder)
    said = [
        ("first", 1, 3.0),
        ("first", 2, 2.0),
        ("later", 1, 1.23456),
        ("later", 2, 0.5),
        ("later", 3, 0.25),
    ]
    log = [
        {"task": 1 + (stage == "later"), "stage": stage, "epoch": e, "images": 10, "terms": {"cls": v}}
        for stage, e, v in said
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    target = tmp_path / "losses.csv"
    assert losses.keep([tmp_path / "runs"], target) == 1
    assert target.read_text().splitlines() == [
        "run,task,stage,images,epochs,term,first,last",
        "a,1,first,10,2,cls,3,2",
        "a,2,later,10,3,cls,1.235,0.25",
    ]
    folder.rename(folder.with_name("b"))
    assert losses.keep([tmp_path / "runs"], target) == 1  # what was kept before stays
    assert [line.split(",")[0] for line in target.read_text().splitlines()] == ["run", "a", "a", "b", "b"]
    with pytest.raises(Refused, match="no log of a finished run"):
        losses.keep([tmp_path / "none"], target)
