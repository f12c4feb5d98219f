"""What a script is that prints one table, and how it ends."""

import argparse
import sys
from collections.abc import Callable

from jioc import errors
from jioc.cli.stdout import PipeSafeStdout


def main(about: str | None, table: Callable[[], str], words: list[str] | None) -> int:
    """A script that takes no options. `words`: those of the command line, unless given."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(words)
    return answered(lambda: print(table()))


def answered(work: Callable[[], object]) -> int:
    """The exit status; who reads the output may leave (`… | head`), as that of a command of jioc."""
    sys.stdout = PipeSafeStdout.behind(sys.stdout)
    return errors.exit_status(work)
