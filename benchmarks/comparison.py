"""The comparison in short: each method's average in both columns, the paper's beside it, gains in brackets.

python benchmarks/comparison.py    prints the table of README.md from results/comparison
"""

import sys
from pathlib import Path

import printing
from gains import RESULTS

from jioc.errors import Refused
from jioc.report import paper, runs
from jioc.report.group import Group
from jioc.report.notes import provenance
from jioc.report.tables import cell, number, spread
from jioc.resolve import recipes
from jioc.text import counted


def table(results: Path = RESULTS / "comparison") -> str:
    """Rows and columns in the recipe's order, with what was not run, without settings of other recipes."""
    recipe = recipes.find_recipe("comparison")
    wanted = [runs.setting(run) for run in runs.planned(recipe, [])]
    ours = [run for run in runs.read([results]) if run.complete and runs.setting(run) in wanted]
    if not ours:
        raise Refused(f"{str(results)!r} holds no finished run of the comparison")
    groups = runs.group(runs.planned(recipe, ours))
    columns: dict[str, dict[str, Group]] = {}
    for g in groups:
        columns.setdefault(g.own_place, {})[g.name] = g
    heads = [f"{place} | paper" for place in columns]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---:|---:|" * len(columns)]
    for name in dict.fromkeys(g.name for g in groups):
        cells = [name]
        for column in columns.values():
            cells += figures(column.get(name))
        lines.append(f"| {' | '.join(cells)} |")
    notes = [
        "average accuracy over the tasks in percent, ± standard deviation over seeds; "
        "in brackets: the gain over the same method without coordination, seed by seed",
        *(f"{place}: {seeds(list(column.values()))}" for place, column in columns.items()),
        *provenance(groups),
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)])


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
    return printing.main(__doc__, table, argv)


if __name__ == "__main__":
    sys.exit(main())
