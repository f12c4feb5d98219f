"""Kill a command at each of its file operations, and do it again: it ends as if it had been left alone.

An operation is an open for writing, a rename, a removal, a new folder, a link, a flush to the disk.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fuzz import places
from fuzz.bench import Bench, Outcome
from fuzz.places import Line
from helpers.runs import outcome
from jioc.training.model import TENSORS


@dataclass(frozen=True)
class Command:
    """A command, what it leaves, and what holds at any moment."""

    line: Line
    left: Callable[[Path], Any]  # of the case's folder
    again: str = ""  # more words the second time
    done: str | None = None  # what the second time may say if the first had come to its end
    any_moment: Line | None = None  # a command that succeeds, whenever the first was killed
    whole: str | None = None  # a file that is not there or whole


COMMANDS = {
    "run": Command(
        Line(f"{places.RUN} --checkpoint-every 0 --out made", ("photos", "cache"), ("made", "cache")),
        lambda folder: (outcome(folder / "made"), litter(folder)), again="--resume",
    ),
    "learn": Command(
        Line("learn run more --epochs 1 --device cpu", ("run", "more", "photos"), ("run", "cache")),
        lambda folder: model(folder / "run"),
        done="already learnt", any_moment=places.PREDICT,
    ),
    "grid": Command(
        Line("grid recipe.yaml --out G --device cpu", ("recipe.yaml", "photos", "cache"), ("G", "cache")),
        lambda folder: ([outcome(path) for path in sorted(folder.glob("G/*-seed1"))], litter(folder)),
    ),
    "cache": Command(
        Line("data check HERE/photos --image-size 8 --counts", ("photos",), ("cache",)),
        lambda folder: ([path.read_bytes() for path in sorted(folder.glob("cache/*/*"))], litter(folder)),
    ),
    "report": Command(
        places.REPORT, lambda folder: (folder / "out/page.html").read_bytes(), whole="out/page.html"
    ),
    "export": Command(
        places.EXPORT, lambda folder: (folder / "out/model.onnx").read_bytes(), whole="out/model.onnx"
    ),
}  # fmt: skip


def model(folder: Path) -> list[bytes]:
    """The files of a model; a new one may still lie under its first name (`training/model.py`)."""
    files = [folder / name for name in ("model.json", *TENSORS)]
    coming = [path.with_name(f"{path.stem}.next{path.suffix}") for path in files]
    return [(new if new.exists() else path).read_bytes() for path, new in zip(files, coming, strict=True)]


def litter(folder: Path) -> list[str]:
    """What a killed process leaves and the next should clear away."""
    return [str(path) for path in folder.rglob("*.partial")]


class Crash:
    """A command that was left alone, to be killed at its operations."""

    def __init__(self, bench: Bench, name: str):
        self.bench, self.name, self.command = bench, name, COMMANDS[name]
        self.case = self.command.line.case(f"crash: {name}", {})
        self.alone = bench.carry_out(self.case)
        assert self.alone.status == 0 and not self.alone.faults, self.alone
        self.left, self.operations = self.command.left(bench.here), self.alone.operations

    def at(self, operation: int) -> Outcome:
        """Kill the command there and do it again."""
        bench, command, case = self.bench, self.command, self.case
        killed = bench.carry_out(case, kill_at=operation)
        faults = list(killed.faults)
        if killed.status == 0:  # it had fewer operations this time
            return replace(killed, faults=faults)
        if command.whole and (path := bench.here / command.whole).exists() and path.read_bytes() != self.left:
            faults.append(f"{command.whole} was not whole")
        if command.any_moment is not None:
            then = bench.carry_out(replace(command.any_moment.case(case.kind, {}), parts=()), keep=True)
            faults += then.faults + [f"then {then.err.strip()!r}"] * (then.status != 0)
        again = bench.carry_out(replace(case, argv=(*case.argv, *command.again.split())), keep=True)
        faults += again.faults
        if again.status != 0 and not (command.done and command.done in again.err):
            faults.append(f"again: status {again.status}: {again.err.strip()!r}")
        elif command.left(bench.here) != self.left:
            faults.append("it did not end as if left alone")
        told = f"killed at file operation {operation} of {self.operations}"
        return replace(killed, faults=[f"{told}: {fault}" for fault in faults])


def every(bench: Bench) -> Iterator[Outcome]:
    """Each command killed at each operation, one of each command in turn; the slow one last."""
    crashes = [Crash(bench, name) for name in COMMANDS if name != "export"]
    for operation in range(1, max(crash.operations for crash in crashes) + 1):
        for crash in crashes:
            if operation <= crash.operations:
                yield crash.at(operation)
    export = Crash(bench, "export")
    yield from map(export.at, range(1, export.operations + 1))
