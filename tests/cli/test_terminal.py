"""What a terminal shows at 80 and at 160 columns: no wrapped task line, no shortened number, no bar left."""

import json
import re
from pathlib import Path

import pytest
import yaml

from helpers.paths import ROOT
from helpers.screen import BAR, Seen, show

SIZES = pytest.mark.parametrize("columns", [80, 160])
STAGED = ["-m", "helpers.staged"]
TASK = re.compile(r"task +\d+/\d+ +\d+ class\w*  cnn +\d+\.\d\d \(old +[\d.–]+, new +[\d.]+\).*  \d+ s")
SHORTENED = re.compile(r"[\d.]…|…[\d.]")


def must_be_clean(seen: Seen, status: int = 0) -> None:
    assert seen.status == status, seen.text
    assert BAR not in seen.text, "a bar is left"
    assert not SHORTENED.search(seen.text), "a number is shortened"
    for line in seen.bars():
        assert not SHORTENED.search(line)


@SIZES
def test_a_run_shows_a_bar_and_a_line_a_task(columns: int, tmp_path: Path) -> None:
    out = tmp_path / "run"
    seen = show([*STAGED, "run", "icarl", "--long-tail", "5", "--out", str(out)], columns)
    must_be_clean(seen)
    told = [line for line in seen.lines if line.startswith("task  ") and "/5" in line]
    assert len(told) == 5 and all(TASK.fullmatch(line) for line in told), told
    assert all(("unaligned 100.00" in line) == (columns == 160) for line in told)
    assert any(
        re.match(r"task [34]/5 +━.* \d+% \d:\d\d:\d\d epoch [12]/2  [\d,]+ images/s", b) for b in seen.bars()
    )
    start = seen.lines.index(f"next: jioc report {out}"[:columns])
    assert f"jioc predict {out} IMAGE" in "".join(seen.lines[start:])


@SIZES
def test_a_grid_of_six_shows_a_bar_a_run_and_a_line_when_it_ends(columns: int, tmp_path: Path) -> None:
    name = "a-name-that-is-much-longer-than-what-eighty-columns-have-room-for"
    recipe = {"base": {"method": "icarl", "data": "digits"}, "runs": {name: {}}, "seeds": [11, 12, 13]}
    recipe["matrix"] = {"coordination.coordinate": ["none", "jioc"]}
    (tmp_path / "six.yaml").write_text(yaml.safe_dump(recipe))
    words = ["grid", str(tmp_path / "six.yaml"), "--pack", "3", "--out", str(tmp_path / "out")]
    seen = show([*STAGED, *words], columns)
    must_be_clean(seen)
    ended = [line for line in seen.lines if "  finished: " in line]
    assert len(ended) == 6
    assert all(
        re.search(r"-seed1[123]  finished: cnn average 80\.00, last 60\.00, \d+ s$", line) for line in ended
    )
    assert sorted(line.partition("  ")[0][-6:] for line in ended) == sorted(
        ["seed11", "seed12", "seed13"] * 2
    )
    assert any(line.count("…") == 1 and re.search(r"-seed1[123] +━", line) for line in seen.bars())
    assert any(re.match(r"6 runs +━.* 3 of 6 ended", line) for line in seen.bars())
    assert seen.lines[-1] == "all 6 runs are finished"


@SIZES
def test_the_demo_shows_six_bars_a_table_of_three_columns_and_what_comes_next(
    columns: int, tmp_path: Path
) -> None:
    out = tmp_path / "demo"
    seen = show([*STAGED, "demo", "--out", str(out)], columns)
    must_be_clean(seen)
    most = max(sum(BAR in line for line in frame) for frame in seen.frames)
    assert most == 6
    rows = [re.split(r"  +", line.strip()) for line in seen.lines if line.startswith("iCaRL  ")]
    rows += [re.split(r"  +", line.strip()) for line in seen.lines if line.startswith("iCaRL + JIOC  ")]
    assert [len(row) for row in rows] == [3, 3] and rows[0][1:] == ["80.00 ± 0.00", "60.00 ± 0.00"]
    told = "".join(seen.lines)
    assert f"the page: {out}/report.html" in told and f"next: jioc table {out} --wide" in told
    assert (out / "report.html").exists() and len(list(out.rglob("result.json"))) == 6


@pytest.mark.parametrize(("columns", "wide"), [(80, []), (160, []), (80, ["--wide", "--paper"])])
def test_the_table_of_the_comparison_fits(columns: int, wide: list[str]) -> None:
    runs = str(ROOT / "benchmarks" / "results" / "comparison")
    seen = show(["-m", "jioc", "table", runs, *wide], columns)
    must_be_clean(seen)
    assert max(map(len, seen.lines)) <= columns and "…" not in seen.text
    kept = json.loads(
        (
            ROOT / "benchmarks/results/comparison/cifar100-resnet32-2000-replay-none-seed1/result.json"
        ).read_text()
    )
    figures = [
        kept[kind][name] for kind in ("average", "last") for name in (("cnn", "nme") if wide else ("cnn",))
    ]
    assert all(f" {figure:.2f}" in seen.text for figure in figures)
    head = next(line.split() for line in seen.lines if line.startswith("setting"))
    if not wide:
        assert head == ["setting", "run", "n", "CNN", "average", "CNN", "last", "gain"]


def test_headings_are_in_colour_unless_somebody_wants_none(tmp_path: Path) -> None:
    raw = ["-c", "import sys; from jioc.text import coloured; print(coloured(sys.stdout))"]
    told = [show(raw, 80).text, show(raw, 80, NO_COLOR="1").text, show(raw, 80, TERM="dumb").text]
    assert told == ["True", "False", "False"]


@pytest.mark.extras
@pytest.mark.parametrize("words", [["run", "icarl", "--epochs", "3"], ["demo"]], ids=["run", "demo"])
def test_what_is_trained_looks_as_what_is_played(words: list[str], tmp_path: Path) -> None:
    seen = show(["-m", "jioc", *words, "--out", str(tmp_path / "out")], 80)
    must_be_clean(seen)
    assert seen.bars() and "next: jioc " in seen.text
