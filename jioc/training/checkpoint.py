"""Checkpoints: states of a run that survive anything, and the going on from them.

A state is a tree of dicts, lists and tuples whose leaves are tensors or plain values; it becomes one safetensors file,
the plain values as JSON in its header. Nothing is pickled. A checkpoint is a folder of states with their checksums,
renamed into place when whole:

    begin     the run as the task began
    stageN    the run as the task's stage N ended, for each stage that has
    now       the run inside the stage at hand, with its epoch, step and optimiser

So a method's `learn` needs no code for resuming: it is called again from `begin`, and each `fit` that was already done
restores what it left and returns. Everything in between is computed again from the same state, to the same values.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from jioc.device.distributed import ALONE, World
from jioc.errors import Failed, Interrupted
from jioc.files import flush_folder, write
from jioc.training.store import Store

State = dict[str, Any]
KEPT = 2


def pack(state: State) -> bytes:
    tensors: dict[str, Tensor] = {}

    def strip(value: Any, path: str) -> Any:
        if isinstance(value, Tensor):
            while path in tensors:  # a key may have a stroke in it
                path += "/"
            tensors[path] = value.detach().to("cpu", copy=True).contiguous()
            return {"tensor": path}
        if isinstance(value, dict) and all(type(key) is str for key in value):
            return {"map": {k: strip(v, f"{path}/{k}") for k, v in value.items()}}
        if isinstance(value, dict):
            return {"pairs": strip(list(value.items()), path)}
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [strip(v, f"{path}/{i}") for i, v in enumerate(value)]}
        return {"value": value}

    tree = json.dumps(strip(state, ""))
    return save(tensors, metadata={"tree": tree})


def unpack(path: Path) -> State:
    with safe_open(path, framework="pt") as file:
        tree = json.loads(file.metadata()["tree"])

        def fill(node: dict[str, Any]) -> Any:
            ((kind, value),) = node.items()
            if kind == "tensor":
                return file.get_tensor(value)
            if kind == "map":
                return {k: fill(v) for k, v in value.items()}
            if kind == "pairs":
                return dict(fill(value))
            if kind in ("list", "tuple"):
                parts = [fill(v) for v in value]
                return tuple(parts) if kind == "tuple" else parts
            return value

        return fill(tree)


class Checkpointer:
    """Keeps a run resumable. `snapshot()` gives the whole state of the run, `restore(state)` takes it up again.

    Of several processes the first has the store; what it reads there, it sends to the others.
    """

    def __init__(
        self,
        store: Store | None,
        every: float,
        snapshot: Callable[[], State],
        restore: Callable[[State], None],
        stop: Callable[[], bool] | None = None,
        world: World = ALONE,
    ):
        self.store, self.every, self.snapshot, self.restore = store, every, snapshot, restore
        self.stop = stop or (lambda: False)  # asked before every step
        self.world = world
        self._pieces: dict[str, str] = {}  # states of the task at hand and their checksums, the latest last
        self._stage = 0
        self._resuming = False  # whether a checkpoint is being resumed from
        self._source: Path | None = None  # that one, where the store is
        self._last = time.monotonic()

    # --- between tasks ---

    def resume(self, note: Callable[[str], None]) -> bool:
        """Restore the newest whole checkpoint; False where there is none at all."""
        state = self._newest(note) if self.world.first else None
        if self.world.size > 1:
            state = self.world.broadcast(state)
            if state is not None and not self.world.first:
                self.restore(state)
        self._resuming, self._stage = state is not None, 0
        return self._resuming

    def _newest(self, note: Callable[[str], None]) -> State | None:
        """The state in which the task of the newest whole checkpoint began, restored."""
        if self.store is None:
            return None
        folders = self._folders()
        for folder in folders:
            try:
                self._pieces = verified(folder)
                begin = unpack(folder / "begin")
                self.restore(begin)
                latest = unpack(folder / list(self._pieces)[-1])
            except (OSError, ValueError, KeyError, SafetensorError) as error:
                note(f"checkpoint {folder.name} is damaged and not used: {error}")
                continue
            self.store.cut_log(latest["log"])
            for damaged in folders[: folders.index(folder)]:
                shutil.rmtree(damaged)  # or the next checkpoint would bring its states along
            self._source = folder
            return begin
        if folders:
            raise Failed(
                f"no whole checkpoint is left in {str(self.store.checkpoints)!r}; start again in another folder"
            )
        self.store.cut_log(0)
        return None

    def begin_task(self) -> None:
        """Save the run as a task begins."""
        self._pieces, self._stage, self._resuming = {}, 0, False
        self._write({"begin": self.snapshot()})

    # --- within a task ---

    def resume_stage(self) -> State | None:
        """Restore the run to where the stage was left, and give its progress; None: it trains from its start."""
        if not self._resuming:
            return None
        name, state = self.world.broadcast(self._reached() if self.world.first else None)
        if state is not None:
            self.restore(state)
        if name != "now":
            self._stage += 1
            return {"finished": True}
        self._resuming = False
        return None if state is None else state["progress"]

    def _reached(self) -> tuple[str, State | None]:
        """How far the stage at hand had come: its end, a moment of it, or nothing that was kept."""
        assert self._source is not None
        name = f"stage{self._stage}" if f"stage{self._stage}" in self._pieces else "now"
        return name, unpack(self._source / name) if name in self._pieces else None

    def end_epoch(self, progress: Callable[[], State]) -> None:
        """Save the run within a stage, if the last time is long enough ago."""
        if self.store is not None and time.monotonic() - self._last >= self.every:
            self._write({"now": self.snapshot() | {"progress": progress()}})

    def save_and_stop_if_asked(self, progress: Callable[[], State]) -> None:
        if self.world.any(self.stop()):
            self._write({"now": self.snapshot() | {"progress": progress()}})
            self.world.barrier()
            raise Interrupted("stopped; the run can be resumed" if self.store is not None else "stopped")

    def end_stage(self) -> None:
        """Save the run as a stage ends."""
        self._pieces.pop("now", None)
        self._write({f"stage{self._stage}": self.snapshot()})
        self._stage += 1

    # --- files ---

    def _folders(self) -> list[Path]:
        """Newest first."""
        assert self.store is not None
        return sorted(
            (f for f in self.store.checkpoints.iterdir() if f.name.isdigit() and f.is_dir()),
            key=lambda f: int(f.name),
            reverse=True,
        )

    def _write(self, fresh: dict[str, State]) -> None:
        if self.store is None:
            return
        folders = self._folders()
        number = int(folders[0].name) + 1 if folders else 1
        temporary = self.store.checkpoints / f".{number:06d}.partial"
        shutil.rmtree(temporary, ignore_errors=True)
        with self.store.writing():
            try:
                self._fill(temporary, fresh, folders)
                os.rename(temporary, self.store.checkpoints / f"{number:06d}")
            finally:
                shutil.rmtree(
                    temporary, ignore_errors=True
                )  # where the disk failed, what was written for nothing
            flush_folder(self.store.checkpoints)
            for folder in folders[KEPT - 1 :]:
                shutil.rmtree(folder)
        self._last = time.monotonic()

    def _fill(self, temporary: Path, fresh: dict[str, State], folders: list[Path]) -> None:
        """The states of the task at hand, of which some are new."""
        temporary.mkdir()
        for name, checksum in self._pieces.items():
            if name not in fresh:
                _carry(name, checksum, folders, temporary)
        for name, state in fresh.items():
            content = pack(state)
            self._pieces[name] = hashlib.sha256(content).hexdigest()
            write(temporary / name, content)
        write(temporary / "checksums.json", json.dumps(self._pieces).encode())


def _carry(name: str, checksum: str, folders: list[Path], into: Path) -> None:
    """Bring an earlier state along: a link to the copy that is about to be dropped, else a copy.

    So no two checkpoints that are kept share a file, and damage to one leaves the other whole.
    """
    leaving = folders[KEPT - 1] if len(folders) >= KEPT else None
    if leaving is not None and _checksums(leaving).get(name) == checksum:
        try:
            os.link(leaving / name, into / name)
            return
        except OSError:
            pass  # not every file system links
    shutil.copyfile(folders[0] / name, into / name)


def _checksums(folder: Path) -> dict[str, str]:
    return json.loads((folder / "checksums.json").read_bytes())


def verified(folder: Path) -> dict[str, str]:
    """The checksums of a checkpoint, once every state matches its own."""
    checksums = _checksums(folder)
    if not isinstance(checksums, dict) or "begin" not in checksums:
        raise ValueError("its list of checksums is not whole")
    for name, checksum in checksums.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != checksum:
            raise ValueError(f"{name} does not match its checksum")
    return checksums
