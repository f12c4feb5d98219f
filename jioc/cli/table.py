"""`jioc table`: print mean ± standard deviation over seeds, with the paper's figures."""

import sys

from jioc.cli.console import print_note, table
from jioc.cli.flags import Parser, named_path
from jioc.errors import Refused, refuse_if, refuse_unknown
from jioc.report import leaderboard, runs, tables
from jioc.report.render import FORMATS, render
from jioc.resolve import recipes
from jioc.resolve.recipe_file import MOST_SCALE as MOST
from jioc.text import printable


def main(argv: list[str]) -> int:
    args = _parser().parse(argv)
    refuse_unknown("value of --format", args.format, FORMATS)
    if args.scale is not None and (args.recipe is None or not 0 < args.scale <= MOST):
        wanted = f"it should be above 0, at most {MOST}, and given with --recipe"
        raise Refused(f"--scale: {args.scale:g} is refused: {wanted}")
    refuse_if(args.by_task and args.forgetting, "--by-task and --forgetting exclude each other")
    refuse_if(args.by_task and args.task_mean, "--by-task and --task-mean exclude each other")
    others = (args.paper, args.recipe, args.by_task, args.forgetting, args.task_mean)
    refuse_if(args.leaderboard and any(others), "--leaderboard has its own columns; give no others")
    left_out: list[str] = []
    read = runs.read(args.runs, args.over_orders, left_out.append)
    recipe = recipes.find_recipe(args.recipe, print_note) if args.recipe else None
    groups = runs.group(runs.planned(recipe, read, args.scale) if recipe else read)
    if args.leaderboard:
        sheets = leaderboard.boards(groups)
    elif args.by_task:
        sheets = [tables.by_task(groups, args.paper)]
    else:
        bracketed = args.format != "csv"
        sheets = [tables.summarise(groups, args.paper, args.forgetting, bracketed, args.task_mean)]
    sheets[-1].notes += left_out
    for i, sheet in enumerate(sheets):
        _print(sheet, args.format, first=i == 0)
    return 0


def _print(sheet: tables.Sheet, form: str, first: bool) -> None:
    """Print a table with its notes; a blank line keeps it from the one before."""
    sheet.notes = [printable(note) for note in sheet.notes]
    if form == "text":
        table(sheet.heads, sheet.rows, sheet.title or None, sheet.words, sheet.blocks)
    else:
        print("" if first else "\n", render(sheet, form), sep="")
    if form in ("text", "csv") and sheet.notes:
        print("\n".join(sheet.notes), file=sys.stderr if form == "csv" else sys.stdout)


def _parser() -> Parser:
    parser = Parser(
        "jioc table", "The runs at or below the given places, those that differ in seeds as one row."
    )
    parser.add("runs", nargs="+", type=named_path, help="run folders, folders of them, or result.json files")
    parser.add("--paper", action="store_true", help="also the paper's figures where the setting matches")
    parser.add("--recipe", help="also the settings of a recipe that were not run")
    parser.add("--scale", type=float, help="with --recipe: that of jioc grid, such as 0.1 (the recipe's)")
    parser.add(
        "--by-task", action="store_true", help="the accuracy after each task on all, old and new classes"
    )
    parser.add("--over-orders", action="store_true", help="runs of several class orders are one row")
    parser.add(
        "--forgetting", action="store_true", help="also what past tasks have lost of their best accuracy"
    )
    parser.add(
        "--task-mean", action="store_true", help="also the mean over tasks, a large one as a small one"
    )
    parser.add(
        "--leaderboard", action="store_true", help="ranked beside public figures of the same conditions"
    )
    parser.add("--format", default="text", help="text, markdown, latex, or csv with figures unrounded (text)")
    return parser
