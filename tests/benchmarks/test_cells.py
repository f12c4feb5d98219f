"""The page of tables 2 and 3: far baselines are explained, the paper's oddities found, minutes estimated."""

import subprocess
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.results import groups_of, made
from helpers.scripts import script
from jioc.config import values as settings
from jioc.report import coverage
from jioc.resolve import recipes
from jioc.resolve.derive import resolve


def test_every_kept_baseline_that_is_far_off_says_what_was_checked() -> None:
    page = script("cells")
    far = {page.key(one, form) for one, form in page.far(page.read(), page.pycil_figures())}
    assert far == page.CHECKED.keys()


@pytest.mark.parametrize(
    ("average", "theirs", "is_far"), [(56.7, 50.0, True), (56.7, 54.0, False), (56.0, 40.0, False)]
)
def test_a_baseline_is_far_off_by_the_paper_and_by_pycil(average: float, theirs: float, is_far: bool) -> None:
    page = script("cells")
    values = recipes.find_recipe("table3").make()["cifar100-resnet32-2000-podnet-pycil"]  # the paper: 53.63
    config = settings.plain(resolve(settings.make(**values, seed=1)))
    result = made(tasks=10, classes=100, alls=[average] * 10) | {"config": config}
    figure = page.Figure("podnet", "cnn", theirs, None, False, "a log")
    assert bool(page.far(coverage.cells(groups_of(result)), [figure])) == is_far


def test_a_page_that_does_not_hold_the_results_is_not_current() -> None:
    tables = script("tables")
    marks = {
        "README.md": "<!-- python benchmarks/claims.py -->",
        "docs/coverage.md": "<!-- jioc table --paper --coverage benchmarks/results --format markdown -->",
    }
    for name, mark in marks.items():
        page = (ROOT / name).read_text(encoding="utf-8")
        _, after = page.split(f"{mark}\n\n")
        block = f"{mark}\n\n{after.split('<!-- end')[0]}<!-- end of the table -->\n"
        assert " on CIFAR are run" in block and tables.current(block) == block
        assert tables.current(block.replace(" on CIFAR are run", "9 on CIFAR are run")) == block


def test_the_page_of_results_counts_cells_and_columns_as_they_are() -> None:
    cells = [one for one in script("cells").read() if one.where[0].startswith("cifar")]
    plain = [one.difference() for one in cells if one.where[5] == "none" and one.ours()]
    near = sum(abs(difference or 0.0) <= script("cells").FAR for difference in plain)
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"Of the {len(plain)} cells without JIOC {near} are within 3 points of the paper" in page
    told = coverage.summary(cells)
    assert told.startswith("all 100 cells on CIFAR are run") and "All ten columns on CIFAR" in page
    assert told.split("; ")[2] in page


def test_the_page_names_the_cells_whose_runs_are_of_older_code() -> None:
    """Who runs one of them again has to change docs/coverage.md, "Older code"."""
    older = {
        "comparison/cifar100-lt-resnet32-1000-bic-none-seed1": "f5054ccb502f",
        "comparison/cifar100-lt-resnet32-1000-bic-pycil-seed1": "f5054ccb502f",
        "columns/cifar100-lt-resnet18-1000-bic-none-seed1": "45969150adaf",
    }
    results = script("gains").RESULTS
    kept = {
        str(run.path.parent.relative_to(results)): run.result.commit for run in script("once").read(results)
    }
    assert {name: kept[name] for name in older} == older


def test_the_page_counts_the_runs_that_shared_memory() -> None:
    asked = ["git", "-C", str(ROOT), "rev-list", "--abbrev-commit", "--abbrev=12", "cb72415"]
    before = subprocess.run(asked, capture_output=True, text=True)
    if before.returncode:
        pytest.skip("needs a checkout with its history")
    older = set(before.stdout.split()[1:])
    commits = [
        one.result.commit
        for cell in script("cells").read()
        for g in cell.groups.values()
        for one in g.complete
    ]
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert f"{sum(commit in older for commit in commits)} of the {len(commits)} runs are older" in page


def test_the_papers_oddities_are_found() -> None:
    found = script("oddities").listed()
    for told in (
        "COIL, cifar100-lt, resnet32, 1,000 exemplars: 58.31, and the same with 1,500: 58.31",
        "iCaRL + JIOC, cifar100, resnet18, 1,000 exemplars: 47.49; the mean of its steps is 48.09",
        "table 4, iCaRL + IC, task 3: 55.80 on all classes; 45.35 on old and 81.00 on new ones make 57.23",
    ):
        assert told in found


def test_an_estimate_counts_the_images_of_a_dry_run() -> None:
    """Of iCaRL on CIFAR-100-LT with 1,000 exemplars: 2,898 images in the first task, 7,168,290 in all."""
    values = recipes.find_recipe("columns").make()["cifar100-lt-resnet18-1000-icarl-none"]
    first, every = 2_898 * 200, 7_168_290
    assert script("minutes").steps(resolve(settings.make(**values))) == pytest.approx(
        every - first / 4, rel=0.02
    )


def test_every_run_of_the_tables_has_a_command_of_the_page_and_is_kept() -> None:
    told = script("minutes").cifar().splitlines()[2:]
    assert len(told) == 10 + 4 * 2 and all("`jioc grid columns --only " in line for line in told)
    assert script("lease").left("columns", None, None, None) == []
    assert Path(ROOT / "docs" / "coverage.md").read_text().count("--seeds 1 --data-dir DIR") == 30
