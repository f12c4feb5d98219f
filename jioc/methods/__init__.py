"""One short file a method: its formula, the order of events, its read-outs. `specs.py` lists them all, without torch.

Imports nets, data, device, the paper's modules (losses, coordination, memory) and what stands above them.
"""

from jioc.methods.registry import load, register
from jioc.methods.specs import SPECS, Spec

__all__ = ["SPECS", "Spec", "load", "register"]
