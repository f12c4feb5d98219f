"""The study of the paper's readings, from results/study.csv: what each gains over CE + KD on the hold-out.

    python benchmarks/readings.py           prints the table of docs/reproduction.md
    python benchmarks/readings.py --draw    draws docs/figures/readings.svg

A reading is named by the options in which it differs from the default. Where results/ has the same reading with the
full schedule, judged by the test set, the figure shows that gain too.
"""

import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jioc.files import write
from jioc.report import figures, labels, paper, runs

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FIGURE = ROOT / "docs" / "figures" / "readings.svg"
PLACE = ("cifar100", "resnet32", 10, 1000, "icarl")  # table 6 among the paper's settings
LOSSES = {"jioc": "JIOC", "oc": "CE + OC", "ic": "IC + KD"}
ALIKE = (
    ("jioc-quiet-scale-batch", "jioc"),
    ("jioc-gamma2-0.1", "jioc-gamma2-0"),
    ("jioc-quiet-scale-old-mean", "jioc-gamma2-5"),
)
"""Readings that are nearly one loss: their differences tell the noise of training."""

Row = dict[str, str]


@dataclass
class Reading:
    name: str
    loss: str
    title: str  # "default", or the options changed
    row: Row
    gain: float | None  # over CE + KD with the same batches; None for that itself
    full: float | None  # with the full schedule, on the test set


def read() -> list[Reading]:
    rows = list(csv.DictReader((RESULTS / "study.csv").read_text(encoding="utf-8").splitlines()))
    options = [n for n in rows[0] if n.startswith("coordination.") and n != "coordination.coordinate"] + ["accumulate"]
    usual = next(row for row in rows if row["run"] == "jioc-seed1")
    hosts = {row["accumulate"]: float(row["average"]) for row in rows if row["coordination.coordinate"] == "none"}
    whole = [run for run in runs.read([RESULTS]) if (paper.setting(run.result) or ())[:5] == PLACE]
    confirmed = runs.group(whole)
    found = []
    for row in rows:
        loss = row["coordination.coordinate"]
        changed = [n for n in options if row[n] != usual[n]]
        words = [f"{n.rpartition('.')[2].replace('_', '-')} {row[n]}".removesuffix(" yes") for n in changed]
        gain = None if loss == "none" else float(row["average"]) - hosts[row["accumulate"]]
        settings = {n: row[n] for n in [*options, "coordination.coordinate"]}
        same = [g for g in confirmed if {n: labels.show(labels.at(g.config, n)) for n in settings} == settings]
        full = runs.mean_std(same[0].gains("cnn"))[0] if same else None
        name = row["run"].removesuffix(f"-seed{row['seed']}")
        found.append(Reading(name, loss, ", ".join(words) or "default", row, gain, full))
    return sorted(found, key=lambda r: (-(r.gain or 0.0), r.title != "default"))


def table(readings: list[Reading]) -> str:
    lines = ["| loss | reading | average | gain | NME average | last, old | last, new | repeated by |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|---|")
    for loss, title in ({"none": "CE + KD"} | LOSSES).items():
        for r in (r for r in readings if r.loss == loss):
            figures = [r.row["average"], "–" if r.gain is None else f"{r.gain:+.2f}", r.row["nme average"]]
            cells = [title, r.title, *figures, r.row["last, old"], r.row["last, new"]]
            lines.append(f"| {' | '.join(cells)} | `jioc grid study --scale 0.1 --only {r.name}` |")
    by_name = {r.name: float(r.row["average"]) for r in readings}
    apart = ", ".join(f"{abs(by_name[a] - by_name[b]):.2f} (`{a}`, `{b}`)" for a, b in ALIKE)
    return "\n".join([*lines, "", f"Between readings that are nearly one loss: {apart}."])


def told(readings: list[Reading]) -> str:
    """What the figure shows, in words: it stands in the file, so that a test can see whether the file is current."""
    parts = []
    for r in readings:
        if r.gain is not None:
            parts.append(f"{r.name} {r.gain:+.2f}" + ("" if r.full is None else f" (full {r.full:+.2f})"))
    return "; ".join(parts)


def draw(readings: list[Reading]) -> bytes:
    """The gains as dots, a panel for each loss, the greatest on top; the paper's gain as a line."""
    import matplotlib

    with matplotlib.rc_context(figures.STYLE):
        from matplotlib.figure import Figure

        panels = {loss: [r for r in readings if r.loss == loss] for loss in LOSSES}
        heights = [len(of) + 1.2 for of in panels.values()]
        figure = Figure(figsize=(figures.PAGE, 0.19 * sum(heights) + 0.9))
        axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights)
        for ax, (loss, of) in zip(axes, panels.items(), strict=True):
            _panel(ax, loss, of)
        axes[-1].set_xlabel("gain over CE + KD in average accuracy (points)")
        handles = {h.get_label(): h for ax in axes for h in ax.get_legend_handles_labels()[0]}
        figure.legend(handles=[*handles.values()], loc="outside lower center", ncols=3, frameon=False)
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Description": told(readings)})
    return content.getvalue()


def _panel(ax: Any, loss: str, of: list[Reading]) -> None:
    blue, red, green = figures.COLOURS[:3]
    right = ax.get_yaxis_transform()
    ax.axvline(0, color="#888c92", linewidth=0.8)
    theirs = paper.gain((*PLACE, loss))
    ax.axvline(theirs, color=green, linestyle="--", linewidth=1)
    ax.text(theirs, -0.75, f"paper {theirs:+.1f}", color=green, ha="center", va="bottom", fontsize=7)
    for y, r in enumerate(of):
        ink, kind = (red, "the default reading") if r.title == "default" else (blue, "one option changed")
        ax.plot(r.gain, y, "o", color=ink, markersize=5, label=kind)
        if r.full is not None:
            look = {"color": ink, "markerfacecolor": "white", "markersize": 4.5}
            ax.plot(r.full, y, "D", label="the same with the full schedule, on the test set", **look)
        ax.text(1.01, y, f"{r.gain:+.1f}".replace("-", "−"), transform=right, color=ink, va="center", fontsize=7)
    ax.set_yticks(range(len(of)), [r.title.replace("accumulate 2", "BN over half batches") for r in of])
    for tick, r in zip(ax.get_yticklabels(), of, strict=True):
        tick.set_color(red if r.title == "default" else "black")
    ax.set_ylim(len(of) - 0.4, -0.6)
    ax.set_title(LOSSES[loss], loc="left", fontweight="bold")
    ax.tick_params(axis="y", length=0)


def main(words: list[str]) -> None:
    if words == ["--draw"]:
        FIGURE.parent.mkdir(parents=True, exist_ok=True)
        write(FIGURE, draw(read()))
    else:
        print(table(read()))


if __name__ == "__main__":
    main(sys.argv[1:])
