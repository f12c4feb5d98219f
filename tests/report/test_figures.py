"""`jioc report --figures`: figures for papers."""

import io
import itertools
from functools import partial
from pathlib import Path

import pytest

from helpers.results import groups_of, keep, made
from jioc.cli.main import main
from jioc.report import figures, looks, paper


@pytest.mark.slow
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
    sheets = figures._sheets("tasks", figures.matrices, groups)
    assert [*sheets] == ["tasks", "tasks-2"]
    titles = [ax.get_title(loc="left") for sheet in sheets.values() for ax in sheet.axes]
    assert [title for title in titles if title] == [g.label for g in groups]


def test_a_legend_is_short_tells_every_line_apart_and_stays_on_the_page() -> None:
    """A sheet for each place, of at most eight settings; a host and its coordinations are on one."""
    import matplotlib

    hosts = ("icarl", "wa", "bic", "der")
    runs = [made(m, c, diagnosed=False) for m in hosts for c in ("none", "ic", "jioc")]
    runs += [made("icarl", memory=500, diagnosed=False)]
    with matplotlib.rc_context(figures.STYLE):
        groups = groups_of(*runs)
        groups[0].name = "a very long name, " * 6
        sheets = figures.line_sheets(groups)
        drawn = figures.draw(groups)
        figure = drawn["accuracy-cnn-all"]
        figure.draw_without_rendering()
    assert [len(sheet) for sheet in sheets] == [6, 6, 1]
    assert [{g.config["method"] for g in sheet} for sheet in sheets] == [
        {*hosts[:2]},
        {*hosts[2:]},
        {"icarl"},
    ]
    assert [name for name in drawn if name.startswith("accuracy-cnn-all")][1:] == [
        "accuracy-cnn-all-2",
        "accuracy-cnn-all-3",
    ]
    (legend,) = figure.legends
    lines = [
        (line.get_color(), str(line._unscaled_dash_pattern), line.get_marker()) for line in legend.get_lines()
    ]
    assert len(set(lines)) == 6 and len({colour for colour, *_ in lines}) == 2
    box, sheet = legend.get_window_extent(), figure.bbox
    assert sheet.x0 <= box.x0 and box.x1 <= sheet.x1 and sheet.y0 <= box.y0


def test_hue_tells_the_method_dash_the_coordination_and_marks_the_variant() -> None:
    runs = [made(m, c, lr=lr) for m in ("icarl", "wa") for c in ("none", "jioc") for lr in (0.1, 0.2)]
    groups = groups_of(*runs)
    styles = dict(zip(groups, looks.looks(groups), strict=True))
    assert len(set(styles.values())) == len(groups) == 8
    for a, b in itertools.combinations(groups, 2):
        assert (styles[a].hue == styles[b].hue) is (a.config["method"] == b.config["method"])
        assert (styles[a].dash == styles[b].dash) is (a.coordinate == b.coordinate)
    alone = groups_of(made(), made(coordinate="jioc"), made(memory=500))
    assert [look.hue for look in looks.looks(alone)] == [0, 1, 0]  # of one method, by name
    many = groups_of(*(made(diagnosed=False, lr=0.01 * i) for i in range(1, 31)))
    assert len(set(looks.looks(many))) == 30


def test_the_papers_curve_stands_beside_ours_and_svg_text_is_text() -> None:
    import xml.etree.ElementTree as xml

    import matplotlib

    runs = [made(coordinate=c, classes=100, tasks=10, diagnosed=False) for c in ("none", "jioc")]
    groups = groups_of(*runs, made(method="own_<b>.py", classes=100, tasks=10, diagnosed=False))
    styles = dict(zip(groups, looks.looks(groups), strict=True))
    picks = {"Old": partial(figures._accuracy, "cnn", "old")}
    content = io.BytesIO()
    with matplotlib.rc_context(figures.STYLE):
        theirs = {"Old": partial(figures._paper, "cnn", "old")}
        figure = figures.accuracies(groups, styles, picks, figures.COLUMN, theirs)
        figure.savefig(content, format="svg")
    lines = [line for line in figure.axes[0].get_lines() if line.get_label() == "_paper"]
    want = [paper.curve(paper.setting(g.complete[0].result)) for g in groups[:2]]
    assert [[*map(float, line.get_ydata())] for line in lines] == [c["old"] for c in want if c]
    assert [*lines[0].get_xdata()] == [*range(20, 101, 10)]  # from the second task on
    root = xml.fromstring(content.getvalue())
    said = {"".join(node.itertext()).strip() for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Old", "accuracy (%)", "own_<b>", "the paper's"} <= said
