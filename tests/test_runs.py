"""Whole runs on the digits: what holds for every method."""

from typing import Any

import pytest

from jioc.methods.specs import SPECS
from jioc.runner import run


def figures(result: dict[str, Any]) -> dict[str, Any]:
    """A result without its times and its provenance."""
    timed = ("seconds", "images_per_second")
    rows = [{k: v for k, v in row.items() if k not in timed} for row in result["tasks"]]
    return {k: result[k] for k in ("classes", "counts", "average", "last", "forgetting", "complete")} | {"tasks": rows}


@pytest.mark.parametrize("method", SPECS)
def test_same_settings_give_the_same_result(method: str, small: dict[str, Any]) -> None:
    assert figures(run(method=method, **small)) == figures(run(method=method, **small))
