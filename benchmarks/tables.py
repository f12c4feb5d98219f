"""The tables in README.md and docs/ are made from results, not typed.

    python benchmarks/tables.py            says which are not current, and exits with 1
    python benchmarks/tables.py --write    makes them so

A table stands between two comments, the first of which is the command that prints it:

    <!-- jioc table benchmarks/results/table6 --paper --format markdown -->
    <!-- end of the table -->

or `python benchmarks/readings.py`, say, for what `jioc table` does not read.
"""

import contextlib
import importlib.util
import io
import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path

import printing

from jioc.cli.main import main as jioc
from jioc.files import write

ROOT = Path(__file__).resolve().parent.parent
COMMAND = r"jioc table [^\n]*?|python benchmarks/[^\n]*?"
TABLE = re.compile(rf"(<!-- ({COMMAND}) -->\n).*?(<!-- end of the table -->)", re.DOTALL)


@cache
def printed(command: str) -> str:
    """Run a command here, in the repository's folder, and return what it prints."""
    program, *argv = shlex.split(command)
    text, before = io.StringIO(), Path.cwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(text):
            status = jioc(argv) if program == "jioc" else _script(*argv)
    finally:
        os.chdir(before)
    if status:
        sys.exit(f"{command} exited with {status}")
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())


def _script(place: str, *argv: str) -> int:
    """Run a script as a module of its own, with the others beside it."""
    name = f"table_of_{Path(place).stem}"
    source = importlib.util.spec_from_file_location(name, ROOT / place)
    assert source is not None and source.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(source)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        source.loader.exec_module(module)
        status: int = module.main([*argv])
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return status


def current(page: str) -> str:
    """The page with every table as its command prints it now."""
    return TABLE.sub(lambda table: f"{table[1]}\n{printed(table[2])}\n\n{table[3]}", page)


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("--write", action="store_true")
    write_them, stale = parser.parse_args(argv).write, 0
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        page = path.read_text(encoding="utf-8")
        fresh = current(page)
        if fresh == page:
            continue
        stale += 1
        if write_them:
            write(path, fresh.encode())
        print(f"{path.relative_to(ROOT)}: {'written' if write_them else 'not current; --write makes it so'}")
    return 0 if write_them else min(stale, 1)


if __name__ == "__main__":
    sys.exit(main())
