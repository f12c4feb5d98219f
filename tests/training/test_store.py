"""The folder of a run: one writer, and a disk that is full."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from jioc.config import values as settings
from jioc.errors import Failed, Refused
from jioc.files import open_regular
from jioc.resolve.derive import resolve
from jioc.training.run import run
from jioc.training.store import Store


def test_one_folder_one_writer(
    tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    run(method="replay", **small, out=folder)
    config = resolve(settings.make(method="replay", **small))
    first = Store(folder, config, resume=True)
    with pytest.raises(Refused, match="another process is writing"):
        Store(folder, config, resume=True)
    first.close()
    Store(folder, config, resume=True).close()
    unable = OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))  # a file system without locks
    monkeypatch.setattr("fcntl.flock", lambda *args: (_ for _ in ()).throw(unable))
    with pytest.raises(Refused, match="cannot be locked.*: Function not implemented"):
        Store(folder, config, resume=True)


@pytest.mark.parametrize(
    "place", ["jioc.training.checkpoint._take_over", "jioc.training.store.Store.result", "log.jsonl"]
)
def test_wherever_a_disk_is_full_it_is_a_sentence(
    place: str, tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device", "a", None, "b")

    out = tmp_path / "run"
    if place == "log.jsonl":

        def opened(path: Path, *how: Any) -> Any:
            return open("/dev/full", *how) if path.name == place else open_regular(path, *how)

        monkeypatch.setattr("jioc.training.store.open_regular", opened)
        monkeypatch.setattr(Store, "cut_log", lambda *args: None)  # a device cannot be cut
    else:
        monkeypatch.setattr(place, fails)
    with pytest.raises(
        Failed, match="^the run cannot be kept in .*run': No space left on device; with that mended"
    ):
        run(method="replay", **small, out=out)
