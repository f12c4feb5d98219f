"""Counts, titles and names as a person reads them, and letters for an output that lacks others. No torch here."""

import codecs


def counted(n: int, noun: str) -> str:
    """1 class, 2,000 images."""
    plural = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{plural}"


def coordinated(title: str, coordinate: str) -> str:
    """iCaRL + JIOC, of the method's title and the word of --coordinate."""
    return title if coordinate == "none" else f"{title} + {coordinate.upper()}"


def printable(text: str) -> str:
    """A name may hold anything; what moves the cursor becomes a space."""
    return "".join(c if c.isprintable() else " " for c in text)


STAND_INS = {"–": "-", "±": "+-", "×": "x", "…": "..."}


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":  # a byte of a file's name, as it is
        return letter.encode("ascii", "surrogateescape"), error.start + 1
    return STAND_INS.get(letter, "?"), error.start + 1


PLAINLY = "jioc.plainly"
"""How to encode what is printed, as `errors` of str.encode: a line that cannot be shown whole is no reason to stop."""
codecs.register_error(PLAINLY, _plainly)
