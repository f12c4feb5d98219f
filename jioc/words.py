"""Counts and titles as a person says them. No torch here."""


def counted(n: int, noun: str) -> str:
    """1 class, 2,000 images."""
    plural = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{plural}"


def coordinated(title: str, coordinate: str) -> str:
    """iCaRL + JIOC, of the method's title and the word of --coordinate."""
    return title if coordinate == "none" else f"{title} + {coordinate.upper()}"
