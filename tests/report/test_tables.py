"""`jioc table`: what is averaged, what stands beside it, and how it is written."""

import csv
import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from helpers.results import keep, made, read_out
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.grid.plan import scaled
from jioc.methods.specs import SPECS
from jioc.report import paper, tables
from jioc.report.runs import group, planned, read
from jioc.report.tables import by_task, number, spread, summarise
from jioc.resolve import recipes
from jioc.resolve.derive import resolve

TEN = {"classes": 100, "tasks": 10}
OTHERWISE = {
    "augment": "autoaugment", "batch_size": 64, "select": "random", "order_seed": 7, "stem": "imagenet",
    "accumulate": 4, "momentum": 0.8, "flip": False, "long_tail_order": "learnt",
}  # fmt: skip
ALIKE = {
    "accumulate": 2,
    "seed": 9,
    "init_seed": 4,
    "precision": "fp32",
    "engine": "eager",
    "data_dir": "/data",
}


def test_runs_that_differ_in_seeds_and_machine_alone_are_one_row(tmp_path: Path) -> None:
    results = [made(seed=s, device=d) for s, d in ((1, "cpu"), (2, "cuda"), (3, "auto"))]
    (one,) = group(read([keep(tmp_path, *results)]))
    sheet = summarise([one], beside_paper=False)
    averages = [r["average"]["cnn"] for r in results]
    assert sheet.heads[:4] == ["run", "n", "CNN average", "CNN last"]
    want = f"{statistics.mean(averages):.2f} ± {statistics.stdev(averages):.2f}"
    assert sheet.rows[0][:3] == ["iCaRL", "3", want]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"memory": 500}, "500 exemplars"),
        ({"order_seed": 7}, "order-seed 7"),
        ({"backbone": "resnet32"}, "resnet32"),
    ],
)
def test_another_setting_is_another_row_named_by_it(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    groups = group(read([keep(tmp_path, made(), made(**change))]))
    assert len(groups) == 2 and groups[1].label == f"iCaRL, {told}"


def test_the_gain_is_taken_seed_by_seed(tmp_path: Path) -> None:
    results = [
        made(seed=1, alls=[50, 40, 30, 20, 10]),  # 30
        made(seed=2, alls=[60, 50, 40, 30, 20]),  # 40
        made(coordinate="jioc", seed=1, alls=[51, 41, 31, 21, 11]),  # 31
        made(coordinate="jioc", seed=2, alls=[63, 53, 43, 33, 23]),  # 43
        made(coordinate="jioc", seed=3, alls=[99, 99, 99, 99, 99]),  # no partner
    ]
    without, coordinated = group(read([keep(tmp_path, *results)]))
    assert without.gains("cnn") == [] and coordinated.gains("cnn") == pytest.approx([1, 3])
    assert spread(coordinated.gains("cnn"), "+") == "+2.00 ± 1.41"


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


def test_the_papers_cell_stands_beside_the_run_that_matches_it(tmp_path: Path) -> None:
    alls = [40.0] * 10
    results = [
        made(alls=alls, **TEN),
        made(coordinate="jioc", alls=alls, **TEN),
        made(coordinate="ic", alls=alls, **TEN),
        made(alls=alls, long_tail="paper", **TEN),
        made(alls=alls, long_tail=100.0, **TEN),
        made(alls=alls, memory=777, **TEN),
        made(alls=alls, holdout=0.1, **TEN),
        made(method="joint", alls=alls, **TEN),
        made(classes=100, tasks=5),
    ]
    rows = {}
    for i, result in enumerate(results):
        sheet = summarise(group(read([keep(tmp_path / str(i), result)])), beside_paper=True)
        rows[i] = dict(zip(sheet.heads, sheet.rows[0], strict=True))
    assert rows[0]["paper"] == "38.29" and rows[0]["difference"] == "+1.71"  # table 3, iCaRL, 1K, ResNet-18
    assert rows[1]["paper"] == "47.49" and rows[1]["paper's gain"] == "+9.20"
    table5 = [87.1, 68.65, 59.07, 48.12, 42.36, 37.0, 35.37, 29.65, 26.94, 23.34]  # input coordination alone
    assert rows[2]["paper"] == number(statistics.mean(table5))
    assert (
        rows[3]["paper"]
        == number(paper.average(("cifar100-lt", "resnet18", 10, 1000, "icarl", "none")))
        != "–"
    )
    assert {rows[i]["paper"] for i in (4, 5, 6, 7, 8)} == {"–"}


def test_the_papers_printed_averages_of_table_6() -> None:
    words = {"none": 52.20, "ic": 53.31, "oc": 56.40, "jioc": 56.66}
    for word, printed in words.items():
        assert paper.average(("cifar100", "resnet32", 10, 1000, "icarl", word)) == printed


def test_a_mean_of_the_papers_steps_is_printed_one_way(tmp_path: Path) -> None:
    groups = group(read([keep(tmp_path, made(coordinate="ic", backbone="resnet32", **TEN))]))  # 53.305
    sheet, steps = summarise(groups, beside_paper=True), by_task(groups, beside_paper=True)
    assert sheet.rows[0][sheet.heads.index("paper")] == steps.rows[3][-1] == "53.31"


@pytest.mark.parametrize(
    ("change", "there"),
    [
        ({"options": {"kd_weight": 2.0}}, False),  # another host
        ({"options": {"kd_weight": 1.0}}, True),
        ({"later": {"epochs": 17}, "first": {"epochs": 20}}, False),  # a scaled schedule
        ({"later": {"epochs": 170, "lr": 0.1}}, True),
        ({"later": {"epochs": 170, "lr": 0.05}}, False),
        ({"later": {"epochs": 400}, "first": {"epochs": 471}}, False),
        *(({name: value}, False) for name, value in OTHERWISE.items()),
        *(({name: value}, True) for name, value in ALIKE.items()),
        ({"coordination": {"coordinate": "jioc", "gamma2": 5.0, "host_kd": "add"}}, True),  # readings
        ({"coordination": {"coordinate": "ic", "delta": "differentiated"}, "accumulate": 2}, True),
    ],
)
def test_another_protocol_has_no_place_in_the_paper(change: dict[str, Any], there: bool) -> None:
    result = made(**TEN, **change)
    assert (paper.setting(result) is not None) == there
    whole = settings.plain(resolve(settings.make(**result["config"])))
    assert (paper.setting(result | {"config": whole}) is not None) == there


def test_what_a_recipe_wants_and_nobody_ran_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = recipes.find("table6").make()["cifar100-resnet32-1000-icarl-oc"]
    ran = made(**TEN) | {"config": settings.plain(resolve(settings.make(**named)))}
    del ran["config"]["options"]["balance"]  # an older version knew fewer settings
    runs = keep(tmp_path, ran)
    assert main(["table", str(runs), "--paper", "--recipe", "table6", "--format", "markdown"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| iCaRL")]
    assert [("not run" in row, row.split(" | ")[0], row.split(" | ")[-3]) for row in rows] == [
        (True, "| iCaRL", "52.20"),
        (True, "| iCaRL + IC", "53.31"),
        (False, "| iCaRL + OC", "56.40"),
        (True, "| iCaRL + JIOC", "56.66"),
    ]


def test_the_seeds_of_a_recipe_that_are_not_there_are_told(tmp_path: Path) -> None:
    table6 = recipes.find("table6")

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


def test_a_recipe_is_looked_for_at_the_scale_it_was_run_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = recipes.find("study")
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
    comparison = recipes.find("comparison")
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
    assert (
        len(told) == 41 and told[:20] == told[20:40] and told[40] == "iCaRL"
    )  # balanced, tail, and the other one
    hosts = ["BiC", "PODNet", "SS-IL", "COIL", "iCaRL", "DER", "FOSTER", "WA", "Replay", "Finetune", "Joint"]
    assert list(dict.fromkeys(name.split(" + ")[0] for name in told[:20])) == hosts
    figures = {row[run]: row[sheet.heads.index("paper")] for row in sheet.rows[:20]}
    beside = [figure for name, figure in figures.items() if name.startswith("BiC") and "JIOC" not in name]
    assert beside == ["61.93", "61.93"]  # as published and as PyCIL codes it
    for form in tables.FORMATS:
        assert main(["table", str(runs), "--paper", "--recipe", "comparison", "--format", form]) == 0
        assert capsys.readouterr().out.count("not run") == 40 - len(ran)


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
    told = capsys.readouterr()
    wa, icarl = csv.DictReader(told.out.splitlines())
    assert (wa["UNALIGNED average"], wa["UNALIGNED average n"], icarl["UNALIGNED average n"]) == (
        "52.0",
        "2",
        "0",
    )
    assert "CNN average n" not in wa and "bracket" not in told.err
    alike = summarise(group(read([keep(tmp_path / "new", *new)])), beside_paper=False)
    assert alike.rows[0][at] == "52.00 ± 2.83" and "bracket" not in str(alike.notes)


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


def test_what_was_begun_is_unfinished_and_not_unrun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = recipes.find("table6").make()["cifar100-resnet32-1000-icarl-oc"]
    begun = made(done=3, **TEN) | {"config": settings.plain(resolve(settings.make(**named, seed=2)))}
    assert (
        main(["table", str(keep(tmp_path, begun)), "--paper", "--recipe", "table6", "--format", "markdown"])
        == 0
    )
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| iCaRL")]
    assert [row[2] for row in rows] == ["not run", "not run", "unfinished", "not run"]
    assert rows[2][1] == "0" and rows[2][-3] == "56.40"


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


def test_a_finished_run_of_unequal_tasks_is_not_in_the_paper() -> None:
    result = made(**TEN)
    result["tasks"][0]["classes"] = [0, 9]
    assert paper.setting(result) is None


def test_markdown_and_latex_say_what_text_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = str(
        keep(
            tmp_path,
            made(seed=1),
            made(seed=2),
            made(coordinate="jioc", select="a_b|c&d"),
            made(coordinate="jioc"),
        )
    )
    shown = {}
    for form in ("text", "markdown", "latex"):
        assert main(["table", runs, "--format", form]) == 0
        shown[form] = capsys.readouterr().out
    mean = shown["text"].split("iCaRL")[1].split()[1]
    assert all(mean in text for text in shown.values())
    lines = [line for line in shown["markdown"].splitlines() if line.startswith("|")]
    assert (
        len({line.replace("\\|", "").count("|") for line in lines}) == 1 and "a_b\\|c&d" in shown["markdown"]
    )
    assert (
        r"select a\_b|c\&d" in shown["latex"]
        and r"$\pm$" in shown["latex"]
        and r"\bottomrule" in shown["latex"]
    )
    assert "±" not in shown["latex"].split(r"\begin{tabular}")[1]


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


def test_a_csv_holds_what_the_results_hold_unrounded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = [made(seed=s, alls=[100 / 3 + s / 7] * 5) for s in (1, 2)]
    results = [
        *hosts,
        made(coordinate="jioc", seed=1, alls=[40.0] * 5),
        made(memory=500, done=2),
        made(seed=3, done=1),
    ]
    words = ["table", str(keep(tmp_path, *results)), "--format", "csv"]
    assert main([*words, "--forgetting"]) == 0
    told = capsys.readouterr()
    plain, coordinated, begun = csv.DictReader(told.out.splitlines())
    averages = [result["average"]["cnn"] for result in hosts]
    assert float(plain["CNN average"]) == statistics.fmean(averages)
    assert float(plain["CNN average std"]) == statistics.stdev(averages)
    assert (plain["n"], plain["CNN forgetting"], plain["gain"], plain["outcome"]) == (
        "2",
        "20.0",
        "",
        "finished",
    )
    assert (
        float(coordinated["gain"]) == coordinated_gain(hosts[0], results[2]) and coordinated["gain n"] == "1"
    )
    assert (
        coordinated["CNN average std"] == ""
        and coordinated["setting"] == plain["setting"] != begun["setting"]
    )
    assert (begun["n"], begun["CNN average"], begun["outcome"]) == ("0", "", "unfinished")
    assert "gain: average minus" in told.err and "bracket" not in told.err
    assert "unfinished and not averaged: 2 of 5 runs" in told.err and "unfinished and" not in told.out
    assert main([*words, "--by-task", "--paper"]) == 0
    steps = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    assert [row["classes"] for row in steps] == ["all", "old", "new"] * 2 and "outcome" not in steps[0]
    assert float(steps[0]["5"]) == statistics.fmean(averages) and steps[1]["1"] == ""


def coordinated_gain(without: dict[str, Any], with_it: dict[str, Any]) -> float:
    return with_it["average"]["cnn"] - without["average"]["cnn"]


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.startswith("jioc: ") and told.count("\n") == 1
    return told


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in made()["tasks"][1]["cnn"].items() if key != name}


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ("config", {}, "setting 'method'"),
        ("config.coordination", None, "setting 'coordination'"),
        ("config.coordination.coordinate", None, "setting 'coordination.coordinate'"),
        ("config.memory", None, "setting 'memory'"),
        ("config.memory", "1000", "setting 'memory'"),
        ("config.later", [17], "setting 'later'"),
        ("tasks.1.cnn", without("all"), "task 2 of"),
        ("tasks.1.cnn.all", "high", "task 2 of"),
        ("tasks.1.cnn.old", "high", "task 2 of"),
        ("tasks.1.cnn.old", [3.0], "task 2 of"),
        ("tasks.1.nme.new", [], "task 2 of"),
        ("tasks.1.cnn.all", float("nan"), "task 2 of"),
        ("tasks.1.cnn.per_task", 3.0, "task 2 of"),
        ("tasks.1.nme", {"old": 3.0}, "task 2 of"),
        ("tasks.1.readouts", [1], "task 2 of"),
        ("tasks.1.classes", ["a", "b"], "task 2 of"),
        ("tasks.1.seconds", "long", "task 2 of"),
        ("tasks.1.diagnostics.drift_on_old", "far", "task 2 of"),
        ("tasks.1.diagnostics.drift_on_old", [3.0], "task 2 of"),
        ("tasks.1.diagnostics.weight_norms", 3.0, "task 2 of"),
        ("headline", "boosted", "'headline'"),
        ("complete", "yes", "'complete'"),
        ("average.cnn", "high", "'average'"),
        ("average", {}, "'average'"),
        ("last", None, "'last'"),
        ("counts", 500, "'counts'"),
        ("environment.device", 3, "'environment'"),
        ("commits", "abc", "'commits'"),
        ("commits", [3], "'commits'"),
        ("data", [3], "'data'"),
        ("data", {"fingerprint": 3}, "'data'"),
    ],
)
def test_a_damaged_result_is_refused_by_name(
    place: str, value: Any, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = made()
    holder: Any = result
    *path, last = place.split(".")
    for word in path:
        holder = holder[int(word) if word.isdecimal() else word]
    holder[last] = value
    keep(tmp_path, made(seed=2), result)
    for command in (["table", "--by-task"], ["report", "--out", str(tmp_path / "page.html")]):
        answer = refused([*command, str(tmp_path)], capsys)
        assert told in answer and "run-001/result.json" in answer
    assert not (tmp_path / "page.html").exists()


def test_what_another_version_may_say_is_read(tmp_path: Path) -> None:
    result = made(select="by-hand", coordination={"coordinate": "twice", "gamma3": 1}, unheard_of=[1])
    (one,) = group(read([keep(tmp_path, result | {"headline": "cnn", "more": "x"})]))
    assert one.name == "iCaRL + TWICE" and one.scene.endswith("select by-hand")


def test_what_cannot_be_read_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for name, content in {
        "torn": '{"format": 1, "con', "list": "[1]", "other": '{"accuracy": 3}',
        "bare": json.dumps(made() | {"tasks": [{}]}), "empty-handed": json.dumps(made() | {"tasks": []}),
        "newer": json.dumps(made() | {"format": 2, "jioc": "9.0"}),
    }.items():  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(content)
    for command in ("table", "report"):
        assert "no run at" in refused([command, str(tmp_path / "nowhere")], capsys)
        assert "no result.json" in refused([command, str(tmp_path / "empty")], capsys)
        assert "not a whole result" in refused([command, str(tmp_path / "torn")], capsys)
        assert "not a result of jioc" in refused([command, str(tmp_path / "list")], capsys)
        assert "not a result of jioc" in refused([command, str(tmp_path / "other")], capsys)
        assert "task 1 of" in refused([command, str(tmp_path / "bare")], capsys)
        assert "holds no task yet" in refused([command, str(tmp_path / "empty-handed")], capsys)
        assert "newer jioc (9.0)" in refused([command, str(tmp_path / "newer")], capsys)
        assert "are required" in refused([command], capsys)
    assert "did you mean 'latex'?" in refused(["table", str(tmp_path), "--format", "latx"], capsys)
    assert "did you mean '--figures'?" in refused(["report", str(tmp_path), "--figurs", "x"], capsys)
