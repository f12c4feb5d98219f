"""The study of the paper's readings, from results/study.csv: what each gains over CE + KD on the hold-out.

    python benchmarks/readings.py           prints the table of docs/results/readings.md
    python benchmarks/readings.py --draw    draws docs/figures/readings.svg

A reading is named by the options in which it differs from the formulas as printed; its figures are means over
seeds, its gain is taken seed by seed. Where results/ has the same reading with the full schedule, measured on
the test set, the figure shows that gain too.
"""

import csv
import io
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import once
import printing

from jioc.config import index
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.files import write
from jioc.report import figures, labels, paper, runs
from jioc.report.group import Group, mean_std
from jioc.report.tables import number, spread
from jioc.resolve import recipes
from jioc.resolve.derive import resolve

ROOT = Path(__file__).parent.parent
LOSS = "coordination.coordinate"
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
"""Readings that are nearly one loss: their differences show the noise of training."""

Row = dict[str, str]


@dataclass
class Reading:
    name: str
    loss: str
    title: str  # "as printed", or the options changed
    full: float | None  # the gain with the full schedule, on the test set
    rows: dict[str, Row] = field(default_factory=dict)  # by seed
    gains: list[float] = field(default_factory=list)  # over CE + KD with the same batches and seed

    @property
    def gain(self) -> float | None:
        return mean_std(self.gains)[0]

    def figures(self, name: str) -> list[float]:
        return [float(row[name]) for row in self.rows.values() if row[name]]


@dataclass
class Study:
    readings: list[Reading]  # the greatest gain first
    unfinished: list[str]
    again: list[str]  # runs of a reading and seed that were run before, in words


def read(path: Path = STUDY) -> Study:
    if not path.exists():
        raise Refused(f"there is no {str(path)!r}; keep.py makes it from the runs of `jioc grid study`")
    sheet = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    columns = list(sheet.fieldnames or [])
    if not {LOSS, "first task"} <= {*columns}:
        raise Refused(f"{str(path)!r} is not a study of several losses that keep.py has kept")
    options = [name for name in columns[2 : columns.index("first task")] if name != LOSS]
    confirmed = _confirmed()
    readings: dict[tuple[str, ...], Reading] = {}
    study = Study([], [], [])
    for row in sheet:
        if row["outcome"] != "finished":
            study.unfinished.append(row["run"])
            continue
        values = setting(row, options)
        reading = readings.setdefault(tuple(values.values()), _reading(row, values, confirmed))
        first = reading.rows.setdefault(row["seed"], row)
        if first is not row:
            study.again.append(f"`{row['run']}` {row['average']} (`{first['run']}` {first['average']})")
    if not readings:
        raise Refused(f"no run of {str(path)!r} has finished")
    _measure_gains(list(readings.values()), options)
    study.readings = sorted(readings.values(), key=lambda r: (-(r.gain or 0.0), r.title != "as printed"))
    return study


def _confirmed() -> list[Group]:
    """The runs of table 6's setting with the full schedule."""
    kept = once.read(RESULTS)
    return runs.group([run for run in kept if (paper.setting(run.result) or ())[:5] == PLACE])


def _measure_gains(readings: list[Reading], options: list[str]) -> None:
    """Give each reading its gains over CE + KD with the same batches and seed."""
    hosts: dict[tuple[tuple[str, ...], str], float] = {}
    for r in readings:
        if r.loss == "none":
            hosts |= {(batches(row, options), seed): float(row["average"]) for seed, row in r.rows.items()}
    for r in readings:
        for seed, row in r.rows.items():
            host = hosts.get((batches(row, options), seed))
            if r.loss != "none" and host is not None:
                r.gains.append(float(row["average"]) - host)


def setting(row: Row, options: list[str]) -> Row:
    """The options that have an effect on the run's loss, by name; the loss first."""
    loss = row[LOSS]
    return {LOSS: loss} | {name: row[name] for name in options if name not in _idle(loss)}


def _idle(loss: str) -> list[str]:
    """The options that have no effect under a loss on iCaRL."""
    return [f"coordination.{name}" for name in index.without_effect(loss, "replace", shares=False)]


def batches(row: Row, options: list[str]) -> tuple[str, ...]:
    """What a run shares with its CE + KD: all but the loss."""
    return tuple(row[name] for name in options if not name.startswith("coordination."))


def _reading(row: Row, values: Row, confirmed: list[Group]) -> Reading:
    """The reading of a run: its title, and its gain where it was confirmed with the full schedule."""
    printed = settings.make(
        method="icarl", data="cifar100", coordination={"coordinate": "jioc", "reading": "printed"}
    )
    usual = settings.flat(settings.plain(resolve(printed)))
    changes = []
    for name, value in values.items():
        if name != LOSS and value != labels.show(usual.get(name)):
            changes.append(f"{name.rpartition('.')[2].replace('_', '-')} {value}".removesuffix(" yes"))
    whole, idle = {}, {"coordination.reading", *_idle(values[LOSS])}
    for name, value in usual.items():
        if (name.startswith("coordination.") and name not in idle) or name == "accumulate":
            whole[name] = values.get(name, labels.show(value))
    same = [
        g for g in confirmed if {name: labels.show(settings.at(g.config, name)) for name in whole} == whole
    ]
    full = mean_std(same[0].gains("cnn"))[0] if same else None
    name = row["run"].removesuffix(f"-seed{row['seed']}")
    return Reading(name, values[LOSS], ", ".join(changes) or "as printed", full)


def table(study: Study) -> str:
    several = any(len(r.rows) > 1 for r in study.readings)
    heads = ["loss", "reading", *["n"] * several, "average", "gain", "NME average", "last, old", "last, new"]
    lines = [f"| {' | '.join(heads)} | repeated by |", "|---|---|" + "---:|" * (len(heads) - 2) + "---|"]
    for loss, title in ({"none": "CE + KD"} | LOSSES).items():
        for r in (r for r in study.readings if r.loss == loss):
            cells = [title, r.title, *[str(len(r.rows))] * several]
            cells += [spread(r.figures("average")), spread(r.gains, "+")]
            for name in ("nme average", "last, old", "last, new"):
                cells.append(number(mean_std(r.figures(name))[0]))
            lines.append(f"| {' | '.join(cells)} | `{command(r)}` |")
    return "\n".join([*lines, *notes(study)])


def notes(study: Study) -> list[str]:
    """The notes below the table, a paragraph each."""
    by_name = {r.name: statistics.fmean(r.figures("average")) for r in study.readings}
    pairs = [(a, b) for a, b in ALIKE if a in by_name and b in by_name]
    apart = ", ".join(f"{abs(by_name[a] - by_name[b]):.2f} (`{a}`, `{b}`)" for a, b in pairs)
    paragraphs = [f"Between readings that are nearly one loss: {apart}."] if apart else []
    if study.again:
        paragraphs.append(f"Run again under another name, not counted: {', '.join(study.again)}.")
    alone = sum(len(r.rows) - len(r.gains) for r in study.readings if r.loss != "none")
    if alone:
        paragraphs.append(
            f"Without a CE + KD of the same batches and seed, and so without a gain: {alone} runs."
        )
    if study.unfinished:
        paragraphs.append(f"Left out, since they did not finish: {len(study.unfinished)} runs.")
    return [line for paragraph in paragraphs for line in ("", paragraph)]


def command(r: Reading) -> str:
    """The command that repeats a reading: a grid's, or that of its first run where no recipe has it."""
    for recipe in map(recipes.find_recipe, RECIPES):
        if r.name in recipe.make():
            usual = set(r.rows) == {*map(str, recipe.seeds)}
            seeds = "" if usual else f" --seeds {' '.join(sorted(r.rows, key=int))}"
            return f"jioc grid {recipe.name} --scale {SCALE:g} --only {r.name}{seeds}"
    return next(iter(r.rows.values()))["command"]


def description(readings: list[Reading]) -> str:
    """What the figure shows, in words. It is in the file, so that a test can tell whether that is current."""
    parts = []
    for r in readings:
        if r.gain is not None:
            parts.append(f"{r.name} {r.gain:+.2f}" + ("" if r.full is None else f" (full {r.full:+.2f})"))
    return "; ".join(parts)


def draw(readings: list[Reading]) -> bytes:
    """Draw the gains as dots, a panel for each loss, the greatest on top; the paper's gain as a line."""
    import matplotlib

    with matplotlib.rc_context(figures.STYLE):
        from matplotlib.figure import Figure

        by_loss = {loss: [r for r in readings if r.loss == loss and r.gains] for loss in LOSSES}
        panels = {loss: shown for loss, shown in by_loss.items() if shown}
        if not panels:
            raise Refused("no run has a CE + KD of the same batches and seed beside it")
        heights = [len(shown) + 1.2 for shown in panels.values()]
        figure = Figure(figsize=(figures.PAGE, 0.19 * sum(heights) + 0.9))
        axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
        for ax, (loss, shown) in zip(axes, panels.items(), strict=True):
            _panel(ax, loss, shown)
        most = max(len(r.gains) for r in readings)
        seeds = "one seed" if most == 1 else f"means over up to {most} seeds (n)"
        ours = f"dots: {seeds}, a tenth of the schedule, on the hold-out"
        theirs = "dashed: the paper's, the full schedule, on the test set; not comparable in size"
        axes[-1].set_xlabel(f"gain over CE + KD in average accuracy (points)\n{ours}\n{theirs}")
        handles = {h.get_label(): h for ax in axes for h in ax.get_legend_handles_labels()[0]}
        figure.legend(handles=[*handles.values()], loc="outside lower center", ncols=3, frameon=False)
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Description": description(readings)})
    return content.getvalue()


def _panel(ax: Any, loss: str, readings: list[Reading]) -> None:
    blue, red, green = figures.COLOURS[:3]
    right = ax.get_yaxis_transform()
    ax.axvline(0, color="#888c92", linewidth=0.8)
    theirs = paper.gain((*PLACE, loss))
    ax.axvline(theirs, color=green, linestyle="--", linewidth=1)
    ax.text(theirs, -0.75, f"paper {theirs:+.1f}", color=green, ha="center", va="bottom", fontsize=7)
    names = []
    for y, r in enumerate(readings):
        colour, kind = (
            (red, "the formulas as printed") if r.title == "as printed" else (blue, "another reading")
        )
        ax.plot(r.gain, y, "o", color=colour, markersize=5, label=kind)
        if r.full is not None:
            look = {"color": colour, "markerfacecolor": "white", "markersize": 4.5}
            ax.plot(r.full, y, "D", label="the same with the full schedule, on the test set", **look)
        gain = f"{r.gain:+.1f}".replace("-", "−")
        ax.text(1.01, y, gain, transform=right, color=colour, va="center", fontsize=7)
        seeds = f" (n = {len(r.gains)})" if len(r.gains) > 1 else ""
        names.append(r.title.replace("accumulate 2", "BN over half batches") + seeds)
    ax.set_yticks(range(len(readings)), names)
    for tick, r in zip(ax.get_yticklabels(), readings, strict=True):
        tick.set_color(red if r.title == "as printed" else "black")
    ax.set_ylim(len(readings) - 0.4, -0.6)
    ax.set_title(LOSSES[loss], loc="left", fontweight="bold")
    ax.tick_params(axis="y", length=0)


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("--draw", action="store_true")
    drawn = parser.parse_args(argv).draw
    return printing.answered(lambda: write(FIGURE, draw(read().readings)) if drawn else print(table(read())))


if __name__ == "__main__":
    sys.exit(main())
