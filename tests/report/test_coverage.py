"""`jioc table --paper --coverage`: tables 2 and 3 as the paper has them, ours beside each cell."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from helpers.command import refused
from helpers.results import groups_of, keep, made
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.report import coverage, paper
from jioc.resolve import recipes
from jioc.resolve.derive import resolve

TAIL = "cifar100-lt-resnet32-1000"


def result(name: str, average: float, seed: int = 1, **more: Any) -> dict[str, Any]:
    """A finished run of table 2 by its name in the recipe."""
    values = recipes.find_recipe("table2").make()[name] | {"seed": seed} | more
    config = settings.plain(resolve(settings.make(**values)))
    return made(tasks=config["tasks"], classes=100, alls=[average] * config["tasks"]) | {"config": config}


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    reading = {"coordination": {"coordinate": "jioc", "gamma2": 5.0}}
    return [
        *(result(f"{TAIL}-icarl-none", 51.0 + seed, seed) for seed in (1, 2)),  # the paper: 50.17
        result(f"{TAIL}-icarl-jioc", 51.0),  # the paper: 55.24; loses, where the paper gains
        result(f"{TAIL}-icarl-jioc", 90.0, **reading),
        result(f"{TAIL}-der-none", 64.0),  # the paper: 64.18
        result(f"{TAIL}-der-jioc", 64.1),
        result(f"{TAIL}-bic-none", 62.0),
        result(f"{TAIL}-bic-pycil", 50.0),
        result(f"{TAIL}-coil-none", 90.0, holdout=0.1),
    ]


def test_a_cell_has_the_default_form_of_its_row_and_others_beside_it(results: list[dict[str, Any]]) -> None:
    cells = {one.where: one for one in coverage.cells(groups_of(*results))}
    where = ("cifar100-lt", "resnet32", 10, 1000)
    assert cells[*where, "icarl", "none"].ours() == [52.0, 53.0]
    assert cells[*where, "icarl", "jioc"].ours() == [51.0]  # not that of another gamma2
    assert cells[*where, "icarl", "jioc"].gains() == [-1.0]
    assert cells[*where, "coil", "none"].ours() == []  # judged by a hold-out
    bic = cells[*where, "bic", "none"]
    assert (bic.ours(), bic.ours(coverage.IN_PYCIL)) == ([62.0], [50.0])
    assert bic.difference() == pytest.approx(1.97)


def test_the_line_counts_cells_near_ones_and_gains(results: list[dict[str, Any]]) -> None:
    told = coverage.summary(coverage.cells(groups_of(*results)))
    assert told == (
        "5 of the 100 cells on CIFAR are run and none of the 50 others; 2 within 2 points of the paper; "
        "in 1 of the 2 with JIOC the gain has the paper's sign (iCaRL 0 of 1, DER 1 of 1), and on average it "
        "is -0.45, the paper's +3.67"
    )


def test_the_printed_reading_stands_beside_the_default_and_counts_where_that_was_not_run() -> None:
    coordination = {"coordinate": "jioc", "reading": "printed"}
    (g,) = groups_of(result(f"{TAIL}-icarl-jioc", 51.0, coordination=coordination))
    (one,) = (one for one in coverage.cells([g]) if one.groups)
    assert one.ours(coverage.PRINTED) == [51.0] and one.ours() == []
    assert coverage.summary(coverage.cells([g])).startswith("1 of the 100 cells on CIFAR are run")
    both = coverage.cells(groups_of(result(f"{TAIL}-icarl-jioc", 55.0), g.runs[0].result.model_dump()))
    assert "; 1 within 2 points" in coverage.summary(both)
    (row,) = (row for block in coverage.layout([one], wide=True) for row in block.rows if "printed" in row[0])
    assert row == ["– as printed", "", "51.00", "-4.24", "1"]


def test_every_cell_of_the_paper_stands_there_once_and_fits_a_terminal(
    results: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(keep(tmp_path / "runs", *results))
    assert main(["table", "--paper", "--coverage", place]) == 0
    lines = capsys.readouterr().out.splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("5 of the 100 cells on CIFAR are run"))
    tables = "\n".join(lines[:end])
    assert max(map(len, lines[:end])) <= 80 and "…" not in tables
    printed = json.loads((Path(paper.__file__).parent / "paper.json").read_text())["averages"]
    for *_, figure in printed:
        assert tables.count(f"{figure:.2f}") >= sum(row[-1] == figure for row in printed)
    assert tables.count("not run") == 145
    assert any(line.split()[:5] == ["iCaRL", "50.17", "52.50", "+2.33", "2"] for line in lines)


def test_the_other_formats_hold_the_same_cells(
    results: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["table", "--paper", "--coverage", str(keep(tmp_path / "runs", *results)), "--format"]
    assert main([*words, "csv"]) == 0
    captured = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(captured.out)))
    assert len(rows) == 151 and captured.err.startswith("5 of the 100 cells on CIFAR are run")
    (gain,) = (row for row in rows if row["gain"] and row["method"] == "icarl")
    assert float(gain["gain"]) == -1 and float(gain["paper's gain"]) == pytest.approx(5.07)
    assert main([*words, "markdown"]) == 0
    captured = capsys.readouterr()
    assert "| iCaRL | 50.17 | 52.50 | +2.33 | 2 | 54.67 | not run | – | – |" in captured.out
    assert main([*words, "latex"]) == 0
    assert capsys.readouterr().out.count(r"\begin{tabular}") == 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--coverage"], "it needs --paper"),
        (["--coverage", "--paper", "--by-task"], "--coverage has its own columns"),
        (["--coverage", "--paper", "--recipe", "table2"], "--coverage has its own columns"),
    ],
)
def test_what_does_not_go_with_coverage_is_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(["table", str(tmp_path), *words], capsys)
