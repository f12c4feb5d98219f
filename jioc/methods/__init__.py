"""The methods, a short file each: the formula, the order of events, the read-outs. `specs.py` lists them.

Imports nets, data, device, the paper's modules (losses, coordination, memory) and what stands above them.
What is imported from here needs no torch: `from jioc.methods import SPECS, find_method`.
"""

from jioc.methods.record import MethodRecord, parse_record, record, spec_from_record
from jioc.methods.registry import find_method, load_method, of_model, own_options, register, sha256
from jioc.methods.source import checksum, is_ours, refuse_changed, refuse_other
from jioc.methods.specs import FIRST, SPECS, Spec
