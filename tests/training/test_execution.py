"""How a step is executed: readings of JIOC that look at a whole batch are refused for a part of one."""

from pathlib import Path
from typing import Any

import pytest
import torch

from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve.derive import resolve
from jioc.training.execution import choose_execution
from jioc.training.run import run


@pytest.mark.parametrize(
    ("readings", "told"),
    [
        ({"coordinate": "jioc", "delta_scale": "mean1"}, "--delta-scale mean1"),
        ({"coordinate": "ic", "delta_scale": "per-class"}, "--delta-scale per-class"),
        ({"coordinate": "oc", "suppress_scale": "batch"}, "--suppress-scale batch"),
        ({"coordinate": "jioc", "suppress_scale": "old-mean"}, "--suppress-scale old-mean"),
    ],
)
def test_what_looks_at_a_whole_batch_is_refused(
    readings: dict[str, str], told: str, small: dict[str, Any], tmp_path: Path
) -> None:
    words = f"^{told} looks at a whole batch, of which --accumulate works through a part at a time$"
    with pytest.raises(Refused, match=words):
        run(method="icarl", accumulate=2, coordination=readings, out=tmp_path / "run", **small)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("coordinate", ["none", "ic"])
def test_a_reading_that_has_no_part_in_the_loss_is_not_refused(coordinate: str) -> None:
    readings = {"coordinate": coordinate, "suppress_scale": "old-mean"}
    config = resolve(settings.make(method="icarl", accumulate=2, coordination=readings))
    assert choose_execution(config, torch.device("cpu"), True).parts == 2
