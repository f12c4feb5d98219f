"""A table as Markdown, LaTeX or csv."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jioc.report.coverage import Block
from jioc.report.tables import Sheet
from jioc.text import printable

FORMATS = ("text", "markdown", "latex", "csv")
TEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "…": r"\ldots{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
MARKDOWN = {c: f"\\{c}" for c in "\\|`*[]"} | {"<": "&lt;", ">": "&gt;"}
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a spreadsheet's formula begins


def render(sheet: Sheet, form: str) -> str:
    """Write the table as `markdown`, `latex` or `csv`; `text` is for the terminal, see `cli/console.py`."""
    return {"markdown": _markdown, "latex": _latex, "csv": _csv}[form](sheet)


def render_blocks(blocks: Sequence[Block], notes: Sequence[str], form: str) -> str:
    """Write several tables as `markdown` or `latex`, one below the other, with the notes of all."""
    texts = [{"markdown": _markdown, "latex": _latex}[form](block).rstrip() for block in blocks]
    last = [
        f"- {_escaped(note, MARKDOWN)}" if form == "markdown" else f"% {printable(note)}" for note in notes
    ]
    return "\n\n".join([*texts, "\n".join(last)])


def render_fields(heads: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Write plain lines as csv."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    for line in (heads, *lines):
        out.writerow([_cell(value) if isinstance(value, str) else value for value in line])
    return text.getvalue().removesuffix("\n")


def _csv(sheet: Sheet) -> str:
    """Write it for programs: figures unrounded, one in a cell, every line with its whole place; no notes."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    cells = [[figure.fields for figure in line.figures] for line in sheet.lines]
    suffixes = [list(fields) for fields in cells[0]] if cells else [[""]] * len(sheet.figure_heads)
    heads = [head + kind for head, kinds in zip(sheet.figure_heads, suffixes, strict=True) for kind in kinds]
    with_outcome = any(line.outcome for line in sheet.lines)
    out.writerow(map(_cell, ["setting", *sheet.name_heads, "n", *heads, *["outcome"] * with_outcome]))
    for line, fields in zip(sheet.lines, cells, strict=True):
        figures = [value for one in fields for value in one.values()]
        cells_of_text = map(_cell, [line.group.place, *line.names])
        out.writerow([*cells_of_text, line.n, *figures, *[line.outcome] * with_outcome])
    return text.getvalue().removesuffix("\n")


def _cell(text: str) -> str:
    """Mark a text that a spreadsheet would compute, with the sign by which it takes it for text."""
    text = printable(text)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def _markdown(sheet: Sheet | Block) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rule = line(["---"] * sheet.words + ["---:"] * (len(sheet.heads) - sheet.words))
    title = [_escaped(sheet.title, MARKDOWN), ""] if sheet.title else []
    rows = [line(_escaped(cell, MARKDOWN) for cell in cells) for cells in [sheet.heads, *sheet.rows]]
    notes = [f"- {_escaped(note, MARKDOWN)}" for note in sheet.notes]
    return "\n".join([*title, rows[0], rule, *rows[1:], "", *notes])


def _latex(sheet: Sheet | Block) -> str:
    """Write a tabular for booktabs."""
    columns = "l" * sheet.words + "r" * (len(sheet.heads) - sheet.words)
    notes = [f"% {printable(note)}" for note in [sheet.title, *sheet.notes] if note]
    rows = [" & ".join(map(_tex, cells)) for cells in [sheet.heads, *sheet.rows]]
    # a bracket or star after the end of a line would belong to that
    body = [f"  {'{}' * row.startswith(('[', '*'))}{row} \\\\" for row in rows]
    for i in [*reversed(sheet.blocks), 0]:
        body.insert(i + 1, r"  \midrule")
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"  \toprule", *body, r"  \bottomrule", r"\end{tabular}"]
    return "\n".join(notes + lines)


def _tex(text: str) -> str:
    """Escape what LaTeX reads as commands; a number's sign becomes mathematics."""
    signed = text[:1] in "+-" and text[1:2].isdigit()
    body = _escaped(text[1:] if signed else text, TEX)
    return f"${text[0]}${body}" if signed else body


def _escaped(text: str, marks: Mapping[str, str]) -> str:
    """Write the text so that none of its letters is a mark of the format."""
    return "".join(marks.get(c, c) for c in printable(text))
