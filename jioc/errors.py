"""What goes wrong in a way a person can mend: one sentence, no traceback."""

from collections.abc import Iterable
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


def unknown(kind: str, word: str, known: Iterable[str]) -> Refused:
    """The sentence for a word that nobody knows, with the nearest one that somebody does."""
    names = sorted(known)
    near = get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(names)}"
    return Refused(f"unknown {kind} {word!r}; {hint}")


def sentence(error: BaseException) -> str:
    """One line for any error: ours as they are, others with their kind."""
    if isinstance(error, Refused):
        return str(error)
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
