"""The figures of `jioc report --figures DIR`: for a paper, at column width, as PDF, SVG and PNG.

Colour-blind readers can tell their colours apart.
"""

import io
import math
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jioc.errors import Failed
from jioc.files import write
from jioc.report.group import Group, Run, mean_std, shown_readouts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.3  # inches, one of two columns; a page is both and the gap between them
PAGE = 6.9
PANELS = 12  # at most on one sheet
HANDLE, LETTER, LINE = 0.65, 0.055, 0.15  # inches of a legend
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
STYLES = ("-", "--", ":", "-.")
MARKS = "osD^vPX"
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
    "text.parse_math": False,
    "figure.constrained_layout.use": True,
}
MECHANISMS = {
    "old_mass_on_new": ("Old images on new heads", "mean probability"),
    "new_mass_on_old": ("New images on old heads", "mean probability"),
    "drift_on_old": ("Drift of old heads on new images", "KL divergence (nats)"),
    "calibration_error": ("Calibration error", "expected error (%)"),
}
KINDS = {"all": "All classes seen", "old": "Old classes", "new": "New classes"}
THIRDS = {"many": "Many-shot", "medium": "Medium-shot", "few": "Few-shot"}


def save(groups: list[Group], folder: Path) -> list[Path]:
    """Draw every figure for which the results hold something; return the files written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(f"{str(folder)!r} cannot be written to: {error.strerror}") from None
    import matplotlib

    with matplotlib.rc_context(STYLE):
        return [path for name, figure in draw(groups).items() for path in _write(figure, folder, name)]


def draw(groups: list[Group]) -> dict[str, "Figure"]:
    drawn: dict[str, Figure] = {}
    for readout in dict.fromkeys(shown_readouts(groups).values()):
        drawn[f"accuracy-{readout}"] = accuracy(groups, readout, KINDS, PAGE)
        drawn[f"accuracy-{readout}-all"] = accuracy(groups, readout, {"all": KINDS["all"]}, COLUMN)
    drawn |= _sheets("tasks", matrices, groups)
    runs = [run for g in groups for run in g.runs]
    if any(_diagnostic(name, run) for run in runs for name in MECHANISMS):
        drawn["mechanisms"] = mechanisms(groups)
    if any(_third("few", run) for run in runs):
        drawn["thirds"] = thirds(groups)
    return drawn | _sheets("long-tail", long_tails, list(tails(groups).items()))


def _sheets(name: str, draw: Callable[[list[Any]], "Figure"], panels: list[Any]) -> dict[str, "Figure"]:
    """Draw all panels, on as many sheets as they need: tasks, tasks-2, ..."""
    sheets = [panels[i : i + PANELS] for i in range(0, len(panels), PANELS)]
    return {f"{name}-{i}" if i > 1 else name: draw(sheet) for i, sheet in enumerate(sheets, 1)}


def _write(figure: "Figure", folder: Path, name: str) -> list[Path]:
    undated: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    paths = []
    for kind, metadata in undated.items():
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=300, metadata=metadata)
        paths.append(folder / f"{name}.{kind}")
        try:
            write(paths[-1], content.getvalue())
        except OSError as error:
            raise Failed(f"{str(paths[-1])!r} cannot be written: {error.strerror}") from None
    return paths


def _sheet(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any
) -> tuple["Figure", list["Axes"]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    return figure, list(axes.flat)


def _curves(axes: "Axes", groups: list[Group], pick: Callable[[Run], list[float | None]]) -> None:
    """Draw a line for each setting, the mean over seeds, and a band of one standard deviation."""
    for i, g in enumerate(groups):
        by_classes: dict[int, list[float]] = {}
        for run in g.runs:
            for row, value in zip(run.result.tasks, pick(run), strict=False):
                if value is not None:
                    by_classes.setdefault(row.classes[1], []).append(value)
        if not by_classes:
            continue
        seen = sorted(by_classes)
        figures = [mean_std(by_classes[n]) for n in seen]
        means = [mean or 0.0 for mean, _ in figures]
        low = [(mean or 0.0) - (std or 0.0) for mean, std in figures]
        high = [(mean or 0.0) + (std or 0.0) for mean, std in figures]
        mark = MARKS[(i + i // 7) % 7]  # another with each style, so that lines of a colour differ twice
        look: dict[str, Any] = {"color": COLOURS[i % 7], "linestyle": STYLES[i // 7 % 4], "marker": mark}
        axes.plot(seen, means, label=g.label, **look)
        axes.fill_between(seen, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_xlabel("classes seen")


def _legend(figure: "Figure", axes: "Axes", width: float = PAGE) -> None:
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


def accuracy(groups: list[Group], readout: str, kinds: dict[str, str], width: float) -> "Figure":
    figure, axes = _sheet(width, 2.1, 1, len(kinds), sharey=True)
    for ax, (kind, title) in zip(axes, kinds.items(), strict=True):
        _curves(ax, groups, partial(_accuracies, readout, kind))
        ax.set_title(title)
    axes[0].set_ylabel("accuracy (%)")
    _legend(figure, axes[0], width)
    return figure


def mechanisms(groups: list[Group]) -> "Figure":
    figure, axes = _sheet(PAGE, 4.2, 2, 2)
    for ax, (name, (title, unit)) in zip(axes, MECHANISMS.items(), strict=True):
        _curves(ax, groups, partial(_diagnostic, name))
        ax.set_title(title)
        ax.set_ylabel(unit)
        ax.set_ylim(bottom=0)
    _legend(figure, axes[-1])
    return figure


def thirds(groups: list[Group]) -> "Figure":
    figure, axes = _sheet(PAGE, 2.1, 1, 3, sharey=True)
    for ax, (name, title) in zip(axes, THIRDS.items(), strict=True):
        _curves(ax, groups, partial(_third, name))
        ax.set_title(f"{title} classes")
    axes[0].set_ylabel("accuracy (%)")
    _legend(figure, axes[0])
    return figure


def matrices(groups: list[Group]) -> "Figure":
    """Draw the accuracy on each task after each task, a panel for each setting."""
    figure, axes = _panels(len(groups), 3, 2.2, 2.2, 0.5)
    for ax, g in zip(axes, groups, strict=False):
        ax.grid(False)
        ax.set_title(textwrap.fill(g.label, 28, break_on_hyphens=False), loc="left")
        ax.set_xlabel("task tested")
        ax.set_ylabel("tasks learnt")
        cells = _matrix(g)
        image = ax.imshow(cells, vmin=0, vmax=100, cmap="Blues")
        size = len(cells)
        if size <= 10:
            _numbers(ax, cells)
        step = 1 if size <= 10 else -(-size // 10)
        ax.set_xticks(range(0, size, step), [str(t + 1) for t in range(0, size, step)])
        ax.set_yticks(range(0, size, step), [str(t + 1) for t in range(0, size, step)])
    figure.colorbar(image, ax=axes, label="accuracy (%)", fraction=0.03, pad=0.02)
    return figure


def _numbers(ax: "Axes", cells: list[list[float]]) -> None:
    for t, row in enumerate(cells):
        for s, value in enumerate(row):
            if not math.isnan(value):
                ink = "white" if value > 55 else "black"
                size = min(6.5, 34 / len(row))
                ax.text(s, t, f"{value:.0f}", ha="center", va="center", color=ink, fontsize=size)


def _matrix(g: Group) -> list[list[float]]:
    """Row t, column s: the accuracy on task s after task t, mean over seeds; nan where nothing was tested."""
    by_seed = [[accuracy.per_task for accuracy in run.readouts.get(run.headline, [])] for run in g.runs]
    size = max(map(len, by_seed))

    def cell(t: int, s: int) -> float:
        rows = [rows[t] for rows in by_seed if t < len(rows)]
        values = [row[s] for row in rows if s < len(row)]
        mean = mean_std([value for value in values if value is not None])[0]
        return float("nan") if mean is None else mean

    return [[cell(t, s) for s in range(size)] for t in range(size)]


def tails(groups: list[Group]) -> dict[tuple[int, ...], str]:
    """Every long tail, as the number of images of each class, with the place that has it.

    A place with several, as under several class orders, gives way to the group's label.
    """
    first: dict[tuple[int, ...], Group] = {}
    for g in groups:
        for run in g.runs:
            if run.long_tailed:
                first.setdefault(tuple(run.result.counts), g)
    places = [g.own_place for g in first.values()]
    return {counts: g.own_place if places.count(g.own_place) == 1 else g.label for counts, g in first.items()}


def long_tails(titled: list[tuple[tuple[int, ...], str]]) -> "Figure":
    figure, axes = _panels(len(titled), 2, COLUMN, 1.9)
    for ax, (counts, title) in zip(axes, titled, strict=False):
        if len(titled) > 1:
            ax.set_title(textwrap.fill(title, 50, break_on_hyphens=False), loc="left")
        ax.bar(range(1, len(counts) + 1), counts, color=COLOURS[0], width=0.8)
        ax.grid(False, axis="x")
        ax.set_xlabel("class, in the order of learning")
        ax.set_ylabel("training images")
    return figure


def _panels(
    n: int, most: int, width: float, height: float, margin: float = 0.0
) -> tuple["Figure", list["Axes"]]:
    """Make room for n panels, at most so many in a row; the rest of the last row stays white."""
    columns = min(most, n)
    rows = -(-n // columns)
    figure, axes = _sheet(columns * width + margin, rows * height, rows, columns)
    for ax in axes[n:]:
        ax.set_visible(False)
    return figure, axes


def _accuracies(readout: str, kind: str, run: Run) -> list[float | None]:
    return [accuracy[kind] for accuracy in run.readouts.get(readout, [])]


def _diagnostic(name: str, run: Run) -> list[float | None]:
    values = [row.diagnostics[name] if row.diagnostics else None for row in run.result.tasks]
    return values if any(v is not None for v in values) else []


def _third(name: str, run: Run) -> list[float | None]:
    return _diagnostic(name, run) if run.long_tailed else []
