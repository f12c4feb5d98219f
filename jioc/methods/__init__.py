"""The methods, a short file each: the formula, the order of events, the read-outs. `specs.py` lists them.

Imports nets, data, device, the paper's modules (losses, coordination, memory) and what stands above them.
What is imported from here needs no torch: `from jioc.methods import SPECS, find_method`.
"""

from jioc.methods.registry import (
    checksum,
    find_method,
    is_ours,
    load_method,
    of_model,
    own_options,
    refuse_changed,
    refuse_other,
    register,
    sha256,
)
from jioc.methods.specs import (
    FIRST,
    SPECS,
    BiCOptions,
    COILOptions,
    DEROptions,
    Distilling,
    FOSTEROptions,
    ICaRLOptions,
    LwFOptions,
    MethodRecord,
    PODNetOptions,
    RanPACOptions,
    Spec,
    SSILOptions,
    parse_record,
    record,
    spec_from_record,
)
