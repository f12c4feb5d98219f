"""The comparison in short: each method's average in both columns, the paper's beside it, gains in brackets.

python benchmarks/comparison.py    prints the table of README.md from results/comparison
"""

import sys

import printing
from figures import Columns, columns
from gains import RESULTS

from jioc.errors import Refused
from jioc.report import paper
from jioc.report.runs import Group
from jioc.report.tables import cell, number, provenance, spread


def table() -> str:
    return told(columns(RESULTS / "comparison"))


def told(found: Columns) -> str:
    if not found:
        raise Refused("the comparison's results hold no finished run")
    names = dict.fromkeys(g.name for groups in sorted(found.values(), key=len, reverse=True) for g in groups)
    places = [groups[0].place or title for title, groups in found.items()]
    lines = [f"| | {' | '.join(f'{place} | paper' for place in places)} |", "|---|" + "---:|---:|" * len(places)]
    for name in names:
        of = [next((g for g in groups if g.name == name), None) for groups in found.values()]
        lines.append(f"| {' | '.join([name, *(figure for g in of for figure in figures(g))])} |")
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(found))])


def figures(g: Group | None) -> tuple[str, str]:
    """Ours and the paper's."""
    if g is None:
        return "not run", "–"
    headline, where = g.complete[0].headline, cell(g)
    ours, theirs = spread(g.figures("average", headline)), number(paper.average(where))
    gains, gain = g.gains(headline), paper.gain(where)
    return ours + f" ({spread(gains, '+')})" * bool(gains), theirs + f" ({number(gain, '+')})" * (gain is not None)


def notes(found: Columns) -> list[str]:
    return [
        "average accuracy over the tasks in percent, ± standard deviation over seeds; in brackets: the gain over the "
        "same method without coordination, seed by seed",
        *(f"{groups[0].place or title}: {seeds(groups)}" for title, groups in found.items()),
        *provenance([g for groups in found.values() for g in groups]),
    ]


def seeds(groups: list[Group]) -> str:
    by_number: dict[int, list[str]] = {}
    for g in groups:
        by_number.setdefault(len(g.complete), []).append(g.name)
    most = max(by_number, key=lambda n: len(by_number[n]))
    others = [f"{n} of {', '.join(by_number[n])}" for n in sorted(by_number, reverse=True) if n != most]
    return "; ".join([f"{most} seed{'s' * (most > 1)}", *others])


def main(words: list[str] | None = None) -> int:
    return printing.main(__doc__, table, words)


if __name__ == "__main__":
    sys.exit(main())
