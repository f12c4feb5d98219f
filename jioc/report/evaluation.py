"""The page of `jioc evaluate -o`, in one file that loads nothing and runs nothing."""

from html import escape
from pathlib import Path

from jioc.files import write
from jioc.report.lines import calibration_line, evaluation_lines, unknown_line
from jioc.results import Evaluation
from jioc.text import counted, printable

MARK = b"<title>jioc evaluate</title>"  # in every page, by which it may be replaced by the next
MOST_CLASSES = 60  # of a matrix that is drawn whole
MOST_PAIRS = 60

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>jioc evaluate</title>
<style>
:root { --paper: #fff; --ink: #1b1f24; --soft: #5b6470; --rule: #e2e5e9; --heat: 0, 114, 178; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171b; --ink: #e6e9ed; --soft: #9aa4b0; --rule: #2b3138; --heat: 86, 180, 233; }
}
html { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 1200px; padding: 28px 28px 80px; }
h1 { font-size: 22px; margin: 0 0 8px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 2px 0; color: var(--soft); max-width: 90ch; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 9px; text-align: right; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; } .name { text-align: left; max-width: 32ch; overflow-wrap: anywhere; }
.matrix td { background: rgba(var(--heat), var(--p, 0)); min-width: 3ch; }
.matrix .turned { writing-mode: vertical-rl; text-align: left; max-height: 20ch; overflow: hidden; }
.bar { width: 160px; padding: 3px 0; }
.bar i { display: block; height: 9px; background: rgba(var(--heat), .65); }
svg { width: 340px; max-width: 100%; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg .rule { stroke: var(--rule); } svg .line { stroke: rgb(var(--heat)); fill: none; stroke-width: 2; }
svg circle { fill: rgb(var(--heat)); }
</style>
</head>
<body>
<h1>jioc evaluate</h1>
"""


def save(evaluation: Evaluation, path: Path) -> None:
    write(path, page(evaluation).encode("utf-8", "replace"))


def page(e: Evaluation) -> str:
    """Accuracies, classes, confusions and calibration as one page."""
    parts = [HEAD, *(f"<p>{_text(line)}</p>\n" for line in evaluation_lines(e))]
    parts += ["<h2>Classes</h2>\n", _classes(e), "<h2>Confusions</h2>\n", _confusions(e)]
    if e.calibration is not None:
        parts += ["<h2>Calibration</h2>\n", f"<p>{_text(calibration_line(e))}</p>\n", _reliability(e)]
    if e.unknown is not None:
        parts += ["<h2>Unknown</h2>\n", f"<p>{_text(unknown_line(e.unknown))}</p>\n"]
    return "".join([*parts, "</body>\n</html>\n"])


def _text(value: object) -> str:
    return escape(printable(str(value)))


def _table(heads: list[str], rows: list[str], kind: str = "") -> str:
    head = "".join(heads)
    return f'<div class="scroll"><table class="{kind}"><tr>{head}</tr>{"".join(rows)}</table></div>\n'


def _cell(value: object, tag: str = "td", kind: str = "") -> str:
    return f'<{tag} class="{kind}">{_text(value)}</{tag}>'


def _classes(e: Evaluation) -> str:
    rows, task_of = [], [t for t, size in enumerate(e.sizes, 1) for _ in range(size)]
    for c, (name, n, right) in enumerate(zip(e.classes, e.images, e.accuracy.per_class, strict=True)):
        bar = f'<td class="bar"><i style="width: {right or 0:.1f}%"></i></td>'
        shown = "–" if right is None else f"{right:.2f}"
        cells = [_cell(name, "th", "name"), _cell(task_of[c]), _cell(f"{n:,}"), _cell(shown), bar]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    heads = [_cell("class", "th", "name"), *(_cell(h, "th") for h in ("task", "images", "right, %", ""))]
    return _table(heads, rows)


def _confusions(e: Evaluation) -> str:
    """The whole matrix of a few classes, the most frequent mistakes of many."""
    pairs = e.confusions()
    if len(e.classes) > MOST_CLASSES:
        heads = [_cell(h, "th", "name") for h in ("class", "taken for")] + [_cell("images", "th")]
        rows = [
            f"<tr>{_cell(e.classes[r], 'th', 'name')}{_cell(e.classes[c], 'td', 'name')}{_cell(n)}</tr>"
            for r, c, n in pairs[:MOST_PAIRS]
        ]
        return f"<p>The most frequent of {counted(len(pairs), 'kind')} of mistake.</p>\n" + _table(
            heads, rows
        )
    counts = {(r, c): n for r, c, n in pairs}
    for c, (n, right) in enumerate(zip(e.images, e.accuracy.per_class, strict=True)):
        counts[c, c] = round(n * (right or 0) / 100)
    heads = [_cell("", "th"), *(_cell(name, "th", "turned") for name in e.classes)]
    rows = []
    for r, name in enumerate(e.classes):
        cells = []
        for c in range(len(e.classes)):
            n = counts.get((r, c), 0)
            share = 0.85 * n / max(1, e.images[r])
            cells.append(f'<td style="--p: {share:.3f}">{n or ""}</td>')
        rows.append(f"<tr>{_cell(name, 'th', 'name')}{''.join(cells)}</tr>")
    return "<p>A row for each true class, a column for each answer.</p>\n" + _table(heads, rows, "matrix")


def _reliability(e: Evaluation) -> str:
    """Accuracy over score: on the diagonal, answers are right as often as their scores say."""
    assert e.calibration is not None
    points = [(40 + 2.8 * score, 290 - 2.8 * right, n) for n, score, right in e.calibration.bins]
    most = max(n for *_, n in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 + 5 * (n / most) ** 0.5:.1f}">'
        f"<title>{n:.0f} images</title></circle>"
        for x, y, n in points
    )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    return (
        '<svg viewBox="0 0 340 325" role="img" aria-label="accuracy over score">'
        '<path class="rule" d="M40 290H320M40 290V10M40 290L320 10" fill="none"/>'
        f'<polyline class="line" points="{line}"/>{dots}'
        '<text x="180" y="318" text-anchor="middle">score, %</text>'
        '<text x="14" y="150" text-anchor="middle" transform="rotate(-90 14 150)">right, %</text>'
        '<text x="40" y="304" text-anchor="middle">0</text>'
        '<text x="320" y="304" text-anchor="middle">100</text>'
        '<text x="34" y="14" text-anchor="end">100</text></svg>\n'
    )
