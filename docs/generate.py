"""Make the reference pages of the site from the code: commands, result.json, Python API.

python docs/generate.py    prints them; `make docs` puts them into the site
"""

import ast
import contextlib
import inspect
import io
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jioc
from jioc import events, results
from jioc.cli.main import COMMANDS
from jioc.cli.main import main as command

WIDTH = "88"  # columns of a help text
BAR = r"\|"  # of `str | None`, in a cell of a table
LONG = r"\b(?:(?:jioc|torch|numpy|typing|collections)\.(?:\w+\.)*)"  # where a class of a signature lives


# --- commands ---


def commands() -> str:
    """Every command with its help, as a terminal shows it."""
    parts = ["# Commands", "What `jioc COMMAND --help` prints.", _block(printed(["--help"]))]
    for name in COMMANDS:
        parts += [f"## jioc {name}", _block(printed([name, "--help"]))]
    return "\n\n".join([*parts, ""])


def printed(argv: list[str]) -> str:
    """Run a command and return what it prints, without colour and as wide as the page."""
    text, before = io.StringIO(), {name: os.environ.get(name) for name in ("COLUMNS", "NO_COLOR")}
    os.environ |= {"COLUMNS": WIDTH, "NO_COLOR": "1"}
    try:
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            command(argv)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return text.getvalue()


def _block(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip()}\n```"


# --- result.json ---


def result() -> str:
    """The classes of result.json with their fields; what a field means is the comment beside it."""
    parts = [
        "# result.json",
        "Written by every run, read by `jioc table` and `jioc report`. `jioc.results.read(path)` checks a "
        "file and returns a `Result`; its fields can be read as attributes or as in the file: "
        '`result.average["cnn"]`, `result["average"]["cnn"]`. Accuracies are in percent, unrounded.',
    ]
    records = [kind for kind in _classes(results) if issubclass(kind, results.Record)]
    for kind in sorted(records[1:], key=lambda kind: kind is not results.Result):
        parts += [f"## {kind.__name__}", _text(kind), _fields(kind)]
    return "\n\n".join([*parts, ""])


def _fields(kind: type) -> str:
    lines = ["| field | type | |", "|---|---|---|"]
    for name, (annotation, comment) in _annotated(kind).items():
        lines.append(f"| `{name}` | `{annotation.replace('|', BAR)}` | {comment} |")
    return "\n".join(lines)


def _annotated(kind: type) -> dict[str, tuple[str, str]]:
    """The annotation and the comment of each field, as the source has them."""
    source = inspect.getsource(kind)
    lines, found = source.splitlines(), {}
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign):
            line = lines[node.lineno - 1]
            comment = line.partition("  # ")[2]
            found[ast.unparse(node.target)] = (ast.unparse(node.annotation), comment)
    return found


# --- Python ---


def python() -> str:
    """The public names of jioc, and the events of a run."""
    parts = [
        "# Python",
        "`import jioc` loads no torch; a name is imported when it is first used.",
        *(part for name in jioc.__all__ if name[0] != "_" for part in _entry(f"jioc.{name}")),
        "## Events",
        "`jioc.run(callback=…)` calls back with objects of these classes of `jioc.events`.",
        *(
            part
            for kind in _classes(events)
            for part in (f"### {kind.__name__}", _signature(kind), _text(kind))
        ),
    ]
    return "\n\n".join([*(part for part in parts if part), ""])


def _entry(name: str) -> list[str]:
    """A public name: signature, docstring, and what it has that is public."""
    thing = getattr(jioc, name.rpartition(".")[2])
    parts = [f"## {name}"]
    if isinstance(thing, ModuleType):
        parts.append(_text(thing))
        for member, function in _functions(thing).items():
            parts += [f"### {name}.{member}", _signature(function, member), _text(function)]
        return parts
    parts += [_signature(thing, name), _text(thing)]
    if inspect.isclass(thing) and name != "jioc.Config":
        for member, function in _methods(thing).items():
            parts += [f"### {name}.{member}", _signature(function, member), _text(function)]
    if name == "jioc.Config":
        parts.append("Its fields are the [settings](../settings.md).")
    return parts


def _functions(module: ModuleType) -> dict[str, Any]:
    found = inspect.getmembers(module, inspect.isfunction)
    return {n: f for n, f in found if f.__module__ == module.__name__ and not n.startswith("_")}


def _methods(kind: type) -> dict[str, Any]:
    """What the class itself defines for others, in the order of its source."""
    return {
        n: f for n, f in vars(kind).items() if inspect.isfunction(f) and not n.startswith("_") and f.__doc__
    }


def _classes(module: ModuleType) -> list[type]:
    """The classes of a module, in the order of its source."""
    found = [
        kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__
    ]
    return sorted(found, key=lambda kind: inspect.getsourcelines(kind)[1])


def _signature(thing: Any, name: str = "") -> str:
    if name == "jioc.Config":
        return ""
    try:
        signature = inspect.signature(thing)
    except (ValueError, TypeError):
        return ""
    text = f"{(name or thing.__name__).removeprefix('jioc.')}{_plain(signature)}"
    text = re.sub(r"typing\.Annotated\[(\w+)(?:, \w+\([^)]*\))*\]", r"\1", text)
    return _block(re.sub(LONG, "", text), "python")


def _plain(signature: inspect.Signature) -> str:
    """A signature on one line, or with a line for each parameter where that is too long."""
    shown = [str(parameter) for parameter in signature.parameters.values() if parameter.name != "self"]
    kinds = [p.kind for p in signature.parameters.values() if p.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = signature.return_annotation
    arrow = "" if returned is signature.empty else f" -> {inspect.formatannotation(returned)}"
    line = f"({', '.join(shown)}){arrow}"
    return line if len(line) < 90 else "(\n    " + ",\n    ".join(shown) + f",\n){arrow}"


def _text(thing: Any) -> str:
    """A docstring, its examples as code."""
    text = inspect.getdoc(thing) or ""
    if inspect.isclass(thing) and re.match(rf"{thing.__name__}\(.*\)$", text, re.DOTALL):
        return ""  # what a dataclass says of itself
    return "\n\n".join(_example(_listed(part)) for part in re.split(r"\n\s*\n", text))


def _listed(part: str) -> str:
    """A section of a docstring as scikit-learn writes it (names, and below each what it is) as a list."""
    title, _, rest = part.partition("\n")
    if not re.match(r"-+\n", rest):
        return part
    lines = [f"**{title}**", ""]
    for line in rest.splitlines()[1:]:
        name, _, kind = line.partition(" : ")
        lines.append(f"    {line.strip()}" if line.startswith(" ") else f"- `{name}` ({kind}):")
    return "\n".join(lines)


def _example(paragraph: str) -> str:
    """A paragraph of code where it can be read as such, as in a module's docstring."""
    if "(" not in paragraph or not re.search(r"^(import|from|\w[\w, .\[\]\"]*(=|\())", paragraph):
        return paragraph
    with contextlib.suppress(SyntaxError):
        ast.parse(inspect.cleandoc(paragraph))
        return _block(inspect.cleandoc(paragraph), "python")
    return paragraph


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/result.md": result,
    "reference/python.md": python,
}


def main() -> int:
    for make in PAGES.values():
        print(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
