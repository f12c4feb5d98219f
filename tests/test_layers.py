"""Which way imports point: what answers at once imports no torch, and lower layers do not know upper ones."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jioc

PACKAGE = Path(jioc.__file__).parent
WITHOUT_TORCH = (
    "__init__", "__main__", "grid.progress", "cli.main", "resolve.repeat", "config.schema", "cli.console", "cli.demo",
    "errors", "cli.export", "cli.flags", "cli.grid", "grid.plan", "grid.options", "grid.ray", "grid.slurm", "cli.learn",
    "cli.predict", "resolve.recipes", "resolve.derive", "stopping", "training.store", "data.catalogue",
    "nets.catalogue", "methods", "methods.specs",
)  # fmt: skip


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_no_torch(module: str) -> None:
    name = "jioc" if module == "__init__" else f"jioc.{module}"
    code = f"import sys, {name}; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports anywhere, as dotted names below jioc."""
    here = path.relative_to(PACKAGE).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level + 1]
            module = ".".join([*base, *((node.module or "").split(".") if node.module else [])])
            found |= {module} if module else {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("folder", ["methods", "nets", "data"])
def test_lower_layers_do_not_know_the_upper_ones(folder: str) -> None:
    upper = {
        "runner",
        "machine",
        "engine",
        "cli",
        "flags",
        "console",
        "demo",
        "estimate",
        "store",
        "checkpoint",
    }
    for path in (PACKAGE / folder).glob("*.py"):
        assert not imported(path) & upper, path.name


def test_nobody_imports_the_front_doors() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.name not in ("cli.py", "__main__.py"):
            assert not imported(path) & {"cli", "estimator"}, path.name


def test_no_flag_means_two_things() -> None:
    from jioc.config.schema import Config, Coordination, Schedule
    from jioc.methods.specs import SPECS

    shared = [*Config.model_fields, *Coordination.model_fields, *Schedule.model_fields]
    assert len(shared) == len(set(shared))
    for spec in SPECS.values():
        assert not set(spec.options.model_fields) & set(shared), spec.name
