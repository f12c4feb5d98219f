"""The comparison in short: each method's average in both columns, the paper's beside it, gains in brackets.

    python benchmarks/comparison.py            prints the table of docs/results/comparison.md
    python benchmarks/comparison.py --short    prints that of README.md: six methods without and with JIOC
    python benchmarks/comparison.py --line     prints what that table says: the best, and where JIOC helps

all from results/comparison; the line has `best` from results/best.
"""

import statistics
import sys
from pathlib import Path

import once
import printing
from gains import RESULTS
from verdicts import verdict

from jioc.errors import Refused
from jioc.methods import SPECS
from jioc.report import paper, runs
from jioc.report.group import Group, mean_std
from jioc.report.notes import provenance
from jioc.report.tables import cell, number, spread
from jioc.resolve import recipes
from jioc.text import counted

SHORT = ("icarl", "wa", "bic", "podnet", "foster", "der")
FORMS = {" + JIOC": "with JIOC", " + JIOC, reading printed": "with JIOC as printed"}  # by end of a row's name
BOUNDS = {"finetune": "finetuning without exemplars", "joint": "joint training on every image"}
Columns = dict[str, dict[str, Group]]  # by place and name


def columns(results: Path = RESULTS / "comparison") -> Columns:
    """The groups in the recipe's order, with what was not run, without settings of other recipes."""
    recipe = recipes.find_recipe("comparison")
    wanted = [runs.setting(run) for run in runs.planned(recipe, [])]
    ours = [run for run in once.read(results) if run.complete and runs.setting(run) in wanted]
    if not ours:
        raise Refused(f"{str(results)!r} holds no finished run of the comparison")
    by_place: Columns = {}
    for g in runs.group(runs.planned(recipe, ours)):
        by_place.setdefault(g.own_place, {})[g.name] = g
    return by_place


def table(results: Path = RESULTS / "comparison") -> str:
    by_place = columns(results)
    groups = [g for column in by_place.values() for g in column.values()]
    heads = [f"{place} | paper" for place in by_place]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---:|---:|" * len(by_place)]
    for name in dict.fromkeys(g.name for g in groups):
        cells = [name]
        for column in by_place.values():
            cells += figures(column.get(name))
        lines.append(f"| {' | '.join(cells)} |")
    notes = [
        "average accuracy over the tasks in percent, ± standard deviation over seeds; "
        "in brackets: the gain over the same method without coordination, seed by seed",
        *(f"{place}: {seeds(list(column.values()))}" for place, column in by_place.items()),
        *provenance(groups),
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)])


def short(results: Path = RESULTS / "comparison") -> str:
    """Six methods without and with JIOC, in both columns, and what bounds them from below and above."""
    by_place = columns(results)
    forms = [form for form in FORMS if any(_gains(by_place, form))]
    heads = [" | ".join([f"CIFAR-100, {place}", *(FORMS[form] for form in forms)]) for place in by_place]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) * (1 + len(forms)))]
    for method in SHORT:
        title = SPECS[method].title
        names = (title, *(title + form for form in forms))
        cells = [figures(column.get(name))[0] for column in by_place.values() for name in names]
        lines.append(f"| {' | '.join([title, *cells])} |")
    bounds = []
    for method, words in BOUNDS.items():
        both = [figures(column.get(row_of(method, column)))[0] for column in by_place.values()]
        bounds.append(f"{words} {' and '.join(both)}")
    return "\n".join([*lines, "", f"For scale: {'; '.join(bounds)}."])


def line(results: Path = RESULTS / "comparison") -> str:
    """Say which of the six methods is best in the first column, and what JIOC adds to them."""
    by_place = columns(results)
    place, first = next(iter(by_place.items()))
    best = max(SHORT, key=lambda method: _figure("average", first, row_of(method, first)))
    average, last = (_figure(name, first, row_of(best, first)) for name in ("average", "last"))
    ours, printed = (_gains(by_place, form) for form in FORMS)
    found = [verdict(gains) for gains in ours]
    added = (
        f"JIOC gives {_mean(ours)} points on average over {len(ours)} comparisons (ResNet32, {len(SHORT)} "
        f"methods, balanced and long-tailed); it raises {found.count('gains')} of them and lowers "
        f"{found.count('loses')} by more than chance (Student's t). By the paper's formulas as printed it "
        f"gives {_mean(printed)}. "
    )
    ceiling = _figure("average", first, row_of("joint", first))
    name = next(iter(recipes.find_recipe("best").make()))
    (chosen,) = runs.group(once.read(*results.parent.glob(f"best/{name}-seed*")))
    head, means = (mean_std(chosen.figures("average", readout))[0] or 0.0 for readout in ("cnn", "nme"))
    return (
        f"**How well?** {SPECS[best].title} is best of the {len(SHORT)} below: {average:.2f} % on average "
        f"over ten tasks of CIFAR-100 ({place}; the test set), {last:.2f} % after the last, as in the "
        f"picture. `jioc run best`, DER with settings that a hold-out chose, has {means:.2f} % by class "
        f"means and {head:.2f} % by its head, like DER ([leaderboard](docs/leaderboard.md)), and training "
        f"on every image {ceiling:.2f} %. {added}"
        "See [the table](#results) and [the verdicts](docs/results.md)."
    )


def _gains(by_place: Columns, form: str) -> list[list[float]]:
    """The gains of each method in each column by a form of JIOC, seed by seed, as far as it was run."""
    rows = [column.get(SPECS[method].title + form) for method in SHORT for column in by_place.values()]
    found = [g.gains(g.complete[0].result.headline) for g in rows if g is not None and g.complete]
    return [gains for gains in found if gains]


def _mean(gains: list[list[float]]) -> str:
    """The mean over the comparisons, each the mean over its seeds."""
    return f"{statistics.fmean(map(statistics.fmean, gains)):+.2f}".replace("-", "−")


def _figure(name: str, column: dict[str, Group], row: str) -> float:
    """The mean of a figure over the seeds of a row; 0 where it was not run."""
    g = column[row]
    return mean_std(g.figures(name, g.complete[0].result.headline))[0] or 0.0 if g.complete else 0.0


def row_of(method: str, column: dict[str, Group]) -> str:
    """The name of a method's row without coordination."""
    return next((n for n, g in column.items() if g.config["method"] == method), "")


def figures(g: Group | None) -> tuple[str, str]:
    """Ours and the paper's."""
    if g is None:
        return "–", "–"
    where = cell(g)
    theirs, their_gain = number(paper.average(where)), paper.gain(where)
    if their_gain is not None:
        theirs += f" ({number(their_gain, '+')})"
    if not g.complete:
        return "not run", theirs
    headline = g.complete[0].result.headline
    ours, gains = spread(g.figures("average", headline)), g.gains(headline)
    if gains and g.base is not None:
        fewer = len(gains) < max(len(g.complete), len(g.base.complete))
        ours += f" ({spread(gains, '+')}{', ' + counted(len(gains), 'seed') if fewer else ''})"
    return ours, theirs


def seeds(groups: list[Group]) -> str:
    """How many seeds the finished groups have: the usual number first, then who has another."""
    by_number: dict[int, list[str]] = {}
    for g in groups:
        if g.complete:
            by_number.setdefault(len(g.complete), []).append(g.name)
    if not by_number:
        return "none"
    usual = max(by_number, key=lambda n: len(by_number[n]))
    others = [f"{n} of {', '.join(by_number[n])}" for n in sorted(by_number, reverse=True) if n != usual]
    return "; ".join([counted(usual, "seed"), *others])


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("--short", action="store_const", const=short, dest="make", default=table)
    parser.add_argument("--line", action="store_const", const=line, dest="make")
    make = parser.parse_args(argv).make
    return printing.answered(lambda: print(make()))


if __name__ == "__main__":
    sys.exit(main())
