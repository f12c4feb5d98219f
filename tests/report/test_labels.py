"""What a setting is called in tables, pages and figures."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.paths import ROOT
from helpers.results import keep, made
from helpers.trees import class_folders
from jioc.cli.main import main
from jioc.config import index
from jioc.config import values as settings
from jioc.data.catalogue import DATASETS
from jioc.methods.specs import SPECS
from jioc.report.runs import Group, Run, group, planned
from jioc.report.tables import summarise
from jioc.resolve import recipes
from jioc.resolve.derive import resolve


def jioc(**options: Any) -> dict[str, Any]:
    return {"coordination": {"coordinate": "jioc", **options}}


def groups(*results: dict[str, Any]) -> list[Group]:
    return group([Run(Path(str(i)), result) for i, result in enumerate(results)])


def names(*results: dict[str, Any]) -> list[str]:
    return [g.label for g in groups(*results)]


def resolved(**values: Any) -> dict[str, Any]:
    """A result whose configuration is whole, as a run writes it."""
    values = {"method": "icarl", "data": "cifar100", "tasks": 5} | values
    return made() | {"config": settings.plain(resolve(settings.make(**values)))}


def test_a_label_names_only_what_is_not_usual_and_rows_of_a_kind_stand_together() -> None:
    results = [
        made(accumulate=2, **jioc()),
        made(**jioc(suppress_scale="old-mean")),
        made(**jioc(gamma2=5.0)),
        made(**jioc(gamma2=0.5)),
        made(**jioc(gamma2=5.0, kd_t2=True)),
        made(coordination={"coordinate": "ic", "delta": "differentiated"}),
        made(coordinate="jioc"),
        made(accumulate=2),
        made(),
    ]
    want = [
        "iCaRL",
        "iCaRL, accumulate 2",
        "iCaRL + IC, delta differentiated",
        "iCaRL + JIOC",
        "iCaRL + JIOC, gamma2 0.5",
        "iCaRL + JIOC, gamma2 5",
        "iCaRL + JIOC, gamma2 5, kd-t2 yes",
        "iCaRL + JIOC, suppress-scale old-mean",
        "iCaRL + JIOC, accumulate 2",
    ]
    assert names(*results) == want
    random.Random(1).shuffle(results)
    assert names(*results) == want


def test_seeds_and_machine_are_never_told() -> None:
    results = [
        made(seed=1, device="cpu", **jioc(gamma2=5.0)),
        made(seed=2, device="cuda", data_dir="/a", checkpoint_every=5.0, **jioc(gamma2=5.0)),
        made(seed=3, data_dir="/b", stream="yes"),
    ]
    assert names(*results) == ["iCaRL", "iCaRL + JIOC, gamma2 5"]


@pytest.mark.parametrize(("page", "mark"), [("report", "`{}`"), ("grid", "`--{}`")])
def test_the_docs_name_every_setting_of_the_machine(page: str, mark: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    told = {name.replace("_", "-") if page == "grid" else name for name in index.MACHINE}
    assert {name for name in told if mark.format(name) not in text} == set()


def test_the_gain_is_over_the_host_with_the_same_settings_otherwise() -> None:
    plain, halved, coordinated, changed = groups(
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
    [("none", {"gamma1": 3.0, "delta": "differentiated"}, {}), ("ic", {"gamma2": 5.0}, {"delta_scale": "mean1"}),
     ("oc", {"delta": "differentiated"}, {"temperature": 4.0})],
)  # fmt: skip
def test_an_option_that_has_no_part_in_the_loss_makes_no_other_setting(
    word: str, idle: dict[str, Any], live: dict[str, Any]
) -> None:
    of = {"coordinate": word}
    assert len(groups(made(seed=1, coordination=of), made(seed=2, coordination=of | idle))) == 1
    assert len(groups(made(seed=1, coordination=of), made(seed=2, coordination=of | live))) == 1 + bool(live)


def test_milestones_along_a_cosine_make_no_other_setting() -> None:
    def run(seed: int, decay: str, *milestones: int) -> dict[str, Any]:
        return made(seed=seed, later={"epochs": 170, "decay": decay, "milestones": [*milestones] or None})

    assert len(groups(run(1, "cosine"), run(2, "cosine", 80, 120))) == 1
    assert len(groups(run(1, "steps", 80), run(2, "steps", 80, 120))) == 2


def test_what_every_run_departs_in_is_told_once_with_the_place() -> None:
    short = {"later": {"epochs": 17}}
    found = groups(
        resolved(**short),
        resolved(coordination={"coordinate": "jioc"}, **short),
        resolved(coordination={"coordinate": "jioc", "gamma2": 5}, **short),
    )
    assert [g.name for g in found] == ["iCaRL", "iCaRL + JIOC", "iCaRL + JIOC, gamma2 5"]
    assert {g.scene for g in found} == {"cifar100, resnet32, 5 tasks, 2,000 exemplars, epochs 17"}
    assert summarise(found, beside_paper=False).title.endswith(", epochs 17")


def test_where_nobody_is_as_usual_the_few_are_told_against_the_many() -> None:
    found = groups(made(batch_size=64), made("replay", batch_size=64), made(batch_size=32))
    assert [g.label for g in found] == ["iCaRL", "iCaRL, batch-size 32", "Replay"]
    assert found[0].scene.endswith("1,000 exemplars, batch-size 64")
    assert names(made(batch_size=64), made(batch_size=32)) == ["iCaRL, batch-size 32", "iCaRL, batch-size 64"]


def test_what_follows_from_a_setting_is_told_only_where_it_tells_runs_apart() -> None:
    usual, short, other = (
        resolved(),
        resolved(later={"epochs": 17}),
        resolved(later={"epochs": 17}, first={"epochs": 9}),
    )
    assert short["config"]["first"]["epochs"] == 20 and short["config"]["later"]["milestones"] != [80, 120]
    assert names(usual, short) == ["iCaRL", "iCaRL, epochs 17"]
    small = [resolved(data="miniimagenet", image_size=size) for size in (84, 64)]
    assert names(*small) == ["iCaRL", "iCaRL, image-size 64"]
    assert names(usual, resolved(first={"epochs": 9})) == ["iCaRL", "iCaRL, first-epochs 9"]
    assert names(usual, short, other) == ["iCaRL", "iCaRL, epochs 17", "iCaRL, epochs 17, first-epochs 9"]


def test_what_does_not_follow_is_told_though_it_is_usual_elsewhere() -> None:
    long = resolved(later={"epochs": 1}, first={"epochs": 200, "milestones": [60, 120, 170]})
    assert names(resolved(), resolved(later={"epochs": 1}), long) == [
        "iCaRL",
        "iCaRL, epochs 1",
        "iCaRL, epochs 1, first-epochs 200",
    ]
    slower = resolved(later={"lr": 0.05}, first={"lr": 0.1}, method="der")
    assert names(slower) == ["DER"] and groups(slower)[0].scene.endswith("lr 0.05, first-lr 0.1")
    for recipe in ("parity", "stems"):
        assert {g.places[-1] for g in group(planned(recipes.find(recipe), []))} == {
            "epochs 1, first-epochs 200"
        }


def test_the_same_epochs_with_first_tasks_of_different_length_are_told() -> None:
    few = [resolved(method=method, later={"epochs": 3}) for method in ("replay", "icarl", "wa")]
    assert [result["config"]["first"]["epochs"] for result in few] == [9, 4, 4]
    found = groups(*few)
    assert [g.name for g in found] == ["Replay, first-epochs 9", "iCaRL", "WA"]
    assert found[0].scene.endswith("epochs 3, first-epochs 4")
    assert [g.scene.endswith("epochs 3") for g in groups(*few[1:])] == [True, True]
    assert names(*(resolved(method=method) for method in ("replay", "icarl", "wa"))) == [
        "Replay",
        "iCaRL",
        "WA",
    ]


def test_a_method_whose_memory_is_its_own_says_so() -> None:
    assert names(made(), made("finetune"), made("finetune", "ic"), made("joint")) == [
        "iCaRL",
        "Finetune, no exemplars",
        "Finetune + IC, no exemplars",
        "Joint, every image kept",
    ]


def own(host: str = "icarl", **values: Any) -> dict[str, Any]:
    """A result of a method in a file, which has gone since, made from one of ours with a tenth of iCaRL's schedules."""
    usual = SPECS[host]
    spec = replace(
        usual,
        name="mine",
        title="Mine",
        first=usual.first.model_copy(update={"epochs": 20, "milestones": (6, 12, 17)}),
        later=usual.later.model_copy(update={"epochs": 17, "milestones": (8, 12)}),
    )
    config = settings.make(method="lost/mine.py", data="cifar100", tasks=5, **values)
    return made() | {"config": settings.plain(resolve(config, spec=spec)), "method": told(spec)}


def test_a_method_of_ones_own_is_called_by_its_title_and_by_what_is_not_usual_for_it() -> None:
    found = groups(
        own(), own(later={"epochs": 30}), own(options={"kd_weight": 2.0}), own(**jioc()), resolved()
    )
    assert [g.name for g in found] == [
        "Mine",
        "Mine, epochs 30",
        "Mine, kd-weight 2",
        "Mine + JIOC",
        "iCaRL",
    ]
    assert names(own(later={"epochs": 30}), resolved()) == ["Mine, epochs 30", "iCaRL"]
    assert groups(own(later={"epochs": 30}))[0].scene.endswith("epochs 30")


@pytest.mark.parametrize(
    ("said", "name", "told"),
    [({}, "Mine", "exemplars, epochs 30, second-epochs 4"), ({"method": None}, "mine", "2,000 exemplars")],
)
def test_a_method_of_ones_own_with_a_second_stage_has_a_row_beside_the_paper(
    said: dict[str, Any], name: str, told: str
) -> None:
    (g,) = groups(own("podnet", later={"epochs": 30}, second={"epochs": 4}) | said)
    (row,) = summarise([g], beside_paper=True).rows
    assert row[0] == name and row[-3:] == ["–", "–", "–"]
    assert g.scene.endswith(told)


def test_two_states_of_a_method_file_are_two_rows() -> None:
    before, after = own(), own()
    before["method"]["sha256"], after["method"]["sha256"] = "1" * 64, "2" * 64
    assert names(before, after) == ["Mine, file 11111111", "Mine, file 22222222"]
    moved = after | {"config": own(seed=2)["config"] | {"method": "found/mine.py"}}
    assert [len(g.runs) for g in groups(after, moved)] == [2]


def test_what_a_result_tells_of_a_method_is_what_is_usual_for_it() -> None:
    for spec in SPECS.values():
        again = recorded(understood(json.loads(json.dumps(told(spec)))))
        assert again is not None and again.options().model_dump() == spec.options().model_dump()
        for name in ("name", "title", "first", "later", "second", "memory", "host_kd"):
            assert getattr(again, name) == getattr(spec, name)


@pytest.mark.parametrize(
    "change", [None, "Mine", {"title": 3}, {"first": {"epochs": 20}}, {"options": {"_x": 1}}]
)
def test_what_cannot_be_understood_of_a_method_leaves_it_the_name_of_its_file(change: Any) -> None:
    whole = own()
    said = whole["method"] | change if isinstance(change, dict) else change
    known = isinstance(change, dict) and "options" in change
    assert names(whole | {"method": said}) == ["Mine" if known else "mine"]


def test_a_title_that_another_method_has_is_told_with_the_file() -> None:
    taken = own()
    taken["method"]["title"] = "iCaRL"
    assert names(taken) == ["iCaRL (mine)"]


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_a_name_that_moves_the_cursor_breaks_no_row(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = own(**jioc()) | {"environment": {"device": "a\ndevice\x1b", "torch": "2"}, "commit": "abc\ndef"}
    result["method"]["title"] = "\x1b[31mMi\nne\n"
    result["config"]["data"] = "pets\n\u2028"
    assert main(["table", str(keep(tmp_path, result)), "--by-task", "--format", form]) == 0
    told = capsys.readouterr()
    assert (
        "\x1b" not in told.out + told.err and "\u2028" not in told.out and "a device" in told.out + told.err
    )
    assert sum("[31mMi ne + JIOC" in line for line in told.out.splitlines()) == 3
    assert not any(line.startswith(("ne", "device", "def")) for line in (told.out + told.err).splitlines())


def test_what_cannot_be_seen_makes_no_title() -> None:
    for title, want in {"iCaRL\n": "iCaRL (mine)", "\0": "mine"}.items():
        hidden = own()
        hidden["method"]["title"] = title
        assert names(hidden) == [want]


def test_usual_is_what_is_usual_for_the_method_and_the_data() -> None:
    results = [resolved(method=m) for m in ("icarl", "der", "foster", "ssil", "replay")]
    results += [
        resolved(method="icarl", data="cub200"),
        resolved(method="ssil", coordination={"coordinate": "oc"}),
    ]
    assert names(*results) == [
        "iCaRL, cifar100, resnet32",
        "DER, cifar100, resnet32",
        "FOSTER, cifar100, resnet32",
        "SS-IL, cifar100, resnet32",
        "SS-IL + OC, cifar100, resnet32",
        "Replay, cifar100, resnet32",
        "iCaRL, cub200, resnet18",
    ]


def test_several_places_are_told_by_that_in_which_they_differ() -> None:
    results = [made(), made(**jioc(gamma2=5.0)), made(memory=500), made(long_tail="paper", holdout=0.1)]
    found = groups(*results)
    assert [g.label for g in found] == [
        "iCaRL, balanced, 1,000 exemplars",
        "iCaRL + JIOC, gamma2 5, balanced, 1,000 exemplars",
        "iCaRL, balanced, 500 exemplars",
        "iCaRL, long tail paper, 1,000 exemplars, judged by 10 % held out",
    ]
    sheet = summarise(found, beside_paper=False)
    assert sheet.title == "cifar100, resnet18, 5 tasks" and sheet.blocks == [2, 3]
    settings = [
        "balanced, 1,000 exemplars",
        "",
        "balanced, 500 exemplars",
    ]  # each is told once, by its first row
    assert [row[0] for row in sheet.rows[:3]] == settings and sheet.rows[1][1] == "iCaRL + JIOC, gamma2 5"


def test_one_is_no_plural() -> None:
    (one,) = groups(made(tasks=1, memory_per_class=1))
    assert one.scene == "cifar100, resnet18, 1 task, 1 exemplar a class"
    assert groups(made(memory=1))[0].scene.endswith("5 tasks, 1 exemplar")


def test_the_usual_number_of_tasks_is_the_same_setting_whether_said_or_not() -> None:
    silent = made(seed=2, alls=[50.0] * 5)
    silent["config"]["tasks"] = None
    plain, coordinated = groups(made(alls=[50.0] * 5), silent, made(seed=2, alls=[53.0] * 5, **jioc()))
    assert len(plain.runs) == 2 and coordinated.gains("cnn") == [3.0]


def test_an_unfinished_run_stands_with_the_finished_seeds_where_nobody_said_how_many_tasks() -> None:
    for data, classes, tasks in (("cub200", 200, 10), ("photos", 6, 3)):
        begun, done = (
            made(classes=classes, tasks=tasks, data=data, seed=seed, done=end)
            for seed, end in ((1, 1), (2, None))
        )
        for result in (begun, done):
            result["config"]["tasks"] = None
        assert [(len(g.runs), len(g.complete)) for g in groups(begun, done)] == [(2, 1)]


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
    (row,) = group(planned(recipe, [Run(tmp_path, ran)]))
    assert (row.scene.split(", ")[0], [run.planned for run in row.runs]) == ("photos", [False, True])


def test_class_orders_are_averaged_over_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = [made(order_seed=order, alls=[50.0 + order] * 5) for order in (1, 3)]
    orders += [made(order_seed=order, alls=[51.0 + 2 * order] * 5, **jioc()) for order in (1, 3)]
    place = str(keep(tmp_path, *orders))
    assert main(["table", place, "--format", "markdown"]) == 0
    assert sum("| 1 |" in line for line in capsys.readouterr().out.splitlines()) == 4
    assert main(["table", place, "--format", "markdown", "--over-orders"]) == 0
    told = capsys.readouterr().out
    assert (
        "| iCaRL | 2 | 52.00 ± 1.41 |" in told
        and "| +3.00 ± 1.41 |" in told
        and "n seeds or class orders" in told
    )


def test_tasks_of_unequal_size_are_another_place() -> None:
    halved = made(classes=10, tasks=5, base=5, increment=1) | {"complete": False}
    whole = made(classes=10, tasks=2)
    for row, part in zip(whole["tasks"], ([0, 4], [4, 10]), strict=True):
        row["classes"] = part
    halved["config"]["tasks"] = None
    assert names(made(), whole, halved) == ["iCaRL, 5 tasks", "iCaRL, 4+6 classes", "iCaRL, 5+5×1 classes"]


def test_runs_that_nothing_usual_tells_apart_are_told_apart_by_what_they_differ_in() -> None:
    assert names(made(data="a/birds"), made(data="b/birds")) == ["iCaRL, data a/birds", "iCaRL, data b/birds"]
    assert names(made(), made(tasks=5, base=2, increment=2)) == ["iCaRL", "iCaRL, base 2, increment 2"]
    own = [made("my/own.py", options={"weight": w, "kind": "x"}) for w in (3, 2)]
    assert names(*own) == ["own, weight 2", "own, weight 3"]
    assert names(made("my/own.py"), made("his/own.py")) == ["own, method my/own.py", "own, method his/own.py"]
    orders = [[*range(30), *end] for end in ([30, 31], [31, 30])]
    first, second = names(*(made(order=o) for o in orders))
    assert second == f"{first} (2)"


def of(images: str | None, data: str = "photos", **more: Any) -> dict[str, Any]:
    """A result that tells which images it had."""
    return made(data=data, alls=[50.0] * 5, **more) | {"data": {"fingerprint": images}}


def test_other_images_under_one_name_are_another_row_and_no_host() -> None:
    found = groups(of("1" * 32), of("2" * 32, seed=2), of("2" * 32, **jioc()), of("1" * 32, seed=2, **jioc()))
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
    plain, coordinated = groups(
        *(of("1" * 32, way, seed=i) for i, way in enumerate(ways)), of("1" * 32, **jioc())
    )
    assert len(plain.runs) == 4 and coordinated.gains("cnn") == [0.0]
    assert (plain.scene, plain.label) == ("photos, resnet18, 5 tasks, 1,000 exemplars", "iCaRL")
    assert not any("not averaged together" in note for note in summarise([plain, coordinated], False).notes)
    assert [len(g.runs) for g in groups(of(None, "a/photos"), of(None, "b/photos"))] == [1, 1]  # nobody knows


def test_a_folder_of_the_name_of_a_data_set_is_not_that_data_set() -> None:
    theirs, own = groups(made(), of("1" * 32, "mine/cifar100", seed=2))
    assert (theirs.label, own.label) == ("iCaRL, cifar100", "iCaRL, cifar100 (images 11111111)")
    assert own.config["data"] not in DATASETS


def test_images_of_two_sizes_need_no_checksum() -> None:
    assert names(of("1" * 32, image_size=16), of("2" * 32, image_size=20)) == [
        "iCaRL, image-size 16",
        "iCaRL, image-size 20",
    ]


def test_a_data_set_whose_earlier_results_tell_no_images_is_one_row_unless_it_was_two() -> None:
    results = [of(images, "cub200", seed=i) for i, images in enumerate((None, "1" * 32, None))]
    assert [len(g.runs) for g in groups(*results)] == [3]
    assert [len(g.runs) for g in groups(*results, of("2" * 32, "cub200", seed=9))] == [2, 1, 1]


@pytest.mark.parametrize("recipe", recipes.RECIPES.values(), ids=list(recipes.RECIPES))
def test_every_recipe_has_labels_that_differ_without_numbers(recipe: recipes.Recipe) -> None:
    found = group(planned(recipe, []))
    assert len({g.label for g in found}) == len(found) == len(recipe.make())
    assert not any(g.label.endswith(")") for g in found)


def test_the_study_tells_one_change_a_run() -> None:
    found = group(planned(recipes.find("study"), []))
    assert {g.name.count(",") for g in found} == {0, 1}
    assert [g.name for g in found if "," not in g.name] == [
        "iCaRL",
        "iCaRL + IC",
        "iCaRL + OC",
        "iCaRL + JIOC",
    ]
    assert (
        found[0].scene == "cifar100, resnet32, 10 tasks, 1,000 exemplars, judged by 10 % held out, epochs 51"
    )


def test_a_recipe_is_missed_at_its_own_scale() -> None:
    study = recipes.find("study")
    ran = [made() | {"config": run.result["config"]} for run in planned(study, [])]
    assert (
        planned(study, [Run(Path(str(i)), result) for i, result in enumerate(ran[1:])])[0].config
        == ran[0]["config"]
    )
    assert ran[0]["config"]["later"]["epochs"] == 51


def test_a_seed_that_was_run_twice_is_told() -> None:
    assert "seeds run more than once" not in str(summarise(groups(made(seed=1), made(seed=2)), False).notes)
    notes = summarise(groups(made(seed=1), made(seed=2), made(seed=2)), False).notes
    assert "seeds run more than once count each time: 1 of 3 runs" in notes


def test_text_aligns_figures_and_latex_parts_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(keep(tmp_path, made(alls=[9.0] * 5), made(alls=[50.0] * 5, **jioc()), made(memory=500)))
    assert main(["table", runs]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    rows = [line for line in lines if "iCaRL" in line]
    assert rows[0].index(" 9.00") == rows[1].index("50.00")
    assert len({len(row) for row in rows}) == 1
    assert main(["table", runs, "--format", "latex"]) == 0
    body = capsys.readouterr().out.splitlines()
    below = [body[i + 1].split(" & ")[0].strip() for i, line in enumerate(body) if "midrule" in line]
    assert below == ["1,000 exemplars", "500 exemplars"]


def test_a_table_says_where_its_figures_come_from() -> None:
    def last(*results: dict[str, Any]) -> str:
        return summarise(groups(*results), False).notes[-1]

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
