"""What a script is that prints one table and takes no options."""

import argparse
from collections.abc import Callable

from jioc.errors import answered


def main(about: str | None, table: Callable[[], str], words: list[str] | None) -> int:
    """`words`: those of the command line, unless given."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(words)
    return answered(lambda: print(table()))
