"""Flags over a file: what the file gives stays, what follows from others follows anew."""

from pathlib import Path
from typing import Any

import pytest

from helpers.trees import class_folders, picture
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay


def test_a_flag_over_a_config_also_changes_what_follows_from_it(tmp_path: Path) -> None:
    file = settings.plain(resolve(settings.make(method="icarl", data="digits", memory_per_class=3, tasks=5)))
    made = {
        name: resolve(settings.make(**overlay(file, above)))
        for name, above in {
            "epochs": {"later": {"epochs": 34}},
            "lr": {"later": {"lr": 0.01}},
            "memory": {"memory": 500},
            "usual memory": {"memory": 2000},
            "sizes": {"task_sizes": (4, 6)},
            "method": {"method": "replay"},
        }.items()
    }
    assert made["epochs"].later.milestones == (16, 24) and made["epochs"].first.epochs == 40
    assert made["lr"].first.lr == pytest.approx(0.01)
    assert made["memory"].memory_per_class is made["usual memory"].memory_per_class is None
    assert made["sizes"].tasks is None
    assert made["method"] == resolve(
        settings.make(method="replay", data="digits", memory_per_class=3, tasks=5)
    )


def test_a_setting_given_again_still_rules_out_its_rivals() -> None:
    file = {
        "seed": 1,
        "init_seed": 7,
        "order_seed": 1993,
        "order": ["a"],
        "tasks": 5,
        "later": {"epochs": 9, "lr": 1},
    }
    found = overlay(file, {"seed": 1, "order_seed": 1993, "later": {"epochs": 9}})
    assert found == {"seed": 1, "order_seed": 1993, "tasks": 5, "later": {"epochs": 9, "lr": 1}}


def test_what_somebody_wrote_holds_for_whichever_method_data_and_length_are_chosen() -> None:
    file = {
        "backbone": "resnet18",
        "first": {"epochs": 4},
        "options": {"kd_weight": 2},
        "second": {"lr": 0.1},
    }
    file |= {"mean": (0.5,), "canvas": 40, "stem": "imagenet", "coordination": {"host_kd": "add"}}
    above = {"method": "icarl", "data": "cifar100", "image_size": 32, "later": {"epochs": 9, "lr": "0.6"}}
    for before in (
        {},
        {"method": "der", "data": "digits", "image_size": 8, "later": {"epochs": 3, "lr": 0.2}},
    ):
        assert overlay(file | before, above) == file | above


CHOICES: list[dict[str, Any]] = [
    {},
    {"later": {"epochs": 2}},
    {"later": {"epochs": 17, "lr": 0.05}, "first": {"epochs": 9}},
    {"first": {"weight_decay": 0.1}, "later": {"decay": "cosine"}},
    {"later": {"milestones": [100]}, "first": {"milestones": []}},
    {"coordination": {"coordinate": "jioc", "host_kd": "add"}},
    {"options": {"kd_temperature": 4}},
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_what_departs_from_the_method_of_a_run_s_config_was_given_and_the_rest_follows_another(
    choice: dict[str, Any],
) -> None:
    runs = {
        method: resolve(settings.make(method=method, **choice)) for method in ("icarl", "wa", "ssil", "bic")
    }
    for run in runs.values():
        for method, other in runs.items():
            assert resolve(settings.make(**overlay(settings.plain(run), {"method": method}))) == other
    gone = settings.plain(runs["bic"]) | {"method": "gone.py"}  # what was given is known without it
    assert resolve(settings.make(**overlay(gone, {"method": "wa"}))) == runs["wa"]


@pytest.mark.parametrize(
    "choice", [{}, {"backbone": "resnet18"}, {"stem": "imagenet"}, {"flip": False}], ids=str
)
def test_what_departs_from_the_data_of_a_run_s_config_was_given_and_the_rest_follows_other(
    choice: dict[str, Any], tmp_path: Path
) -> None:
    for name, side in [("small", 20), ("large", 36)]:
        for label in "ab":
            picture(tmp_path / name / label / "0.png", size=(side, side))
    folders = [str(tmp_path / "small"), str(tmp_path / "large")]
    runs = {
        data: resolve(settings.make(method="icarl", data=data, **choice)) for data in ("cifar100", *folders)
    }
    for run in runs.values():
        for data, other in runs.items():
            assert resolve(settings.make(**overlay(settings.plain(run), {"data": data}))) == other
    sized = [resolve(settings.make(method="icarl", data=data, image_size=32, **choice)) for data in folders]
    assert resolve(settings.make(**overlay(settings.plain(sized[0]), {"data": folders[1]}))) == sized[1]
    gone = settings.plain(sized[0]) | {"data": str(tmp_path / "gone")}  # what was given is known without it
    assert resolve(settings.make(**overlay(gone, {"data": folders[1]}))) == sized[1]


def test_a_run_s_config_keeps_what_was_given_where_its_method_is_gone() -> None:
    base = settings.plain(
        resolve(settings.make(method="icarl", later={"epochs": 4}, options={"kd_temperature": 4}))
    )
    config = settings.make(**overlay(base | {"method": "of_a_notebook"}, {"method": "wa"}))
    assert config.options == {"kd_temperature": 4}
    assert config.later == settings.make(method="wa", later={"epochs": 4}).later
    assert config.given == ("method", "later.epochs", "options.kd_temperature")


def test_a_value_edited_in_a_run_s_config_holds_until_a_flag_changes_what_it_follows_from() -> None:
    run = settings.plain(resolve(settings.make(method="icarl")))
    edited = run | {"later": run["later"] | {"epochs": 5}}
    for above in ({}, {"method": "icarl"}, {"memory": 40}):
        assert resolve(settings.make(**overlay(edited, above))).later.epochs == 5
    assert resolve(settings.make(**overlay(edited, {"method": "replay"}))).later.epochs == 70
    named = edited | {"given": [*run["given"], "later.epochs"]}
    assert resolve(settings.make(**overlay(named, {"method": "replay"}))).later.epochs == 5


def test_milestones_of_a_file_move_with_the_epochs_that_they_were_written_for() -> None:
    file: dict[str, Any] = {"method": "icarl", "later": {"epochs": 10, "milestones": [4, 8]}}
    for epochs, milestones in [(20, [8, 16]), ("10", [4, 8]), (1, [1]), ("many", [4, 8])]:
        assert overlay(file, {"later": {"epochs": epochs}})["later"] == {
            "epochs": epochs,
            "milestones": milestones,
        }
    given = {"later": {"epochs": 20, "milestones": [3]}}
    assert overlay(file, given)["later"] == given["later"]
    assert overlay({"later": {"milestones": [4]}}, {"later": {"epochs": 20}})["later"]["milestones"] == [4]
    run = settings.plain(
        resolve(settings.make(method="icarl", later={"milestones": [85]}, first={"milestones": [50]}))
    )
    half = resolve(settings.make(**overlay(run, {"later": {"epochs": "85"}})))
    assert (half.later.milestones, half.first.epochs, half.first.milestones) == ((42,), 100, (25,))
    assert resolve(settings.make(**overlay(run, {"method": "replay"}))).later.milestones == (35,)


def test_another_image_size_over_a_config_brings_its_own_canvas_and_network(tmp_path: Path) -> None:
    folder = str(class_folders(tmp_path / "pets", {"cat": 2, "dog": 2}))
    for size, other in [(20, 16), (20, 32), (84, 32), (32, 224)]:
        file = settings.plain(resolve(settings.make(method="icarl", data=folder, image_size=size)))
        flags = resolve(settings.make(method="icarl", data=folder, image_size=other))
        assert resolve(settings.make(**overlay(file, {"image_size": str(other)}))) == flags
    chosen = {"image_size": 20, "canvas": 40, "backbone": "resnet18", "stem": "cifar-pool"}
    assert overlay(chosen, {"image_size": 32}) == chosen | {"image_size": 32}
    run = settings.plain(
        resolve(settings.make(method="icarl", data="tinyimagenet", image_size=32, backbone="resnet32"))
    )
    other = resolve(settings.make(**overlay(run, {"image_size": 84})))
    assert (other.image_size, other.canvas, other.backbone) == (84, 96, "resnet32")


@pytest.mark.parametrize(
    "wrong",
    [{"later": {"mileston": [3]}}, {"options": {"kd_wait": 2}}, {"memry": 3}, {"second": {"epochs": 3}}],
    ids=str,
)
def test_a_wrong_name_in_a_run_s_config_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    run = settings.plain(resolve(settings.make(method="icarl")))
    edited = {
        name: run.get(name, {}) | value if isinstance(value, dict) else value for name, value in wrong.items()
    }
    given = {"given": [*run["given"], *settings.flat(wrong)]}
    for above in ({}, {"method": "replay"}):
        with pytest.raises(Refused, match=r"unknown (setting|option)|has no second stage"):
            resolve(settings.make(**overlay(run | edited | given, above)))
