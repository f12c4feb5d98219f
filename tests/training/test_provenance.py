"""Where a result comes from."""

import shutil
import subprocess
from pathlib import Path

import pytest

from jioc.training import provenance


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_the_commit_is_never_that_of_a_project_around_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    here = tmp_path / "lib" / "jioc" / "provenance.py"
    here.parent.mkdir(parents=True)
    here.write_text("x = 1\n")
    monkeypatch.setattr(provenance, "__file__", str(here))
    monkeypatch.delenv("JIOC_COMMIT", raising=False)
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "somebody's project")
    assert provenance.commit() is None
    git("add", "lib")
    git("commit", "-q", "-m", "our source")
    assert provenance.commit() == git("rev-parse", "--short=12", "HEAD")
    here.write_text("x = 2\n")
    assert provenance.commit() == git("rev-parse", "--short=12", "HEAD") + "+"
    monkeypatch.setenv("JIOC_COMMIT", "abc")
    assert provenance.commit() == "abc"
