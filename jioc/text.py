"""Counts, titles and names for people, and stand-ins for letters that an output lacks. No torch here."""

import codecs


def counted(n: int, noun: str) -> str:
    """1 class, 2,000 images."""
    return f"{n:,} {noun}" + ("" if n == 1 else "es" if noun.endswith("s") else "s")


def coordinated(title: str, coordinate: str) -> str:
    """iCaRL + JIOC: a method's title with the word of --coordinate."""
    return title if coordinate == "none" else f"{title} + {coordinate.upper()}"


def printable(text: str) -> str:
    """Replace what moves the cursor by spaces; a class may have any name."""
    return "".join(c if c.isprintable() else " " for c in text)


STAND_INS = {"–": "-", "±": "+-", "×": "x", "…": "..."}


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":  # a byte of a file's name, as it is
        return letter.encode("ascii", "surrogateescape"), error.start + 1
    return STAND_INS.get(letter, "?"), error.start + 1


PLAINLY = "jioc.plainly"  # for `errors` of str.encode: a stand-in for each letter that the output lacks
codecs.register_error(PLAINLY, _plainly)
