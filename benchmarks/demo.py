"""What `jioc demo` prints, as kept in results/demo.txt: its first line says where.

python benchmarks/demo.py    prints the block of README.md

To keep another: (echo "# commit …, two x86 cores"; COLUMNS=80 jioc demo) > benchmarks/results/demo.txt
"""

import sys

import printing
from gains import RESULTS


def block() -> str:
    """The first line, the table and what its columns are; bars on a terminal stand between."""
    where, first, *rest = (RESULTS / "demo.txt").read_text(encoding="utf-8").splitlines()
    begin = rest.index("")
    table = rest[begin + 1 : rest.index("", begin + 1)]
    columns = next(line for line in rest if line.startswith("accuracy in percent"))
    told = [f"$ jioc demo    {where}", first.partition(";")[0], *table, columns.partition(";")[0]]
    return "\n".join(["```text", *told, "```"])


def main(argv: list[str] | None = None) -> int:
    return printing.main(__doc__, block, argv)


if __name__ == "__main__":
    sys.exit(main())
