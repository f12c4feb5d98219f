"""Checkpoints: save the states of a run, and go on from them after any interruption.

A state is a tree of dicts, lists and tuples whose leaves are tensors or plain values; it becomes one
safetensors file, the plain values as JSON in its header. Nothing is pickled. A checkpoint is a folder of
states with their checksums, renamed into place when whole:

    begin     the run as the task began
    stageN    the run as the task's stage N ended, for each stage that has
    now       the run inside the stage at hand, with its epoch, step and optimiser

So a method's `learn` needs no code for resuming: it is called again from `begin`, and each `fit` that was
already done restores what it left and returns. Everything in between is computed again from the same state,
to the same values.
"""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from jioc.device.distributed import ALONE, World
from jioc.errors import Failed, Interrupted, fail_if, first_line, is_of_the_device
from jioc.files import flush_folder, from_json, open_regular, read_bytes, write
from jioc.training.store import Store, is_checkpoint

State = dict[str, Any]
KEEP = 2  # checkpoints
RARELY = 20  # a checkpoint within a stage waits for this many times the seconds that the last one took
STATE = re.compile(r"begin|now|stage\d+")  # the names of a checkpoint's files, beside checksums.json
# what states raise that were written, with right checksums, by something else than this program
DAMAGED = (OSError, ValueError, TypeError, LookupError, AttributeError, RuntimeError, SafetensorError)


def pack(state: State) -> bytes:
    """Turn a state into the content of a safetensors file."""
    tensors: dict[str, Tensor] = {}

    def strip(value: Any, path: str) -> Any:
        match value:
            case Tensor():
                while path in tensors:  # a key may hold a slash
                    path += "/"
                tensors[path] = value.detach().to("cpu", copy=True).contiguous()
                return {"tensor": path}
            case dict() if all(type(key) is str for key in value):
                return {"map": {k: strip(v, f"{path}/{k}") for k, v in value.items()}}
            case dict():
                return {"pairs": strip(list(value.items()), path)}
            case list() | tuple():
                kind = "tuple" if isinstance(value, tuple) else "list"
                return {kind: [strip(v, f"{path}/{i}") for i, v in enumerate(value)]}
            case _:
                return {"value": value}

    return save(tensors, metadata={"tree": json.dumps(strip(state, ""))})


def unpack(path: Path) -> State:
    """Read a state from its file."""
    with safe_open(path, framework="pt") as file:

        def fill(node: dict[str, Any]) -> Any:
            match node:
                case {"tensor": path}:
                    return file.get_tensor(path)
                case {"map": parts}:
                    return {k: fill(v) for k, v in parts.items()}
                case {"pairs": pairs}:
                    return dict(fill(pairs))
                case {"list": parts}:
                    return [fill(v) for v in parts]
                case {"tuple": parts}:
                    return tuple(fill(v) for v in parts)
                case _:
                    return node["value"]

        return fill(from_json(file.metadata()["tree"]))


class Checkpointer:
    """Keeps a run resumable. `snapshot()` gives the state of the whole run, `restore(state)` takes it up.

    `restore` returns False for the state of a run that has learnt nothing and begins anew.
    With several processes the first has the store, and sends the others what it reads there.
    """

    def __init__(
        self,
        store: Store | None,
        every: float,
        snapshot: Callable[[], State],
        restore: Callable[[State], bool],
        stop: Callable[[], bool] | None = None,
        world: World = ALONE,
    ):
        self.store, self.every, self.snapshot, self.restore = store, every, snapshot, restore
        self.stop, self.world = stop or (lambda: False), world  # `stop` is asked before every step
        self._states: dict[str, str] = {}  # of this task, the latest last: names and checksums
        self._stage, self._resuming = 0, False  # of this task
        self._source: Path | None = None  # the checkpoint that is resumed from
        self._last = time.monotonic()  # when the last one was written
        self._took = 0.0  # seconds it took

    # --- between tasks ---

    def resume(self, note: Callable[[str], None]) -> bool:
        """Restore the newest whole checkpoint; return whether the run goes on from one."""
        state = self.world.broadcast(self._restore_newest(note) if self.world.first else None)
        if state is not None and not self.world.first:
            self.restore(state)
        self._resuming, self._stage = state is not None, 0
        return self._resuming

    def _restore_newest(self, note: Callable[[str], None]) -> State | None:
        """Restore the state in which the task of the newest whole checkpoint began; note the damaged ones."""
        if self.store is None:
            return None
        folders = self._folders()
        for folder in folders:
            try:
                self._states = verified(folder)
                begin = unpack(folder / "begin")
                goes_on = self.restore(begin)
                latest = unpack(folder / list(self._states)[-1])
                self.store.cut_log(latest["log"])
            except DAMAGED as error:
                if is_of_the_device(error):
                    raise
                note(f"checkpoint {folder.name} is damaged and not used: {first_line(error)}")
                continue
            for damaged in folders[: folders.index(folder)]:  # or the next would take over its states
                shutil.rmtree(set_aside(damaged), ignore_errors=True)
                damaged.rename(set_aside(damaged))
            self._source = folder
            if not goes_on and len(self._states) > 1:
                self.restore(latest)  # which has learnt something, and refuses
            return begin if goes_on else None
        kept = [name for name in ("result.json", "model.json") if (self.store.folder / name).exists()]
        fail_if(
            folders or kept,
            f"no whole checkpoint is left in {str(self.store.checkpoints)!r}; start again in another folder",
        )
        self.store.cut_log(0)
        return None

    def begin_task(self) -> None:
        """Save the run as a task begins."""
        self._states, self._stage, self._resuming = {}, 0, False
        self._write("begin", self.snapshot())

    # --- within a task ---

    def resume_stage(self) -> State | None:
        """Restore the run to where the stage was left; return its progress, or None if it begins."""
        if not self._resuming:
            return None
        name, state = self.world.broadcast(self._reached() if self.world.first else None)
        if state is not None:
            self._restore_stage(name, state)
        if name != "now":
            self._stage += 1
            return {"finished": True}
        self._resuming = False
        return None if state is None else state["progress"]

    def _restore_stage(self, name: str, state: State) -> None:
        try:
            self.restore(state)
        except DAMAGED as error:
            if is_of_the_device(error):
                raise
            where = "the checkpoint" if self._source is None else repr(str(self._source))
            why = f"its state {name!r} is damaged: {first_line(error)}"
            raise Failed(
                f"{where} cannot be used: {why}; without it, --resume goes on from the one before"
            ) from None

    def _reached(self) -> tuple[str, State | None]:
        """Read how far this stage had come: its end, a moment within it, or nothing."""
        assert self._source is not None
        name = f"stage{self._stage}" if f"stage{self._stage}" in self._states else "now"
        return name, unpack(self._source / name) if name in self._states else None

    def end_epoch(self, progress: Callable[[], State]) -> None:
        """Save the run within a stage, if the last checkpoint is old enough."""
        due = time.monotonic() - self._last >= max(self.every, RARELY * self._took)
        if self.store is not None and due:
            self._write("now", self.snapshot() | {"progress": progress()})

    def save_and_stop_if_asked(self, progress: Callable[[], State]) -> None:
        """Save the run and raise `Interrupted`, if any process was asked to stop."""
        if self.world.any(self.stop()):
            self._write("now", self.snapshot() | {"progress": progress()})
            self.world.barrier()
            raise Interrupted("stopped; the run can be resumed" if self.store is not None else "stopped")

    def stop_if_asked(self) -> None:
        """Raise `Interrupted` where nothing is trained, so that the task begins again."""
        if self.world.any(self.stop()):
            raise Interrupted("stopped; the run can be resumed" if self.store is not None else "stopped")

    def end_stage(self) -> None:
        """Save the run as a stage ends."""
        self._states.pop("now", None)
        self._write(f"stage{self._stage}", self.snapshot())
        self._stage += 1

    # --- files ---

    def _folders(self) -> list[Path]:
        """The checkpoints, newest first."""
        assert self.store is not None
        return sorted(
            (f for f in self.store.checkpoints.iterdir() if is_checkpoint(f)),
            key=lambda f: int(f.name),
            reverse=True,
        )

    def _write(self, name: str, state: State) -> None:
        """Write a checkpoint: this state, and the earlier ones of this task."""
        if self.store is None:
            return
        started, folders = time.monotonic(), self._folders()
        number = int(folders[0].name) + 1 if folders else 1
        temporary = self.store.checkpoints / f".{number:06d}.partial"
        shutil.rmtree(temporary, ignore_errors=True)
        with self.store.writing():
            try:
                self._fill(temporary, name, state, folders)
                os.rename(temporary, self.store.checkpoints / f"{number:06d}")
            finally:
                shutil.rmtree(temporary, ignore_errors=True)  # what a failing disk left
            flush_folder(self.store.checkpoints)
            for folder in folders[KEEP - 1 :]:
                shutil.rmtree(folder)
        self._last = time.monotonic()
        self._took = self._last - started

    def _fill(self, temporary: Path, name: str, state: State, folders: list[Path]) -> None:
        temporary.mkdir()
        for earlier, checksum in self._states.items():
            if earlier != name:
                _take_over(earlier, checksum, folders, temporary)
        content = pack(state)
        self._states[name] = hashlib.sha256(content).hexdigest()
        write(temporary / name, content)
        write(temporary / "checksums.json", json.dumps(self._states).encode())


def set_aside(damaged: Path) -> Path:
    """Where a checkpoint that cannot be used stays, for whoever wants to know why."""
    return damaged.with_name(f"{damaged.name}.damaged")


def _take_over(name: str, checksum: str, folders: list[Path], into: Path) -> None:
    """Take over an earlier state: link the copy in the checkpoint that is about to be deleted, else copy it.

    So no two checkpoints share a file, and damage to one leaves the other whole.
    """
    oldest = folders[KEEP - 1] if len(folders) >= KEEP else None
    if oldest is not None and _checksums(oldest).get(name) == checksum:
        try:
            os.link(oldest / name, into / name)
            return
        except OSError:
            pass  # not every file system has links
    shutil.copyfile(folders[0] / name, into / name)


def _checksums(folder: Path) -> dict[str, str]:
    return from_json(read_bytes(folder / "checksums.json"))


def verified(folder: Path) -> dict[str, str]:
    """Check every state of a checkpoint; return their checksums."""
    checksums = _checksums(folder)
    if (
        not isinstance(checksums, dict)
        or "begin" not in checksums
        or not all(map(STATE.fullmatch, checksums))
    ):
        raise ValueError("its list of checksums is not whole")
    for name, checksum in checksums.items():
        with open_regular(folder / name) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != checksum:
            raise ValueError(f"{name} does not match its checksum")
    return checksums
