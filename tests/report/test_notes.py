"""The notes below a table."""

from pathlib import Path
from typing import Any

from helpers.results import groups_of, keep, made
from jioc.config import values as settings
from jioc.report.runs import group, planned, read
from jioc.report.tables import by_task, summarise
from jioc.resolve import recipes
from jioc.resolve.derive import resolve


def test_a_seed_that_was_run_twice_is_told() -> None:
    assert "seeds run more than once" not in str(
        summarise(groups_of(made(seed=1), made(seed=2)), False).notes
    )
    notes = summarise(groups_of(made(seed=1), made(seed=2), made(seed=2)), False).notes
    assert "seeds run more than once count each time: 1 of 3 runs" in notes


def test_a_table_says_where_its_figures_come_from() -> None:
    def last(*results: dict[str, Any]) -> str:
        return summarise(groups_of(*results), False).notes[-1]

    old, new = made(seed=1) | {"commit": "abc"}, made(seed=2) | {"commit": "def"}
    bare, unfinished = made(seed=3) | {"environment": {}}, made(done=2) | {"commit": "abc"}
    assert last(old) == "1 run on a device, torch 2.13.0, at commit abc"
    assert last(old, new) == "2 runs on a device, torch 2.13.0, at commits abc (1), def (1)"
    assert (
        last(old, bare)
        == "2 runs on a device, torch 2.13.0 (1) or unknown (1), at commits abc (1), unknown (1)"
    )
    assert (
        last(new | {"commits": ["abc", "def"]}) == "1 run on a device, torch 2.13.0, at commits abc then def"
    )
    resumed = new | {"commits": [None, "def"]}
    assert last(old, resumed) == "2 runs on a device, torch 2.13.0, at commits abc (1), unknown then def (1)"
    assert last(made() | {"environment": {"torch": "2.13.0"}}) == "1 run on an unknown device, torch 2.13.0"
    assert last(made() | {"environment": {"device": "a device"}}) == "1 run on a device"
    assert "run" not in last(bare) and "abc" not in last(unfinished)


TEN = {"classes": 100, "tasks": 10}


def test_the_seeds_of_a_recipe_that_are_not_there_are_told(tmp_path: Path) -> None:
    table6 = recipes.find_recipe("table6")

    def ran(loss: str, seed: int, **more: Any) -> dict[str, Any]:
        values = table6.make()[f"cifar100-resnet32-1000-icarl-{loss}"]
        return made(**TEN, **more) | {"config": settings.plain(resolve(settings.make(**values, seed=seed)))}

    def notes(*results: dict[str, Any]) -> list[str]:
        sheets = group(planned(table6, read([keep(tmp_path / str(len(list(tmp_path.iterdir()))), *results)])))
        told = [note for note in summarise(sheets, False).notes if "not run" in note]
        assert [note for note in by_task(sheets, False).notes if note.startswith("wanted")] == told
        return told

    some = [
        *(ran("none", s) for s in (1, 2, 3)),
        ran("ic", 1),
        ran("oc", 1),
        ran("oc", 2, done=3),
        ran("jioc", 2),
    ]
    assert notes(*some) == [
        "wanted and not run, seeds 2 3: iCaRL + IC",
        "wanted and not run, seed 3: iCaRL + OC",
        "wanted and not run, seeds 1 3: iCaRL + JIOC",
    ]
    assert notes(*some[:3]) == []  # rows that say so themselves
    assert notes(*some[:3], ran("ic", 1), ran("oc", 1)) == [
        "wanted and not run, seeds 2 3: iCaRL + IC; iCaRL + OC"
    ]


def test_a_note_names_the_read_out_that_is_shown(tmp_path: Path) -> None:
    boosted = made("foster", **TEN) | {"headline": "boosted"}
    for row in boosted["tasks"]:
        row["readouts"] = {"boosted": row["cnn"]}
    for kind in ("average", "last"):
        boosted[kind]["boosted"] = boosted[kind]["cnn"]
    begun = boosted | {"complete": False, "config": boosted["config"] | {"memory": 500}}
    groups = group(read([keep(tmp_path, made(**TEN), boosted, begun)]))
    sheet = summarise(groups, beside_paper=True)
    assert "BOOSTED" not in str(sheet.heads) and any(
        "difference: ours (CNN) minus" in note for note in sheet.notes
    )
    assert sheet.rows[2][sheet.heads.index("CNN average")] == "unfinished"
    assert "(CNN)" in by_task(groups, beside_paper=True).notes[0]
