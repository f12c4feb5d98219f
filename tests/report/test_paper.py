"""Which runs stand beside which figure of the paper."""

import statistics
from pathlib import Path
from typing import Any

import pytest

from helpers.results import keep, made
from jioc.config import values as settings
from jioc.report import paper
from jioc.report.runs import group, read
from jioc.report.tables import by_task, number, summarise
from jioc.resolve.derive import resolve
from jioc.results import Result

TEN = {"classes": 100, "tasks": 10}


OTHERWISE = {
    "augment": "autoaugment", "batch_size": 64, "select": "random", "order_seed": 7, "stem": "cifar-pool",
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
    result = made(**TEN, **{"stem": "imagenet"} | change)
    assert (paper.setting(Result.model_validate(result)) is not None) == there
    whole = settings.plain(resolve(settings.make(**result["config"])))
    assert (paper.setting(Result.model_validate(result | {"config": whole})) is not None) == there


def test_the_papers_resnet18_has_imagenets_stem_and_its_resnet32_the_usual_one() -> None:
    for backbone, stem, there in (
        ("resnet18", "imagenet", True),
        ("resnet18", "cifar", False),
        ("resnet32", "cifar", True),
        ("resnet32", "imagenet", False),
    ):
        result = Result.model_validate(made(**TEN, backbone=backbone, stem=stem))
        assert (paper.setting(result) is not None) == there, (backbone, stem)


def test_a_finished_run_of_unequal_tasks_is_not_in_the_paper() -> None:
    result = made(**TEN)
    result["tasks"][0]["classes"] = [0, 9]
    assert paper.setting(Result.model_validate(result)) is None


@pytest.mark.parametrize(("columns", "there"), [("zero", True), ("drawn", False)])
def test_a_run_of_an_earlier_version_keeps_its_place_if_its_option_did_nothing(
    columns: str, there: bool
) -> None:
    result = made(method="der", alls=[40.0] * 10, **TEN)
    result["config"]["options"] = {"aux_weight": 1.0, "new_columns": columns}
    assert (paper.setting(Result.model_validate(result)) is not None) == there
