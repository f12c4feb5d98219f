"""Lay settings over others: flags over --config, a run of a grid over its base, flags over a recipe."""

import copy
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from jioc.config import Schedule, Values, at, drop, flat, index, make, rescale_milestones
from jioc.errors import Refused
from jioc.methods import find_method
from jioc.resolve.derive import Known


def overlay(below: Values, above: Values) -> Values:
    """Lay settings over a file's. What the file gives stays, unless `above` gives or excludes it.

    A run's own config.yaml names what was given. The rest of it is dropped where `above` changes what it
    follows from, and will follow anew. Milestones that were given move with the length of their stage.
    """
    both, before, over = copy.deepcopy(below), given_names(below), given_names(above)
    changed = [path for path in over if str(at(above, path)) != str(at(below, path))]
    for path in index.affected(changed, flat(below)):
        if path not in before and at(below, path) is not None:
            drop(both, path)
    replaced = {path for path, value in flat(above).items() if value is None}
    for path in over:
        about = index.setting(path).about
        replaced.update(about.excludes, about.resets)
    for path in replaced:
        drop(both, path)
    for name, value in above.items():
        if isinstance(value, dict) and isinstance(both.get(name), dict):
            value = both[name] | value
        both[name] = value
    if "given" in both:
        both["given"] = [*dict.fromkeys([*(path for path in before if path not in replaced), *over])]
    for stage in index.STAGES:
        if at(both, f"{stage}.milestones") and at(above, f"{stage}.milestones") is None:
            both[stage]["milestones"] = _moved(below[stage], stage, both)
    return both


def given_names(values: Values) -> list[str]:
    """The settings that somebody gave: those that a run's file names, otherwise all that have a value."""
    named = values.get("given")
    return list(named) if isinstance(named, list) else [p for p, v in flat(values).items() if v is not None]


def _moved(written: Values, stage: str, values: Values) -> Any:
    """Move milestones that were written for another length of the stage; leave what is no schedule alone."""
    with suppress(ValidationError, Refused):
        before = Schedule.model_validate(written).epochs
        now = _length(stage, values)
        if before is not None and now is not None and before != now:
            return [*rescale_milestones(Schedule.model_validate(values[stage]).milestones or (), before, now)]
    return values[stage]["milestones"]


def _length(stage: str, values: Values) -> Any:
    """The epochs of a stage: as given, or as they follow from the method and the later tasks."""
    stages = {name: values.get(name, {}) for name in index.STAGES}
    known = flat(make(method="", **stages).model_dump(include=set(index.STAGES)))
    if known[f"{stage}.epochs"] is None and isinstance(values.get("method"), str):
        known = Known(known, find_method(values["method"])).fill().values
    return known[f"{stage}.epochs"]
