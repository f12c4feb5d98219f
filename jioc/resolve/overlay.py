"""Lay settings over others: flags over --config, a run of a grid over its base, flags over a recipe."""

from contextlib import suppress
from typing import Any

from jioc.config import Values, check_given, flat, index, make, nested, rescale_milestones
from jioc.errors import Refused
from jioc.methods import find_method
from jioc.resolve.derive import Known


def overlay(below: Values, above: Values) -> Values:
    """Lay settings over a file's. What the file gives stays, unless `above` gives or excludes it.

    A run's own config.yaml names what was given. The rest of it is dropped where `above` changes what it
    follows from, and will follow anew. Milestones that were given move with the length of their stage.
    """
    old, new = flat(below), flat(above)
    given_below, given_above = given_names(below), given_names(above)
    changed = [path for path in given_above if str(new.get(path)) != str(old.get(path))]
    follow_anew = set(index.affected(changed, old)).difference(given_below)
    rivals = (about.excludes + about.resets for about in (index.setting(path).about for path in given_above))
    replaced = {path for path, value in new.items() if value is None}.union(*rivals)
    both = {path: value for path, value in old.items() if path not in follow_anew | replaced} | new
    if "given" in both:
        both["given"] = [*dict.fromkeys([*(p for p in given_below if p not in replaced), *given_above])]
    for stage in index.STAGES:
        path = f"{stage}.milestones"
        if both.get(path) and new.get(path) is None:
            both[path] = _moved(both, stage, old.get(f"{stage}.epochs"))
    return nested(both)


def given_names(values: Values) -> list[str]:
    """The settings that somebody gave: those that a run's file names, otherwise all that have a value."""
    named = values.get("given")
    if named is None:
        return [path for path, value in flat(values).items() if value is not None]
    check_given(named)
    return list(named)


def _moved(values: Values, stage: str, written_for: Any) -> Any:
    """Move milestones that were written for so many epochs; leave what is no schedule alone."""
    stages = {path: value for path, value in values.items() if path.partition(".")[0] in index.STAGES}
    with suppress(Refused):
        before = getattr(make(method="", **nested(stages | {f"{stage}.epochs": written_for})), stage)
        now = flat(make(method="", **nested(stages)).model_dump(include={*index.STAGES}))
        if now[f"{stage}.epochs"] is None and isinstance(values.get("method"), str):
            now = Known(now, find_method(values["method"])).fill().values
        epochs = now[f"{stage}.epochs"]
        if before.epochs and epochs and before.epochs != epochs:
            return [*rescale_milestones(before.milestones, before.epochs, epochs)]
    return values[f"{stage}.milestones"]
