"""The comparison: what coordination changes in each host, column by column, seed by seed.

python benchmarks/hosts.py    prints the table of docs/reproduction.md from results/comparison
"""

import sys

import printing
from figures import Columns, columns, pairs
from gains import FIGURES, RESULTS

from jioc.errors import Refused
from jioc.report import paper
from jioc.report.tables import number, spread


def table() -> str:
    return told(columns(RESULTS / "comparison"))


def told(found: Columns) -> str:
    lines = [f"| column | run | n | {' | '.join(FIGURES)} | paper: average |", "|---|---|---:|" + "---:|" * 6]
    for title, groups in found.items():
        for pair in pairs(groups, ("jioc", "oc", "ic")):
            both = [(with_it.result["tasks"], without.result["tasks"]) for without, with_it in pair.runs]
            cells = [
                spread([figure(ours) - figure(bare) for ours, bare in both], "+")
                for figure in FIGURES.values()
            ]
            theirs = number(paper.gain(paper.setting(pair.runs[0][1].result)), "+")
            lines.append(
                f"| {' | '.join([groups[0].own_place or title, pair.name, str(len(both)), *cells, theirs])} |"
            )
    if len(lines) == 2:
        raise Refused("the comparison's results hold no host with and without coordination, finished")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    return printing.main(__doc__, table, words)


if __name__ == "__main__":
    sys.exit(main())
