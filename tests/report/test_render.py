"""A table as text, Markdown, LaTeX and csv."""

import csv
import statistics
from pathlib import Path
from typing import Any

import pytest

from helpers.results import jioc, keep, made
from jioc.cli.main import main


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
    captured = capsys.readouterr()
    plain, coordinated, begun = csv.DictReader(captured.out.splitlines())
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
    assert "gain: average minus" in captured.err and "bracket" not in captured.err
    assert "unfinished and not averaged: 2 of 5 runs" in captured.err and "unfinished and" not in captured.out
    assert main([*words, "--by-task", "--paper"]) == 0
    steps = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    assert [row["classes"] for row in steps] == ["all", "old", "new"] * 2 and "outcome" not in steps[0]
    assert float(steps[0]["5"]) == statistics.fmean(averages) and steps[1]["1"] == ""


def coordinated_gain(without: dict[str, Any], with_it: dict[str, Any]) -> float:
    return with_it["average"]["cnn"] - without["average"]["cnn"]
