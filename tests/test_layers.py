"""Which way imports point: a row of the architecture imports only rows above it; nothing imports in a circle.

What answers at once imports no torch.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jioc

PACKAGE = Path(jioc.__file__).parent
ROWS = (  # docs/architecture.md draws them; a row may import those above it, and itself without a circle
    ("errors", "text", "files", "scripts", "stopping", "torchrun", "results", "events", "types", "terminal"),
    ("config",),
    ("losses", "coordination", "memory", "metrics", "diagnostics"),
    ("device",),
    ("data",),
    ("nets",),
    ("methods",),
    ("resolve",),
    ("training",),
    ("report",),
    ("grid",),
    ("integrations",),
    ("cli",),
    ("__init__", "__main__"),
)
ROW = {name: i for i, names in enumerate(ROWS) for name in names}
Graph = dict[str, set[str]]


def modules(package: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name below it; a folder goes by its own name."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def import_graph(package: Path, name: str = "jioc") -> Graph:
    """Which modules of the package each module imports, in functions and under TYPE_CHECKING too."""
    every = modules(package)
    graph: Graph = {module: set() for module in every}
    for module, path in every.items():
        for node in ast.walk(ast.parse(path.read_text())):
            targets: list[str] = []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}: imports are absolute"
                targets = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module or ""]
            elif isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            below = {target.removeprefix(f"{name}.") for target in targets if target.startswith(f"{name}.")}
            graph[module] |= {target for target in below if target in every and target != module}
    return graph


def type_checking(package: Path) -> set[tuple[str, str]]:
    """Imports for annotations alone. They never run, so they may close a circle."""
    found = set()
    for module, path in modules(package).items():
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.If)
                and isinstance(node.test, ast.Name)
                and node.test.id == "TYPE_CHECKING"
            ):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.ImportFrom) and inner.module:
                        found.add((module, inner.module.removeprefix("jioc.")))
    return found


def row(module: str) -> int:
    return ROW[module.partition(".")[0]]


def wrong_way(graph: Graph) -> list[str]:
    return [f"{a} imports {b}" for a, targets in graph.items() for b in sorted(targets) if row(b) > row(a)]


def circles(graph: Graph) -> list[str]:
    """Modules that import themselves through others, each circle once."""
    done: set[str] = set()
    found: list[str] = []

    def visit(module: str, path: tuple[str, ...]) -> None:
        if module in path:
            found.append(" -> ".join((*path[path.index(module) :], module)))
        elif module not in done:
            for target in sorted(graph[module]):
                visit(target, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())
    return found


def test_every_module_has_its_row() -> None:
    assert {module.partition(".")[0] for module in modules(PACKAGE)} == set(ROW)


def test_no_import_points_down_the_rows() -> None:
    assert wrong_way(import_graph(PACKAGE)) == []


def test_no_module_imports_itself_through_others() -> None:
    graph, annotations = import_graph(PACKAGE), type_checking(PACKAGE)
    running = {a: {b for b in targets if (a, b) not in annotations} for a, targets in graph.items()}
    assert circles(running) == []


@pytest.mark.parametrize(
    ("module", "line", "message"),
    [
        ("losses", "from jioc.training import engine", "losses imports training.engine"),
        (
            "config/values",
            "def late():\n    from jioc.cli.main import main",
            "config.values imports cli.main",
        ),
        ("data/catalogue", "import jioc.nets.heads", "data.catalogue imports nets.heads"),
    ],
)
def test_an_import_the_wrong_way_is_noticed(module: str, line: str, message: str, tmp_path: Path) -> None:
    for name, path in modules(PACKAGE).items():
        copy = tmp_path / path.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        added = f"\n{line}\n" if name == module.replace("/", ".") else ""
        copy.write_text(path.read_text() + added)
    assert message in wrong_way(import_graph(tmp_path))


def test_a_circle_is_noticed() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a -> b -> c -> a"]


def test_nobody_imports_the_command_line() -> None:
    for module, targets in import_graph(PACKAGE).items():
        if row(module) < ROW["cli"]:
            assert not {target for target in targets if target.startswith("cli")}, module


# --- without torch ---

WITHOUT_TORCH = (
    "__init__", "__main__", "events", "results", "stopping", "config.schema", "config.values",
    "data.catalogue", "data.find", "nets.catalogue", "methods", "methods.registry", "resolve.derive",
    "resolve.recipes", "resolve.repeat", "training.store", "report.runs", "grid.plan", "grid.options",
    "grid.progress", "grid.ray", "grid.slurm", "cli.main", "cli.run", "cli.grid", "cli.learn", "cli.predict",
    "cli.export", "cli.table", "cli.list", "cli.completion",
)  # fmt: skip


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_no_torch(module: str) -> None:
    name = "jioc" if module == "__init__" else f"jioc.{module}"
    code = f"import sys, {name}; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
