"""Figure 4 of the paper, ours alone (it prints no values): SS-IL without and with output coordination.

    python benchmarks/figure4.py    draws docs/figures/figure4.svg from results/

Its three panels are ResNet18 on the long tail and on CIFAR-100, and ResNet32 on CIFAR-100. The paper does not
say with how many exemplars: a panel has 1,000 where both were run with them, else what both were run with.
"""

import sys
from pathlib import Path

import matplotlib
import once
import printing
from figures import put, sheet, svg
from gains import RESULTS
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jioc.report import labels, runs
from jioc.report.figures import PAGE, STYLE
from jioc.report.group import Group, mean_std
from jioc.report.looks import COLOURS, MARKS
from jioc.report.tables import spread

FIGURE = RESULTS.parent.parent / "docs" / "figures" / "figure4.svg"
PANELS = [("cifar100", "paper", "resnet18"), ("cifar100", None, "resnet18"), ("cifar100", None, "resnet32")]
STEMS = {"resnet18": "imagenet", "resnet32": "cifar"}
Panel = tuple[str, str | None, str]


def pair(groups: list[Group], panel: Panel) -> list[Group]:
    """SS-IL and SS-IL + OC as they are by default, with the same exemplars; nothing where one is missing."""
    by_memory: dict[int, dict[str, Group]] = {}
    for g in groups:
        c = g.config
        there = (c["data"], c["long_tail"], c["backbone"]) == panel and c["stem"] == STEMS[panel[2]]
        if there and c["method"] == "ssil" and not (labels.departures(c, g.spec).keys() - {"stem"}):
            by_memory.setdefault(c["memory"], {})[g.coordinate] = g
    both = {memory: some for memory, some in by_memory.items() if {"none", "oc"} <= some.keys()}
    if not both:
        return []
    some = both[min(both)]
    return [some["none"], some["oc"]]


def panels(place: Path = RESULTS) -> dict[Panel, list[Group]]:
    groups = runs.group(run for run in once.read(place) if run.complete and run.config["method"] == "ssil")
    return {panel: pair(groups, panel) for panel in PANELS}


def title(panel: Panel, groups: list[Group]) -> str:
    data, tail, backbone = panel
    memory = f", {groups[0].config['memory']:,} exemplars" if groups else ""
    return f"{data}{'-lt' if tail else ''}, {backbone}{memory}"


def description(found: dict[Panel, list[Group]]) -> str:
    """What the figure shows, in words."""
    told = []
    for panel, groups in found.items():
        shown = ", ".join(f"{labels.title(g)} {averages(g)} (n = {len(g.complete)})" for g in groups)
        told.append(f"{title(panel, groups)}: {shown or 'not run'}")
    return "; ".join(told)


def averages(g: Group) -> str:
    return spread(g.figures("average", g.complete[0].result.headline))


def draw(found: dict[Panel, list[Group]]) -> bytes:
    with matplotlib.rc_context(STYLE):
        figure: Figure
        figure, axes = sheet(PAGE, 2.5, 1, len(found), sharey=True)
        for ax, (panel, groups) in zip(axes[0], found.items(), strict=True):
            for g, colour, mark in zip(groups, COLOURS, MARKS, strict=False):
                curve(ax, g, colour, mark)
            ax.set_title(title(panel, groups).replace(", ", "\n", 1))
            ax.set_xlabel("classes seen")
            if groups:
                ax.legend(title="average over the tasks", loc="upper right", frameon=False)
            else:
                ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", va="center")
                ax.set_xlim(5, 105)
        axes[0][0].set_ylabel("accuracy (%)")
        axes[0][0].set_ylim(0, 100)
        return svg(figure, description(found))


def curve(ax: Axes, g: Group, colour: str, mark: str) -> None:
    """Draw the mean over seeds after each task, and a band of one standard deviation."""
    by_task = zip(*(run.readouts[run.result.headline] for run in g.complete), strict=True)
    figures = [mean_std([accuracy["all"] for accuracy in accuracies]) for accuracies in by_task]
    means, stds = [mean or 0.0 for mean, _ in figures], [std or 0.0 for _, std in figures]
    seen = [row.classes[1] for row in g.complete[0].result.tasks]
    name = labels.title(g)
    ax.plot(seen, means, label=f"{name}: {averages(g)}", color=colour, marker=mark)
    low = [mean - std for mean, std in zip(means, stds, strict=True)]
    high = [mean + std for mean, std in zip(means, stds, strict=True)]
    ax.fill_between(seen, low, high, color=colour, alpha=0.15, linewidth=0)


def main(argv: list[str] | None = None) -> int:
    printing.parser(__doc__).parse_args(argv)
    return printing.answered(lambda: put(FIGURE, draw(panels())))


if __name__ == "__main__":
    sys.exit(main())
