"""The comparison beside the paper and PyCIL, and what each loss gains in it."""

import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from helpers.results import keep, made
from helpers.scripts import script
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.report.runs import read
from jioc.resolve import recipes
from jioc.resolve.derive import resolve


def test_what_a_loss_gains_is_told_seed_by_seed() -> None:
    gains = script("gains")
    (line,) = (line for line in gains.table().splitlines() if line.startswith("| iCaRL + OC |"))
    with_it, without = (
        {run.config["seed"]: run.result["average"]["cnn"] for run in read([gains.RESULTS / "table6"])
         if gains.name_of(run).endswith(word)}
        for word in ("icarl-oc", "icarl-none")
    )  # fmt: skip
    apart = [with_it[seed] - without[seed] for seed in (1, 2, 3)]
    assert f"| 3 | {sum(apart) / 3:+.2f} ± " in line and "| +4.20 | " in line


def test_the_comparison_in_short_has_every_row_of_the_recipe_and_no_other(tmp_path: Path) -> None:
    def result(name: str, average: float, seed: int = 1, **more: Any) -> dict[str, Any]:
        values = recipes.find_recipe("comparison").make()[name] | {"seed": seed} | more
        return made(tasks=10, alls=[average] * 10) | {
            "config": settings.plain(resolve(settings.make(**values)))
        }

    balanced, tail = "cifar100-resnet32-2000", "cifar100-lt-resnet32-1000"
    results = [result(f"{balanced}-der-none", 60.0, seed) for seed in (1, 2)]
    results += [result(f"{balanced}-der-jioc", 61.0), result(f"{tail}-der-none", 50.0)]
    short = script("comparison")
    lines = short.table(
        keep(tmp_path / "runs", *results, result(f"{tail}-coil-none", 50.0, memory=2000))
    ).splitlines()
    assert lines[0] == "| | balanced, 2,000 exemplars | paper | long tail paper, 1,000 exemplars | paper |"
    rows = {line.split(" | ")[0]: line for line in lines[2:28]}
    assert rows["| DER"] == "| DER | 60.00 ± 0.00 | 70.12 | 50.00 | 64.18 |"
    assert (
        rows["| DER + JIOC"]
        == "| DER + JIOC | 61.00 (+1.00, 1 seed) | 71.88 (+1.76) | not run | 66.46 (+2.28) |"
    )
    assert rows["| WA"] == "| WA | not run | – | not run | – |" and len(rows) == 26
    assert lines[30] == "- balanced, 2,000 exemplars: 2 seeds; 1 of DER + JIOC" and lines[32].startswith(
        "- 4 runs on "
    )
    with pytest.raises(Refused, match="no finished run of the comparison"):
        short.table(keep(tmp_path / "other", made()))


def test_tables_4_and_5_are_compared_by_task_and_with_the_same_training(tmp_path: Path) -> None:
    def result(recipe: str, name: str, average: float) -> dict[str, Any]:
        values = recipes.find_recipe(recipe).make()[f"cifar100-lt-resnet18-1000-icarl-{name}"]
        config = settings.plain(resolve(settings.make(**values)))
        return made(tasks=10, alls=[average] * 10) | {"config": config}

    tables = script("resnet18")
    plain = result("table4", "none", 30.0)
    lines = tables.by_task(keep(tmp_path / "plain", plain)).splitlines()
    theirs = [float(cell) for cell in lines[2].split(" | ")[2:12]]
    distance = sum(abs(30.0 - value) for value in theirs[1:]) / 9
    assert lines[3].startswith("| 4 | ours, n = 1 | 30.00 |") and lines[3].endswith(f"| {distance:.2f} |")
    assert lines[4].startswith("| 5 | paper |") and len(lines) == 5
    assert tables.gains(tmp_path / "plain") == "Not run yet."

    words = [("table4", "jioc", 33.0)]
    words += [
        ("table4-training", f"{word}-weight-decay", at) for word, at in (("none", 31.0), ("jioc", 35.0))
    ]
    rows = tables.gains(keep(tmp_path / "all", plain, *(result(*word) for word in words))).splitlines()[2:]
    found = [(cells[2], cells[4]) for cells in (row.split(" | ") for row in rows)]
    assert [(against.count("weight"), gain) for against, gain in found] == [
        (0, "+3.00"), (0, "+1.00"), (1, "+4.00"), (0, "+5.00")
    ]  # fmt: skip


def test_baselines_stand_beside_the_paper_and_beside_pycil_in_its_own_form(tmp_path: Path) -> None:
    def result(name: str, average: float, seed: int = 1, **more: Any) -> dict[str, Any]:
        values = (
            recipes.find_recipe("comparison").make()[f"cifar100-resnet32-2000-{name}"] | {"seed": seed} | more
        )
        found = made(tasks=10, alls=[average] * 10) | {
            "config": settings.plain(resolve(settings.make(**values)))
        }
        return found | {
            "average": {"cnn": average, "nme": average + 5},
            "last": {"cnn": average - 20, "nme": 50.0},
        }

    wanted = [
        (name, 1) for name in ("podnet-none", "podnet-pycil", "finetune-none", "podnet-jioc", "wa-none")
    ]
    wanted.append(("wa-none", 2))
    place = keep(tmp_path / "runs", *(result(name, 53.0 + 2 * seed, seed) for name, seed in wanted))
    for path, (name, seed) in zip(sorted(place.iterdir()), wanted, strict=True):
        path.rename(place / f"{name}-seed{seed}")
    keep(
        place / "checks", result("wa-none", 10.0, batch_size=121), result("wa-none", 10.0, long_tail="paper")
    )
    baselines = script("baselines")
    plot = baselines.Figure("podnet", "cnn", 52.5, 35.0, True, "a plot")
    log = baselines.Figure("podnet", "cnn", 55.5, 37.01, False, "a log")
    means = baselines.Figure("wa", "nme", None, 48.0, False, "a log")
    heads, _, *lines = baselines.table(place, [plot, log, means]).splitlines()
    podnet = "CNN | 1 | 55.00 (35.00) | 53.63 | +1.37 | yes"
    assert lines[:4] == [
        f"| PODNet | {podnet} | – | – | – | – |",
        f"| PODNet, nca pycil | {podnet} | 52.5 (35.0) | +2.50 (+0.00) | yes | a plot |",
        "|  |  |  |  |  |  |  | 55.5 (37.01) | -0.50 (-2.01) | **no** | a log |",
        "| WA | NME | 2 | 61.00 ± 1.41 (50.00 ± 0.00) | – | – | – | (48.0) | (+2.00) | yes | a log |",
    ]
    assert {line.count("|") for line in [heads, *lines[:4]]} == {12}
    again = [
        line.split("#")[0].split()[4:] for line in lines if line.startswith("jioc grid comparison --only ")
    ]
    assert again == [["podnet-none"], ["podnet-pycil"], ["wa-none", "--seeds", "1", "2"]]
    with pytest.raises(Refused, match="no finished baseline"):
        baselines.table(keep(tmp_path / "other", made()), [plot])


def test_a_verdict_needs_seeds_that_agree(tmp_path: Path) -> None:
    verdicts = script("verdicts")
    seeds = ([5.0], [1.0, 1.1, 1.2], [-1.0, -1.1], [-1.0, 1.0, 0.3], [0.1, 1.1, 1.0])
    told = [verdicts.verdict(values) for values in seeds]
    assert told == ["one seed", "gains", "loses", "not clear", "not clear"]  # the last: t = 2.3, p = 0.15
    results = []
    for word, seed, average in (("none", 1, 50.0), ("none", 2, 51.0), ("jioc", 1, 53.0), ("jioc", 3, 90.0)):
        values = recipes.find_recipe("comparison").make()[f"cifar100-resnet32-2000-der-{word}"]
        config = settings.plain(resolve(settings.make(**values, seed=seed)))
        results.append(made(tasks=10, classes=100, alls=[average] * 10) | {"config": config})
    found = verdicts.found(keep(tmp_path, *results))
    assert found["CIFAR-100, 2,000 exemplars"] == {"der": {"": [3.0]}}
    assert f"| DER | {verdicts.reading('')} | 1 | +3.00 | +1.76 | one seed |" in verdicts.table(found)


def test_the_line_of_the_readme_counts_what_its_tables_show() -> None:
    comparison = script("comparison")
    by_place = comparison.columns()
    ours, printed = (comparison._gains(by_place, form) for form in comparison.FORMS)
    means = [statistics.fmean(gains) for gains in (*ours, *printed)]
    assert sorted(f"{mean:+.2f}" for mean in means) == sorted(
        re.findall(r"\(([+-]\d+\.\d+)", comparison.short())
    )
    line, verdicts = comparison.line(), script("verdicts").table(script("verdicts").found())
    by_default = [row.split(" | ")[-1] for row in verdicts.splitlines() if " | default | " in row]
    up, down = (by_default.count(f"{word} |") for word in ("gains", "loses"))
    assert (
        len(by_default) == len(ours)
        and f"it raises {up} of them and lowers {down} by more than chance" in line
    )
    both = re.search(r"reading: (\S+) over 12 rows; as printed: (\S+) over 12 rows", verdicts)
    assert both and re.findall(r"gives (\S+\d)", line.replace("−", "-")) == list(both.groups())
