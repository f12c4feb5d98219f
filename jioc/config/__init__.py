"""What can be set: every setting with its type, default and help, and the files that settings are kept in.

`schema` declares them in the words of `declare`, `index` answers questions about all of them, `values` turns
them into plain values and back, `files` reads and writes YAML, `earlier` has the words of earlier versions,
`schedule` has rates, epochs and milestones.
Imports only the modules beside this folder; neither torch nor numpy. Others import from here:
`from jioc.config import Config, make`, and the modules `index` and `files`.
"""

from jioc.config.declare import (
    SECTIONS,
    About,
    Above0,
    Amount,
    Count,
    Options,
    Positive,
    Seed,
    Share,
    Within01,
    setting,
)
from jioc.config.earlier import GONE, as_now, upgraded
from jioc.config.schedule import lr_at, rescale, rescale_milestones, total_epochs
from jioc.config.schema import (
    READING,
    READING_OF_EXPANDING,
    READINGS,
    TEMPERATURE,
    Config,
    Coordinate,
    Coordination,
    HostKD,
    Reading,
    Schedule,
)
from jioc.config.values import (
    Values,
    at,
    by_keys,
    by_names,
    check_given,
    differences,
    digest,
    flat,
    images_key,
    make,
    nested,
    plain,
    refusal,
)
