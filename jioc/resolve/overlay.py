"""Settings laid over those of a file: a flag over --config, a run of a grid over its base, a recipe under a flag."""

import copy
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from jioc.config import index
from jioc.config.schedule import rescale_milestones
from jioc.config.schema import Schedule
from jioc.config.values import Values, at, drop, flat, make
from jioc.errors import Refused
from jioc.methods.registry import find
from jioc.resolve.derive import Known


def overlay(below: Values, above: Values) -> Values:
    """Lay settings over a file's. What the file gives stays, but for what is over it or excluded by that.

    A run's own config.yaml names what was given; the rest of it is dropped where it follows from something that is over
    it, and follows anew. Milestones that were given move with the length of their stage.
    """
    both, over = copy.deepcopy(below), _given(above)
    before = _given(below)
    for path in index.affected(over, flat(below)):
        if path not in before:
            drop(both, path)
    for path in over:
        about = index.setting(path).about
        for rival in (*about.excludes, *about.resets):
            drop(both, rival)
    for key, value in above.items():
        both[key] = (
            both[key] | value if isinstance(value, dict) and isinstance(both.get(key), dict) else value
        )
    if "given" in both:
        both["given"] = [path for path in dict.fromkeys([*before, *over]) if at(both, path) is not None]
    for stage in index.STAGES:
        if at(both, f"{stage}.milestones") and at(above, f"{stage}.milestones") is None:
            both[stage]["milestones"] = _moved(below[stage], stage, both)
    return both


def _given(values: Values) -> list[str]:
    """The settings that somebody gave: those that a run's file names, otherwise all that are there."""
    named = values.get("given")
    return list(named) if isinstance(named, list) else [p for p, v in flat(values).items() if v is not None]


def _moved(written: Values, stage: str, values: Values) -> Any:
    """Milestones that were written for a stage of one length, in one of another; what is no schedule as it is."""
    with suppress(ValidationError, Refused):
        before = Schedule.model_validate(written).epochs
        now = _length(stage, values)
        if before is not None and now is not None and before != now:
            return [*rescale_milestones(Schedule.model_validate(values[stage]).milestones or (), before, now)]
    return values[stage]["milestones"]


def _length(stage: str, values: Values) -> Any:
    """Epochs of a stage: as given, or as they follow from the method and the later tasks."""
    stages = {name: values.get(name, {}) for name in index.STAGES}
    known = flat(make(method="", **stages).model_dump(include=set(index.STAGES)))
    if known[f"{stage}.epochs"] is None and isinstance(values.get("method"), str):
        known = Known(known, find(values["method"])).fill().values
    return known[f"{stage}.epochs"]
