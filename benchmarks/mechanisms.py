"""The paper's claims of what JIOC does inside a network, host by host: without → with JIOC, and the change by seeds.

python benchmarks/mechanisms.py    prints the table of docs/reproduction.md from results/comparison
"""

import sys

import printing
from figures import CLAIMS, columns, told
from gains import RESULTS

from jioc.errors import Refused


def table() -> str:
    found = columns(RESULTS / "comparison")
    places = {title: groups[0].own_place or title for title, groups in found.items()}
    rows = told(found)
    if not rows:
        raise Refused("the comparison's results hold no host with and without JIOC, finished")
    heads = ["column", "run", "n", *(claim.name.replace("\n", " ") for claim in CLAIMS)]
    lines = [heads, ["---"] * 2 + ["---:"] * (len(heads) - 2), *([places[row[0]], *row[1:]] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(words: list[str] | None = None) -> int:
    return printing.main(__doc__, table, words)


if __name__ == "__main__":
    sys.exit(main())
