"""The comparison in short: each method's average in both columns, the paper's beside it, gains in brackets.

python benchmarks/comparison.py    prints the table of README.md from results/comparison
"""

import sys
from pathlib import Path

import printing
from gains import RESULTS

from jioc.errors import Refused
from jioc.report import paper, runs
from jioc.report.runs import Group
from jioc.report.tables import cell, number, provenance, spread
from jioc.resolve import recipes
from jioc.text import counted


def table() -> str:
    return told(RESULTS / "comparison")


def told(place: Path) -> str:
    """Rows and columns in the recipe's order, with what was not run, and without settings that are not the recipe's."""
    recipe = recipes.find("comparison")
    wanted = [runs.setting(run) for run in runs.planned(recipe, [])]
    ours = [run for run in runs.read([place]) if run.complete and runs.setting(run) in wanted]
    if not ours:
        raise Refused(f"{str(place)!r} holds no finished run of the comparison")
    groups = runs.group(runs.planned(recipe, ours))
    by_place: dict[str, dict[str, Group]] = {}
    for g in groups:
        by_place.setdefault(g.own_place, {})[g.name] = g
    names = dict.fromkeys(g.name for g in groups)
    lines = [f"| | {' | '.join(f'{p} | paper' for p in by_place)} |", "|---|" + "---:|---:|" * len(by_place)]
    for name in names:
        lines.append(
            f"| {' | '.join([name, *(f for of in by_place.values() for f in figures(of.get(name)))])} |"
        )
    notes = [
        "average accuracy over the tasks in percent, ± standard deviation over seeds; in brackets: the gain over the "
        "same method without coordination, seed by seed",
        *(f"{p}: {seeds(list(of.values()))}" for p, of in by_place.items()),
        *provenance(groups),
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)])


def figures(g: Group | None) -> tuple[str, str]:
    """Ours and the paper's."""
    if g is None:
        return "–", "–"
    where = cell(g)
    theirs, gain = number(paper.average(where)), paper.gain(where)
    theirs += f" ({number(gain, '+')})" * (gain is not None)
    if not g.complete:
        return "not run", theirs
    headline = g.complete[0].headline
    ours, gains = spread(g.figures("average", headline)), g.gains(headline)
    if not gains or g.base is None:
        return ours, theirs
    fewer = len(gains) < max(len(g.complete), len(g.base.complete))
    return f"{ours} ({spread(gains, '+')}{', ' + counted(len(gains), 'seed') if fewer else ''})", theirs


def seeds(groups: list[Group]) -> str:
    by_number: dict[int, list[str]] = {}
    for g in groups:
        if g.complete:
            by_number.setdefault(len(g.complete), []).append(g.name)
    if not by_number:
        return "none"
    most = max(by_number, key=lambda n: len(by_number[n]))
    others = [f"{n} of {', '.join(by_number[n])}" for n in sorted(by_number, reverse=True) if n != most]
    return "; ".join([counted(most, "seed"), *others])


def main(words: list[str] | None = None) -> int:
    return printing.main(__doc__, table, words)


if __name__ == "__main__":
    sys.exit(main())
