"""The page of all settings."""

import subprocess
import sys

from helpers.paths import ROOT


def test_the_page_of_all_settings_is_current() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jioc.cli.reference"], cwd=ROOT, capture_output=True, check=True
    )
    assert done.stdout == (ROOT / "docs" / "settings.md").read_bytes(), "make reference writes it"
