"""A table as Markdown, LaTeX or csv."""

import csv
import io

from jioc.report.tables import Sheet

FORMATS = ("text", "markdown", "latex", "csv")
TEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "…": r"\ldots{}",
}


def render(sheet: Sheet, form: str) -> str:
    """Write the table as `markdown`, `latex` or `csv`; `text` is for the terminal, see `cli/console.py`."""
    return {"markdown": _markdown, "latex": _latex, "csv": _csv}[form](sheet)


def _csv(sheet: Sheet) -> str:
    """Write it for programs: figures unrounded, one in a cell, every line with its whole place; no notes."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    cells = [[figure.fields for figure in line.figures] for line in sheet.lines]
    suffixes = [list(fields) for fields in cells[0]] if cells else [[""]] * len(sheet.figure_heads)
    heads = [head + kind for head, kinds in zip(sheet.figure_heads, suffixes, strict=True) for kind in kinds]
    with_outcome = any(line.outcome for line in sheet.lines)
    out.writerow(["setting", *sheet.name_heads, "n", *heads, *["outcome"] * with_outcome])
    for line, fields in zip(sheet.lines, cells, strict=True):
        figures = [value for one in fields for value in one.values()]
        out.writerow([line.group.place, *line.names, line.n, *figures, *[line.outcome] * with_outcome])
    return text.getvalue().removesuffix("\n")


def _markdown(sheet: Sheet) -> str:
    def line(cells: list[str]) -> str:
        escaped = [cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells]
        return f"| {' | '.join(escaped)} |"

    rule = line(["---"] * sheet.words + ["---:"] * (len(sheet.heads) - sheet.words))
    title = [sheet.title, ""] if sheet.title else []
    notes = [f"- {note}" for note in sheet.notes]
    return "\n".join([*title, line(sheet.heads), rule, *map(line, sheet.rows), "", *notes])


def _latex(sheet: Sheet) -> str:
    """Write a tabular for booktabs."""
    columns = "l" * sheet.words + "r" * (len(sheet.heads) - sheet.words)
    notes = [f"% {note}" for note in [sheet.title, *sheet.notes] if note]
    body = [f"  {' & '.join(map(_tex, cells))} \\\\" for cells in [sheet.heads, *sheet.rows]]
    for i in [*reversed(sheet.blocks), 0]:
        body.insert(i + 1, r"  \midrule")
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"  \toprule", *body, r"  \bottomrule", r"\end{tabular}"]
    return "\n".join(notes + lines)


def _tex(text: str) -> str:
    """Escape what LaTeX reads as commands; a number's sign becomes mathematics."""
    signed = text[:1] in "+-" and text[1:2].isdigit()
    body = "".join(TEX.get(c, c) for c in (text[1:] if signed else text))
    return f"${text[0]}${body}" if signed else body
