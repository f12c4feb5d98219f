"""`jioc report --figures DIR`: figures for a paper at column width, as PDF, SVG and PNG. Colour-blind safe."""

import io
import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Failed
from ..files import write
from .runs import Group, Run, mean_std

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.3  # inches, a column of two; a page is two and the gap
PAGE = 6.9
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
    """Every figure that the results hold something for; the files written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(f"{str(folder)!r} cannot be written to: {error.strerror}") from None
    import matplotlib

    drawn: dict[str, Figure] = {}
    with matplotlib.rc_context(STYLE):
        for readout in dict.fromkeys(n for g in groups for run in g.runs for n in run.readouts):
            drawn[f"accuracy-{readout}"] = accuracy(groups, readout, KINDS, PAGE)
            drawn[f"accuracy-{readout}-all"] = accuracy(groups, readout, {"all": KINDS["all"]}, COLUMN)
        drawn["tasks"] = matrices(groups)
        if any(_diagnostic(run, name) for g in groups for run in g.runs for name in MECHANISMS):
            drawn["mechanisms"] = mechanisms(groups)
        if any(_diagnostic(run, "few") for g in groups for run in g.runs):
            drawn["thirds"] = thirds(groups)
        counts = groups[0].runs[0].result.get("counts") or []
        if len(set(counts)) > 1:
            drawn["long-tail"] = long_tail(counts)
        return [path for name, figure in drawn.items() for path in _write(figure, folder, name)]


def _write(figure: "Figure", folder: Path, name: str) -> list[Path]:
    undated: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    paths = []
    for kind, metadata in undated.items():
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=300, metadata=metadata)
        paths.append(folder / f"{name}.{kind}")
        write(paths[-1], content.getvalue())
    return paths


def _sheet(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any
) -> tuple["Figure", list["Axes"]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    return figure, list(axes.flat)


def _curves(axes: "Axes", groups: list[Group], pick: Callable[[Run], list[float | None]]) -> None:
    """A line for each setting, the mean over seeds, and a band of one standard deviation."""
    for i, g in enumerate(groups):
        by_classes: dict[int, list[float]] = {}
        for run in g.runs:
            for row, value in zip(run.result["tasks"], pick(run), strict=False):
                if value is not None:
                    by_classes.setdefault(row["classes"][1], []).append(value)
        if not by_classes:
            continue
        at = sorted(by_classes)
        figures = [mean_std(by_classes[x]) for x in at]
        middle = [m or 0.0 for m, _ in figures]
        spread = [s or 0.0 for _, s in figures]
        mark = MARKS[(i + i // 28) % 7]  # colours and styles repeat after 28
        look: dict[str, Any] = {"color": COLOURS[i % 7], "linestyle": STYLES[i // 7 % 4], "marker": mark}
        axes.plot(at, middle, label=g.label, **look)
        low, high = zip(*((m - s, m + s) for m, s in zip(middle, spread, strict=True)), strict=True)
        axes.fill_between(at, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_xlabel("classes seen")


def _legend(figure: "Figure", axes: "Axes", width: float = PAGE) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=_legend_columns(labels, width), frameon=False)


def _legend_columns(labels: list[str], width: float) -> int:
    return max(1, min(len(labels), int(width / (0.45 + 0.055 * max(map(len, labels))))))


def _legend_height(groups: list[Group], width: float = PAGE) -> float:
    return 0.15 * -(-len(groups) // _legend_columns([g.label for g in groups], width))


def accuracy(groups: list[Group], readout: str, kinds: dict[str, str], width: float) -> "Figure":
    figure, axes = _sheet(width, 2.1 + _legend_height(groups, width), 1, len(kinds), sharey=True)
    for ax, (kind, title) in zip(axes, kinds.items(), strict=True):
        _curves(ax, groups, lambda run, kind=kind: [r.get(kind) for r in run.readouts.get(readout, [])])  # type: ignore[misc]
        ax.set_title(title)
    axes[0].set_ylabel("accuracy (%)")
    _legend(figure, axes[0], width)
    return figure


def mechanisms(groups: list[Group]) -> "Figure":
    figure, axes = _sheet(PAGE, 4.2 + _legend_height(groups), 2, 2)
    for ax, (name, (title, unit)) in zip(axes, MECHANISMS.items(), strict=True):
        _curves(ax, groups, lambda run, name=name: _diagnostic(run, name))  # type: ignore[misc]
        ax.set_title(title)
        ax.set_ylabel(unit)
        ax.set_ylim(bottom=0)
    _legend(figure, axes[-1])
    return figure


def thirds(groups: list[Group]) -> "Figure":
    figure, axes = _sheet(PAGE, 2.1 + _legend_height(groups), 1, 3, sharey=True)
    for ax, (name, title) in zip(axes, THIRDS.items(), strict=True):
        _curves(ax, groups, lambda run, name=name: _diagnostic(run, name))  # type: ignore[misc]
        ax.set_title(f"{title} classes")
    axes[0].set_ylabel("accuracy (%)")
    _legend(figure, axes[0])
    return figure


def matrices(groups: list[Group]) -> "Figure":
    """Accuracy on each task after each task, of the first six settings."""
    shown = groups[:6]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    side = 2.2
    figure, axes = _sheet(columns * side + 0.5, rows * side, rows, columns)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    for ax, g in zip(axes, shown, strict=False):
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
                ax.text(s, t, f"{value:.0f}", ha="center", va="center", color=ink, fontsize=min(6.5, 34 / len(row)))


def _matrix(g: Group) -> list[list[float]]:
    """Row t, column s: the mean over seeds; nan where nothing was tested."""
    of = [[r.get("per_task") or [] for r in run.readouts.get(run.headline, [])] for run in g.runs]
    size = max(map(len, of))

    def cell(t: int, s: int) -> float:
        mean = mean_std([m[t][s] for m in of if t < len(m) and s < len(m[t]) and m[t][s] is not None])[0]
        return float("nan") if mean is None else mean

    return [[cell(t, s) for s in range(size)] for t in range(size)]


def long_tail(counts: list[int]) -> "Figure":
    figure, (axes,) = _sheet(COLUMN, 1.9)
    axes.bar(range(1, len(counts) + 1), counts, color=COLOURS[0], width=0.8)
    axes.grid(False, axis="x")
    axes.set_xlabel("class, in the order of learning")
    axes.set_ylabel("training images")
    return figure


def _diagnostic(run: Run, name: str) -> list[float | None]:
    values = [(row.get("diagnostics") or {}).get(name) for row in run.result["tasks"]]
    return values if any(v is not None for v in values) else []
