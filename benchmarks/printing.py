"""How a script that prints one table begins and ends."""

import argparse
import sys
from collections.abc import Callable

from jioc import errors
from jioc.cli.stdout import PipeSafeStdout


def parser(about: str | None) -> argparse.ArgumentParser:
    """Make the parser of a script; its help is the script's docstring as it stands."""
    return argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)


def main(about: str | None, table: Callable[[], str], argv: list[str] | None) -> int:
    """Run a script that takes no options and prints a table."""
    parser(about).parse_args(argv)
    return answered(lambda: print(table()))


def answered(work: Callable[[], object]) -> int:
    """Do a script's work and return its exit status. Whoever reads the output may leave (`… | head`)."""
    sys.stdout = PipeSafeStdout.behind(sys.stdout)
    return errors.exit_status(work)
