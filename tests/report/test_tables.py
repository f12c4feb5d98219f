"""`jioc table`: what is averaged, what stands beside it, and how it is written."""

import csv
from pathlib import Path
from typing import Any

import pytest

from helpers.command import refused
from helpers.results import jioc, keep, made, read_out
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.methods import SPECS
from jioc.report.render import FORMATS
from jioc.report.runs import group, planned, read
from jioc.report.tables import by_task, summarise
from jioc.resolve import recipes
from jioc.resolve.derive import resolve
from jioc.resolve.recipe_file import scaled

TEN = {"classes": 100, "tasks": 10}


def test_a_gain_says_over_how_many_seeds_where_the_columns_do_not_give_it(tmp_path: Path) -> None:
    def told(*results: dict[str, Any]) -> tuple[str, bool]:
        sheet = summarise(group(read([keep(tmp_path / str(len(list(tmp_path.iterdir()))), *results)])), False)
        return sheet.rows[1][sheet.heads.index("gain")], "in brackets" in str(sheet.notes)

    hosts = [made(seed=s, alls=[30.0 + s] * 5) for s in (1, 2, 3)]
    ours = [made(coordinate="oc", seed=s, alls=[35.0 + s] * 5) for s in (1, 2)]
    assert told(*hosts, *ours) == ("+5.00 ± 0.00 (2)", True)
    assert told(*hosts[:2], *ours) == ("+5.00 ± 0.00", False)
    begun_again = made(seed=2, done=2)
    assert (
        told(*hosts[:2], begun_again, *ours)
        == told(begun_again, *hosts[:2], *ours)
        == ("+5.00 ± 0.00", False)
    )
    assert told(hosts[2], *ours) == ("–", False)


def test_an_unfinished_run_is_counted_out(tmp_path: Path) -> None:
    groups = group(read([keep(tmp_path, made(seed=1), made(seed=2, done=2))]))
    sheet = summarise(groups, beside_paper=True)
    assert sheet.rows[0][1] == "1" and "±" not in "".join(sheet.rows[0])
    assert "unfinished and not averaged: 1 of 2 runs" in sheet.notes


def test_what_a_recipe_wants_and_nobody_ran_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = recipes.find_recipe("table6").make()["cifar100-resnet32-1000-icarl-oc"]
    ran = made(**TEN) | {"config": settings.plain(resolve(settings.make(**named)))}
    del ran["config"]["options"]["balance"]  # an older version knew fewer settings
    runs = keep(tmp_path, ran)
    assert main(["table", str(runs), "--paper", "--recipe", "table6", "--format", "markdown"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| iCaRL")]
    assert [("not run" in row, row.split(" | ")[0], row.split(" | ")[-3]) for row in rows] == [
        (True, "| iCaRL", "52.20"),
        (True, "| iCaRL + IC", "53.31"),
        (True, "| iCaRL + IC, reading printed", "53.31"),
        (False, "| iCaRL + OC", "56.40"),
        (True, "| iCaRL + JIOC", "56.66"),
        (True, "| iCaRL + JIOC, reading printed", "56.66"),
    ]


def test_a_recipe_is_looked_for_at_the_scale_it_was_run_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = recipes.find_recipe("study")
    short = {name: scaled(values, SPECS["icarl"], 0.1) for name, values in study.make().items()}
    ran = [
        made(**TEN) | {"config": settings.plain(resolve(settings.make(**v)))}
        for v in list(short.values())[:3]
    ]
    words = ["table", str(keep(tmp_path, *ran)), "--recipe", "study", "--format", "markdown"]
    shown = {}
    for scale in ([], ["--scale", "0.1"]):
        assert main([*words, *scale]) == 0
        shown[len(scale)] = sum(line.startswith("| ") for line in capsys.readouterr().out.splitlines()) - 2
    assert shown == {0: len(short) + 3, 2: len(short)}
    assert "above 0" in refused([*words, "--scale", "0"], capsys)
    assert "given with --recipe" in refused([*words[:2], "--scale", "0.1"], capsys)


def test_a_table_has_the_recipes_order_and_nothing_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison = recipes.find_recipe("comparison")
    names = [
        "lt-resnet32-1000-foster-none",
        "resnet32-2000-wa-jioc",
        "resnet32-2000-bic-pycil",
        "resnet32-2000-wa-none",
    ]
    wanted = [comparison.make()[f"cifar100-{name}"] for name in names]
    ran = [made(**TEN) | {"config": settings.plain(resolve(settings.make(**values)))} for values in wanted]
    runs = keep(tmp_path, made(memory=777, **TEN), *ran)
    sheet = summarise(group(planned(comparison, read([runs]))), beside_paper=True)
    run = sheet.heads.index("run")
    told = [row[run].split(",")[0] for row in sheet.rows]
    n = len(comparison.make()) // 2
    assert told[:n] == told[n : 2 * n] and told[2 * n :] == ["iCaRL"]  # balanced, tail, and the other one
    hosts = ["BiC", "PODNet", "SS-IL", "COIL", "iCaRL", "DER", "FOSTER", "WA", "Replay", "Finetune", "Joint"]
    assert list(dict.fromkeys(name.split(" + ")[0] for name in told[:n])) == hosts
    figures = {row[run]: row[sheet.heads.index("paper")] for row in sheet.rows[:n]}
    beside = [figure for name, figure in figures.items() if name.startswith("BiC") and "JIOC" not in name]
    assert beside == ["61.93", "61.93"]  # as published and as PyCIL codes it
    for form in FORMATS:
        assert main(["table", str(runs), "--paper", "--recipe", "comparison", "--format", form]) == 0
        assert capsys.readouterr().out.count("not run") == 2 * n - len(ran)


def test_a_readout_that_repeats_another_is_left_out(tmp_path: Path) -> None:
    results = [made("foster", seed=s) for s in (1, 2)]
    for result in results:
        for row in result["tasks"]:
            row["readouts"] = {"boosted": row["cnn"], "compressed": row["nme"]}
        for kind in ("average", "last"):
            result[kind] |= {"boosted": result[kind]["cnn"], "compressed": result[kind]["nme"] - 2}
    sheet = summarise(group(read([keep(tmp_path, *results, made())])), beside_paper=False)
    assert sheet.heads[2:-1:2] == ["CNN average", "NME average", "COMPRESSED average"]
    assert sheet.notes[1] == "BOOSTED has no columns: in every run that has it, it is CNN"
    assert "no columns" not in str(
        summarise(group(read([keep(tmp_path / "one", made())])), beside_paper=False).notes
    )


def test_a_read_out_that_earlier_runs_of_a_setting_lack_says_over_how_many_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = [made("wa", seed=s) for s in (1, 2)]
    new = [read_out(made("wa", seed=s), "unaligned", value) for s, value in ((3, 50.0), (4, 54.0))]
    assert "UNALIGNED" not in str(summarise(group(read([keep(tmp_path / "old", *old, made())])), True).heads)
    sheet = summarise(group(read([keep(tmp_path / "mixed", *old, *new, made())])), beside_paper=False)
    at = sheet.heads.index("UNALIGNED average")
    assert [row[at] for row in sheet.rows] == ["52.00 ± 2.83 (2)", "–"] and sheet.rows[0][1] == "4"
    assert "(" not in sheet.rows[0][sheet.heads.index("CNN average")]
    assert any(
        note.startswith("in brackets: the number of seeds that have the figure") for note in sheet.notes
    )
    assert main(["table", str(tmp_path / "mixed"), "--format", "csv"]) == 0
    captured = capsys.readouterr()
    wa, icarl = csv.DictReader(captured.out.splitlines())
    assert (wa["UNALIGNED average"], wa["UNALIGNED average n"], icarl["UNALIGNED average n"]) == (
        "52.0",
        "2",
        "0",
    )
    assert "CNN average n" not in wa and "bracket" not in captured.err
    alike = summarise(group(read([keep(tmp_path / "new", *new)])), beside_paper=False)
    assert alike.rows[0][at] == "52.00 ± 2.83" and "bracket" not in str(alike.notes)


def test_what_was_begun_is_unfinished_and_not_unrun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = recipes.find_recipe("table6").make()["cifar100-resnet32-1000-icarl-oc"]
    begun = made(done=3, **TEN) | {"config": settings.plain(resolve(settings.make(**named, seed=2)))}
    assert (
        main(["table", str(keep(tmp_path, begun)), "--paper", "--recipe", "table6", "--format", "markdown"])
        == 0
    )
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| iCaRL")]
    assert [row[2] for row in rows] == [*["not run"] * 3, "unfinished", *["not run"] * 2]
    assert rows[3][1] == "0" and rows[3][-3] == "56.40"


def test_by_task_the_papers_rows_stand_below_ours(tmp_path: Path) -> None:
    results = [made(seed=s, alls=[90.0 - 5 * t + s for t in range(10)], **TEN) for s in (1, 3)]
    sheet = by_task(group(read([keep(tmp_path, *results)])), beside_paper=True)
    assert [row[:3] for row in sheet.rows] == [
        *(["iCaRL", kind, "2"] for kind in ("all", "old", "new")),
        *(["iCaRL (paper)", kind, "–"] for kind in ("all", "old", "new")),
    ]
    assert sheet.rows[0][3:6] == ["92.00", "87.00", "82.00"] and sheet.rows[0][-1] == "69.50"
    assert sheet.rows[1][3:5] == ["–", "84.00"]
    assert sheet.rows[3][3:5] == ["87.10", "60.75"] and sheet.rows[4][3:5] == ["–", "54.70"]  # table 5


def test_without_wide_a_table_shows_the_readout_that_each_method_is_judged_by(tmp_path: Path) -> None:
    by_means = made("replay") | {"headline": "nme"}
    for results, heads, note in [
        ([made()], ["CNN average", "CNN last"], "--wide adds columns for NME"),
        ([made(), by_means], ["average", "last"], "--wide adds columns for CNN, NME"),
        ([made(), made(**jioc())], ["CNN average", "CNN last", "gain"], "--wide adds columns for NME"),
    ]:
        groups = group(read([keep(tmp_path / str(len(list(tmp_path.iterdir()))), *results)]))
        sheet = summarise(groups, beside_paper=True, wide=False).without_empty()
        assert sheet.heads == ["run", "n", *heads] and note in sheet.notes
        for g, row in zip(groups, sheet.rows, strict=True):
            headline = g.runs[0].result.headline
            assert row[2] == f"{g.runs[0].result.average[headline]:.2f}"
    assert any(
        "CNN or NME, whichever" in note
        for note in summarise(group(read([tmp_path / "1"])), False, wide=False).notes
    )


def test_forgetting_stands_beside_average_and_last_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = made(seed=2)
    del old["forgetting"]
    results = [made(seed=1) | {"forgetting": {"cnn": 30.0, "nme": 7.0}}, made(coordinate="jioc", seed=1), old]
    groups = group(read([keep(tmp_path, *results)]))
    usual, asked = summarise(groups, False), summarise(groups, False, forgetting=True)
    added = ["CNN forgetting", "NME forgetting"]
    assert [head for head in asked.heads if head not in added] == usual.heads
    at = [asked.heads.index(head) for head in added]
    assert [asked.heads[i - 1] for i in at] == ["CNN last", "NME last"]
    assert [[row[i] for i in at] for row in asked.rows] == [["30.00 (1)", "7.00 (1)"], ["20.00", "10.00"]]
    assert any(note.startswith("forgetting: ") for note in asked.notes)
    assert "exclude each other" in refused(["table", str(tmp_path), "--by-task", "--forgetting"], capsys)
