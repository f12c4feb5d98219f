"""Text of a result or a file never acts: not in a terminal, a spreadsheet, LaTeX or a Markdown page."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.results import keep, made, read_out
from helpers.trees import class_folders
from jioc.cli.main import main

CODES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e"  # a window's title, a cleared screen, ... and a turned line
ACTIVE = "=HYPERLINK(A1)<img src=x>[x](y)\\input{secret}%"


def hostile(text: str) -> dict[str, Any]:
    """A result with the text wherever it may stand."""
    result = made(classes=[f"{text}{c}" for c in range(10)], data=text, select=f"a{text}", backbone=text)
    result |= {
        "environment": {"device": text, "torch": text},
        "commit": text,
        "jioc": text,
        "headline": "cnn",
    }
    result["method"] = {"name": text, "title": text}
    return result


def answered(*words: str) -> str:
    """Everything that the command prints, from a process of its own, where the real streams are."""
    done = subprocess.run([sys.executable, "-m", "jioc", *words], capture_output=True, check=False)
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize(
    "words",
    [["table"], ["table", "--format", "markdown"], ["table", "--format", "csv"], ["report", "-o", "p"]],
)
def test_no_text_of_a_result_commands_the_terminal(words: list[str], tmp_path: Path) -> None:
    named = read_out(made(memory=500), f"far{CODES}", 3.0)
    runs = keep(
        tmp_path / f"runs{CODES}", made(), hostile(CODES), named, made(memory=250) | {"format": CODES}
    )
    words = [word.replace("p", str(tmp_path / "page.html")) if word == "p" else word for word in words]
    told = answered(*words, str(runs))
    assert told.count("left out") >= 2 and all(c.isprintable() or c == "\n" for c in told)


def test_no_name_of_a_file_or_class_commands_the_terminal(tmp_path: Path) -> None:
    label = CODES.replace("\r", "")
    photos = class_folders(tmp_path / "photos", {f"{label}{c}": 3 for c in "ab"})
    (photos / f"{label}a" / f"torn{label}.png").write_bytes(b"no image")
    rows = [f"{path.relative_to(photos)},{label}{path.parent.name}" for path in photos.glob("*/*")]
    (photos / f"labels{label}.csv").write_text("\n".join(["path,label", *rows, f"nowhere{label},{label}a"]))
    recipe = tmp_path / "small.yaml"
    recipe.write_text(json.dumps({"runs": {CODES: {"method": "icarl"}}}))
    for words in (
        ["data", "check", str(photos / f"labels{label}.csv"), "--counts"],
        ["run", f"icarl{CODES}"],
        ["run", "icarl", "--data", f"nowhere{CODES}"],
        ["grid", str(recipe)],
        ["predict", f"nowhere{CODES}", CODES],
    ):
        told = answered(*words)
        assert told and all(c.isprintable() or c == "\n" for c in told), told


def test_a_text_is_no_formula_no_html_and_no_macro(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = keep(tmp_path, made(), hostile(ACTIVE), hostile("-1+1\n\\end{tabular}"), hostile("[x] *"))
    shown = {}
    for form in ("csv", "markdown", "latex"):
        assert main(["table", str(runs), "--format", form]) == 0
        shown[form] = capsys.readouterr().out
    cells = [cell for row in csv.reader(shown["csv"].splitlines()) for cell in row]
    numbers = [cell for cell in cells if cell[:1] in ("=", "+", "-", "@")]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells) and all(map(float, numbers))
    assert "<" not in shown["markdown"] and "[x](y)" not in shown["markdown"]
    outside = [line for line in shown["latex"].splitlines() if not line.startswith("%")]
    assert sum(line == r"\end{tabular}" for line in outside) == 1 and not any("\\input" in x for x in outside)
    assert all(line.startswith((r"\begin{tabular}", r"\end{tabular}", "  ")) for line in outside)
    assert not any(line.lstrip().startswith(("[", "*")) for line in outside)
