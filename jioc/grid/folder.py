"""A run's folder as files that can be sent to another machine and put in place there. No torch here."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jioc.files import flush_folder, read_bytes, read_json, write

Files = dict[str, bytes]  # the path of each file, relative to the run's folder, and its content
NEEDED = ("config.yaml", "log.jsonl")  # to resume, beside a checkpoint


SCRATCH = "jioc-scratch-"  # the names of scratch folders begin so
NEW = 60.0  # seconds for which a scratch folder may not be locked yet


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a scratch folder and remove it in the end; remove those that killed processes have left here, too.

    Who works in one holds a lock on it, which ends with the process.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        with suppress(OSError):
            _remove_left(left)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as name:
        handle = os.open(name, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(handle)


def _remove_left(folder: Path) -> None:
    """Remove a scratch folder of this user's in which nobody works."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        about = os.fstat(handle)
        if about.st_uid == os.getuid() and time.time() - about.st_mtime > NEW:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def newest_checkpoint(folder: Path) -> str | None:
    paths = folder.glob("checkpoint/*")
    return max((path.name for path in paths if path.name.isdecimal()), key=int, default=None)


def read_files(folder: Path, whole: bool) -> Files:
    """Read the newest checkpoint, then the log, whose length the checkpoint knows, then the result.

    `whole`: with the model and a complete result too; only a run that has ended is sure to have both.
    Raises FileNotFoundError if the run drops that checkpoint meanwhile.
    """
    files = {str(path.relative_to(folder)): read_bytes(path, most=None) for path in _paths(folder, whole)}
    result = folder / "result.json"
    content = read_bytes(result) if result.exists() else b""  # first: the run may end before the next line
    values = read_json(result) if content else None
    if values is not None and (whole or not values["complete"]):
        files["result.json"] = content
    return files


def _paths(folder: Path, whole: bool) -> list[Path]:
    """The files to send, but for the result: config.yaml makes a folder a run's, model.json names others."""
    paths = []
    if number := newest_checkpoint(folder):
        checksums = folder / "checkpoint" / number / "checksums.json"
        named = [name for name in read_json(checksums) or () if name == Path(name).name]
        paths = [checksums, *map(checksums.with_name, named)]
    others = [path for path in folder.glob("[!.]*") if path.is_file()]
    others.sort(key=lambda path: (path.name != "config.yaml", path.name == "model.json"))
    return paths + [path for path in others if (path.name != "result.json" if whole else path.name in NEEDED)]


def write_files(files: Files, folder: Path) -> None:
    """Put the files in place, in such an order that the run can be resumed whenever this is cut short."""
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = {Path(name): content for name, content in files.items() if name.startswith("checkpoint/")}
    for name, content in files.items():
        if Path(name) not in checkpoint and name != "result.json":
            write(folder / name, content)
    if checkpoint:
        _write_checkpoint(checkpoint, folder)
    if "result.json" in files:
        write(folder / "result.json", files["result.json"])  # last: where it is complete, so is the rest


def _write_checkpoint(files: dict[Path, bytes], folder: Path) -> None:
    """Put a checkpoint in place, whole or not at all, and remove older ones."""
    place = folder / next(iter(files)).parent
    if not place.exists():
        partial = place.with_name(f".{place.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for path, content in files.items():
            write(partial / path.name, content)
        os.rename(partial, place)
        flush_folder(place.parent)
    for other in place.parent.iterdir():
        if other.name.isdecimal() and int(other.name) < int(place.name):
            shutil.rmtree(other)
