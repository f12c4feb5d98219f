"""The table of what each component adds."""

import csv
from pathlib import Path
from statistics import fmean

import pytest
import yaml

from helpers.results import keep, made
from helpers.scripts import script
from jioc.config import Values, make
from jioc.config.values import differences, plain
from jioc.errors import Refused
from jioc.resolve import components, recipes
from jioc.resolve.derive import resolve

COLUMN = "cifar100-lt-resnet32-1000"
BALANCED = "cifar100-resnet32-2000"
HEADS = 'run,after each task,"by class, after each task"'
WITH_MEANS = HEADS + ',"by class means, by class, after each task"'
Cells = dict[str, list[str]]


def cells(folder: Path, title: str = "DER, long tail") -> Cells:
    """The table's figures from that column on, by component."""
    lines = [line[2:-2].split(" | ") for line in script("components").table(folder).splitlines()]
    place = lines[0].index(title)
    return {line[0]: line[place:-1] for line in lines[2:]}


def sheets(folder: Path, heads: str, **kept: list[str]) -> Path:
    for name, rows in kept.items():
        (folder / f"{name}.csv").write_text("\n".join([heads, *rows]) + "\n")
    return folder


def test_a_component_is_compared_with_its_host_on_the_tasks_that_both_have_learnt(tmp_path: Path) -> None:
    readings = [f"{COLUMN}-der-none-seed1,80 60 40", f"{COLUMN}-der-none-adjust-1-seed1,80 66"]
    fresh = [f"{COLUMN}-der-ema-seed1,82 62 42", f"{COLUMN}-icarl-ema-seed1,82 62"]
    found = cells(sheets(tmp_path, "run,after each task", readings=readings, components=fresh))
    assert found["none"] == ["60.00 (3) †", "–"]
    assert found["adjust-1"] == ["+3.00 (2) †", "–"]
    assert found["ema"] == ["+2.00 (3) †", "–"]  # iCaRL's host was not run
    assert found["cutmix"] == ["–", "–"]


def test_seeds_are_averaged_over_the_tasks_that_all_of_them_have_learnt(tmp_path: Path) -> None:
    fresh = [f"{COLUMN}-der-none-seed1,80 60 10", f"{COLUMN}-der-none-seed2,70 50"]
    fresh += [f"{COLUMN}-der-ema-seed1,82 62 40", f"{COLUMN}-der-ema-seed2,74 54"]
    found = cells(sheets(tmp_path, "run,after each task", components=fresh))
    assert found["none"][0] == "65.00 (2) †" and found["ema"][0] == "+3.00 (2) †"


def test_a_difference_is_of_one_measure(tmp_path: Path) -> None:
    """By class where both runs have it; a run of both studies is taken as its partner needs it."""
    readings = [f"{COLUMN}-der-none-seed1,80 60 40", f"{COLUMN}-der-none-adjust-1-seed1,80 66 46"]
    sheets(tmp_path, "run,after each task", readings=readings)
    fresh = [f"{COLUMN}-der-none-seed1,80 60,70 50", f"{COLUMN}-der-ema-seed1,82 62 42,75 55 35"]
    found = cells(sheets(tmp_path, HEADS, components=[*fresh, f"{COLUMN}-der-cosine-seed1,81 61,"]))
    assert found["none"][0] == "60.00 (2)"
    assert found["ema"][0] == "+5.00 (2)"
    assert found["adjust-1"][0] == "+4.00 (3) †"
    assert found["cosine"][0] == "+1.00 (2) †"  # it was kept without


def test_a_run_of_the_study_stands_before_one_of_the_readings(tmp_path: Path) -> None:
    sheets(tmp_path, "run,after each task", readings=[f"{COLUMN}-icarl-none-adjust-1-seed1,80 60"])
    fresh = [f"{COLUMN}-icarl-none-seed1,50 50,40 40", f"{COLUMN}-icarl-adjust-1-seed1,55 55,41 43"]
    found = cells(sheets(tmp_path, HEADS, components=fresh), "iCaRL, long tail")
    assert found["adjust-1"] == ["+2.00 (2)"]


def test_runs_that_a_grid_stopped_after_six_tasks_are_kept_and_compared(tmp_path: Path) -> None:
    host = made("der", tasks=10, alls=[70.0] * 10, holdout=0.1)
    stopped = made("der", tasks=10, alls=[73.0] * 6, done=6, ema=0.999, holdout=0.1)
    runs = keep(tmp_path / "runs", host, stopped)
    for folder, name in (("run-000", "none"), ("run-001", "ema")):
        (runs / folder).rename(runs / f"cifar100-resnet32-2000-der-{name}-seed1")
    assert script("keep").lines([runs], tmp_path / "components.csv") == (2, 0)
    rows = {
        row["run"][23:]: row for row in csv.DictReader((tmp_path / "components.csv").read_text().splitlines())
    }
    assert rows["der-ema-seed1"]["outcome"] == "stopped after task 6"
    means = [float(word) for word in rows["der-ema-seed1"]["by class, after each task"].split()]
    expected = [fmean(row["cnn"]["per_class"]) for row in stopped["tasks"]]
    assert means == pytest.approx(expected, abs=0.005)
    six = [fmean(row["cnn"]["per_class"]) for row in host["tasks"]][:6]
    gain = f"{fmean(expected) - fmean(six):+.2f}"
    assert cells(tmp_path, "DER, balanced")["ema"][0] == f"{gain} / {gain}"  # class means are as good here


@pytest.mark.parametrize("kept", [True, False])
def test_what_class_means_gain_stands_behind_a_slash_where_it_was_kept(kept: bool, tmp_path: Path) -> None:
    six = " ".join(["60"] * 6)
    fresh = [f"{COLUMN}-der-none-seed1,{six},{six},", f"{BALANCED}-der-none-seed1,{six},,"]
    means = six.replace("60", "64") if kept else ""
    fresh += [f"{column}-der-weight-decay-seed1,{six},{six},{means}" for column in (COLUMN, BALANCED)]
    found = cells(sheets(tmp_path, WITH_MEANS, components=fresh), "DER, balanced")["weight-decay"]
    assert found[0] == found[2] == "+0.00" + " / +4.00" * kept


def decided(rows: dict[str, tuple[float, float, float, float]]) -> list[str]:
    """Lines of the candidates: on each column their accuracy by the head, then by class means."""
    return [
        f"{column}-der-{row}-seed1,{head},{head},{means}"
        for row, (a, b, c, d) in rows.items()
        for column, told in ((BALANCED, (a, b)), (COLUMN, (c, d)))
        for head, means in [[f"{figure} " * 6 + "0 0" for figure in told]]  # what comes later does not count
    ]


ROWS = {
    "weight-decay-0.001": (76.0, 76.2, 70.8, 71.3),
    "weight-decay-0.001-cosine-head": (74.4, 77.4, 67.4, 71.7),
    "weight-decay-0.001-cosine-head-adjust": (77.5, 77.0, 71.5, 72.0),
    "weight-decay-0.001-cosine-head-adjust-jioc": (77.0, 77.0, 71.0, 71.0),
}


def chosen(folder: Path, **others: tuple[float, float, float, float]) -> Values:
    """The settings of `best` on the balanced column, where another candidate has other figures."""
    rows = ROWS | {name.replace("_", "-").replace("0-001", "0.001"): told for name, told in others.items()}
    sheets(folder, WITH_MEANS, components=decided(rows))
    runs: dict[str, Values] = yaml.safe_load(script("components").choose(folder))["runs"]
    return runs[f"{BALANCED}-best"]


def test_best_is_the_candidate_and_the_read_out_with_the_highest_mean(tmp_path: Path) -> None:
    found = chosen(tmp_path)  # 74.55 by class means, 74.5 by the adjusted cosines, or by their means
    assert found["head"] == "cosine" and found["headline"] == "nme" and "adjust" not in found
    found = chosen(tmp_path, weight_decay_0_001_cosine_head_adjust=(77.8, 77.0, 71.5, 72.0))
    assert found["adjust"] == 1 and "headline" not in found and "coordination" not in found
    found = chosen(tmp_path, weight_decay_0_001_cosine_head_adjust_jioc=(79, 77.0, 71.5, 72.0))
    assert found["coordination"] == {"coordinate": "jioc"} and found["adjust"] == 1
    with pytest.raises(Refused, match="adjust-jioc-seed1 is not kept with 6 tasks"):
        script("components").choose(
            sheets(tmp_path, WITH_MEANS, components=[line for line in decided(ROWS) if "jioc" not in line])
        )


def test_the_preset_best_is_what_the_kept_study_chooses(tmp_path: Path) -> None:
    (tmp_path / "best.yaml").write_text(script("components").choose())
    printed = recipes.find_recipe(str(tmp_path / "best.yaml"))
    made = [recipe for recipe in components.recipes() if recipe.name.startswith("best")]
    theirs = made[0].make() | made[1].make()
    assert list(printed.make()) == list(theirs)
    for name, run in printed.make().items():
        ours, preset = (plain(resolve(make(**values))) for values in (run, theirs[name]))
        assert not differences(ours, preset)
    assert printed.seeds == made[0].seeds == made[1].seeds


def test_what_best_reaches_stands_by_both_read_outs_beside_its_host_and_the_public(tmp_path: Path) -> None:
    def result(recipe: str, name: str, seed: int, average: float) -> Values:
        values = recipes.find_recipe(recipe).make()[name] | {"seed": seed}
        return made(tasks=10, alls=[average] * 10) | {"config": plain(resolve(make(**values)))}

    name, host = f"{BALANCED}-best", f"{BALANCED}-der-none"  # class means are one point higher
    for seed, average in ((1, 70.0), (2, 72.0)):
        folder = keep(tmp_path / "kept", result("best", name, seed, average)) / "run-000"
        folder.rename(keep_in(tmp_path / "best") / f"{name}-seed{seed}")
    folder = keep(tmp_path / "kept", result("comparison", host, 1, 69.0)) / "run-000"
    folder.rename(keep_in(tmp_path / "comparison") / f"{host}-seed1")
    (line,) = script("components").tested(tmp_path).splitlines()[2:]
    place = "cifar100, 10 tasks, no extra augmentation, resnet32, 6,144,000 bytes of exemplars"
    assert line.startswith(f"| {place} | 71.88 (DER + JIOC; the JIOC paper, table 3) | 69.00 | 70.00 |")
    assert line.endswith(" | 71.00 ± 1.41 | 72.00 ± 1.41 |")


def test_a_board_of_best_without_a_public_figure_has_a_dash(tmp_path: Path) -> None:
    name = f"{COLUMN}-best-autoaugment"
    config = plain(resolve(make(**recipes.find_recipe("best-augmented").make()[name], seed=1)))
    runs = keep(tmp_path / "best", made(tasks=10, alls=[50.0] * 10) | {"config": config})
    (line,) = script("components").tested(runs.parent).splitlines()[2:]
    assert line.endswith("| – | – | – | 50.00 | 51.00 |")


def keep_in(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
