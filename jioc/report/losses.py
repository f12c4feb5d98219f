"""Read the losses of a run from the log.jsonl beside its result.json, thinned to what a screen shows."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from jioc.files import from_json, read_bytes
from jioc.report.group import collect
from jioc.text import printable

LOG = "log.jsonl"
MOST_BYTES = 1 << 26  # of a log; a larger one is not read
POINTS = 160  # of a run, over all its tasks
LEAST = 3  # of a task
TERMS = 12  # at most, of a loss
LARGEST = 1e39  # no float32 is larger


@dataclass
class Losses:
    """The mean of each term of the loss, epoch by epoch."""

    at: list[float] = field(default_factory=list)  # 2.5: half of the epochs of the third task are done
    terms: dict[str, list[float | None]] = field(default_factory=dict)
    not_finite: list[int] = field(default_factory=list)  # the tasks with a term that is not a finite number

    def plain(self) -> dict[str, Any] | None:
        return {"at": self.at, "terms": self.terms} if self.at and self.terms else None


@dataclass(frozen=True)
class _Line:
    """What a line of the log says of an epoch."""

    task: int
    stage: str
    epochs: int  # of its stage
    terms: dict[str, float]
    finite: bool


def read(folder: Path) -> Losses:
    """Read a run's log. Without one, or where it cannot be read, there is no loss to show."""
    try:
        content = read_bytes(folder / LOG, MOST_BYTES)
    except OSError:
        return Losses()
    lines = [line for raw in content.splitlines() if (line := _line(raw)) is not None]
    tasks = collect((line.task, line) for line in lines)
    names = list(dict.fromkeys(name for line in lines for name in line.terms))[:TERMS]
    losses = Losses(terms={name: [] for name in names})
    losses.not_finite = [task for task, some in tasks.items() if not all(line.finite for line in some)]
    room = max(LEAST, POINTS // max(1, len(tasks)))
    for task, some in tasks.items():
        stages = {line.stage: line.epochs for line in some}
        epochs = max(sum(stages.values()), len(some))
        step = -(-len(some) // room)
        for start in range(0, len(some), step):
            together = some[start : start + step]
            losses.at.append(_short(task - 1 + (start + len(together)) / epochs, 5))
            for name in names:
                losses.terms[name].append(_mean(line.terms[name] for line in together if name in line.terms))
    return losses


def _line(raw: bytes) -> _Line | None:
    """Understand a line; None of one that is damaged, as the last of a killed run may be."""
    try:
        value = from_json(raw)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("terms"), dict):
        return None
    task, epochs = value.get("task"), value.get("epochs")
    if not (_is_count(task) and _is_count(epochs)):
        return None
    numbers = {printable(name)[:64]: v for name, v in value["terms"].items() if isinstance(v, int | float)}
    terms = {name: float(v) for name, v in numbers.items() if abs(v) <= LARGEST}
    return _Line(task, str(value.get("stage")), epochs, terms, len(terms) == len(value["terms"]))


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**6


def _mean(values: Iterable[float]) -> float | None:
    some = list(values)
    return _short(sum(some) / len(some), 4) if some else None


def _short(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
