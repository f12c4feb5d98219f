"""Class-incremental learning with a small memory, and JIOC on any method that keeps exemplars.

The public names are imported when first used: `import jioc` alone loads no torch.
"""

import importlib

__version__ = "0.1.0"

_HOME = {
    "run": "training.run",
    "load": "training.load:load_model",
    "Config": "config",
    "IncrementalClassifier": "integrations.sklearn",
    "JIOC": "coordination",
    "Method": "methods.base",
    "Spec": "methods",
    "register": "methods",
}

__all__ = [
    "JIOC",
    "Config",
    "IncrementalClassifier",
    "Method",
    "Spec",
    "__version__",
    "load",
    "losses",
    "register",
    "run",
]


def __getattr__(name: str) -> object:
    if name == "losses":
        return importlib.import_module("jioc.losses")
    if name not in _HOME:
        raise AttributeError(f"module 'jioc' has no attribute {name!r}")
    module, _, attribute = _HOME[name].partition(":")
    return getattr(importlib.import_module(f"jioc.{module}"), attribute or name)
