"""What a setting is called in tables, pages and figures."""

import copy
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.paths import ROOT
from helpers.results import groups_of, jioc, keep, made
from jioc.cli.main import main
from jioc.config import index
from jioc.config import values as settings
from jioc.methods import SPECS, parse_record, record, spec_from_record
from jioc.report.runs import group, planned
from jioc.report.tables import summarise
from jioc.resolve import recipes
from jioc.resolve.derive import resolve


def names(*results: dict[str, Any]) -> list[str]:
    return [g.label for g in groups_of(*results)]


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


def test_the_reading_is_told_in_a_word_and_results_before_it_were_as_printed() -> None:
    old = resolved(coordination={"coordinate": "jioc", "reading": "printed"})
    del old["config"]["coordination"]["reading"]
    words = ("normalised", "printed", "averaged")
    new = [resolved(coordination={"coordinate": "jioc", "reading": word}) for word in words]
    want = [f"iCaRL + JIOC{word}" for word in ("", ", reading averaged", ", reading printed")]
    assert names(*new) == want
    assert names(new[0], old) == names(new[0], old, new[1]) == [want[0], want[2]]


def test_results_of_earlier_versions_are_told_in_the_words_of_this_one() -> None:
    """What has gone and changed nothing is no difference; what acted is told."""
    now = [resolved(method="der"), resolved(method="foster", coordination={"coordinate": "jioc"})]
    was = copy.deepcopy(now)
    was[0]["config"]["options"]["correction"] = "norms"
    was[1]["config"]["coordination"] |= {"delta_softmax": "host", "ic_terms": "cls"}
    assert names(*now, *was) == ["DER", "FOSTER + JIOC"]
    was[1]["config"]["coordination"]["delta_softmax"] = "plain"
    assert names(*now, was[1]) == ["DER", "FOSTER + JIOC", "FOSTER + JIOC, delta-softmax plain"]


def test_a_reading_is_told_by_the_options_that_act_whatever_it_was_called() -> None:
    def named(method: str, **options: Any) -> str:
        run = resolved(method=method, coordination={"coordinate": "jioc", **options})
        return names(resolved(method=method), run)[-1]

    assert named("icarl", reading="printed", delta_scale="mean1") == "iCaRL + JIOC"
    assert named("wa", reading="printed", delta_scale="mean1") == "WA + JIOC, host-factors keep"
    assert named("der", reading="printed", oc_reduce="mean") == "DER + JIOC"
    assert named("der", reading="normalised") == "DER + JIOC, reading normalised"
    assert named("icarl", reading="printed", coordinate="oc") == "iCaRL + OC"
    assert named("icarl", reading="averaged", coordinate="ic") == "iCaRL + IC, reading printed"
    assert named("replay", host_factors="keep") == "Replay + JIOC"
    assert named("icarl", oc_reduce="mean") == "iCaRL + JIOC, oc-reduce mean"


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


def test_what_every_run_departs_in_is_told_once_with_the_place() -> None:
    short = {"later": {"epochs": 17}}
    found = groups_of(
        resolved(**short),
        resolved(coordination={"coordinate": "jioc"}, **short),
        resolved(coordination={"coordinate": "jioc", "gamma2": 5}, **short),
    )
    assert [g.name for g in found] == ["iCaRL", "iCaRL + JIOC", "iCaRL + JIOC, gamma2 5"]
    assert {g.place for g in found} == {"cifar100, resnet32, 5 tasks, 2,000 exemplars, epochs 17"}
    assert summarise(found, beside_paper=False).title.endswith(", epochs 17")


def test_where_nobody_is_as_usual_the_few_are_told_against_the_many() -> None:
    found = groups_of(made(batch_size=64), made("replay", batch_size=64), made(batch_size=32))
    assert [g.label for g in found] == ["iCaRL", "iCaRL, batch-size 32", "Replay"]
    assert found[0].place.endswith("1,000 exemplars, batch-size 64")
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
    assert names(slower) == ["DER"] and groups_of(slower)[0].place.endswith("lr 0.05, first-lr 0.1")
    for recipe in ("parity", "stems"):
        places = {g.place_parts[-1] for g in group(planned(recipes.find_recipe(recipe), []))}
        assert all(place.endswith("epochs 1, first-epochs 200") for place in places)


def test_the_same_epochs_with_first_tasks_of_different_length_are_told() -> None:
    few = [resolved(method=method, later={"epochs": 3}) for method in ("replay", "icarl", "wa")]
    assert [result["config"]["first"]["epochs"] for result in few] == [9, 4, 4]
    found = groups_of(*few)
    assert [g.name for g in found] == ["Replay, first-epochs 9", "iCaRL", "WA"]
    assert found[0].place.endswith("epochs 3, first-epochs 4")
    assert [g.place.endswith("epochs 3") for g in groups_of(*few[1:])] == [True, True]
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
    """A result of a method whose file has gone: one of ours by another name, with a tenth of its epochs."""
    usual = SPECS[host]
    spec = replace(
        usual,
        name="mine",
        title="Mine",
        first=usual.first.model_copy(update={"epochs": 20, "milestones": (6, 12, 17)}),
        later=usual.later.model_copy(update={"epochs": 17, "milestones": (8, 12)}),
    )
    config = settings.make(method="lost/mine.py", data="cifar100", tasks=5, **values)
    return made() | {
        "config": settings.plain(resolve(config, spec=spec)),
        "method": record(spec).model_dump(mode="json"),
    }


def test_a_method_of_ones_own_is_called_by_its_title_and_by_what_is_not_usual_for_it() -> None:
    found = groups_of(
        own(), own(later={"epochs": 30}), own(options={"kd_weight": 2.0}), own(**jioc()), resolved()
    )
    assert [g.name for g in found] == ["Mine", "Mine, epochs 30", "Mine, kd-weight 2", "Mine + JIOC", "iCaRL"]
    assert names(own(later={"epochs": 30}), resolved()) == ["Mine, epochs 30", "iCaRL"]
    assert groups_of(own(later={"epochs": 30}))[0].place.endswith("epochs 30")


@pytest.mark.parametrize(
    ("sentence", "name", "message"),
    [({}, "Mine", "exemplars, epochs 30, second-epochs 4"), ({"method": None}, "mine", "2,000 exemplars")],
)
def test_a_method_of_ones_own_with_a_second_stage_has_a_row_beside_the_paper(
    sentence: dict[str, Any], name: str, message: str
) -> None:
    (g,) = groups_of(own("podnet", later={"epochs": 30}, second={"epochs": 4}) | sentence)
    (row,) = summarise([g], beside_paper=True).rows
    assert row[0] == name and row[-3:] == ["–", "–", "–"]
    assert g.place.endswith(message)


def test_two_states_of_a_method_file_are_two_rows() -> None:
    before, after = own(), own()
    before["method"]["sha256"], after["method"]["sha256"] = "1" * 64, "2" * 64
    assert names(before, after) == ["Mine, file 11111111", "Mine, file 22222222"]
    moved = after | {"config": own(seed=2)["config"] | {"method": "found/mine.py"}}
    assert [len(g.runs) for g in groups_of(after, moved)] == [2]


def test_what_a_result_tells_of_a_method_is_what_is_usual_for_it() -> None:
    for spec in SPECS.values():
        again = spec_from_record(parse_record(json.loads(record(spec).model_dump_json())))
        assert again is not None and again.options().model_dump() == spec.options().model_dump()
        for name in ("name", "title", "first", "later", "second", "memory", "host_kd", "headline"):
            assert getattr(again, name) == getattr(spec, name)


def test_the_headline_that_is_usual_for_a_method_in_a_file_is_no_departure() -> None:
    result = own(headline="nme") | {"headline": "nme"}
    assert "headline nme" in groups_of(result)[0].place
    result["method"]["headline"] = "nme"
    assert "headline" not in groups_of(result)[0].place
    del result["method"]["headline"], result["config"]["headline"]  # before it could be another
    assert "headline" not in groups_of(result)[0].place


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
    captured = capsys.readouterr()
    assert (
        "\x1b" not in captured.out + captured.err
        and "\u2028" not in captured.out
        and "a device" in captured.out + captured.err
    )
    assert sum("[31mMi ne + JIOC" in line for line in captured.out.splitlines()) == 3
    assert not any(
        line.startswith(("ne", "device", "def")) for line in (captured.out + captured.err).splitlines()
    )


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
    found = groups_of(*results)
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
    (one,) = groups_of(made(tasks=1, memory_per_class=1))
    assert one.place == "cifar100, resnet18, 1 task, 1 exemplar a class"
    assert groups_of(made(memory=1))[0].place.endswith("5 tasks, 1 exemplar")


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


@pytest.mark.parametrize("recipe", recipes.RECIPES.values(), ids=list(recipes.RECIPES))
def test_every_recipe_has_labels_that_differ_without_numbers(recipe: recipes.Recipe) -> None:
    found = group(planned(recipe, []))
    assert len({g.label for g in found}) == len(found) == len(recipe.make())
    assert not any(g.label.endswith(")") for g in found)


def test_the_study_tells_one_change_a_run() -> None:
    found = group(planned(recipes.find_recipe("study"), []))
    assert {g.name.count(",") for g in found} == {0, 1, 2}  # the formulas as printed, and a change
    plain = ["iCaRL", "iCaRL + IC", "iCaRL + OC", "iCaRL + JIOC"]  # weights of mean 1 are the default's
    assert [g.name for g in found if "," not in g.name] == plain
    assert (
        found[0].place == "cifar100, resnet32, 10 tasks, 1,000 exemplars, judged by 10 % held out, epochs 51"
    )
