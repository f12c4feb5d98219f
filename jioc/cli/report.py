"""`jioc report`: write one self-contained page of many runs."""

from pathlib import Path

from jioc.cli.flags import Parser
from jioc.errors import Failed, os_errors
from jioc.report import page, runs


def main(argv: list[str]) -> int:
    parser = Parser(
        "jioc report", "One page with tables, curves, matrices and diagnostics, from result.json alone."
    )
    parser.add("runs", nargs="+", type=Path, help="run folders, folders of them, or result.json files")
    parser.add("-o", "--out", type=Path, default=Path("report.html"), help="the page (report.html)")
    parser.add(
        "--figures", type=Path, metavar="DIR", help="also write figures for a paper there: PDF, SVG, PNG"
    )
    args = parser.parse(argv)
    groups = runs.group(runs.read(args.runs))
    with os_errors(f"{str(args.out)!r} cannot be written", Failed):
        page.save(groups, args.out)
    print(f"runs: {sum(len(g.runs) for g in groups)}, settings: {len(groups)}; the page: {args.out}")
    if args.figures is not None:
        from jioc.report import figures

        print(f"figures: {len(figures.save(groups, args.figures))} files in {args.figures}")
    return 0
