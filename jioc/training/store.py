"""The folder of a run: config.yaml, result.json, log.jsonl, checkpoint/, the model (`model.py`). No torch."""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from jioc import results
from jioc.config import Config, Values, differences, files, flat, index, plain, upgraded
from jioc.data.catalogue import DATASETS
from jioc.errors import Failed, Refused, os_errors, refuse_if
from jioc.files import from_json, open_regular, read_bytes, write
from jioc.results import Result


class Busy(Refused):
    """Another process is writing to the folder."""


class Store:
    """The folder of one run, held by one process."""

    def __init__(self, folder: Path, config: Config, resume: bool):
        self.folder, self.config, self.checkpoints = folder, config, folder / "checkpoint"
        refuse_taken(folder, config, resume)
        with os_errors(f"the run's folder {str(folder)!r} cannot be used"):
            folder.mkdir(parents=True, exist_ok=True)
            with ExitStack() as opened:
                self._lock = opened.enter_context(locked(folder))
                refuse_if(self.checkpoints.is_symlink(), f"{str(self.checkpoints)!r} is a link, and not used")
                self.checkpoints.mkdir(exist_ok=True)
                for litter in filter(_is_partial, [*folder.iterdir(), *self.checkpoints.iterdir()]):
                    shutil.rmtree(litter) if litter.is_dir() else litter.unlink()
                if not (path := folder / "config.yaml").exists():
                    write(path, files.text(config).encode())
                self._log = _opened(folder / "log.jsonl")
                opened.pop_all()  # nothing failed, so that they stay open

    def close(self) -> None:
        with suppress(OSError):  # a line that found no room was reported when it was written
            self._log.close()
        self._lock.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn the error of a full or failing disk into a sentence."""
        try:
            yield
        except OSError as error:
            raise Failed(
                f"the run cannot be kept in {str(self.folder)!r}: {error.strerror or error}; "
                "with that mended, --resume goes on from the last checkpoint"
            ) from None

    def result(self, result: Result) -> None:
        result.save(self.folder / "result.json")

    def has_result(self, tasks: int) -> bool:
        """Whether result.json is whole and has that many tasks."""
        try:
            return len(from_json(read_bytes(self.folder / "result.json"))["tasks"]) == tasks
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def finished(self) -> Result | None:
        """The result that is kept here, if it is whole and complete; refuse that of another run."""
        try:
            result = results.read(self.folder / "result.json")
        except Refused:
            return None
        if not result.complete:
            return None
        refuse_other_settings(self.folder, result.config, self.config)
        return result

    def log(self, line: dict[str, Any]) -> None:
        with self.writing():
            self._log.write((json.dumps(line) + "\n").encode())
            self._log.flush()

    @property
    def log_size(self) -> int:
        """Bytes of the log. A checkpoint holds them, and a resumed run cuts the log back to them."""
        return self._log.seek(0, os.SEEK_END)

    def cut_log(self, size: int) -> None:
        if not isinstance(size, int) or size < 0:
            raise ValueError("it does not know the log's length")
        self._log.truncate(min(size, self.log_size))


def has_checkpoint(folder: Path) -> bool:
    """Whether a run in a folder has something to go on from, or has ended."""
    with os_errors(f"the run's folder {str(folder)!r} cannot be used"):
        checkpoints = folder / "checkpoint"
        whole = checkpoints.is_dir() and any(map(is_checkpoint, checkpoints.iterdir()))
        return whole or (folder / "result.json").exists()


def is_checkpoint(path: Path) -> bool:
    """Whether a checkpoint was written there in full: another name is that of one under way."""
    return path.name.isdecimal() and path.is_dir() and not path.is_symlink()


def refuse_taken(folder: Path, config: Config, resume: bool) -> None:
    """Refuse a folder that holds something else than the beginning of this run."""
    name = repr(str(folder))
    with os_errors(f"the run's folder {name} cannot be used"):
        if not (folder / "config.yaml").exists():
            other = folder.exists() and not all(map(_left_by_a_run, folder.iterdir()))
            refuse_if(other, f"{name} holds other files; choose another --out")
            return
        refuse_if(not resume, f"{name} holds a run; go on with --resume, or choose another --out")
        refuse_other_settings(folder, files.read(folder / "config.yaml"), config)


def refuse_other_settings(folder: Path, kept: Values, config: Config) -> None:
    """Refuse a folder whose run has other settings. `kept`: the settings of that run.

    Images, a method's file and pretrained weights may have moved: checksums are compared once they have been
    read, and the run holds its weights itself. Options of JIOC without effect may differ. A setting that is
    newer than the run was not given there, nor is it now if it only follows.
    """
    for name in ("data", "method", "weights"):
        was, now = str(kept.get(name)), str(getattr(config, name))
        if Path(was).name == Path(now).name and not {was, now} & DATASETS.keys():
            kept = kept | {name: getattr(config, name)}
    c = config.coordination
    idle = index.without_effect(c.coordinate, c.host_kd, c.gamma1, c.gamma2)
    ignored = {*index.MACHINE, "coordination.reading", *(f"coordination.{name}" for name in idle)}
    kept = upgraded(kept)
    newer = flat(plain(config)).keys() - flat(kept).keys() - {*config.given}
    differ = [name for name in differences(kept, plain(config)) if name not in ignored | newer]
    refuse_if(differ, f"{str(folder)!r} holds another run: {', '.join(differ)} differ; choose another --out")


def locked(folder: Path) -> IO[bytes]:
    """Lock a folder until the file that is returned is closed: one process writes to it."""
    lock = _opened(folder / ".lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        if isinstance(error, BlockingIOError):
            raise Busy(f"another process is writing to {str(folder)!r}") from None
        unable = f"{str(folder)!r} cannot be locked, so it cannot be written to: {error.strerror}"
        raise Refused(unable) from None
    return lock


def _opened(path: Path) -> IO[bytes]:
    with os_errors(f"{str(path)!r} cannot be opened"):
        return open_regular(path, "ab")


def model_folder(place: Path) -> Path:
    """Find the folder of a model: of a run, of a copy, or of the model.json that was named."""
    folder = place.parent if place.name == "model.json" else place
    why = "it has no model.json" if folder.is_dir() else "there is no such folder"
    refuse_if(not (folder / "model.json").is_file(), f"there is no model in {str(folder)!r}: {why}")
    return folder


def account_folder(model: Path) -> Path:
    """The folder in a model's own for the figures of what it has learnt on; a link there is refused."""
    place = model / "learnt"
    refuse_if(place.is_symlink(), f"{str(place)!r} is a link, and not used")
    return place


def unfinished(folder: Path) -> str | None:
    """Say how far a run has come that has not learnt all its classes; None for any other."""
    try:
        result = from_json(read_bytes(folder / "result.json"))
        last, classes = result["tasks"][-1], len(result["classes"])
        known = f"after task {last['task']} it knows {last['classes'][1]} of {classes} classes"
        return None if result["complete"] else f"the run is not finished: {known}"
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None  # a copy of the model alone


def _left_by_a_run(path: Path) -> bool:
    """Whether a run that was killed before its config.yaml was whole may have left this."""
    empty = path.name == "checkpoint" and path.is_dir() and not any(path.iterdir())
    return path.name == ".lock" or empty or _is_partial(path)


def _is_partial(path: Path) -> bool:
    """Whether this is a file or a checkpoint that was cut short: .result.json.4711.partial."""
    names = r"config\.yaml|result\.json|model\.json|(model|exemplars|judged)\.next\.safetensors"
    return re.fullmatch(rf"\.(({names})\.\d+|\d+)\.partial", path.name) is not None
