"""The methods, a short file each: the formula, the order of events, the read-outs. `specs.py` lists them.

Imports nets, data, device, the paper's modules (losses, coordination, memory) and what stands above them.
"""

from jioc.methods.registry import load, register
from jioc.methods.specs import SPECS, Spec

__all__ = ["SPECS", "Spec", "load", "register"]
