"""What a run tells of the machine that it is on."""

import shutil
import subprocess
from pathlib import Path

import pytest

from jioc.training import execution as machine


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_the_commit_is_never_that_of_a_project_around_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        told = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], capture_output=True, text=True, check=True
        )
        return told.stdout.strip()

    here = tmp_path / "lib" / "jioc" / "machine.py"
    here.parent.mkdir(parents=True)
    here.write_text("x = 1\n")
    monkeypatch.setattr(machine, "__file__", str(here))
    monkeypatch.delenv("JIOC_COMMIT", raising=False)
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "somebody's project")
    assert machine.commit() is None
    git("add", "lib")
    git("commit", "-q", "-m", "our source")
    assert machine.commit() == git("rev-parse", "--short=12", "HEAD")
    here.write_text("x = 2\n")
    assert machine.commit() == git("rev-parse", "--short=12", "HEAD") + "+"
    monkeypatch.setenv("JIOC_COMMIT", "abc")
    assert machine.commit() == "abc"
