"""Runs read from disk and put into groups: what is one row, what is refused, what a recipe misses."""

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from helpers.command import refused
from helpers.results import groups_of, jioc, keep, made, runs_of
from helpers.trees import class_folders
from jioc.cli.main import main
from jioc.data.catalogue import DATASETS
from jioc.report.runs import group, planned, read
from jioc.report.tables import spread, summarise
from jioc.resolve import recipes


def names(*results: dict[str, Any]) -> list[str]:
    return [g.label for g in groups_of(*results)]


def test_the_gain_is_over_the_host_with_the_same_settings_otherwise() -> None:
    plain, halved, coordinated, changed = groups_of(
        made(alls=[50.0] * 5),
        made(alls=[54.0] * 5, accumulate=2),
        made(alls=[57.0] * 5, accumulate=2, **jioc(gamma2=5.0)),
        made(alls=[51.0] * 5, **jioc()),
    )
    assert [g.label for g in (coordinated, changed)] == [
        "iCaRL + JIOC",
        "iCaRL + JIOC, gamma2 5, accumulate 2",
    ]
    assert coordinated.base is plain and coordinated.gains("cnn") == [1.0]
    assert changed.base is halved and changed.gains("cnn") == [3.0]


@pytest.mark.parametrize(
    ("word", "idle", "live"),
    [
        ("none", {"gamma1": 3.0, "delta": "differentiated"}, {}),
        ("ic", {"gamma2": 5.0}, {"delta_scale": "plain"}),
        ("oc", {"delta": "differentiated"}, {"temperature": 4.0}),
    ],
)
def test_an_option_that_has_no_part_in_the_loss_makes_no_other_setting(
    word: str, idle: dict[str, Any], live: dict[str, Any]
) -> None:
    of = {"coordinate": word}
    assert len(groups_of(made(seed=1, coordination=of), made(seed=2, coordination=of | idle))) == 1
    assert len(groups_of(made(seed=1, coordination=of), made(seed=2, coordination=of | live))) == 1 + bool(
        live
    )


def test_other_milestones_make_another_setting() -> None:
    def run(seed: int, *milestones: int) -> dict[str, Any]:
        return made(seed=seed, later={"epochs": 170, "decay": "steps", "milestones": [*milestones]})

    assert len(groups_of(run(1, 80), run(2, 80, 120))) == 2


def test_the_usual_number_of_tasks_is_the_same_setting_whether_said_or_not() -> None:
    silent = made(seed=2, alls=[50.0] * 5)
    silent["config"]["tasks"] = None
    plain, coordinated = groups_of(made(alls=[50.0] * 5), silent, made(seed=2, alls=[53.0] * 5, **jioc()))
    assert len(plain.runs) == 2 and coordinated.gains("cnn") == [3.0]


def test_an_unfinished_run_stands_with_the_finished_seeds_where_nobody_said_how_many_tasks() -> None:
    for data, classes, tasks in (("cub200", 200, 10), ("photos", 6, 3)):
        begun, done = (
            made(classes=classes, tasks=tasks, data=data, seed=seed, done=end)
            for seed, end in ((1, 1), (2, None))
        )
        for result in (begun, done):
            result["config"]["tasks"] = None
        assert [(len(g.runs), len(g.complete)) for g in groups_of(begun, done)] == [(2, 1)]


def test_a_recipe_on_a_folder_finds_its_runs_where_nobody_said_how_many_tasks(tmp_path: Path) -> None:
    folder = class_folders(tmp_path / "photos", dict.fromkeys("abcdef", 2))
    recipe = recipes.Recipe(
        "own", "", lambda: {"plain": {"method": "icarl", "data": str(folder)}}, seeds=(1, 2)
    )
    wanted = planned(recipe, [])
    ran = made(classes=6, tasks=3) | {
        "config": wanted[0].config | {"tasks": None},
        "data": {"fingerprint": "1" * 32},
    }
    (row,) = group(planned(recipe, runs_of(ran)))
    assert (row.place.split(", ")[0], [run.missing for run in row.runs]) == ("photos", [False, True])


def test_class_orders_are_averaged_over_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = [made(order_seed=order, alls=[50.0 + order] * 5) for order in (1, 3)]
    orders += [made(order_seed=order, alls=[51.0 + 2 * order] * 5, **jioc()) for order in (1, 3)]
    place = str(keep(tmp_path, *orders))
    assert main(["table", place, "--format", "markdown"]) == 0
    assert sum("| 1 |" in line for line in capsys.readouterr().out.splitlines()) == 4
    assert main(["table", place, "--format", "markdown", "--over-orders"]) == 0
    captured = capsys.readouterr().out
    assert (
        "| iCaRL | 2 | 52.00 ± 1.41 |" in captured
        and "| +3.00 ± 1.41 |" in captured
        and "n seeds or class orders" in captured
    )


def of(images: str | None, data: str = "photos", **more: Any) -> dict[str, Any]:
    """A result that tells which images it had."""
    return made(data=data, alls=[50.0] * 5, **more) | {"data": {"fingerprint": images}}


def test_other_images_under_one_name_are_another_row_and_no_host() -> None:
    found = groups_of(
        of("1" * 32), of("2" * 32, seed=2), of("2" * 32, **jioc()), of("1" * 32, seed=2, **jioc())
    )
    assert [(g.label, len(g.runs)) for g in found] == [
        ("iCaRL, photos (images 11111111)", 1),
        ("iCaRL + JIOC, photos (images 11111111)", 1),
        ("iCaRL, photos (images 22222222)", 1),
        ("iCaRL + JIOC, photos (images 22222222)", 1),
    ]
    assert not any(g.gains("cnn") for g in found)  # the seeds differ
    told = "photos (images 11111111) from photos; photos (images 22222222) from photos"
    assert any(note.endswith(told) for note in summarise(found, False).notes)


def test_the_same_images_are_one_row_however_their_folder_is_written() -> None:
    ways = ("photos", "./photos/", "/here/photos", "../photos")
    plain, coordinated = groups_of(
        *(of("1" * 32, way, seed=i) for i, way in enumerate(ways)), of("1" * 32, **jioc())
    )
    assert len(plain.runs) == 4 and coordinated.gains("cnn") == [0.0]
    assert (plain.place, plain.label) == ("photos, resnet18, 5 tasks, 1,000 exemplars", "iCaRL")
    assert not any("not averaged together" in note for note in summarise([plain, coordinated], False).notes)
    assert [len(g.runs) for g in groups_of(of(None, "a/photos"), of(None, "b/photos"))] == [
        1,
        1,
    ]  # nobody knows


def test_a_folder_of_the_name_of_a_data_set_is_not_that_data_set() -> None:
    theirs, own = groups_of(made(), of("1" * 32, "mine/cifar100", seed=2))
    assert (theirs.label, own.label) == ("iCaRL, cifar100", "iCaRL, cifar100 (images 11111111)")
    assert own.config["data"] not in DATASETS


def test_images_of_two_sizes_need_no_checksum() -> None:
    assert names(of("1" * 32, image_size=16), of("2" * 32, image_size=20)) == [
        "iCaRL, image-size 16",
        "iCaRL, image-size 20",
    ]


def test_a_data_set_whose_earlier_results_tell_no_images_is_one_row_unless_it_was_two() -> None:
    results = [of(images, "cub200", seed=i) for i, images in enumerate((None, "1" * 32, None))]
    assert [len(g.runs) for g in groups_of(*results)] == [3]
    assert [len(g.runs) for g in groups_of(*results, of("2" * 32, "cub200", seed=9))] == [2, 1, 1]


def test_a_recipe_is_missed_at_its_own_scale() -> None:
    study = recipes.find_recipe("study")
    ran = [made() | {"config": run.result["config"]} for run in planned(study, [])]
    assert planned(study, runs_of(*ran[1:]))[0].result["config"] == ran[0]["config"]
    assert ran[0]["config"]["later"]["epochs"] == 51


def test_runs_that_differ_in_seeds_and_machine_alone_are_one_row(tmp_path: Path) -> None:
    results = [made(seed=s, device=d) for s, d in ((1, "cpu"), (2, "cuda"), (3, "auto"))]
    (one,) = group(read([keep(tmp_path, *results)]))
    sheet = summarise([one], beside_paper=False)
    averages = [r["average"]["cnn"] for r in results]
    assert sheet.heads[:4] == ["run", "n", "CNN average", "CNN last"]
    want = f"{statistics.mean(averages):.2f} ± {statistics.stdev(averages):.2f}"
    assert sheet.rows[0][:3] == ["iCaRL", "3", want]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory": 500}, "500 exemplars"),
        ({"order_seed": 7}, "order-seed 7"),
        ({"backbone": "resnet32"}, "resnet32"),
    ],
)
def test_another_setting_is_another_row_named_by_it(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    groups = group(read([keep(tmp_path, made(), made(**change))]))
    assert len(groups) == 2 and groups[1].label == f"iCaRL, {message}"


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


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in made()["tasks"][1]["cnn"].items() if key != name}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("config", {}, "setting 'method'"),
        ("config.coordination", None, "setting 'coordination'"),
        ("config.coordination.coordinate", None, "setting 'coordination.coordinate'"),
        ("config.batch_size", None, "setting 'batch_size'"),
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
        ("config.tasks", 10**9, "1,000,000,000 tasks for 10 classes"),
        ("config.tasks", 10**15, "setting 'tasks'"),
        ("tasks.4.diagnostics.confusion", "x", "task 5 of"),
        ("tasks.4.diagnostics.confusion", ["x"], "task 5 of"),
        ("tasks.4.diagnostics.confusion", ["10:1"], "more than its 10 classes"),
        ("tasks.4.diagnostics.confusion", [[1] * 11], "more than its 10 classes"),
        ("tasks.4.diagnostics.weight_norms", [1.0] * 11, "more than its 10 classes"),
        ("tasks.4.diagnostics.mean_logits", [1e300], "task 5 of"),
        ("tasks.4.cnn.per_class", [1.0] * 11, "'cnn' has more figures"),
        ("tasks.4.cnn.per_task", [1.0] * 6, "'cnn' has more figures"),
        ("tasks.1.classes", [4, 2], "the classes of task 2"),
        ("tasks.1.classes", [2, 10**400], "task 2 of"),
        ("tasks.4.classes", [8, 11], "the classes of task 5"),
        ("tasks.1.readouts", {"../../x": {"all": 1.0}}, "task 2 of"),
        ("tasks.1.readouts", {"\x1b[2J": {"all": 1.0}}, "task 2 of"),
        ("counts", [500], "it counts the images of 1 classes and names 10"),
    ],
)
def test_a_damaged_result_is_left_out_by_name(
    place: str, value: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = made()
    holder: Any = result
    *path, last = place.split(".")
    for word in path:
        holder = holder[int(word) if word.isdecimal() else word]
    holder[last] = value
    keep(tmp_path / "two", made(seed=2), result)
    keep(tmp_path / "one", result)
    page, drawn = tmp_path / "page.html", tmp_path / "drawn"
    for command in (["table", "--by-task"], ["report", "--out", str(page), "--figures", str(drawn)]):
        assert message in refused([*command, str(tmp_path / "one")], capsys) and not page.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jioc.report.figures.draw", lambda groups: {})  # drawing is slow
        for command in (["table", "--by-task"], ["report", "--out", str(page), "--figures", str(drawn)]):
            assert main([*command, str(tmp_path / "two")]) == 0
            answer = "".join(capsys.readouterr())
            assert "left out: " in answer and "run-001/result.json" in answer and message in answer
    shown = page.read_text()
    assert '"name":"seed 2"' in shown and '"name":"seed 1"' not in shown and "run-001/result.json" in shown


def test_what_another_version_may_say_is_read(tmp_path: Path) -> None:
    result = made(select="by-hand", coordination={"coordinate": "twice", "gamma3": 1}, unheard_of=[1])
    (one,) = group(read([keep(tmp_path, result | {"headline": "cnn", "more": "x"})]))
    assert one.name == "iCaRL + TWICE" and one.place.endswith("select by-hand")


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


def test_a_run_named_twice_counts_once(tmp_path: Path) -> None:
    folder = keep(tmp_path, made())
    assert len(read([folder, folder / "run-000", folder / "run-000" / "result.json"])) == 1


def test_hosts_come_before_what_is_built_on_them(tmp_path: Path) -> None:
    found = group(read([keep(tmp_path, made(coordinate="jioc"), made("replay"), made())]))
    assert [g.label for g in found] == ["iCaRL", "iCaRL + JIOC", "Replay"]
