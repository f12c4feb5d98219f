"""Write files whole or not at all: under a temporary name, flushed and renamed. Read regular files alone."""

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from jioc.errors import Failed, os_errors, refuse_if, unreadable

ENDS = 2**16  # bytes at either end of a file, in which its mark stands

MOST_BYTES = 1 << 30  # of a file that is read whole


def write(path: Path, content: bytes) -> None:
    """Write the content under that name, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    flush_folder(path.parent)


def user_cache() -> Path:
    """The user's cache folder for this program."""
    import pooch

    return Path(pooch.os_cache("jioc"))


def cache() -> Path:
    """The folder of what can be made again: JIOC_CACHE, or the user's cache folder."""
    return Path(os.environ.get("JIOC_CACHE") or user_cache())


def private_folder(path: Path) -> bool:
    """Make a folder that only we can write to; whether it is one, and not another's or open to others."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError:
        return False
    ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return stat.S_ISDIR(found.st_mode) and ours and not found.st_mode & 0o022 and os.access(path, os.W_OK)


def output(path: Path, mark: bytes, force: bool) -> Path:
    """Find the file that somebody asks for, behind any links; refuse what should not be replaced.

    That is whatever is no file, and a file that does not have our `mark` near its beginning or end, unless it
    is empty or `force` says so.
    """
    name = repr(str(path))
    with os_errors(f"{name} cannot be written", Failed):
        target = Path(os.path.realpath(path))
        for wrong, number in ((path.is_dir(), errno.EISDIR), (target.is_symlink(), errno.ELOOP)):
            if wrong:
                raise OSError(number, os.strerror(number))
        if path.exists():
            refuse_if(not path.is_file(), f"{name} is a device or a pipe; give the name of a file")
            may_be_replaced = force or not path.stat().st_size or _has(mark, path)
            refuse_if(
                not may_be_replaced,
                f"{name} is there, and this command did not write it; --force replaces it",
            )
    return target


def _has(mark: bytes, path: Path) -> bool:
    with open(path, "rb") as file:
        head = file.read(ENDS)
        file.seek(-min(ENDS, path.stat().st_size), os.SEEK_END)
        return mark in head or mark in file.read()


def flush_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_regular(path: str | Path, mode: str = "rb", **how: Any) -> Any:
    """Open a regular file, as `open` does. A pipe, socket or device is an OSError and is not waited on.

    To write, a link is an OSError too: what it points to is not ours.
    """
    no_links = 0 if mode.startswith("r") else os.O_NOFOLLOW

    def opened(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK | no_links, 0o666)  # a pipe may have come meanwhile

    if no_links and os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a link", str(path))
    with suppress(FileNotFoundError):
        check_regular(path)
    return open(path, mode, opener=opened, **how)


def check_regular(path: str | Path) -> None:
    """Raise OSError for a pipe, socket or device, before a reader that takes a path opens it."""
    kind = os.stat(path).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # who opens a folder hears that it is one
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_bytes(path: str | Path, most: int | None = MOST_BYTES) -> bytes:
    """Read a regular file whole. One that is larger than `most` is an OSError."""
    with open_regular(path) as file:
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20:,} MiB", str(path))
        return file.read()


def read_text(path: str | Path) -> str:
    """Read a regular file of UTF-8 whole."""
    return read_bytes(path).decode()


def from_json(content: bytes | str) -> Any:
    """What JSON holds; a ValueError says why it cannot be read, of whatever depth and length it is."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(unreadable(error)) from None


def read_json(path: Path) -> Any:
    """What a JSON file holds; None where it is missing or damaged."""
    try:
        return from_json(read_bytes(path))
    except (OSError, ValueError):
        return None
