"""Official archives: fetch, check, unpack and locate them."""

import lzma
import os
import shutil
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from jioc.data.catalogue import DATASETS, Entry, data_folder, unknown_name
from jioc.errors import Failed, Refused, first_line, os_errors, refuse_if
from jioc.files import check_regular
from jioc.text import sized


def locate(entry: Entry, folder: Path, cache: Path) -> Path:
    """The folder of the official files in `folder`; an archive that lies there is unpacked into the cache."""
    if (present := _present(entry, folder)) is not None:
        return present
    for archive in _archives(entry, folder):
        about = archive.stat()
        into = cache / "unpacked" / f"{entry.name}-{about.st_size}-{about.st_mtime_ns}"
        if not into.is_dir():
            unpack(archive, into)
        return _present(entry, into) or into
    raise Refused(f"{entry.name}: there is no folder {str(_home(entry, folder))!r}; {_advice(entry, folder)}")


def describe(entry: Entry, folder: Path) -> str:
    """Whether the files are there, or how to get them: for `jioc data list`."""
    if entry.folder is None:
        return "with the package"
    if _present(entry, folder) or _archives(entry, folder):
        return "here"
    return f"jioc data get {entry.name}" if entry.archive else "by hand"


def _home(entry: Entry, folder: Path) -> Path:
    return folder / (entry.folder or "")


def _present(entry: Entry, folder: Path) -> Path | None:
    """The data set's folder there, under any of its names."""
    places = [_home(entry, folder), *(folder / name for name in entry.other_folders)]
    return next((place for place in places if place.is_dir()), None)


def _archives(entry: Entry, folder: Path) -> list[Path]:
    endings = (".zip", ".tar", ".tar.gz", ".tgz")
    names = [entry.archive[1]] if entry.archive else []
    names += [name + ending for name in (entry.folder or "", *entry.other_folders) for ending in endings]
    return [folder / name for name in names if (folder / name).is_file()]


def _advice(entry: Entry, folder: Path) -> str:
    if entry.archive is None:
        return f"{entry.by_hand} {str(_home(entry, folder))!r} (--data-dir or JIOC_DATA names another folder)"
    return f"fetch it with jioc data get {entry.name}, or say with --data-dir or JIOC_DATA where it lies"


# --- fetching ---


def get(name: str, data_dir: Path | None, say: Callable[[str], None] = lambda text: None) -> Path:
    """Fetch a data set's official archive into the data folder and unpack it there."""
    if name not in DATASETS:
        raise unknown_name(name)
    entry, folder = DATASETS[name], data_folder(data_dir)
    refuse_if(entry.folder is None, f"{name} is shipped with the package; there is nothing to fetch")
    if (present := _present(entry, folder)) is not None:
        say(f"nothing is fetched: {str(present)!r} is there; delete it to fetch it anew")
        return present
    if entry.archive is None:
        raise Refused(_advice(entry, folder))
    address, file, md5 = entry.archive
    say(f"fetching {address}")
    archive = fetch(address, folder / file, md5)
    say(f"unpacking {archive}, which may be deleted afterwards")
    staged, target = folder / f".{name}.{os.getpid()}.unpacked", _home(entry, folder)
    try:
        with os_errors(f"{str(archive)!r} cannot be unpacked", Failed):
            unpack(archive, staged)
            os.rename(_present(entry, staged) or staged, target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return target


def fetch(address: str, target: Path, md5: str) -> Path:
    """Fetch a file and check it; a wrong one is removed."""
    import pooch

    with os_errors(f"{str(target)!r} cannot be used"), suppress(FileNotFoundError):
        check_regular(target)
    pooch.get_logger().setLevel("ERROR")
    try:
        downloader = pooch.HTTPDownloader(progressbar=Bar() if sys.stderr.isatty() else False, timeout=60)
        pooch.retrieve(address, f"md5:{md5}", target.name, target.parent, downloader=downloader)
    except ValueError:
        target.unlink(missing_ok=True)
        raise Failed(
            f"what came from {address} is not the official file: its md5 is wrong; it was removed"
        ) from None
    except OSError as error:  # of the network, or of the disk
        raise Failed(f"{address} cannot be fetched: {first_line(error)}") from None
    return target


class Bar:
    """A progress bar as pooch wants one."""

    def __init__(self) -> None:
        from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

        self.bars = Progress(
            *Progress.get_default_columns(), DownloadColumn(), TransferSpeedColumn(), transient=True
        )
        self.task = self.bars.add_task("fetching")
        self.total: float = 0

    def update(self, size: int) -> None:
        self.bars.start()
        self.bars.update(self.task, total=self.total, advance=size)

    def reset(self) -> None:
        self.bars.reset(self.task)

    def close(self) -> None:
        self.bars.stop()


# --- unpacking ---

DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError, OSError)


def unpack(archive: Path, into: Path) -> None:
    """Unpack a zip or tar archive whole, or not at all if a single member would land outside."""
    temporary = into.with_name(f".{into.name}.{os.getpid()}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        _unpack(archive, temporary)
        os.rename(temporary, into)
    except DAMAGE as error:
        if not into.is_dir():  # else another process was faster
            raise Failed(f"{str(archive)!r} cannot be unpacked: {first_line(error)}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unpack(archive: Path, into: Path) -> None:
    place, free = repr(str(archive)), shutil.disk_usage(into).free
    flood = f"unpacked, {place} takes more than the {sized(free)} that are free"
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            members = zipped.infolist()
            for member in members:
                _refuse_escape(place, member.filename, stat.S_ISLNK(member.external_attr >> 16))
            refuse_if(sum(member.file_size for member in members) > free, flood)
            zipped.extractall(into)
        return
    refuse_if(not tarfile.is_tarfile(archive), f"{place} is neither a zip nor a tar archive")
    refuse_if(
        not hasattr(tarfile, "data_filter"),
        "this Python cannot unpack tar archives safely; use 3.11.4 or later",
    )
    with tarfile.open(archive) as tarred:
        size = 0
        for entry in tarred:
            _refuse_escape(place, entry.name, entry.issym() or entry.islnk())
            size += entry.size
            refuse_if(size > free, flood)
            tarred.extract(entry, into, filter="data")
        _read_to_the_end(tarred)


def _read_to_the_end(tarred: tarfile.TarFile) -> None:
    """Refuse an archive that ends early or in a damaged header, or whose checksum after its end is wrong."""
    stream: Any = tarred.fileobj
    stream.seek(tarred.offset)
    if (block := stream.read(tarfile.BLOCKSIZE)) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("a header is damaged" if block else "it is truncated")
    for _ in range(16):
        if not stream.read(1 << 20):  # here gzip, bzip2 and xz have compared their checksums
            return
    raise tarfile.ReadError("more than 16 MiB follow its end")


def _refuse_escape(place: str, name: str, link: bool) -> None:
    parts = name.replace("\\", "/").split("/")
    refuse_if(
        name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0],
        f"{place} holds {name!r}, which would land outside its folder; nothing is unpacked",
    )
    refuse_if(link, f"{place} holds the link {name!r}, which no data set needs; nothing is unpacked")
