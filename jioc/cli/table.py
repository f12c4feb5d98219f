"""`jioc table`: print mean ± standard deviation over seeds, with the paper's figures."""

import math
import sys
from pathlib import Path

from jioc.cli.console import table
from jioc.cli.flags import Parser
from jioc.errors import Refused, unknown
from jioc.report import runs, tables
from jioc.report.render import FORMATS, render
from jioc.resolve import recipes


def main(argv: list[str]) -> int:
    found = _parser().parse(argv)
    if found.format not in FORMATS:
        raise unknown("value of --format", found.format, FORMATS)
    if found.scale is not None and (found.recipe is None or not 0 < found.scale < math.inf):
        raise Refused(f"--scale: {found.scale:g} is refused: it should be above 0, and given with --recipe")
    if found.by_task and found.forgetting:
        raise Refused("--by-task and --forgetting exclude each other")
    read = runs.read(found.runs, found.over_orders)
    groups = runs.group(runs.planned(found.recipe, read, found.scale) if found.recipe else read)
    if found.by_task:
        sheet = tables.by_task(groups, found.paper)
    else:
        sheet = tables.summarise(groups, found.paper, found.forgetting, bracketed=found.format != "csv")
    if found.format == "text":
        table(sheet.heads, sheet.rows, sheet.title or None, sheet.words, sheet.blocks)
        print("\n".join(sheet.notes))
    else:
        print(render(sheet, found.format))
    if found.format == "csv":
        print("\n".join(sheet.notes), file=sys.stderr)
    return 0


def _parser() -> Parser:
    about = "The runs at or below the given places, those that differ in seeds as one row."
    parser = Parser("jioc table", description=about)
    add = parser.add_argument
    add("runs", nargs="+", type=Path, help="run folders, folders of them, or result.json files")
    add("--paper", action="store_true", help="also the paper's figures where the setting matches")
    add("--recipe", type=recipes.find_recipe, help="also the settings of a recipe that were not run")
    add("--scale", type=float, help="with --recipe: that of jioc grid, such as 0.1 (the recipe's)")
    add("--by-task", action="store_true", help="the accuracy after each task on all, old and new classes")
    add("--over-orders", action="store_true", help="runs of several class orders are one row")
    add("--forgetting", action="store_true", help="also what past tasks have lost of their best accuracy")
    add("--format", default="text", help="text, markdown, latex, or csv with figures unrounded (text)")
    return parser
