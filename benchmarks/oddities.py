"""Where the paper's own figures do not fit each other; found by rule in the copy of its tables.

python benchmarks/oddities.py    prints the list of docs/coverage.md
"""

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import printing

from jioc.methods import SPECS
from jioc.report import paper
from jioc.report.group import collect
from jioc.text import coordinated

NEAR = 0.05  # points that rounding explains
Steps = dict[str, list[float]]


def named(where: paper.Setting) -> str:
    """iCaRL + JIOC, cifar100-lt, resnet18, 1,000 exemplars."""
    return f"{row(where)}, {column(where)}"


def row(where: paper.Setting) -> str:
    return coordinated(SPECS[where[4]].title, where[5])


def column(where: paper.Setting) -> str:
    return f"{where[0]}, {where[1]}, {where[3]:,} exemplars"


def by_memory() -> Iterator[str]:
    """Name the cells of a row that do not grow with the memory."""
    rows = collect(((where[:3], where[4:]), where) for _, where in paper.printed_cells())
    for some in rows.values():
        for small, large in itertools.pairwise(some):
            a, b = paper.average(small), paper.average(large)
            assert a is not None and b is not None, "the tables have both"
            if b <= a:
                what = "the same" if a == b else "less"
                yield f"{named(small)}: {a:.2f}, and {what} with {large[3]:,}: {b:.2f}"


def twice() -> Iterator[str]:
    """Name figures that a row prints for two data sets."""
    for (_, one), (_, other) in itertools.combinations(paper.printed_cells(), 2):
        if one[4:] == other[4:] and one[0] != other[0] and paper.average(one) == paper.average(other):
            yield f"{row(one)} has {paper.average(one):.2f} for {column(one)}, and for {column(other)}"


def against_steps() -> Iterator[str]:
    """Name averages of tables 2 and 3 that the steps of tables 4 to 6 do not give."""
    for _, where in paper.printed_cells():
        steps = paper.curve(where)
        if steps and abs(paper.mean(steps["all"]) - (paper.average(where) or 0.0)) > NEAR:
            gives = paper.mean(steps["all"])
            yield f"{named(where)}: {paper.average(where):.2f}; the mean of its steps is {gives:.2f}"


def within_steps() -> Iterator[str]:
    """Name steps whose accuracy is not that of their old and new classes together."""
    for table, where, steps in tables_of_steps():
        for t, (all_, new, old) in enumerate(
            zip(steps["all"][1:], steps["new"][1:], steps["old"], strict=True), 2
        ):
            together = (new + (t - 1) * old) / t
            if abs(together - all_) > NEAR:
                yield (
                    f"table {table}, {row(where)}, task {t}: {all_:.2f} on all classes; "
                    f"{old:.2f} on old and {new:.2f} on new ones make {together:.2f}"
                )


def not_countable() -> Iterator[str]:
    """Name accuracies that no number of the 1,000 test images of a task gives."""
    for table, where, steps in tables_of_steps():
        for t, new in enumerate(steps["new"], 1):
            if abs(new * 10 - round(new * 10)) > 1e-6:
                yield f"table {table}, {row(where)}, task {t}: {new:.2f} % of the 1,000 images of new classes"


def tables_of_steps() -> list[tuple[int, paper.Setting, Steps]]:
    content = json.loads((Path(paper.__file__).parent / "paper.json").read_text(encoding="utf-8"))
    return [(table, tuple(where), steps) for table, *where, steps in content["steps"]]


RULES = {
    "More exemplars, no gain": by_memory,
    "One figure for two data sets": twice,
    "Tables 2 and 3 against tables 4 to 6": against_steps,
    "All classes against old and new ones": within_steps,
    "Figures that no count gives": not_countable,
}


def listed() -> str:
    lines = []
    for title, rule in RULES.items():
        found = list(rule())
        lines += [f"- **{title}** ({len(found)}):", *(f"  - {one}" for one in found)] if found else []
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, listed, argv)


if __name__ == "__main__":
    sys.exit(main())
