"""`jioc report --figures`: figures for papers."""

from pathlib import Path

import pytest

from helpers.results import groups_of, keep, made
from jioc.cli.main import main
from jioc.report import figures


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
    sheets = {name: figure for name, figure in figures.draw(groups).items() if name.startswith("tasks")}
    assert [*sheets] == ["tasks", "tasks-2"]
    titles = [ax.get_title(loc="left") for sheet in sheets.values() for ax in sheet.axes]
    assert [title for title in titles if title] == [g.label for g in groups]


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
