"""The study of the paper's readings, from results/study.csv: what each gains over CE + KD on the hold-out.

    python benchmarks/readings.py           prints the table of docs/reproduction.md
    python benchmarks/readings.py --draw    draws docs/figures/readings.svg

A reading is named by the options in which it differs from the default; its figures are means over seeds, its gain is
taken seed by seed. Where results/ has the same reading with the full schedule, judged by the test set, the figure shows
that gain too.
"""

import argparse
import csv
import io
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from printing import answered

from jioc.config import index
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.files import write
from jioc.report import figures, labels, paper, runs
from jioc.report.tables import number, spread
from jioc.resolve import recipes
from jioc.resolve.derive import resolve

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
STUDY = RESULTS / "study.csv"
FIGURE = ROOT / "docs" / "figures" / "readings.svg"
PLACE = ("cifar100", "resnet32", 10, 1000, "icarl")  # table 6 among the paper's settings
RECIPES = ("study", "study-suppression")
SCALE = 0.1  # of the schedule
LOSSES = {"jioc": "JIOC", "oc": "CE + OC", "ic": "IC + KD"}
ALIKE = (
    ("jioc-suppress-scale-batch", "jioc"),
    ("jioc-gamma2-0.1", "jioc-gamma2-0"),
    ("jioc-suppress-scale-old-mean", "jioc-gamma2-5"),
)
"""Readings that are nearly one loss: their differences tell the noise of training."""

Row = dict[str, str]


@dataclass
class Reading:
    name: str
    loss: str
    title: str  # "default", or the options changed
    full: float | None  # the gain with the full schedule, on the test set
    rows: dict[str, Row] = field(default_factory=dict)  # by seed
    gains: list[float] = field(
        default_factory=list
    )  # over CE + KD with the same batches and seed; none for that itself

    @property
    def gain(self) -> float | None:
        return runs.mean_std(self.gains)[0]

    def figures(self, name: str) -> list[float]:
        return [float(row[name]) for row in self.rows.values() if row[name]]


@dataclass
class Study:
    readings: list[Reading]  # the greatest gain first
    unfinished: list[str]
    again: list[str]  # what was run more than once, in words


def read(path: Path = STUDY) -> Study:
    if not path.exists():
        raise Refused(f"there is no {str(path)!r}; keep.py makes it from the runs of `jioc grid study`")
    sheet = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    columns = list(sheet.fieldnames or [])
    if not {"coordination.coordinate", "first task"} <= {*columns}:
        raise Refused(f"{str(path)!r} is not a study of several losses that keep.py has kept")
    options = [n for n in columns[2 : columns.index("first task")] if n != "coordination.coordinate"]
    found: dict[tuple[str, ...], Reading] = {}
    study = Study([], [], [])
    confirmed = runs.group(
        [run for run in runs.read([RESULTS]) if (paper.setting(run.result) or ())[:5] == PLACE]
    )
    for row in sheet:
        if row["outcome"] != "finished":
            study.unfinished.append(row["run"])
            continue
        at = setting(row, options)
        r = found.setdefault(tuple(at.values()), reading(row, at, confirmed))
        if (first := r.rows.setdefault(row["seed"], row)) is not row:
            study.again.append(f"`{row['run']}` {row['average']} (`{first['run']}` {first['average']})")
    if not found:
        raise Refused(f"no run of {str(path)!r} has finished")
    hosts: dict[tuple[tuple[str, ...], str], float] = {}
    for r in found.values():
        if r.loss == "none":
            hosts |= {(batches(row, options), seed): float(row["average"]) for seed, row in r.rows.items()}
    for r in found.values():
        if r.loss != "none":
            without = {seed: hosts.get((batches(row, options), seed)) for seed, row in r.rows.items()}
            r.gains = [
                float(r.rows[seed]["average"]) - host for seed, host in without.items() if host is not None
            ]
    study.readings = sorted(found.values(), key=lambda r: (-(r.gain or 0.0), r.title != "default"))
    return study


def setting(row: Row, options: list[str]) -> Row:
    """The options that have a part in the run's loss, by name; the loss first."""
    loss = row["coordination.coordinate"]
    idle = [f"coordination.{n}" for n in index.without_effect(loss, "replace")]
    return {"coordination.coordinate": loss} | {n: row[n] for n in options if n not in idle}


def batches(row: Row, options: list[str]) -> tuple[str, ...]:
    """What a run shares with its CE + KD: all but the loss."""
    return tuple(row[n] for n in options if not n.startswith("coordination."))


def reading(row: Row, at: Row, confirmed: list[runs.Group]) -> Reading:
    usual = settings.flat(settings.plain(resolve(settings.make(method="icarl", data="cifar100"))))
    changed = [n for n in at if n != "coordination.coordinate" and at[n] != labels.show(usual.get(n))]
    words = [f"{n.rpartition('.')[2].replace('_', '-')} {at[n]}".removesuffix(" yes") for n in changed]
    whole = {
        n: labels.show(v) for n, v in usual.items() if n.startswith("coordination.") or n == "accumulate"
    }
    whole |= {n: v for n, v in at.items() if n in whole}
    same = [g for g in confirmed if {n: labels.show(settings.at(g.config, n)) for n in whole} == whole]
    full = runs.mean_std(same[0].gains("cnn"))[0] if same else None
    name = row["run"].removesuffix(f"-seed{row['seed']}")
    return Reading(name, at["coordination.coordinate"], ", ".join(words) or "default", full)


def table(study: Study) -> str:
    several = any(len(r.rows) > 1 for r in study.readings)
    heads = ["loss", "reading", *["n"] * several, "average", "gain", "NME average", "last, old", "last, new"]
    lines = [f"| {' | '.join(heads)} | repeated by |", "|---|---|" + "---:|" * (len(heads) - 2) + "---|"]
    for loss, title in ({"none": "CE + KD"} | LOSSES).items():
        for r in (r for r in study.readings if r.loss == loss):
            means = [
                number(runs.mean_std(r.figures(name))[0])
                for name in ("nme average", "last, old", "last, new")
            ]
            cells = [
                title,
                r.title,
                *[str(len(r.rows))] * several,
                spread(r.figures("average")),
                spread(r.gains, "+"),
            ]
            lines.append(f"| {' | '.join(cells + means)} | `{repeated(r)}` |")
    return "\n".join([*lines, *notes(study)])


def notes(study: Study) -> list[str]:
    """What is to be said below the table, a paragraph each."""
    by_name = {r.name: statistics.fmean(r.figures("average")) for r in study.readings}
    pairs = [(a, b) for a, b in ALIKE if a in by_name and b in by_name]
    apart = ", ".join(f"{abs(by_name[a] - by_name[b]):.2f} (`{a}`, `{b}`)" for a, b in pairs)
    said = [f"Between readings that are nearly one loss: {apart}."] if apart else []
    if study.again:
        said.append(f"Run again under another name, not counted: {', '.join(study.again)}.")
    alone = sum(len(r.rows) - len(r.gains) for r in study.readings if r.loss != "none")
    if alone:
        said.append(f"Without a CE + KD of the same batches and seed, and so without a gain: {alone} runs.")
    if study.unfinished:
        said.append(f"Left out, since they did not finish: {len(study.unfinished)} runs.")
    return [line for note in said for line in ("", note)]


def repeated(r: Reading) -> str:
    """The line of a grid that runs it, or that of its first run where no recipe has it."""
    for recipe in map(recipes.find, RECIPES):
        if r.name in recipe.make():
            seeds = (
                ""
                if set(r.rows) == {*map(str, recipe.seeds)}
                else f" --seeds {' '.join(sorted(r.rows, key=int))}"
            )
            return f"jioc grid {recipe.name} --scale {SCALE:g} --only {r.name}{seeds}"
    return next(iter(r.rows.values()))["command"]


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

        panels = {loss: of for loss in LOSSES if (of := [r for r in readings if r.loss == loss and r.gains])}
        if not panels:
            raise Refused("no run has a CE + KD of the same batches and seed beside it")
        heights = [len(of) + 1.2 for of in panels.values()]
        figure = Figure(figsize=(figures.PAGE, 0.19 * sum(heights) + 0.9))
        axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
        for ax, (loss, of) in zip(axes, panels.items(), strict=True):
            _panel(ax, loss, of)
        most = max(len(r.gains) for r in readings)
        seeds = "one seed" if most == 1 else f"means over up to {most} seeds (n)"
        ours = f"dots: {seeds}, a tenth of the schedule, on the hold-out"
        theirs = "dashed: the paper's, the full schedule, on the test set; not comparable in size"
        axes[-1].set_xlabel(f"gain over CE + KD in average accuracy (points)\n{ours}\n{theirs}")
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
        ink, kind = (red, "the default reading") if r.title == "default" else (blue, "another reading")
        ax.plot(r.gain, y, "o", color=ink, markersize=5, label=kind)
        if r.full is not None:
            look = {"color": ink, "markerfacecolor": "white", "markersize": 4.5}
            ax.plot(r.full, y, "D", label="the same with the full schedule, on the test set", **look)
        ax.text(
            1.01, y, f"{r.gain:+.1f}".replace("-", "−"), transform=right, color=ink, va="center", fontsize=7
        )
    names = [r.title.replace("accumulate 2", "BN over half batches") for r in of]
    several = [
        f"{name} (n = {len(r.gains)})" if len(r.gains) > 1 else name
        for name, r in zip(names, of, strict=True)
    ]
    ax.set_yticks(range(len(of)), several)
    for tick, r in zip(ax.get_yticklabels(), of, strict=True):
        tick.set_color(red if r.title == "default" else "black")
    ax.set_ylim(len(of) - 0.4, -0.6)
    ax.set_title(LOSSES[loss], loc="left", fontweight="bold")
    ax.tick_params(axis="y", length=0)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", action="store_true")
    drawn = parser.parse_args(words).draw
    return answered(lambda: write(FIGURE, draw(read().readings)) if drawn else print(table(read())))


if __name__ == "__main__":
    sys.exit(main())
