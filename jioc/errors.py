"""What goes wrong in a way a person can mend: one sentence, no traceback."""

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches


class Refused(Exception):
    """A wrong word, file or combination, found before any work."""

    status = 2


class Failed(Refused):
    """Something that went wrong while working."""

    status = 1


class Interrupted(Failed):
    """Stopped by a signal or a time limit; the run can be resumed."""

    status = 130  # of Ctrl-C; `stopping.signals` says 75 where it was not that


class RankError(Failed):
    """What went wrong in a process that is not the first of its run, and in no other: it prints for itself."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status


class ReportedElsewhere(Failed):
    """Another process of the run has said what went wrong."""

    def __init__(self, status: int):
        super().__init__("another process of this run says why")
        self.status = status


def unknown(kind: str, word: str, known: Iterable[str]) -> Refused:
    """Refuse a word that nobody knows, with the nearest one that somebody does."""
    names = sorted(known)
    near = get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(names) or 'none'}"
    return Refused(f"unknown {kind} {word!r}; {hint}")


def first_line(error: BaseException, otherwise: str | None = None) -> str:
    """What an error of others says, in a line; of one without a message its kind, or what is given for it."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else otherwise or type(error).__name__


def sentence(error: BaseException) -> str:
    """One line for any error: ours as they are, others with their kind."""
    if isinstance(error, Refused):
        return str(error)
    return f"{type(error).__name__}: {first_line(error, 'no message')}"


def exit_status(work: Callable[[], object]) -> int:
    """Do a script's work and return its exit status; print what it refuses as a sentence."""
    try:
        work()
    except Refused as error:
        print(sentence(error), file=sys.stderr)
        return error.status
    return 0
