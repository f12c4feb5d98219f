"""Flags made from the settings."""

import argparse
import importlib
import re
import shlex
from pathlib import Path

import pytest
import yaml

from helpers.argv import QUICK
from jioc.cli import data, grid, learn, run
from jioc.cli.main import COMMANDS, main
from jioc.methods import SPECS


def test_help_shows_the_methods_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for method in ("icarl", "lwf"):
        with pytest.raises(SystemExit):
            main(["run", method, "--help"])
        shown[method] = capsys.readouterr().out
    assert "(80,120)" in shown["icarl"] and "(60,120,180,220)" in shown["lwf"]
    assert (
        "Weight of the distillation (1.0)" in shown["icarl"]
        and "Weight of the distillation (3.0)" in shown["lwf"]
    )


BUILT = {
    "run": lambda: run.build_parser(SPECS["icarl"]),
    "grid": lambda: grid.build_parser(SPECS["icarl"]),
    "learn": lambda: learn.build_parser(SPECS["icarl"], {}),
    "data": data.build_parser,
}


@pytest.mark.parametrize("command", BUILT)
def test_the_short_help_has_a_dozen_options_and_three_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = BUILT[command]()
    assert set(parser.common) <= set(parser._option_string_actions)
    with pytest.raises(SystemExit) as ended:
        main([command, "-h"])
    captured = capsys.readouterr().out
    shown = re.findall(r"^  (--[\w-]+)", captured, re.MULTILINE)
    assert ended.value.code == 0 and set(shown) == set(parser.common) and len(shown) <= 13
    assert len(re.findall(r"^  jioc ", captured, re.MULTILINE)) == 3 and "\x1b" not in captured
    every = [a for a in parser._actions if a.option_strings and a.help != argparse.SUPPRESS]
    assert captured.endswith(f"jioc {command} --help shows all {len(every)} options.\n")


def test_every_example_is_a_line_that_its_command_takes() -> None:
    modules = {name: importlib.import_module(f"jioc.cli.{name}") for name in COMMANDS}
    built = {name: BUILT.get(name) or module.build_parser for name, module in modules.items()}
    for name, build in built.items():
        assert build().examples, name
        for line in build().examples:
            words = shlex.split(
                line.rpartition("|")[2].replace('eval "$(', "").replace(')"', "").split(">")[0]
            )
            assert words[:2] == ["jioc", name]
            build().parse(words[3:] if name == "grid" else words[2:])


def test_no_value_has_a_misleading_name() -> None:
    for build in (BUILT["run"], BUILT["grid"]):
        named = {flag: a.metavar for a in build()._actions for flag in a.option_strings}
        assert (named["--memory"], named["--memory-per-class"], named["--tasks"]) == ("N", "M", "T")
        assert not {"CLASS", "RUN", "TAIL", "CACHE"} & {str(metavar) for metavar in named.values()}


def test_a_list_alone_lists_what_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    captured = capsys.readouterr().out
    assert re.findall(r"jioc list (\w+)", captured) == ["methods", "presets", "recipes", "backbones", "data"]
    assert f"jioc list methods    {len(SPECS)} " in captured


def test_the_method_may_stand_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "icarl.yaml"
    path.write_text("method: icarl\nmemory: 40\ndevice: cpu\n")
    for words in (
        ["--config", str(path), "replay"],
        ["replay", "--config", str(path)],
        ["--memory", "40", "replay"],
    ):
        assert main(["run", "--dry-run", *words]) == 0
        assert "40 exemplars" in capsys.readouterr().out
    out = tmp_path / "run"
    assert main(["run", *QUICK, "--out", str(out), "--config", str(path), "replay"]) == 0
    assert yaml.safe_load((out / "config.yaml").read_text())["method"] == "replay"


def test_a_methods_own_flags_are_known_before_its_name_and_beside_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bic.yaml"
    path.write_text("method: bic\nmemory: 40\ndevice: cpu\n")
    file, quick = ["--config", str(path)], ["--dry-run", "--memory", "40"]
    for words in (
        ["--bias-loss", "pycil", "bic"],
        ["--second-epochs", "2", "bic"],
        [*file, "--bias-loss", "pycil"],
    ):
        assert main(["run", *quick, *words]) == 0
    capsys.readouterr()
    assert main(["run", *file, "--kd-weight", "2"]) == 2
    assert capsys.readouterr().err.startswith("jioc: unknown option '--kd-weight'")
