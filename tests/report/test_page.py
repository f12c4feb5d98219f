"""`jioc report`: the page and the figures, from result.json alone."""

import json
import os
import random
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from helpers.hostile import NAMES as HOSTILE
from helpers.results import groups_of, keep, made
from jioc.cli.main import main
from jioc.report import figures, losses, page
from jioc.report import runs as report_runs


class Elements(HTMLParser):
    """Every start tag, and the text of the scripts."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts.append(data)


def report(tmp_path: Path, *results: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The page of some results, and what is embedded in it."""
    out = tmp_path / "page.html"
    assert main(["report", str(keep(tmp_path / "runs", *results)), "-o", str(out)]) == 0
    html = out.read_text(encoding="utf-8")
    found = Elements(html)
    assert [tag for tag, _ in found.tags].count("script") == 2
    return html, json.loads(found.scripts[0])


def test_names_are_data_and_never_markup(tmp_path: Path) -> None:
    html, held = report(tmp_path, made(classes=HOSTILE))
    tame, _ = report(tmp_path / "tame", made())
    whole = [name.encode("utf-8", "replace").decode() for name in HOSTILE]
    assert held["scenarios"][0]["classes"] == whole
    assert Elements(html).tags == Elements(tame).tags
    assert "<script>alert" not in html and "<img" not in html


def test_the_page_reaches_for_nothing_outside_it(tmp_path: Path) -> None:
    html, _ = report(tmp_path, made())
    for _, attributes in Elements(html).tags:
        for name in ("src", "href"):
            assert attributes.get(name) is None or str(attributes[name]).startswith("data:")
    assert "default-src 'none'" in html and "@import" not in html and "url(" not in html


def test_the_page_holds_what_the_results_hold(tmp_path: Path) -> None:
    results = [made(seed=1), made(seed=2), made(coordinate="jioc", seed=1)]
    _, held = report(tmp_path, *results)
    assert [g["label"] for g in held["groups"]] == ["iCaRL", "iCaRL + JIOC"] and held["groups"][1][
        "base"
    ] == 0
    assert len(held["runs"]) == 3
    for result, shown in zip(results, held["runs"], strict=True):
        rows = result["tasks"]
        assert shown["readouts"]["cnn"]["all"] == [r["cnn"]["all"] for r in rows]  # unrounded
        assert shown["readouts"]["nme"]["old"][0] is None
        assert shown["readouts"]["cnn"]["average"] == result["average"]["cnn"]
        assert shown["diagnostics"]["confusion"] == rows[-1]["diagnostics"]["confusion"]
        assert shown["diagnostics"]["drift_on_old"] == [r["diagnostics"]["drift_on_old"] for r in rows]


def test_an_unfinished_run_is_drawn_and_not_averaged(tmp_path: Path) -> None:
    _, held = report(tmp_path, made(done=2))
    (run,) = held["runs"]
    assert run["complete"] is False and run["seen"] == [2, 4] and run["readouts"]["cnn"]["average"] is None


def test_two_hundred_classes_and_twenty_settings(tmp_path: Path) -> None:
    results = [made(classes=200, tasks=10, memory=1000 + i) for i in range(20)]
    _, held = report(tmp_path, *results)
    assert len({g["label"] for g in held["groups"]}) == 20
    assert all(len(run["diagnostics"]["confusion"]) == 200 for run in held["runs"])


def log(tasks: int, epochs: int, **terms: float) -> str:
    """A log with the same terms in every epoch, and others that it counts up."""
    about = {"stage": "later", "lr": 0.1, "images": 100, "seconds": 1.0, "images_per_second": 100.0}
    lines = [
        about | {"task": t, "epoch": e, "epochs": epochs, "terms": terms | {"count": e}}
        for t in range(1, tasks + 1)
        for e in range(1, epochs + 1)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_a_hundred_runs_with_their_logs_stay_under_three_megabytes(tmp_path: Path) -> None:
    one = made(classes=100, tasks=10)
    results = [one | {"config": one["config"] | {"init_seed": s, "data_seed": s}} for s in range(100)]
    runs = keep(tmp_path / "runs", *results)
    text = log(10, 16, cls=1.234567890123, kd=0.987654321, suppress=0.1234567)
    for folder in runs.iterdir():
        (folder / "log.jsonl").write_text(text)
    out = tmp_path / "page.html"
    assert main(["report", str(runs), "-o", str(out)]) == 0
    held = json.loads(Elements(out.read_text(encoding="utf-8")).scripts[0])
    assert len(held["runs"]) == 100 and len(held["groups"]) == 1
    assert all(len(run["losses"]["at"]) <= losses.POINTS for run in held["runs"])
    assert out.stat().st_size < 3e6


def test_losses_are_thinned_by_task_and_what_is_damaged_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(log(2, 400, cls=2.0) + '{"task": 3, "terms": {"cls": 1')
    held = losses.read(tmp_path)
    step = 5  # epochs that are one point: 80 points a task
    assert len(held.at) == losses.POINTS and held.at[79] == 1 and held.at[159] == 2
    assert held.at[0] == step / 400 and held.terms["count"][0] == (1 + step) / 2
    assert held.terms["cls"] == [2.0] * losses.POINTS and not held.not_finite
    odd = [
        "[1]", "nothing", '{"task": 1, "epochs": 2, "terms": 5}', '{"task": true, "epochs": 2, "terms": {}}',
        '{"task": 1, "epochs": 2, "terms": {"cls": NaN, "kd": 1}}', "[" * 100_000, '{"task": 1e9}',
        '{"task": 1, "epochs": 2, "terms": {"cls": 1' + "0" * 400 + ', "kd": 3}}',
    ]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("\n".join(odd))
    held = losses.read(tmp_path)
    assert held.terms == {"kd": [1.0, 3.0]} and held.at == [0.5, 1.0] and held.not_finite == [1]
    (tmp_path / "log.jsonl").unlink()
    assert losses.read(tmp_path).plain() is None
    os.mkfifo(tmp_path / "log.jsonl")
    assert losses.read(tmp_path).plain() is None


def test_alerts_name_a_task_at_zero_an_unfinished_run_and_what_is_no_number(tmp_path: Path) -> None:
    forgot, open_, bare, mad = made(seed=1), made(seed=2, done=2), made(seed=3), made(seed=4)
    forgot["tasks"][-1]["cnn"]["per_task"] = [0.0, 0.0, 0.0, 1.0, 0.0]
    bare["tasks"][1]["cnn"]["all"] = None
    runs = keep(tmp_path / "runs", forgot, open_, bare, mad, made(seed=5))
    (runs / "run-003" / "log.jsonl").write_text(log(3, 2, cls=float("nan")))
    groups = report_runs.group(report_runs.read([runs]))
    held = page.content(groups)["alerts"]
    assert [(one["runs"], one["text"]) for one in held] == [
        ([0], "at 0 % after task 5: tasks 1 to 3, 5"),
        ([1], "not finished: 2 of 5 tasks learnt"),
        ([2], "no accuracy after task 2"),
        ([3], "a loss that is not a finite number in tasks 1 to 3"),
    ]


def test_facets_looks_and_links_of_a_setting(tmp_path: Path) -> None:
    results = [made(), made(coordinate="jioc"), made("wa"), made("wa", memory=500)]
    _, held = report(tmp_path, *results)
    facets = [dict(zip(held["facets"], g["facets"], strict=True)) for g in held["groups"]]
    assert [f["memory"] for f in facets] == ["1,000 exemplars"] * 3 + ["500 exemplars"]
    assert [f["method"] for f in facets] == ["iCaRL", "iCaRL", "WA", "WA"]
    assert [f["coordination"] for f in facets] == ["none", "jioc", "none", "none"]
    assert [g["hue"] for g in held["groups"]] == [0, 0, 1, 1]
    _, later = report(tmp_path / "later", made("bic"), *results, made(seed=2))
    ids = {g["label"]: g["id"] for g in later["groups"]}
    assert {g["label"]: g["id"] for g in held["groups"]}.items() <= ids.items()  # an old link leads there
    assert len({*ids.values()}) == 5


def test_a_page_replaces_an_older_one_whole_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(keep(tmp_path / "runs", made()))
    out = tmp_path / "page.html"
    assert main(["report", runs, "-o", str(out)]) == 0
    out.write_text(out.read_text() + "an earlier page")
    assert main(["report", runs, "-o", str(out)]) == 0 and "an earlier page" not in out.read_text()
    assert main(["report", runs, "-o", str(tmp_path / "nowhere" / "page.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.html", "runs"]


def test_torch_and_matplotlib_stay_out(tmp_path: Path) -> None:
    runs = str(keep(tmp_path / "runs", made()))
    code = (
        "import sys; from jioc.cli.main import main\n"
        f"assert main(['report', {runs!r}, '-o', {str(tmp_path / 'p.html')!r}]) == 0\n"
        f"assert main(['table', {runs!r}]) == 0\n"
        "assert not {'torch', 'numpy', 'matplotlib', 'sklearn'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


TAIL = [500 - 40 * c for c in range(10)]


def tailed(**values: Any) -> dict[str, Any]:
    result = made(**{"counts": TAIL} | values)
    for row in result["tasks"][1:]:
        row["diagnostics"] |= {"many": 70.0, "medium": 50.0, "few": 30.0}
    return result


def drawn(*results: dict[str, Any]) -> set[str]:
    """The names of the figures of some results."""
    return {*figures.draw(groups_of(*results))}


def test_any_run_may_have_a_tail_and_classes_that_differ_little_are_none(tmp_path: Path) -> None:
    even = tailed(counts=[128 - c % 5 for c in range(10)])  # as the digits
    assert {"thirds", "long-tail"}.isdisjoint(drawn(even))
    assert drawn(even, tailed(memory=500)) >= {"thirds", "long-tail"}
    assert "long-tail" in drawn(made(counts=[15] * 5 + [10] * 5, long_tail=1.5))
    _, held = report(tmp_path, even, tailed(memory=500))
    assert [scenario["tailed"] for scenario in held["scenarios"]] == [False, True]
    few = [run["diagnostics"].get("few") for run in held["runs"]]
    assert few == [None, [None, 30.0, 30.0, 30.0, 30.0]]


def test_a_readout_that_repeats_another_is_drawn_once(tmp_path: Path) -> None:
    whole, begun = made("foster"), made("foster", seed=2, done=2)
    for result in (whole, begun):
        for row in result["tasks"]:
            row["readouts"] = {"boosted": row["cnn"]}
        for kind in ("average", "last"):
            result[kind]["boosted"] = result[kind]["cnn"]
    assert not any("boosted" in name for name in drawn(whole, begun))
    _, held = report(tmp_path, begun)
    assert [*held["runs"][0]["readouts"]] == ["cnn", "nme"]
    begun["tasks"][1]["readouts"]["boosted"] = begun["tasks"][1]["cnn"] | {"all": 0.0}
    _, held = report(tmp_path / "apart", begun)
    assert [*held["runs"][0]["readouts"]] == ["cnn", "nme", "boosted"]
    judged = whole | {"headline": "boosted", "config": whole["config"] | {"memory": 500}}
    _, held = report(tmp_path / "judged by it", made("foster"), judged)
    assert {g["headline"] for g in held["groups"]} == {"cnn"}


def test_every_chart_of_the_page_has_its_axes_named() -> None:
    """Each call that draws names both axes; accuracies, times and divergences with their unit."""
    names = ("accuracy", "mechanisms", "runs")
    sections = "".join((page.WEB / f"{name}.js").read_text(encoding="utf-8") for name in names)
    for call in (" lines(", " heat(", " bars(", " scatter("):
        for part in sections.split(call)[1:]:
            assert "xLabel" in part[:900] and "yLabel" in part[:900], part[:80]
    for unit in ("accuracy (%)", "KL divergence (nats)", "time (s)", "images a second", "expected error (%)"):
        assert f'"{unit}"' in sections


def test_the_scripts_are_all_there_in_lines_that_can_be_read() -> None:
    assert {path.stem for path in page.WEB.glob("*.js")} == {*page.SCRIPTS}
    for path in page.WEB.glob("*.js"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 340 and max(map(len, lines)) <= 110, path.name


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_rounds_as_a_table_does() -> None:
    draw = random.Random(0)
    halves = [n / 8 for n in range(-40, 41)] + [
        50.125,
        50.375,
        1234.625,
        2.5,
        3.5,
        62.5,
        0.0625,
        99.995,
        1.005,
    ]
    values = [
        *halves,
        *(draw.uniform(-100, 100) for _ in range(200)),
        *(draw.uniform(0, 1e6) for _ in range(50)),
    ]
    script = (page.WEB / "numbers.js").read_text(encoding="utf-8")
    script = script[script.index("const known") : script.index("const percent")]
    script += f"console.log(JSON.stringify([0, 1, 2, 3].map((d) => {values}.map((v) => fixed(d)(v)))))"
    shown = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout
    want = [
        [f"{value:,.{digits}f}".replace("-", "−" * (value < 0)) for value in values] for digits in range(4)
    ]
    assert json.loads(shown) == want
