"""The paper's claims of what JIOC does inside a network, host by host: without → with JIOC, and the change.

python benchmarks/mechanisms.py    prints the table of docs/results/mechanisms.md from results/comparison
"""

import sys

import printing
from figures import CLAIMS, columns, rows
from gains import RESULTS

from jioc.errors import Refused


def table() -> str:
    by_place = columns(RESULTS / "comparison")
    places = {place: groups[0].own_place or place for place, groups in by_place.items()}
    measured = rows(by_place)
    if not measured:
        raise Refused("the comparison's results hold no host with and without JIOC, finished")
    heads = ["column", "run", "n", *(claim.name.replace("\n", " ") for claim in CLAIMS)]
    lines = [heads, ["---"] * 2 + ["---:"] * (len(heads) - 2)]
    lines += [[places[place], *cells] for place, *cells in measured]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, table, argv)


if __name__ == "__main__":
    sys.exit(main())
