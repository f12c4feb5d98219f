"""`jioc report`: write one self-contained page of many runs."""

from pathlib import Path

from jioc.cli.console import print_note
from jioc.cli.flags import FORCE, Parser, named_path
from jioc.errors import Failed, os_errors
from jioc.events import Note
from jioc.files import output
from jioc.report import page, runs


def build_parser() -> Parser:
    parser = Parser(
        "jioc report",
        "One page with tables, curves, matrices and diagnostics, from result.json alone.",
        examples={
            "jioc report runs": "all runs below runs, in report.html",
            "jioc report runs/a runs/b -o page.html": "two of them",
            "jioc report runs --figures figures": "also PDF, SVG and PNG for a paper",
        },
    )
    parser.add("runs", nargs="+", type=named_path, help="run folders, folders of them, or result.json files")
    parser.add(
        "-o",
        "--out",
        type=named_path,
        metavar="FILE",
        default=Path("report.html"),
        help="the page (report.html)",
    )
    parser.add(
        "--figures",
        type=named_path,
        metavar="DIR",
        help="also write figures for a paper there: PDF, SVG, PNG",
    )
    parser.add("--force", action="store_true", help=FORCE)
    return parser


def main(argv: list[str]) -> int:
    args = build_parser().parse(argv)
    left_out: list[str] = []
    groups = runs.group(runs.read(args.runs, leave_out=left_out.append))
    target, drawn = output(args.out, page.MARK, args.force), list[Path]()
    if args.figures is not None:
        from jioc.report import figures

        drawn = figures.save(groups, args.figures, args.force)
    with os_errors(f"{str(args.out)!r} cannot be written", Failed):
        page.save(groups, target, left_out)
    for text in left_out:
        print_note(Note(text))
    print(f"runs: {sum(len(g.runs) for g in groups)}, settings: {len(groups)}; the page: {args.out}")
    if args.figures is not None:
        print(f"figures: {len(drawn)} files in {args.figures}")
    return 0
