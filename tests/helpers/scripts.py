"""Scripts that lie beside the package as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from helpers.paths import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def script(name: str) -> ModuleType:
    """Import a script of benchmarks/."""
    return load(ROOT / "benchmarks" / f"{name}.py")


def load(path: Path) -> ModuleType:
    """Import a script as where it is run: the others stand beside it."""
    source = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert source is not None and source.loader is not None
    module = sys.modules[source.name] = importlib.util.module_from_spec(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)
        source.loader.exec_module(module)
    return module
