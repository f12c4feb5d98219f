"""Settings that contradict each other are refused; given ones without effect are noted or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.argv import QUICK
from jioc.cli.main import main
from jioc.cli.run import main as command
from jioc.config import Config
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.resolve.validate import unused
from jioc.training.run import run


@pytest.mark.parametrize(
    ("given", "idle"),
    [
        (["--coordinate", "none", "--gamma2", "5"], "--gamma2"),
        (["--coordinate", "ic", "--temperature", "4", "--delta", "detached"], "--temperature"),
        (["--coordinate", "oc", "--delta-scale", "mean1"], "--delta-scale"),
        (["--coordinate", "jioc", "--delta-scale", "mean1", "--gamma2", "5"], None),
        (["--coordinate", "oc", "--host-kd", "keep", "--gamma1", "2"], "--gamma1"),
    ],
)
def test_a_flag_that_has_no_part_in_the_chosen_loss_is_noted(
    given: list[str], idle: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "icarl", *QUICK, *given, "--dry-run"]) == 0
    captured = capsys.readouterr().err
    why = " ".join(word for word in given[:4] if word in ("--coordinate", given[1], "--host-kd", "keep"))
    assert captured == ("" if idle is None else f"note: {idle}: without effect under {why}\n")


@pytest.mark.parametrize(
    ("method", "given", "note"),
    [
        ("podnet", "--decay cosine --milestones 1", "--milestones: without effect under --decay cosine"),
        ("podnet", "--decay steps --milestones 1", None),
        ("podnet", "--decay steps --milestones=", None),
        ("icarl", "--decay steps", None),
        ("icarl", "--milestones 1,2,80", "--milestones 2,80: without effect in 2 epochs"),
        ("icarl", "--first-epochs 1 --first-milestones 1", "--first-milestones 1: without effect in 1 epoch"),
        ("icarl", "--epochs 1", None),  # the usual ones move with it
    ],
)
def test_a_flag_that_leaves_the_rate_as_it_is_is_noted(
    method: str, given: str, note: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", method, *QUICK, *given.split(), "--dry-run"]) == 0
    captured = capsys.readouterr().err
    assert captured.startswith(f"note: {note}") and captured.count("\n") == 1 if note else captured == ""


def test_what_the_method_named_instead_of_a_file_s_lacks_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.yaml"
    own: dict[str, Any] = {
        "method": "bic",
        "memory": 40,
        "second": {"epochs": 3},
        "options": {"bias_loss": "pycil"},
    }
    for values in (own, settings.plain(resolve(settings.make(**own)))):
        for name, told in [
            ("second", "second: wa has no second stage"),
            ("options", "unknown option of wa 'bias_loss'"),
        ]:
            path.write_text(
                yaml.safe_dump({k: v for k, v in values.items() if k not in {"second", "options"} - {name}})
            )
            assert main(["run", "wa", "--config", str(path), "--dry-run"]) == 2
            assert told in capsys.readouterr().err
        path.write_text(yaml.safe_dump(values))
        assert main(["run", "--config", str(path), "--dry-run", "--device", "cpu"]) == 0
        capsys.readouterr()


def test_a_second_stage_is_refused_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("method: icarl\nsecond: {epochs: 5}\n")
    assert main(["run", "--config", str(path), "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "jioc: second: icarl has no second stage\n"
    assert main(["run", "--config", str(path), "bic", "--memory", "40", "--dry-run", "--device", "cpu"]) == 0


@pytest.mark.parametrize(
    ("method", "idle", "message"),
    [
        (
            "podnet",
            {"later": {"milestones": [3]}},
            "--milestones: without effect, because the rate falls along a",
        ),
        (
            "podnet",
            {"second": {"decay": "steps"}},
            "--second-decay steps: the rate would never fall, because",
        ),
        (
            "icarl",
            {"first": {"milestones": [60, 200]}},
            "--first-milestones 200: without effect, because there are",
        ),
    ],
)
def test_schedules_without_effect_are_refused_from_python_and_in_a_config(
    method: str, idle: dict[str, Any], message: str, tmp_path: Path
) -> None:
    values = {"method": method, **idle}
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps(values))
    words = ["--config", str(config), "--dry-run"]
    for attempt in (lambda: command(words), lambda: run(**values), lambda: run(Config(**values))):
        with pytest.raises(Refused, match=f"^{message}"):
            attempt()


@pytest.mark.parametrize(
    ("method", "chosen"),
    [
        ("podnet", {"later": {"decay": "cosine", "milestones": [3]}}),
        ("podnet", {"later": {"decay": "steps", "milestones": []}}),
        ("icarl", {"later": {"epochs": 2, "milestones": [1, 80]}}),
        ("replay", {"later": {"epochs": 70, "milestones": [30, 100]}}),
        ("replay", {"later": {"epochs": 2}, "first": {"epochs": 6, "milestones": [3, 10]}}),
    ],
)
def test_schedules_without_effect_that_were_chosen_can_be_repeated_from_what_was_written(
    method: str, chosen: dict[str, Any]
) -> None:
    given = settings.make(method=method, **chosen)
    used = resolve(given)
    written = settings.plain(used)
    for config in (given, used, settings.make(**written), settings.make(**overlay(written, {}))):
        unused(resolve(config))
        assert resolve(config) == used
    longer = settings.make(**overlay(written, {"later": {"epochs": 30}}))
    unused(resolve(longer))


IDLE = "--gamma1: without effect, because nothing is coordinated; add --coordinate jioc, ic or oc"


def test_options_of_jioc_without_effect_are_refused_from_python_and_in_a_config(tmp_path: Path) -> None:
    idle: dict[str, Any] = {"method": "icarl", "coordination": {"gamma1": 2}}
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps(idle))
    for attempt in (
        lambda: run(**idle),
        lambda: run(Config(**idle)),
        lambda: command(["--config", str(config)]),
    ):
        with pytest.raises(Refused, match=f"^{IDLE}$"):
            attempt()
    chosen = settings.make(method="icarl", coordination={"coordinate": "none", "gamma1": 2})
    for once in (resolve(chosen), resolve(settings.make(method="icarl"))):
        assert resolve(once) == resolve(settings.make(**settings.plain(once))) == once


@pytest.mark.parametrize(
    ("method", "options", "note"),
    [
        (
            "icarl",
            {"host_factors": "keep"},
            "--host-factors: without effect because iCaRL has no such factors",
        ),
        ("wa", {"host_factors": "keep"}, None),
        ("wa", {"host_factors": "keep", "gamma1": 0}, "--host-factors: without effect under --gamma1 0"),
        ("icarl", {"host_kd": "drop", "gamma1": 0}, "--host-kd: without effect under --gamma1 0"),
        (
            "icarl",
            {"suppress_scale": "batch", "gamma2": 0},
            "--suppress-scale: without effect under --gamma2 0",
        ),
        ("ssil", {"oc_data": "old"}, "--oc-data: without effect under --coordinate jioc --host-kd keep"),
    ],
)
def test_an_option_of_jioc_that_acts_on_nothing_is_noted_with_the_reason(
    method: str, options: dict[str, Any], note: str | None
) -> None:
    coordination = {"coordinate": "jioc", **options}
    given = ("method", *(f"coordination.{name}" for name in coordination))
    config = resolve(settings.make(method=method, coordination=coordination, given=given))
    assert unused(config) == ([note] if note else [])


@pytest.mark.parametrize("method", ["wa", "der", "icarl"])
def test_who_takes_the_alignment_from_a_method_is_told_what_balances_instead(method: str) -> None:
    def notes(**more: Any) -> list[str]:
        return unused(resolve(settings.make(method=method, **more)))

    told = [note for note in notes(head="cosine") if "--adjust 1, or --headline nme" in note]
    assert len(told) == (method != "icarl")
    assert not notes() and not notes(head="cosine", adjust=1.0) and not notes(head="cosine", headline="nme")
