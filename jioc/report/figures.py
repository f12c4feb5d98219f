"""The figures of `jioc report --figures DIR`: for a paper, at column width, as PDF, SVG and PNG.

Colour-blind readers can tell their colours apart.
"""

import io
import math
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jioc.errors import Failed, os_errors
from jioc.files import output, write
from jioc.report.group import Group, Run, collect, mean_std, shown_readouts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.3  # inches, one of two columns; a page is both and the gap between them
PAGE = 6.9
PANELS = 12  # at most on one sheet
Pick = Callable[[Run], list[float | None]]  # what a line shows of a run, task by task
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
    drawn: dict[str, Figure] = {}
    for readout in dict.fromkeys(shown_readouts(groups).values()):
        drawn[f"accuracy-{readout}"] = accuracy(groups, readout, KINDS, PAGE)
        drawn[f"accuracy-{readout}-all"] = accuracy(groups, readout, {"all": KINDS["all"]}, COLUMN)
    drawn |= _sheets("tasks", matrices, groups)
    runs = [run for g in groups for run in g.runs]
    if any(_diagnostic(name, run) for run in runs for name in MECHANISMS):
        drawn["mechanisms"] = mechanisms(groups)
    if any(_third("few", run) for run in runs):
        picks = {f"{title} classes": partial(_third, name) for name, title in THIRDS.items()}
        drawn["thirds"] = accuracies(groups, picks, PAGE)
    return drawn | _sheets("long-tail", long_tails, list(tails(groups).items()))


def _sheets(name: str, draw: Callable[[list[Any]], "Figure"], panels: list[Any]) -> dict[str, "Figure"]:
    """Draw all panels, on as many sheets as they need: tasks, tasks-2, ..."""
    sheets = [panels[i : i + PANELS] for i in range(0, len(panels), PANELS)]
    return {f"{name}-{i}" if i > 1 else name: draw(sheet) for i, sheet in enumerate(sheets, 1)}


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


def accuracy(groups: list[Group], readout: str, kinds: dict[str, str], width: float) -> "Figure":
    return accuracies(
        groups, {title: partial(_accuracy, readout, kind) for kind, title in kinds.items()}, width
    )


def accuracies(groups: list[Group], picks: Mapping[str, Pick], width: float) -> "Figure":
    """Draw accuracies in a row of panels; `picks`: what each shows, by its title."""
    figure, axes = _panels(len(picks), len(picks), width, 2.1, sharey=True)
    for ax, (title, pick) in zip(axes, picks.items(), strict=True):
        _curves(ax, groups, pick)
        ax.set_title(title)
    axes[0].set_ylabel("accuracy (%)")
    _legend(figure, axes[0], width)
    return figure


def mechanisms(groups: list[Group]) -> "Figure":
    figure, axes = _panels(len(MECHANISMS), 2, PAGE, 2.1)
    for ax, (name, (title, unit)) in zip(axes, MECHANISMS.items(), strict=True):
        _curves(ax, groups, partial(_diagnostic, name))
        ax.set(title=title, ylabel=unit)
        ax.set_ylim(bottom=0)
    _legend(figure, axes[-1], PAGE)
    return figure


def _accuracy(readout: str, kind: str, run: Run) -> list[float | None]:
    return [accuracy[kind] for accuracy in run.readouts.get(readout, [])]


def _diagnostic(name: str, run: Run) -> list[float | None]:
    values = [row.diagnostics[name] if row.diagnostics else None for row in run.result.tasks]
    return values if any(v is not None for v in values) else []


def _third(name: str, run: Run) -> list[float | None]:
    return _diagnostic(name, run) if run.long_tailed else []


def _curves(axes: "Axes", groups: list[Group], pick: Pick) -> None:
    """Draw a line for each setting, the mean over seeds, and a band of one standard deviation."""
    for i, g in enumerate(groups):
        rows = [pair for run in g.runs for pair in zip(run.result.tasks, pick(run), strict=False)]
        by_classes = collect((row.classes[1], value) for row, value in rows if value is not None)
        if not by_classes:
            continue
        seen = sorted(by_classes)
        figures = [(mean or 0.0, std or 0.0) for mean, std in (mean_std(by_classes[n]) for n in seen)]
        mark = MARKS[(i + i // 7) % 7]  # another with each style, so that lines of a colour differ twice
        look: dict[str, Any] = {"color": COLOURS[i % 7], "linestyle": STYLES[i // 7 % 4], "marker": mark}
        axes.plot(seen, [mean for mean, _ in figures], label=g.label, **look)
        low, high = [mean - std for mean, std in figures], [mean + std for mean, std in figures]
        axes.fill_between(seen, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_xlabel("classes seen")


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
