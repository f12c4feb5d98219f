"""The figures of `jioc report --figures DIR`: for a paper, at column width, as PDF, SVG and PNG.

Lines have a sheet for each place, with at most eight settings each, so that a legend can be read.
"""

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jioc.errors import Failed, os_errors
from jioc.files import output, write
from jioc.report import paper
from jioc.report.group import Group, Run, collect, mean_std, shown_readouts
from jioc.report.looks import COLOURS, DASHES, MARKS, Look, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.3  # inches, one of two columns; a page is both and the gap between them
PAGE = 6.9
PANELS = 12  # at most on one sheet
LINES = 8  # settings at most on one sheet
Pick = Callable[[Run], list[float | None]]  # what a line shows of a run, task by task
Curve = Callable[[Group], list[float] | None]  # the paper's own, where it gives one
Looks = Mapping[Group, Look]
PAPER: Any = {"linestyle": (0, (0.6, 2.2)), "linewidth": 0.9}  # of the paper's curve
HANDLE, LETTER, LINE = 0.65, 0.055, 0.15  # inches of a legend
STYLE: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e6e9",
    "grid.linewidth": 0.5,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 3,
    "pdf.fonttype": 42,
    "svg.hashsalt": "jioc",
    "svg.fonttype": "none",  # text, which a person can search and change
    "text.parse_math": False,
    "figure.constrained_layout.use": True,
}
MECHANISMS = {
    "old_mass_on_new": ("Old images on new heads", "mean probability"),
    "new_mass_on_old": ("New images on old heads", "mean probability"),
    "drift_on_old": ("Drift of old heads on new images", "KL divergence (nats)"),
    "calibration_error": ("Calibration error", "expected error (%)"),
}
KINDS_OF_FILE: dict[str, tuple[dict[str, Any], bytes]] = {  # what is said in them, and how that looks
    "pdf": ({"Creator": "jioc report", "CreationDate": None}, b"/Creator (jioc report)"),
    "svg": ({"Creator": "jioc report", "Date": None}, b"<dc:title>jioc report</dc:title>"),
    "png": ({"Software": "jioc report"}, b"Software\0jioc report"),
}
KINDS = {"all": "All classes seen", "old": "Old classes", "new": "New classes"}
THIRDS = {"many": "Many-shot", "medium": "Medium-shot", "few": "Few-shot"}


def save(groups: list[Group], folder: Path, force: bool = False) -> list[Path]:
    """Draw every figure for which the results hold something; return the files written.

    `force`: they may replace files that jioc did not write.
    """
    with os_errors(f"{str(folder)!r} cannot be written to", Failed):
        folder.mkdir(parents=True, exist_ok=True)
    import matplotlib

    with matplotlib.rc_context(STYLE):
        drawn = draw(groups)
        targets = {
            (name, kind): output(folder / f"{name}.{kind}", mark, force)
            for name in drawn
            for kind, (_, mark) in KINDS_OF_FILE.items()
        }
        for (name, kind), target in targets.items():
            _write(drawn[name], kind, target)
    return [folder / f"{name}.{kind}" for name, kind in targets]


def draw(groups: list[Group]) -> dict[str, "Figure"]:
    styles, drawn = dict(zip(groups, looks(groups), strict=True)), dict[str, "Figure"]()
    for readout in dict.fromkeys(shown_readouts(groups).values()):
        picks = {title: partial(_accuracy, readout, kind) for kind, title in KINDS.items()}
        theirs = {title: partial(_paper, readout, kind) for kind, title in KINDS.items()}
        first = KINDS["all"]
        for name, some, width in (("", picks, PAGE), ("-all", {first: picks[first]}, COLUMN)):
            draw_lines = partial(accuracies, picks=some, width=width, theirs=theirs)
            drawn |= _line_sheets(f"accuracy-{readout}{name}", draw_lines, styles, some.values())
    drawn |= _sheets("tasks", matrices, groups)
    measured = [partial(_diagnostic, name) for name in MECHANISMS]
    drawn |= _line_sheets("mechanisms", mechanisms, styles, measured)
    picks = {f"{title} classes": partial(_third, name) for name, title in THIRDS.items()}
    draw_lines = partial(accuracies, picks=picks, width=PAGE)
    drawn |= _line_sheets("thirds", draw_lines, styles, [picks[f"{THIRDS['few']} classes"]])
    return drawn | _sheets("long-tail", long_tails, list(tails(groups).items()))


def _sheets(name: str, draw: Callable[[list[Any]], "Figure"], panels: list[Any]) -> dict[str, "Figure"]:
    """Draw all panels, on as many sheets as they need: tasks, tasks-2, ..."""
    sheets = [panels[i : i + PANELS] for i in range(0, len(panels), PANELS)]
    return _numbered(name, map(draw, sheets))


def _numbered(name: str, figures: Iterable["Figure"]) -> dict[str, "Figure"]:
    return {f"{name}-{i}" if i > 1 else name: figure for i, figure in enumerate(figures, 1)}


def _line_sheets(
    name: str, draw: Callable[[list[Group], Looks], "Figure"], styles: Looks, picks: Iterable[Pick]
) -> dict[str, "Figure"]:
    """Draw the lines of the groups that have something to pick. Of several places, a sheet tells its own.

    A sheet of one method has looks of its own: its hues tell the names apart.
    """
    some = list(picks)
    shown = [g for g in styles if any(_known(pick(run)) for run in g.runs for pick in some)]
    figures = []
    for sheet in line_sheets(shown):
        alone = len({g.config["method"] for g in sheet}) == 1
        figure = draw(sheet, dict(zip(sheet, looks(sheet), strict=True)) if alone else styles)
        if len({g.place for g in styles}) > 1:
            figure.suptitle(sheet[0].own_place, fontsize=8, x=0.01, ha="left")
        figures.append(figure)
    return _numbered(name, figures)


def line_sheets(groups: list[Group]) -> list[list[Group]]:
    """Part the groups by place, and by method where a place has more than one sheet holds."""
    sheets: list[list[Group]] = []
    for members in collect((g.place, g) for g in groups).values():
        sheets.append([])
        for family in collect((g.config["method"], g) for g in members).values():
            for part in (family[i : i + LINES] for i in range(0, len(family), LINES)):
                if len(sheets[-1]) + len(part) > LINES:
                    sheets.append([])
                sheets[-1] += part
    return sheets


def _write(figure: "Figure", kind: str, target: Path) -> None:
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=300, metadata=KINDS_OF_FILE[kind][0])
    with os_errors(f"{str(target)!r} cannot be written", Failed):
        write(target, content.getvalue())


def _panels(
    n: int, columns: int, width: float, height: float, **shared: Any
) -> tuple["Figure", list["Axes"]]:
    """Make room for n panels, so many in a row; the rest of the last row stays white. `height`: of a row."""
    from matplotlib.figure import Figure

    rows = -(-n // columns)
    figure = Figure(figsize=(width, rows * height))
    axes = list(figure.subplots(rows, columns, squeeze=False, **shared).flat)
    for ax in axes[n:]:
        ax.set_visible(False)
    return figure, axes


# --- lines ---


def accuracies(
    groups: list[Group],
    styles: Looks,
    picks: Mapping[str, Pick],
    width: float,
    theirs: Mapping[str, Curve] | None = None,
) -> "Figure":
    """Draw accuracies in a row of panels; `picks`: what each shows, `theirs`: the paper's, by its title."""
    figure, axes = _panels(len(picks), len(picks), width, 2.1, sharey=True)
    for ax, (title, pick) in zip(axes, picks.items(), strict=True):
        _curves(ax, groups, pick, styles, (theirs or {}).get(title))
        ax.set_title(title)
    axes[0].set_ylabel("accuracy (%)")
    _legend(figure, axes[0], width)
    return figure


def mechanisms(groups: list[Group], styles: Looks) -> "Figure":
    figure, axes = _panels(len(MECHANISMS), 2, PAGE, 2.1)
    for ax, (name, (title, unit)) in zip(axes, MECHANISMS.items(), strict=True):
        _curves(ax, groups, partial(_diagnostic, name), styles)
        ax.set(title=title, ylabel=unit)
        ax.set_ylim(bottom=0)
    _legend(figure, axes[-1], PAGE)
    return figure


def _accuracy(readout: str, kind: str, run: Run) -> list[float | None]:
    return [accuracy[kind] for accuracy in run.readouts.get(readout, [])]


def _paper(readout: str, kind: str, g: Group) -> list[float] | None:
    """The paper's accuracy after each task, of the read-out by which the runs are judged."""
    if not g.complete or g.runs[0].result.headline != readout:
        return None
    curve = paper.curve(paper.setting(g.complete[0].result))
    return curve[kind] if curve else None


def _known(values: list[float | None]) -> bool:
    return any(value is not None for value in values)


def _diagnostic(name: str, run: Run) -> list[float | None]:
    values = [row.diagnostics[name] if row.diagnostics else None for row in run.result.tasks]
    return values if _known(values) else []


def _third(name: str, run: Run) -> list[float | None]:
    return _diagnostic(name, run) if run.long_tailed else []


def _curves(
    axes: "Axes", groups: list[Group], pick: Pick, styles: Looks, theirs: Curve | None = None
) -> None:
    """Draw a line for each setting, the mean over seeds, and a band of one standard deviation.

    The paper's own curve, where it gives one, is dotted.
    """
    beside = False
    for g in groups:
        rows = [pair for run in g.runs for pair in zip(run.result.tasks, pick(run), strict=False)]
        by_classes = collect((row.classes[1], value) for row, value in rows if value is not None)
        if not by_classes:
            continue
        seen = sorted(by_classes)
        figures = [(mean or 0.0, std or 0.0) for mean, std in (mean_std(by_classes[n]) for n in seen)]
        look = line_look(styles[g])
        axes.plot(seen, [mean for mean, _ in figures], label=g.name, **look)
        low, high = [mean - std for mean, std in figures], [mean + std for mean, std in figures]
        axes.fill_between(seen, low, high, color=look["color"], alpha=0.15, linewidth=0)
        if (curve := theirs(g) if theirs else None) and len(curve) <= len(seen):
            axes.plot(seen[-len(curve) :], curve, color=look["color"], label="_paper", **PAPER)
            beside = True
    if beside:
        axes.plot([], [], color="#5f6368", label="the paper's", **PAPER)
    axes.set_xlabel("classes seen")


def line_look(look: Look) -> dict[str, Any]:
    """Colour, dashes and mark of a line, as matplotlib calls them."""
    dashes = tuple(
        float(part) / 2 for part in DASHES[look.dash].split()
    )  # of the line's width, which is 2 there
    return {
        "color": COLOURS[look.hue],
        "linestyle": (0, dashes) if dashes else "-",
        "marker": MARKS[look.mark],
    }


def _legend(figure: "Figure", axes: "Axes", width: float) -> None:
    """Add a legend below what is drawn; the figure grows by its height."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    letters = int((width - HANDLE) / LETTER)
    labels = [textwrap.fill(label, letters, break_on_hyphens=False) for label in labels]
    columns = max(1, min(len(labels), int(width / (HANDLE + LETTER * max(map(len, labels))))))
    lines = sum(1 + label.count("\n") for label in labels)
    figure.set_figheight(figure.get_figheight() + LINE * -(-lines // columns))
    look: dict[str, Any] = {"handlelength": 4, "frameon": False}  # ems, enough for every line style
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, **look)


# --- a panel for each setting, or for each long tail ---


def matrices(groups: list[Group]) -> "Figure":
    """Draw the accuracy on each task after each task, a panel for each setting."""
    columns = min(3, len(groups))
    figure, axes = _panels(len(groups), columns, columns * 2.2 + 0.5, 2.2)
    for ax, g in zip(axes, groups, strict=False):
        cells = _matrix(g)
        ticks = range(0, len(cells), -(-len(cells) // 10))
        image = ax.imshow(cells, vmin=0, vmax=100, cmap="Blues")
        ax.grid(False)
        ax.set_title(textwrap.fill(g.label, 28, break_on_hyphens=False), loc="left")
        ax.set(xlabel="task tested", xticks=ticks, xticklabels=[str(t + 1) for t in ticks])
        ax.set(ylabel="tasks learnt", yticks=ticks, yticklabels=[str(t + 1) for t in ticks])
        every = [(t, s, value) for t, row in enumerate(cells) for s, value in enumerate(row)]
        for t, s, value in [cell for cell in every if len(cells) <= 10 and not math.isnan(cell[-1])]:
            ink, size = "white" if value > 55 else "black", min(6.5, 34 / len(cells))
            ax.text(s, t, f"{value:.0f}", ha="center", va="center", color=ink, fontsize=size)
    figure.colorbar(image, ax=axes, label="accuracy (%)", fraction=0.03, pad=0.02)
    return figure


def _matrix(g: Group) -> list[list[float]]:
    """Row t, column s: the accuracy on task s after task t, mean over seeds; nan where nothing was tested."""
    by_seed = [[row.by_readout[run.result.headline].per_task for row in run.result.tasks] for run in g.runs]

    def cell(t: int, s: int) -> float:
        mean, _ = mean_std(rows[t][s] for rows in by_seed if t < len(rows) and s < len(rows[t]))
        return math.nan if mean is None else mean

    size = max(map(len, by_seed))
    return [[cell(t, s) for s in range(size)] for t in range(size)]


def tails(groups: list[Group]) -> dict[tuple[int, ...], str]:
    """Every long tail, as the number of images of each class, with the place that has it.

    A place with several, as under several class orders, gives way to the group's label.
    """
    tailed = collect((tuple(run.result.counts), g) for g in groups for run in g.runs if run.long_tailed)
    places = [some[0].own_place for some in tailed.values()]
    return {
        counts: g.own_place if places.count(g.own_place) == 1 else g.label
        for counts, (g, *_) in tailed.items()
    }


def long_tails(titled: list[tuple[tuple[int, ...], str]]) -> "Figure":
    columns = min(2, len(titled))
    figure, axes = _panels(len(titled), columns, columns * COLUMN, 1.9)
    for ax, (counts, title) in zip(axes, titled, strict=False):
        if len(titled) > 1:
            ax.set_title(textwrap.fill(title, 50, break_on_hyphens=False), loc="left")
        ax.bar(range(1, len(counts) + 1), counts, color=COLOURS[0], width=0.8)
        ax.grid(False, axis="x")
        ax.set(xlabel="class, in the order of learning", ylabel="training images")
    return figure
