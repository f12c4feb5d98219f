"""Somebody's Python file, imported once: a method or a data set of their own."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from .errors import Refused


def imported(path: Path) -> ModuleType:
    """The file as a module, under a name that holds its place."""
    name = f"jioc_script_{path.resolve()}"
    if name not in sys.modules:
        source = importlib.util.spec_from_file_location(name, path)
        assert source is not None and source.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(source)
        try:
            source.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise Refused(f"{str(path)!r} cannot be imported: {type(error).__name__}: {error}") from error
    return sys.modules[name]
