"""What is kept in the repository: small copies that say the same, and tables that are made of them."""

import csv
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import xml.dom.minidom
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from helpers.paths import ROOT
from helpers.results import keep, made
from jioc.cli.main import main as jioc
from jioc.config import values as settings
from jioc.errors import Failed, Refused
from jioc.grid import plan as jobs
from jioc.report import page
from jioc.report.runs import group, read
from jioc.resolve import recipes
from jioc.resolve import repeat as command
from jioc.resolve.derive import resolve

RESULTS = ROOT / "benchmarks" / "results"


def script(name: str) -> ModuleType:
    source = importlib.util.spec_from_file_location(f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert source is not None and source.loader is not None
    module = sys.modules[source.name] = importlib.util.module_from_spec(source)
    with pytest.MonkeyPatch.context() as beside:
        beside.syspath_prepend(ROOT / "benchmarks")  # as where a script is run
        source.loader.exec_module(module)
    return module


def test_the_tables_of_readme_and_docs_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("tables").main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["comparison.py"], ["speeds.py", *map(str, (RESULTS / "speed").glob("*.json"))]]
)
def test_a_script_whose_reader_has_left_ends_without_a_word(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, str(ROOT / "benchmarks" / words[0]), *words[1:]]
    unheard = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (unheard.returncode, unheard.stderr) == (128 + signal.SIGPIPE, b"")


def test_a_table_is_what_its_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = keep(tmp_path / "runs", made(seed=1), made(seed=2))
    tables = script("tables")
    empty = f"before\n<!-- jioc table {runs} --format markdown -->\ntyped\n<!-- end of the table -->\nafter\n"
    full = tables.current(empty)
    assert (
        "| iCaRL | 2 |" in full
        and "typed" not in full
        and full.startswith("before\n")
        and full.endswith("after\n")
    )
    assert tables.current(full) == full


def test_a_kept_copy_gives_the_same_report_and_is_small(tmp_path: Path) -> None:
    runs = keep(tmp_path / "runs", made(classes=100, tasks=10), made(classes=100, tasks=10, seed=2, done=3))
    assert script("keep").copies([runs], tmp_path / "kept") == (1, 1)
    (copy,) = (tmp_path / "kept").glob("*/result.json")
    whole, small = runs / copy.parent.name / "result.json", copy

    def told(path: Path) -> str:
        (one,) = group(read([path]))
        one.runs[0].path = Path("somewhere/result.json")
        return json.dumps(page.content([one]))

    assert told(whole) == told(small)
    assert small.stat().st_size < whole.stat().st_size / 3 and small.stat().st_size < 100_000


def test_every_run_of_a_study_has_its_line_failures_too(tmp_path: Path) -> None:
    runs = keep(tmp_path / "runs", made(alls=[50.0] * 5), made(select="random"), made(seed=2, done=2))
    (runs / "failures.json").write_text(json.dumps({"run-002": "out of memory", "run-009": "no such data"}))
    assert script("keep").lines([runs], tmp_path / "study.csv") == (4, 0)
    rows = list(csv.DictReader((tmp_path / "study.csv").read_text().splitlines()))
    assert [row["outcome"] for row in rows] == ["finished", "finished", "out of memory", "no such data"]
    assert rows[0]["average"] == "50.00" and rows[1]["select"] == "random" and rows[2]["average"] == ""


def test_runs_of_several_folders_are_kept_together_and_no_folder_of_the_machine(tmp_path: Path) -> None:
    place = str(tmp_path / "data")
    first = keep(tmp_path / "a", made(data_dir=place, data_cache=place))
    other = made(seed=2, data_dir=None, precision="fp32")
    second, moved = keep(tmp_path / "b" / "deeper", other), keep(tmp_path / "c", other)
    (moved / "run-000").rename(moved / "run-001")
    told, kept = script("keep"), tmp_path / "kept"
    assert (
        told.copies([first, second.parent], kept)
        == told.lines([first, moved], tmp_path / "both.csv")
        == (2, 0)
    )
    files = [*kept.rglob("result.json"), tmp_path / "both.csv"]
    assert len(files) == 3 and not any(place in file.read_text() for file in files)
    rows = list(csv.DictReader(files[-1].read_text().splitlines()))
    assert [(row["seed"], row["precision"]) for row in rows] == [("1", "–"), ("2", "fp32")]
    with pytest.raises(Refused, match="two runs would be kept in"):
        told.copies([first, second], tmp_path / "neither")
    with pytest.raises(Refused, match="two runs are called 'run-000'"):
        told.lines([first, second], tmp_path / "neither")
    assert not (tmp_path / "neither").exists()


def test_what_is_kept_is_replaced_only_when_asked_for(tmp_path: Path) -> None:
    told, kept, sheet = script("keep"), tmp_path / "kept", tmp_path / "kept.csv"
    first = keep(tmp_path / "a", made(seed=1), made(seed=2, done=2))
    again = keep(tmp_path / "b", made(seed=1), made(seed=2))
    other = keep(tmp_path / "c", made(seed=1, alls=[50.0] * 5))

    def content() -> list[bytes]:
        return [path.read_bytes() for path in [*sorted(kept.glob("*/*")), sheet] if path.exists()]

    for way, target in ((told.copies, kept), (told.lines, sheet)):
        way([first], target)
        way([first], target)
        way([again], target)  # the second run has finished
        before = content()
        with pytest.raises(Refused, match=r"run-000.* \(. such\); --replace"):
            way([other], target)
        assert content() == before
        way([other], target, replace=True)
        assert content() != before
    assert "run-001" not in sheet.read_text()


def test_a_line_of_another_study_is_not_lost(tmp_path: Path) -> None:
    told, sheet = script("keep"), tmp_path / "kept.csv"
    runs = keep(tmp_path / "runs", made(seed=1), made(seed=2))
    told.lines([runs], sheet)
    with pytest.raises(Refused, match="the line of 'run-001' would be lost"):
        told.lines([runs / "run-000"], sheet)


def test_nothing_is_kept_among_runs_in_a_file_or_of_runs_that_have_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, live = keep(tmp_path / "runs", made()), keep(tmp_path / "live", made(seed=2))
    (live / "run-000" / "config.yaml").write_text("method: icarl\n")
    (tmp_path / "file").write_text("mine\n")
    unfinished = keep(tmp_path / "unfinished", made(done=2))

    def said(*words: Path) -> str:
        monkeypatch.setattr(sys, "argv", ["keep.py", *map(str, words)])
        assert script("keep").main() > 0
        return capsys.readouterr().err

    assert "is a run's folder" in said(runs, live) and "is a run's folder" in said(runs, live / "run-000")
    for target in ("file", "file/below", "file/lines.csv"):
        assert "cannot be written" in said(runs, tmp_path / target)
    assert "none of the 1 runs is finished" in said(unfinished, tmp_path / "kept")
    assert (tmp_path / "file").read_text() == "mine\n" and not (tmp_path / "kept").exists()
    assert len([*live.rglob("*")]) == 3


def test_an_old_result_without_seconds_and_device_has_empty_cells(tmp_path: Path) -> None:
    old = made()
    del old["environment"], old["tasks"][1]["seconds"]
    script("keep").lines([keep(tmp_path / "runs", old)], tmp_path / "kept.csv")
    (row,) = csv.DictReader((tmp_path / "kept.csv").read_text().splitlines())
    assert (row["seconds"], row["device"], row["outcome"]) == ("", "", "finished")


def test_engines_are_compared_seed_by_seed(tmp_path: Path) -> None:
    parity, path = script("parity"), tmp_path / "parity.csv"
    heads = ["run", "seed", *parity.FIGURES, "outcome"]
    values = {"eager": {3: 70.0, 1: 50.0, 2: 90.0}, "fast": {2: 92.0, 1: 51.0, 3: 73.0, 10: 0.0}}
    lines = [
        [f"{name}-seed{s}", s, v, v, v, v, "finished"] for name, of in values.items() for s, v in of.items()
    ]
    lines.append(["eager-seed10", "", "", "", "", "", "out of memory"])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([heads, *lines])
    told = parity.table(parity.read(path)).splitlines()
    assert "| seeds 1, 2, 3 |" in told[0] and len(told) == 2 + 3 * 4
    assert (
        told[4] == "|  | difference | +1.0 +2.0 +3.0 | +2.00 ± 0.58 |"
    )  # 1 / sqrt(3): the seeds' spread has no part
    with path.open("a") as file:
        csv.writer(file).writerow(lines[0])
    with pytest.raises(Refused, match="two lines of 'eager-seed3'"):
        parity.read(path)
    with pytest.raises(Refused, match="there is no"):
        parity.read(tmp_path / "none.csv")


def study(path: Path, *lines: tuple[str, int, int, str, str, str]) -> Path:
    """A sheet of the study: name, seed, accumulate, loss, gamma2, average; without an average it failed."""
    heads = [
        "run",
        "seed",
        "accumulate",
        "coordination.coordinate",
        "coordination.gamma2",
        "first task",
        "average",
    ]
    heads += ["last, old", "last, new", "nme average", "outcome", "command"]
    with path.open("w", newline="") as file:
        csv.writer(file).writerow(heads)
        for name, seed, half, loss, gamma2, average in lines:
            told = ["50", average, "1", "2", "", "finished" if average else "no memory", f"jioc run {name}"]
            csv.writer(file).writerow([f"{name}-seed{seed}", seed, half, loss, gamma2, *told])
    return path


def test_a_reading_gains_over_the_same_batches_and_seed(tmp_path: Path) -> None:
    readings = script("readings")
    path = study(
        tmp_path / "study.csv",
        ("none", 1, 1, "none", "1", "30.0"), ("none", 2, 1, "none", "1", "40.0"), ("half", 1, 2, "none", "1", "50.0"),
        ("jioc", 1, 1, "jioc", "1", "31.0"), ("jioc", 2, 1, "jioc", "1", "43.0"), ("jioc", 3, 1, "jioc", "1", "99.0"),
        ("jioc-half-batch-bn", 1, 2, "jioc", "1", "54.0"), ("jioc-gamma2-20", 1, 1, "jioc", "20", "35.0"),
        ("jioc-twenty", 1, 1, "jioc", "20", "36.0"), ("jioc-mine", 1, 1, "jioc", "7", "30.5"),
        ("jioc-gamma2-5", 1, 1, "jioc", "5", ""),
    )  # fmt: skip
    found = readings.read(path)
    told = {r.name: (r.title, r.gains, len(r.rows)) for r in found.readings if r.loss == "jioc"}
    assert told == {
        "jioc-gamma2-20": ("gamma2 20", [5.0], 1),
        "jioc-half-batch-bn": ("accumulate 2", [4.0], 1),
        "jioc": ("default", [1.0, 3.0], 3),
        "jioc-mine": ("gamma2 7", [0.5], 1),
    }
    page = readings.table(found)
    assert "| JIOC | default | 3 | 57.67 ± 36.30 | +2.00 ± 1.41 | – | 1.00 | 2.00 |" in page
    assert "not counted: `jioc-twenty-seed1` 36.0 (`jioc-gamma2-20-seed1` 35.0)." in page
    assert "did not finish: 1 runs" in page and "without a gain: 1 runs" in page
    assert "`jioc grid study-suppression --scale 0.1 --only jioc-gamma2-20 --seeds 1` |" in page
    assert "`jioc run jioc-mine` |" in page and "--only jioc --seeds 1 2 3` |" in page
    assert b"<svg" in readings.draw(found.readings)


def test_the_lines_of_the_readings_name_one_run_of_a_recipe() -> None:
    readings = script("readings")
    for reading in readings.read().readings:
        found = re.fullmatch(r"jioc grid (\S+) --scale 0.1 --only (\S+)", readings.repeated(reading))
        assert found is not None
        assert [*jobs.select(recipes.find(found[1]).make(), [found[2]])] == [reading.name]


def test_a_study_that_is_not_there_or_not_one_is_refused(tmp_path: Path) -> None:
    readings = script("readings")
    with pytest.raises(Refused, match="there is no .*study.csv"):
        readings.read(tmp_path / "study.csv")
    with pytest.raises(Refused, match="has finished"):
        readings.read(study(tmp_path / "study.csv", ("jioc", 1, 1, "jioc", "1", "")))
    with pytest.raises(Refused, match="not a study"):
        readings.read(ROOT / "benchmarks" / "results" / "parity.csv")


@pytest.mark.parametrize(
    "name",
    [
        "baselines",
        "comparison",
        "gains",
        "hosts",
        "mechanisms",
        "parity",
        "proxy",
        "readings",
        "stems",
        "tables",
    ],
)
def test_a_word_that_a_script_does_not_know_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        script(name).main(["--wrote"])
    assert stopped.value.code == 2 and "unrecognized arguments: --wrote" in capsys.readouterr().err


def test_the_figure_of_the_readings_shows_what_is_kept() -> None:
    readings = script("readings")
    (drawn,) = xml.dom.minidom.parse(str(readings.FIGURE)).getElementsByTagName("dc:description")
    assert drawn.firstChild is not None
    assert drawn.firstChild.nodeValue == readings.told(readings.read().readings), (
        "python benchmarks/readings.py --draw"
    )


def test_the_grid_of_today_repeats_every_run_that_is_kept(tmp_path: Path) -> None:
    results = ROOT / "benchmarks" / "results"
    kept = {
        run.path.parent.name: run.result["command"]
        for run in read([results / "table6", results / "table6-controls"])
    }
    for name in ("study", "parity", "stems"):
        rows = csv.DictReader((results / f"{name}.csv").read_text(encoding="utf-8").splitlines())
        kept |= {row["run"]: row["command"] for row in rows}
    wanted = {}
    for name, scale in {"table6": 1, "table6-controls": 1, "study": 0.1, "parity": 1, "stems": 1}.items():
        recipe = recipes.find(name)
        for job in jobs.plan(recipe, recipe.seeds, None, scale, lambda spec: {}, tmp_path):
            wanted[job.name] = command.line(job.config)
    assert len(kept) >= 62 and kept == {name: wanted.get(name) for name in kept}


def test_every_line_of_the_page_is_one_to_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    lines = {*re.findall(r"^(jioc grid .*)$", page, re.MULTILINE), *re.findall(r"`(jioc grid [^`]*)`", page)}
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert jioc([*shlex.split(line, comments=True)[1:], "--dry-run"]) == 0, line
        told = capsys.readouterr().out
        counted = re.search(r"# (?:the )?(\w+) (?:short )?runs", line)
        if counted is None:
            assert "jioc run" in told, line
        else:
            number = {"two": 2, "six": 6, "twelve": 12}.get(counted[1]) or int(counted[1])
            assert told.count("jioc run") == number, line
    assert len(lines) >= 40


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


def test_the_benchmark_of_processes_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    words = Namespace(backbone="tiny", stem="cifar", device="cpu", batch_size=128, epochs=2, each=5)
    found = script("scale").work("one process", words)
    assert found["images_per_second"] > 0 and found["gradient_bytes"] > found["statistics_bytes"] > 0


def paired(coordinate: str, seed: int, mass: float, norm: float, few: float | None) -> dict[str, Any]:
    """A result of iCaRL; few: accuracy of the few-shot classes under a tail, where the many-shot ones have 60."""
    tail = {"long_tail": "paper"} if few is not None else {}
    result = made(coordinate=coordinate, seed=seed, alls=[50.0] * 5, **tail)
    for row in result["tasks"][1:]:
        row["diagnostics"] |= {"old_mass_on_new": mass, "drift_on_old": 1.0}
        row["diagnostics"] |= {} if few is None else {"many": 60.0, "few": few}
    last = result["tasks"][-1]
    last["diagnostics"]["weight_norms"] = [2.0] * last["classes"][0] + [2.0 * norm] * 2
    return result


def test_the_claims_are_measured_on_the_seeds_that_a_pair_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = script("figures")
    results = [
        paired("none", 1, 0.5, 1.8, None), paired("none", 2, 0.7, 1.9, None), paired("jioc", 1, 0.3, 1.9, None),
        paired("jioc", 2, 0.3, 1.7, None), paired("jioc", 3, 0.9, 9.0, None),
        paired("none", 1, 0.5, 1.5, 40.0), paired("jioc", 1, 0.6, 1.2, 55.0),
        paired("none", 2, 0.5, 1.5, 40.0), paired("jioc", 2, 0.6, 1.2, 55.0),
    ]  # fmt: skip
    for coordinate in ("none", "oc"):
        results.append(made("ssil", coordinate))
    place = keep(tmp_path / "runs", *results)
    balanced, tail = figures.columns(place).items()
    place_of_both = "resnet18, 5 tasks, 1,000 exemplars"
    assert balanced[0] == f"cifar100, balanced, {place_of_both}"
    assert tail[0] == f"cifar100, long tail paper, {place_of_both}"
    (pair,), (tailed,) = figures.pairs(balanced[1]), figures.pairs(tail[1])
    mass, drift, norms, gap, shots = figures.CLAIMS
    assert pair.values(mass) == ([pytest.approx(0.5), pytest.approx(0.7)], [pytest.approx(0.3)] * 2)
    assert pair.values(norms) == (pytest.approx([1.8, 1.9]), pytest.approx([1.9, 1.7])) and pair.values(
        shots
    ) == (
        [],
        [],
    )
    assert pair.values(gap)[0] == [6.0, 6.0]
    looks = [pair.look(mass), pair.look(norms), pair.look(drift), tailed.look(mass), tailed.look(shots)]
    assert looks == [figures.NEARER, figures.SAME, figures.SAME, figures.FARTHER, figures.NEARER]
    drawn = figures.draw(place, tmp_path / "figures")
    assert [path.name for path in drawn] == ["figure4.svg", "pairs.svg"]
    assert all(path.read_bytes().startswith(b"<?xml") for path in drawn)
    assert "0.60 → 0.30 (-0.30 ± 0.14)" in capsys.readouterr().out


def test_pairs_and_columns_have_their_full_names_and_one_seed_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = script("figures")
    strong, deep = (
        paired("jioc", 1, 0.1, 1.1, None),
        [made(backbone="resnet32"), made("icarl", "jioc", backbone="resnet32")],
    )
    strong["config"]["coordination"]["gamma2"] = 5.0
    own = [made(str(tmp_path / "mine.py"), word) for word in ("none", "jioc")]
    first = [paired("none", 1, 0.5, 1.8, None), paired("jioc", 1, 0.3, 1.2, None)]
    place = keep(tmp_path / "runs", *first, strong, *deep, *own)
    found = figures.columns(place)
    names = {title: [pair.name for pair in figures.pairs(groups)] for title, groups in found.items()}
    assert names == {
        "cifar100, resnet18, 5 tasks, 1,000 exemplars": [
            "iCaRL + JIOC",
            "iCaRL + JIOC, gamma2 5",
            "mine + JIOC",
        ],
        "cifar100, resnet32, 5 tasks, 1,000 exemplars": ["iCaRL + JIOC"],
    }
    looks = {
        pair.look(claim)
        for groups in found.values()
        for pair in figures.pairs(groups)
        for claim in figures.CLAIMS
    }
    assert looks == {figures.ALONE}
    (path,) = figures.draw(place, tmp_path / "figures")
    assert "gamma2 5 (n = 1)" in path.read_text() and "iCaRL + JIOC, gamma2 5" in capsys.readouterr().out
    (tmp_path / "file").write_text("mine\n")
    for target in ("file", "file/below"):
        with pytest.raises(Failed, match="cannot be written to"):
            figures.draw(place, tmp_path / target)


def test_what_a_host_gains_is_told_column_by_column_over_the_seeds_that_both_have(tmp_path: Path) -> None:
    figures, hosts = script("figures"), script("hosts")
    results = [made("wa", "none", seed, alls=[60.0] * 5) for seed in (1, 2)]
    results += [made("wa", "jioc", seed, alls=[60.0 + seed] * 5) for seed in (1, 2, 3)]
    tail = [
        made("ssil", word, alls=[last] * 5, long_tail="paper")
        for word, last in (("none", 50.0), ("oc", 40.0))
    ]
    found = figures.columns(keep(tmp_path / "runs", *results, *tail, made("wa", "ic", 1, alls=[58.0] * 5)))
    _, _, part, balanced, tailed = hosts.told(found).splitlines()
    assert part == f"| balanced | WA + IC | 1 |{' -2.00 |' * 5} – |"
    assert balanced == f"| balanced | WA + JIOC | 2 |{' +1.50 ± 0.71 |' * 5} – |"
    assert tailed == f"| long tail paper | SS-IL + OC | 1 |{' -10.00 |' * 5} – |"
    with pytest.raises(Refused, match="no host with and without"):
        hosts.told(figures.columns(keep(tmp_path / "alone", made())))


def test_the_comparison_in_short_has_every_row_of_the_recipe_and_no_other(tmp_path: Path) -> None:
    def result(name: str, average: float, seed: int = 1, **more: Any) -> dict[str, Any]:
        values = recipes.find("comparison").make()[name] | {"seed": seed} | more
        return made(tasks=10, alls=[average] * 10) | {
            "config": settings.plain(resolve(settings.make(**values)))
        }

    balanced, tail = "cifar100-resnet32-2000", "cifar100-lt-resnet32-1000"
    results = [result(f"{balanced}-der-none", 60.0, seed) for seed in (1, 2)]
    results += [result(f"{balanced}-der-jioc", 61.0), result(f"{tail}-der-none", 50.0)]
    short = script("comparison")
    lines = short.told(
        keep(tmp_path / "runs", *results, result(f"{tail}-coil-none", 50.0, memory=2000))
    ).splitlines()
    assert lines[0] == "| | balanced, 2,000 exemplars | paper | long tail paper, 1,000 exemplars | paper |"
    rows = {line.split(" | ")[0]: line for line in lines[2:22]}
    assert rows["| DER"] == "| DER | 60.00 ± 0.00 | 70.12 | 50.00 | 64.18 |"
    assert (
        rows["| DER + JIOC"]
        == "| DER + JIOC | 61.00 (+1.00, 1 seed) | 71.88 (+1.76) | not run | 66.46 (+2.28) |"
    )
    assert rows["| WA"] == "| WA | not run | – | not run | – |" and len(rows) == 20
    assert lines[24] == "- balanced, 2,000 exemplars: 2 seeds; 1 of DER + JIOC" and lines[26].startswith(
        "- 4 runs on "
    )
    with pytest.raises(Refused, match="no finished run of the comparison"):
        short.told(keep(tmp_path / "other", made()))


def test_baselines_stand_beside_the_paper_and_beside_pycil_in_its_own_form(tmp_path: Path) -> None:
    def result(name: str, average: float, seed: int = 1, **more: Any) -> dict[str, Any]:
        values = recipes.find("comparison").make()[f"cifar100-resnet32-2000-{name}"] | {"seed": seed} | more
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
    heads, _, *lines = baselines.told(place, [plot, log, means]).splitlines()
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
        baselines.told(keep(tmp_path / "other", made()), [plot])


PROXY = script("proxy")
LEARNT = list(PROXY.rows())


@pytest.mark.parametrize("name", LEARNT)
def test_every_method_learns_what_the_proxy_has_kept(name: str) -> None:
    told = PROXY.apart(PROXY.learnt(name)[0], PROXY.kept().get(name, {}))
    assert not told, "if that is meant: python benchmarks/proxy.py --write"


def test_the_proxy_is_of_the_methods_and_settings_of_today() -> None:
    held = json.loads(PROXY.KEPT.read_text(encoding="utf-8"))
    assert [*held["figures"]] == LEARNT and held["settings"] == PROXY.SETTINGS
    assert PROXY.apart({"a": 1.0, "b": 2.0}, {"a": 1.0 + 5e-7, "c": 3.0}) == [
        "c None was 3.0",
        "b 2.0 was None",
    ]
    assert PROXY.apart({"a": -1.0}, {"a": -1.00001}) == ["a -1.0 was -1.00001"]
    assert PROXY.apart({"a": float("nan")}, {"a": 1.0}) == ["a nan was 1.0"]


def test_losses_are_kept_as_every_stage_began_and_ended_with_them(tmp_path: Path) -> None:
    losses, folder = script("losses"), tmp_path / "runs" / "a"
    keep(tmp_path / "runs", made())
    (tmp_path / "runs" / "run-000").rename(folder)
    said = [
        ("first", 1, 3.0),
        ("first", 2, 2.0),
        ("later", 1, 1.23456),
        ("later", 2, 0.5),
        ("later", 3, 0.25),
    ]
    log = [
        {"task": 1 + (stage == "later"), "stage": stage, "epoch": e, "images": 10, "terms": {"cls": v}}
        for stage, e, v in said
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    target = tmp_path / "losses.csv"
    assert losses.keep([tmp_path / "runs"], target) == 1
    assert target.read_text().splitlines() == [
        "run,task,stage,images,epochs,term,first,last",
        "a,1,first,10,2,cls,3,2",
        "a,2,later,10,3,cls,1.235,0.25",
    ]
    folder.rename(folder.with_name("b"))
    assert losses.keep([tmp_path / "runs"], target) == 1  # what was kept before stays
    assert [line.split(",")[0] for line in target.read_text().splitlines()] == ["run", "a", "a", "b", "b"]
    with pytest.raises(Refused, match="no log of a finished run"):
        losses.keep([tmp_path / "none"], target)


def test_results_without_a_pair_are_refused_in_a_sentence(tmp_path: Path) -> None:
    place = keep(tmp_path / "runs", made(), made(coordinate="jioc", done=2))
    with pytest.raises(Refused, match="neither SS-IL nor a host with and without JIOC"):
        script("figures").draw(place, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--epochs", "1"], "the first is not timed"),
        (["--json", "nowhere/speed.json"], "there is no folder 'nowhere'"),
        (["--backbone", "resnet33"], "resnet33"),
    ],
)
def test_speeds_that_cannot_be_measured_or_kept_are_refused_first(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script("speed").main(["--device", "cpu", *words]) == 2
    found = capsys.readouterr()
    assert sentence in found.err and not found.out


def test_a_file_of_no_speeds_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text("{}")
    for name in ("other.json", "missing.json"):
        assert script("speeds").main([str(tmp_path / name)]) == 2
        assert "is not what speed.py --json writes" in capsys.readouterr().err
