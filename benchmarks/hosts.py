"""The comparison: what coordination changes in each host, column by column, seed by seed.

python benchmarks/hosts.py    prints the table of docs/results/hosts.md from results/comparison
"""

import sys
from pathlib import Path

import printing
from figures import columns, pairs
from gains import FIGURES, RESULTS, differences

from jioc.errors import Refused
from jioc.report import paper
from jioc.report.tables import number


def table(results: Path = RESULTS / "comparison") -> str:
    lines = [f"| column | run | n | {' | '.join(FIGURES)} | paper: average |", "|---|---|---:|" + "---:|" * 6]
    for place, groups in columns(results).items():
        for pair in pairs(groups, ("jioc", "oc", "ic")):
            figures = differences([(ours.result.tasks, host.result.tasks) for host, ours in pair.runs])
            theirs = number(paper.gain(paper.setting(pair.runs[0][1].result)), "+")
            cells = [groups[0].own_place or place, pair.name, str(len(pair.runs)), *figures, theirs]
            lines.append(f"| {' | '.join(cells)} |")
    if len(lines) == 2:
        raise Refused("the comparison's results hold no host with and without coordination, finished")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, table, argv)


if __name__ == "__main__":
    sys.exit(main())
