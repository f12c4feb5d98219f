"""How a setting is drawn, on the page and in figures: hue by method, dash by coordination, mark by variant.

The colours are Okabe and Ito's, which colour-blind readers can tell apart, and five more for further methods.
"""

from dataclasses import dataclass

from jioc.report.group import Group, collect
from jioc.report.labels import COORDINATIONS

COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
    "#6b7178", "#882255", "#8a8a2b", "#5e3fbe", "#8c5a2b", "#12908f",
)  # fmt: skip
ON_DARK = (
    "#4ca6e8", "#f58442", "#2fc594", "#e6a5cb", "#f2b93f", "#8fd3f7",
    "#aab1bb", "#d6458f", "#c6c663", "#ab96f7", "#cf9a6c", "#4ecfce",
)  # fmt: skip
MARKS = "osD^vPX"  # as matplotlib calls them; the page draws the same
DASHES = ("", "2.5 3", "11 3 2.5 3", "7 4", "1.5 5")  # of COORDINATIONS, and of any other


@dataclass(frozen=True)
class Look:
    """Positions in COLOURS, DASHES and MARKS."""

    hue: int
    dash: int
    mark: int


def looks(groups: list[Group]) -> list[Look]:
    """Choose the look of each group; no two of a place share one while there are marks.

    Where all groups are of one method, hue tells their names apart: it would tell nothing otherwise.
    """
    one_method = len({g.config["method"] for g in groups}) == 1
    keys = [g.name if one_method else str(g.config["method"]) for g in groups]
    order = list(dict.fromkeys(keys))
    hues = [order.index(key) % len(COLOURS) for key in keys]
    dashes = [[*COORDINATIONS, g.coordinate].index(g.coordinate) for g in groups]
    drawn = list(zip(groups, hues, dashes, strict=True))
    alike = collect(((g.place, hue, dash), g) for g, hue, dash in drawn)
    variants = {g: i for some in alike.values() for i, g in enumerate(some)}
    return [Look(hue, dash, variants[g] % len(MARKS)) for g, hue, dash in drawn]
