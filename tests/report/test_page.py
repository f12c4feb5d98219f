"""`jioc report`: the page and the figures, from result.json alone."""

import json
import random
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from helpers.hostile import NAMES as HOSTILE
from helpers.results import keep, made
from jioc.cli.main import main
from jioc.report import figures, page
from jioc.report.runs import Group, Run, group, read


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


def test_a_result_of_an_older_version_gives_a_page(tmp_path: Path) -> None:
    old = made(diagnosed=False)
    for key in ("headline", "counts", "commit", "environment", "forgetting"):
        del old[key]
    for row in old["tasks"]:
        for key in ("readouts", "memory", "seconds", "images_per_second"):
            del row[key]
    _, held = report(tmp_path, old, made(seed=2))
    assert held["runs"][0]["diagnostics"] is None and held["runs"][1]["diagnostics"] is not None
    assert held["runs"][0]["readouts"]["cnn"]["forgetting"] is None
    assert main(["table", str(tmp_path / "runs"), "--paper"]) == 0


def test_two_hundred_classes_and_twenty_settings(tmp_path: Path) -> None:
    results = [made(classes=200, tasks=10, memory=1000 + i) for i in range(20)]
    _, held = report(tmp_path, *results)
    assert len({g["label"] for g in held["groups"]}) == 20
    assert all(len(run["diagnostics"]["confusion"]) == 200 for run in held["runs"])


def test_ten_runs_of_a_hundred_classes_stay_under_three_megabytes(tmp_path: Path) -> None:
    html, _ = report(tmp_path, *[made(seed=s, classes=100, tasks=10) for s in range(10)])
    assert len(html.encode()) < 3e6


def test_two_hundred_runs(tmp_path: Path) -> None:
    one = made(classes=100, tasks=10)
    results = [one | {"config": one["config"] | {"init_seed": s, "data_seed": s}} for s in range(200)]
    _, held = report(tmp_path, *results)
    assert len(held["runs"]) == 200 and len(held["groups"]) == 1


def test_a_page_replaces_an_older_one_whole_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(keep(tmp_path / "runs", made()))
    out = tmp_path / "page.html"
    out.write_text("an earlier page")
    assert main(["report", runs, "-o", str(out)]) == 0 and "an earlier page" not in out.read_text()
    assert main(["report", runs, "-o", str(tmp_path / "nowhere" / "page.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.html", "runs"]


def test_a_run_named_twice_counts_once(tmp_path: Path) -> None:
    folder = keep(tmp_path, made())
    assert len(read([folder, folder / "run-000", folder / "run-000" / "result.json"])) == 1


def test_torch_and_matplotlib_stay_out(tmp_path: Path) -> None:
    runs = str(keep(tmp_path / "runs", made()))
    code = (
        "import sys; from jioc.cli.main import main\n"
        f"assert main(['report', {runs!r}, '-o', {str(tmp_path / 'p.html')!r}]) == 0 == main(['table', {runs!r}])\n"
        "assert not {'torch', 'numpy', 'matplotlib', 'sklearn'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_figures_for_papers(tmp_path: Path) -> None:
    counts = [500 - 40 * c for c in range(10)]
    tailed = made(classes=["<b>$x_1$</b>", *map(str, range(9))], counts=counts, method="own_$method.py")
    for row in tailed["tasks"][1:]:
        row["diagnostics"] |= {"many": 70.0, "medium": 50.0, "few": 30.0}
    runs = keep(tmp_path / "runs", tailed, made(coordinate="jioc", done=3))
    out = tmp_path / "figures"
    assert main(["report", str(runs), "-o", str(tmp_path / "p.html"), "--figures", str(out)]) == 0
    stems = {p.stem for p in out.iterdir()}
    accuracies = {f"accuracy-{n}{one}" for n in ("cnn", "nme") for one in ("", "-all")}
    assert stems == accuracies | {"tasks", "mechanisms", "thirds", "long-tail"}
    starts = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}
    for stem in stems:
        for kind, start in starts.items():
            assert (out / f"{stem}.{kind}").read_bytes().startswith(start)


def test_a_figure_that_cannot_be_written_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "figures" / "accuracy-cnn.pdf"
    (taken / "in the way").mkdir(parents=True)
    words = ["report", str(keep(tmp_path / "runs", made(tasks=2))), "-o", str(tmp_path / "p.html")]
    assert main([*words, "--figures", str(taken.parent)]) == 1
    assert capsys.readouterr().err == f"jioc: {str(taken)!r} cannot be written: Is a directory\n"
    assert [p.name for p in taken.parent.iterdir()] == ["accuracy-cnn.pdf"]


TAIL = [500 - 40 * c for c in range(10)]


def tailed(**values: Any) -> dict[str, Any]:
    result = made(**{"counts": TAIL} | values)
    for row in result["tasks"][1:]:
        row["diagnostics"] |= {"many": 70.0, "medium": 50.0, "few": 30.0}
    return result


def groups_of(*results: dict[str, Any]) -> list[Group]:
    return group([Run(Path(str(i)), result) for i, result in enumerate(results)])


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


def test_every_tail_is_drawn_once_with_the_place_that_has_it() -> None:
    runs = [
        made(counts=TAIL),
        made(coordinate="jioc", counts=TAIL),
        made(counts=TAIL[::-1], memory=500),
        made("wa"),
    ]
    groups = groups_of(*runs)
    assert figures.tails(groups) == {tuple(TAIL): "1,000 exemplars", tuple(TAIL[::-1]): "500 exemplars"}
    groups = groups_of(made(counts=TAIL), made(counts=TAIL[::-1], order_seed=2))
    assert figures.tails(groups) == {tuple(TAIL): "iCaRL", tuple(TAIL[::-1]): "iCaRL, order-seed 2"}
    assert [ax.get_title(loc="left") for ax in figures.long_tails([*figures.tails(groups).items()]).axes] == [
        "iCaRL",
        "iCaRL, order-seed 2",
    ]


def test_every_setting_has_its_matrix() -> None:
    groups = groups_of(*(made(memory=1000 + i, diagnosed=False) for i in range(14)))
    sheets = {name: figure for name, figure in figures.draw(groups).items() if name.startswith("tasks")}
    assert [*sheets] == ["tasks", "tasks-2"]
    titles = [ax.get_title(loc="left") for sheet in sheets.values() for ax in sheet.axes]
    assert [title for title in titles if title] == [g.label for g in groups]


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


def test_a_legend_tells_every_line_apart_and_stays_on_the_page() -> None:
    import matplotlib

    runs = [made(memory=1000 + i, diagnosed=False) for i in range(30)]
    with matplotlib.rc_context(figures.STYLE):
        groups = groups_of(*runs)
        groups[0].label = "a very long label, " * 6
        figure = figures.accuracy(groups, "cnn", {"all": "All"}, figures.COLUMN)
        figure.draw_without_rendering()
        patterns = [matplotlib.rcParams[f"lines.{name}_pattern"] for name in ("dashed", "dotted", "dashdot")]
        width = matplotlib.rcParams["lines.linewidth"]
    (legend,) = figure.legends
    lines = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in legend.get_lines()]
    assert len(set(lines)) == 30
    assert len({(colour, mark) for colour, _, mark in lines[:14]}) == 14  # also where dashes cannot be seen
    assert legend.handlelength * 7 >= 2 * width * max(map(sum, patterns))  # each style twice over
    box, sheet = legend.get_window_extent(), figure.bbox
    assert sheet.x0 <= box.x0 and box.x1 <= sheet.x1 and sheet.y0 <= box.y0


def test_every_chart_of_the_page_has_its_axes_named() -> None:
    """Each call that draws names both axes; accuracies, times and divergences with their unit."""
    js = (Path(page.__file__).parent / "page.js").read_text()
    sections = js.split("// --- sections ---")[1]
    for call in ("lines(", "heat(", "bars(", "scatter("):
        for part in sections.split(call)[1:]:
            assert "xLabel" in part[:900] and "yLabel" in part[:900], part[:80]
    for unit in ("accuracy (%)", "KL divergence (nats)", "time (s)", "images a second", "expected error (%)"):
        assert f'"{unit}"' in sections


def test_hosts_come_before_what_is_built_on_them(tmp_path: Path) -> None:
    found = group(read([keep(tmp_path, made(coordinate="jioc"), made("replay"), made())]))
    assert [g.label for g in found] == ["iCaRL", "iCaRL + JIOC", "Replay"]


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
    script = (Path(page.__file__).parent / "page.js").read_text(encoding="utf-8")
    script = script[script.index("const known") : script.index("const percent")]
    script += f"console.log(JSON.stringify([0, 1, 2, 3].map((d) => {values}.map((v) => fixed(d)(v)))))"
    shown = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout
    want = [
        [f"{value:,.{digits}f}".replace("-", "−" * (value < 0)) for value in values] for digits in range(4)
    ]
    assert json.loads(shown) == want
