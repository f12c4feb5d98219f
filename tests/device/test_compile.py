"""What torch and Triton compile is kept in a folder that is ours alone."""

import os
from pathlib import Path

import pytest

from jioc.device import compile as compilation


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JIOC_CACHE", str(tmp_path))
    for name in compilation.CACHES:
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    return tmp_path / f"compiled-{os.getuid()}"


def test_the_next_process_finds_it_in_our_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "elsewhere")  # whoever names a folder keeps it
    compilation.keep_compiled()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(folder / "torch")
    assert os.environ["TRITON_CACHE_DIR"] == "elsewhere"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file"])
def test_code_of_others_is_not_run_from_there(kind: str, folder: Path) -> None:
    if kind == "a link":
        (folder.parent / "other").mkdir()
        folder.symlink_to(folder.parent / "other")
    elif kind == "a file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777)
    compilation.keep_compiled()
    assert not {*compilation.CACHES} & {*os.environ}
