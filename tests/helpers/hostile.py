"""Names of classes and pickles that an attacker would write."""

import os
from typing import Any

NAMES = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!-- & \"quoted\" 'names' -->",
    "כלב גדול",
    "قطة‮",
    "line\u2028separator\u2029",
    "/*DATA*/",
    "",
    "emoji 🐈 and \ud800 half",
    "a" * 300,
]


class Hostile:
    """A pickle of it runs a command."""

    def __init__(self, target: str):
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)
