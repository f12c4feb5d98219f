"""What a run left behind, without what differs from one time to the next."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jioc.events import Callback, Event, Note
from jioc.results import Record
from jioc.training.checkpoint import unpack

Weights = dict[str, torch.Tensor]


def plain(row: Any) -> dict[str, Any]:
    """A row of a result, or of its file."""
    return row.plain() if isinstance(row, Record) else row


def figures(result: Any) -> dict[str, Any]:
    """A result without its times and its provenance."""
    timed = ("seconds", "images_per_second")
    rows = [{k: v for k, v in plain(row).items() if k not in timed} for row in result["tasks"]]
    return {k: result[k] for k in ("classes", "counts", "average", "last", "forgetting", "complete")} | {
        "tasks": rows
    }


def weights(folder: Path) -> Weights:
    return unpack(folder / "model.safetensors")["net"]


def same(a: Weights, b: Weights) -> bool:
    return a.keys() == b.keys() and all(a[name].equal(b[name]) for name in a)


def logged(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's log, an epoch each."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def outcome(folder: Path) -> tuple[Any, ...]:
    """Everything that must not depend on interruptions."""
    log = logged(folder)
    for line in log:
        del line["seconds"], line["images_per_second"]
    return (
        figures(json.loads((folder / "result.json").read_bytes())),
        log,
        (folder / "model.safetensors").read_bytes(),
    )


def same_state(a: Any, b: Any) -> bool:
    """Whether two trees of tensors and plain values are equal, bit for bit."""
    if isinstance(a, Tensor):
        return torch.equal(a.nan_to_num(7), b.nan_to_num(7)) if a.is_floating_point() else torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_state, a, b))
    return a == b


def collect(kind: type, into: list[Any]) -> Callback:
    """A callback that collects the events of a kind."""

    def tell(event: Event) -> None:
        if isinstance(event, kind):
            into.append(event)

    return tell


def collect_notes(into: list[str]) -> Callback:
    """A callback that collects the texts of the notes."""
    return lambda event: into.append(event.text) if isinstance(event, Note) else None


def stop_after(steps: int) -> Callable[[], bool]:
    """A `stop` that says yes once this many steps are done."""
    asked = itertools.count()
    return lambda: next(asked) == steps


def complete(folder: Path) -> list[str]:
    """The runs below a folder that are finished."""
    found = []
    for path in folder.glob("*/result.json"):
        if json.loads(path.read_bytes())["complete"]:
            found.append(path.parent.name)
    return sorted(found)


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "grid.jsonl").read_text().splitlines()]
