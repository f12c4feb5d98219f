"""The picture at the top of README.md: accuracy task by task, and training speed, from kept results.

python benchmarks/headline.py    draws docs/figures/headline-light.svg and headline-dark.svg
"""

import statistics
import sys
from typing import Any

import comparison
import matplotlib
import printing
import speeds
from claims import ALONE, PACKED, SPEED
from figures import put, svg
from gains import RESULTS
from matplotlib.figure import Figure

from jioc.report.figures import STYLE
from jioc.report.group import Group

FIGURE = RESULTS.parent.parent / "docs" / "figures" / "headline-light.svg"  # and -dark
HUES = {  # method: colour in the light and in the dark
    "Joint": ("#5f6368", "#a6acb3"),
    "DER": ("#0072B2", "#56B4E9"),
    "FOSTER": ("#00795A", "#35C79A"),
    "iCaRL": ("#B34F00", "#F0A04B"),
    "Finetune": ("#5f6368", "#a6acb3"),
}
BOUNDS = {"Joint": "all images kept", "Finetune": "no image kept"}
LINES = [name for host in HUES for name in ([host] if host in BOUNDS else [host, f"{host} + JIOC"])]
BARS = {
    "the usual loop": "the usual\nPyTorch loop",
    ALONE: "jioc,\none run",
    PACKED: "jioc,\nsix runs packed",
}
INK = {
    "light": ("#1c1f23", "#5f6368", "#ffffff", "#e4e6e9"),
    "dark": ("#e8eaed", "#a6acb3", "#0d1117", "#30363d"),
}
Found = tuple[str, dict[str, list[float]], dict[str, Any]]


def found() -> Found:
    """The setting, the mean accuracy after each task of the rows that were run, and the speeds."""
    place, column = next(iter(comparison.columns().items()))
    curves = {}
    for line in LINES:
        known_as = [name for name in column if name == line or name.startswith(f"{line},") and line in BOUNDS]
        if known_as and column[known_as[0]].complete:
            curves[line] = curve(column[known_as[0]])
    return place, curves, speeds.read(SPEED)


def curve(g: Group) -> list[float]:
    every = [[a["all"] for a in run.readouts[run.result.headline]] for run in g.complete]
    return [statistics.fmean(task) for task in zip(*every, strict=True)]


def description(what: Found) -> str:
    """What the picture shows, in words."""
    place, curves, measured = what
    lines = [f"{name}: {', '.join(f'{value:.1f}' for value in values)}" for name, values in curves.items()]
    rates = [
        f"{row['variant']}: {row['images_per_second']:,.0f}"
        for row in measured["rows"]
        if row["variant"] in BARS
    ]
    return "; ".join([f"CIFAR-100, {place}", *lines, *rates])


def draw(what: Found, scheme: str) -> bytes:
    place, curves, measured = what
    ink, soft, ground, grid = INK[scheme]
    style = STYLE | {
        "font.size": 9.5,
        "axes.titlesize": 10.5,
        "axes.labelsize": 9,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), ink),
        **dict.fromkeys(("xtick.color", "ytick.color", "axes.edgecolor"), soft),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), ground),
        "grid.color": grid,
        "svg.hashsalt": "jioc",
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(9.2, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.75, 1))
        tasks = len(next(iter(curves.values())))
        ends: dict[str, dict[str, float]] = {}  # by host and what was added to it
        for name, values in curves.items():
            host, _, jioc = name.partition(" + ")
            dash = ":" if host in BOUNDS else "--" if jioc else "-"
            left.plot(range(1, tasks + 1), values, dash, color=HUES[host][scheme == "dark"], linewidth=1.8)
            ends.setdefault(host, {})[jioc] = values[-1]
        places = spread_out({host: max(last.values()) for host, last in ends.items()}, 6.0)
        for host, last in ends.items():
            left.annotate(
                f"{BOUNDS.get(host, host)} "
                + ", ".join(f"with {jioc} {end:.0f}" if jioc else f"{end:.0f}" for jioc, end in last.items()),
                (tasks, places[host]),
                xytext=(6, 0),
                textcoords="offset points",
                color=HUES[host][scheme == "dark"],
                va="center",
                annotation_clip=False,
            )
        left.set_title(f"Accuracy after each task: CIFAR-100, {place}", loc="left")
        left.set(xlabel="task of ten new classes", ylabel="% right of all classes so far", ylim=(0, 100))
        left.set_xlim(1, tasks + 4.6)
        left.set_xticks(range(1, 11))
        rates = {row["variant"]: row for row in measured["rows"]}
        rows = [rates[name] for name in BARS]
        colours = [soft, *[HUES["DER"][scheme == "dark"]] * 2]
        bars = right.barh(
            [*BARS.values()], [row["images_per_second"] / 1000 for row in rows], color=colours, height=0.6
        )
        right.bar_label(bars, [f" {row['ratio']:.0f}×" for row in rows], color=ink, fontweight="bold")
        right.invert_yaxis()
        right.set_xlim(0, 1.15 * max(row["images_per_second"] for row in rows) / 1000)
        right.grid(axis="y", visible=False)
        right.set_title(f"Training speed: ResNet32, {measured['device'].removeprefix('NVIDIA ')}", loc="left")
        right.set_xlabel("thousand images a second")
        return svg(figure, description(what))


def spread_out(ends: dict[str, float], apart: float) -> dict[str, float]:
    """Move labels up so that each is so far above the one below it."""
    placed: dict[str, float] = {}
    floor = float("-inf")
    for name, value in sorted(ends.items(), key=lambda item: item[1]):
        placed[name] = floor = max(value, floor + apart)
    return placed


def draw_both() -> None:
    what = found()
    for scheme in INK:
        put(FIGURE.with_name(f"headline-{scheme}.svg"), draw(what, scheme))


def main(argv: list[str] | None = None) -> int:
    printing.parser(__doc__).parse_args(argv)
    return printing.answered(draw_both)


if __name__ == "__main__":
    sys.exit(main())
