"""Errors that a person can mend: one sentence each, no traceback, an exit status."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TypeGuard

from jioc.text import printable, shortened

NEAR = 0.61  # how like two words are where one may be meant by the other
SHORTEST_BEGINNING = (
    3  # letters, dashes included: a longer word may be the beginning of the one that was meant
)


class Refused(Exception):
    """A wrong word, file or combination. It is refused before any work."""

    status = 2


class Failed(Refused):
    """Something went wrong while working."""

    status = 1


class Interrupted(Failed):
    """Stopped by a signal, by a time limit, or where it was to stop; the run can be resumed."""

    status = 130  # of Ctrl-C; `stopping.signals` sets 75 for other reasons


class RankError(Failed):
    """An error of one process that is not the first of its run. This process prints it."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status


class ReportedElsewhere(Failed):
    """An error that another process of the run prints."""

    def __init__(self, status: int):
        super().__init__("another process of this run says why")
        self.status = status


def refuse_if(wrong: object, sentence: str) -> None:
    """Refuse with a sentence where something is wrong."""
    if wrong:
        raise Refused(sentence)


def fail_if(wrong: object, sentence: str) -> None:
    """Fail with a sentence where something went wrong."""
    if wrong:
        raise Failed(sentence)


@contextmanager
def os_errors(sentence: str, kind: type[Refused] = Refused) -> Iterator[None]:
    """Turn an error of the file system into a sentence: "PATH cannot be read", and why."""
    try:
        yield
    except OSError as error:
        raise kind(f"{sentence}: {error.strerror or error}") from None
    except RecursionError:  # in making a folder, its parent, and so on
        raise kind(f"{sentence}: it lies in too many folders") from None


def unknown(kind: str, word: str, known: Iterable[str]) -> Refused:
    """The refusal of an unknown word. It suggests one that it begins, or the nearest, or lists them all."""
    names = sorted(known)
    begun = [name for name in names if len(word) > SHORTEST_BEGINNING and name.startswith(word)]
    near = sorted(begun, key=len) or get_close_matches(word, names, n=1, cutoff=NEAR)
    hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(names) or 'none'}"
    return Refused(f"unknown {kind} {word!r}; {hint}")


def refuse_unknown(kind: str, word: str, known: Collection[str]) -> None:
    """Refuse a word that is not among the known ones."""
    if word not in known:
        raise unknown(kind, word, known)


def first_line(error: BaseException, otherwise: str | None = None) -> str:
    """The first line of an error's message. Without a message: `otherwise`, or the kind of the error."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else otherwise or type(error).__name__


def unreadable(error: BaseException) -> str:
    """Say why text is no JSON or YAML that can be read, for a person who did not write this program."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number has too many digits" if "int_max_str_digits" in str(error) else first_line(error)


def sentence(error: BaseException) -> str:
    """Turn any error into one line: ours as they are, others with their kind."""
    if isinstance(error, Refused):
        return printable(shortened(str(error)))
    if is_out_of_memory(error):
        return "there is too little memory" + (f": {first_line(error)}" if str(error) else "")
    if is_of_a_file(error):
        return printable(shortened(f"{str(error.filename)!r} cannot be used: {error.strerror}"))
    return printable(shortened(f"{type(error).__name__}: {first_line(error, 'no message')}"))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether there was no memory left, as Python, NumPy or torch say it."""
    signs = ("can't allocate memory", "out of memory")
    return isinstance(error, MemoryError) or any(words in str(error) for words in signs)


def is_of_the_device(error: BaseException) -> bool:
    """Whether the machine failed, not what it was given: no memory left, or an error of the GPU."""
    return is_out_of_memory(error) or type(error).__name__ == "AcceleratorError"


def is_of_a_file(error: BaseException) -> TypeGuard[OSError]:
    """Whether the file system refuses a name, which says all that a person needs."""
    return isinstance(error, OSError) and error.filename is not None and bool(error.strerror)


def exit_status(work: Callable[[], object]) -> int:
    """Do a script's work and return its exit status; print a refusal as a sentence."""
    try:
        work()
    except Refused as error:
        print(sentence(error), file=sys.stderr)
        return error.status
    return 0
