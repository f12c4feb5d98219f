"""One file a method; `specs` says what can be known of each without importing torch."""

from jioc.methods.specs import SPECS, Spec, load, register

__all__ = ["SPECS", "Spec", "load", "register"]
