"""`jioc table`: print mean ± standard deviation over seeds, with the paper's figures."""

import sys

from jioc.cli.console import print_note
from jioc.cli.flags import Parser, named_path
from jioc.errors import Refused, refuse_if, refuse_unknown
from jioc.report import coverage, leaderboard, runs, tables
from jioc.report.render import FORMATS, render, render_blocks, render_fields
from jioc.resolve import recipes
from jioc.resolve.recipe_file import MOST_SCALE as MOST
from jioc.terminal import table, wrapped
from jioc.text import printable

FORMS = f"{{{','.join(FORMATS)}}}"


def main(argv: list[str]) -> int:
    args = build_parser().parse(argv)
    refuse_unknown("value of --format", args.format, FORMATS)
    if args.scale is not None and (args.recipe is None or not 0 < args.scale <= MOST):
        wanted = f"it should be above 0, at most {MOST}, and given with --recipe"
        raise Refused(f"--scale: {args.scale:g} is refused: {wanted}")
    refuse_if(args.by_task and args.forgetting, "--by-task and --forgetting exclude each other")
    refuse_if(args.by_task and args.task_mean, "--by-task and --task-mean exclude each other")
    columns = (args.by_task, args.forgetting, args.task_mean, args.recipe is not None)
    refuse_if(
        args.coverage and not args.paper, "--coverage is of the paper's tables 2 and 3; it needs --paper"
    )
    refuse_if(
        args.coverage and any(columns),
        "--coverage has its own columns and rows; give no others",
    )
    refuse_if(
        args.leaderboard and (args.paper or any(columns)),
        "--leaderboard has its own columns; give no others",
    )
    left_out: list[str] = []
    read = runs.read(args.runs, args.over_orders, left_out.append)
    recipe = recipes.find_recipe(args.recipe, print_note) if args.recipe else None
    if args.coverage:
        _print_coverage(coverage.cells(runs.group(read)), args.format, left_out)
        return 0
    groups = runs.group(runs.planned(recipe, read, args.scale) if recipe else read)
    if args.leaderboard:
        sheets = leaderboard.boards(groups)
    elif args.by_task:
        sheets = [tables.by_task(groups, args.paper)]
    else:
        bracketed, wide = args.format != "csv", args.wide or args.format == "csv"
        sheets = [tables.summarise(groups, args.paper, args.forgetting, bracketed, wide, args.task_mean)]
    sheets[-1].notes += left_out
    for i, sheet in enumerate(sheets):
        if i and args.format == "text" and sheets[i - 1].notes:
            print()
        _print(sheet, args.format, first=i == 0)
    return 0


def _print(sheet: tables.Sheet, form: str, first: bool) -> None:
    """Print a table with its notes; a blank line keeps it from the one before."""
    sheet.notes = [printable(note) for note in sheet.notes]
    if form == "text":
        sheet = sheet.without_empty()
        table(sheet.heads, sheet.rows, sheet.title or None, sheet.words, sheet.blocks)
    else:
        print("" if first else "\n", render(sheet, form), sep="")
    if form in ("text", "csv") and sheet.notes:
        stream = sys.stderr if form == "csv" else sys.stdout
        print("\n".join(wrapped(note, stream) for note in sheet.notes), file=stream)


def _print_coverage(cells: list[coverage.Cell], form: str, left_out: list[str]) -> None:
    """Print tables 2 and 3 of the paper with ours; the line that counts the cells comes first below them."""
    notes = [printable(note) for note in [*coverage.remarks(cells), *left_out]]
    if form == "csv":
        print(render_fields(coverage.FIELDS, coverage.fields(cells)))
        print("\n".join(notes), file=sys.stderr)
        return
    blocks = coverage.layout(cells, wide=form != "text")
    if form != "text":
        print(render_blocks(blocks, notes, form))
        return
    for block in blocks:
        table(block.heads, block.rows, block.title, block.words)
    print("\n".join(notes))


def build_parser() -> Parser:
    parser = Parser(
        "jioc table",
        "The runs at or below the given places, those that differ in seeds as one row.",
        examples={
            "jioc table runs": "average, last and gain of every run below runs",
            "jioc table runs/table6 --paper --recipe table6": "beside the paper; what was not run says so",
            "jioc table runs --wide --format latex > table.tex": "every read-out, for a paper",
        },
    )
    parser.add("runs", nargs="+", type=named_path, help="run folders, folders of them, or result.json files")
    parser.add("--paper", action="store_true", help="also the paper's figures where the setting matches")
    parser.add(
        "--coverage", action="store_true", help="with --paper: its tables 2 and 3, ours beside every cell"
    )
    parser.add("--recipe", metavar="NAME|FILE", help="also the settings of a recipe that were not run")
    parser.add(
        "--scale",
        type=float,
        metavar="FACTOR",
        help="with --recipe: that of jioc grid, such as 0.1 (the recipe's)",
    )
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
    parser.add("--wide", action="store_true", help="columns for every read-out; csv has them")
    parser.add("--format", default="text", metavar=FORMS, help="csv has figures unrounded (text)")
    return parser
