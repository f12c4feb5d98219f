"""What a run left behind, without what differs from one time to the next."""

import json
from pathlib import Path
from typing import Any

import torch

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


def outcome(folder: Path) -> tuple[Any, ...]:
    """Everything that must not depend on interruptions."""
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    for line in log:
        del line["seconds"], line["images_per_second"]
    return (
        figures(json.loads((folder / "result.json").read_bytes())),
        log,
        (folder / "model.safetensors").read_bytes(),
    )


def complete(folder: Path) -> list[str]:
    """The runs below a folder that are finished."""
    found = []
    for path in folder.glob("*/result.json"):
        if json.loads(path.read_bytes())["complete"]:
            found.append(path.parent.name)
    return sorted(found)


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "grid.jsonl").read_text().splitlines()]
