"""Class-incremental learning with a small memory, and JIOC on any method that keeps exemplars.

The public names are imported when first used: `import jioc` alone loads no torch.
"""

import importlib

__version__ = "0.1.0"

_HOME = {  # module and attribute of each name
    "run": "training.run:run",
    "load": "training.load:load_model",
    "losses": "losses:",
    "Config": "config:Config",
    "IncrementalClassifier": "integrations.sklearn:IncrementalClassifier",
    "JIOC": "coordination:JIOC",
    "Method": "methods.base:Method",
    "Spec": "methods:Spec",
    "register": "methods:register",
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


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'jioc' has no attribute {name!r}")
    home, attribute = _HOME[name].split(":")
    module = importlib.import_module(f"jioc.{home}")
    return getattr(module, attribute) if attribute else module
