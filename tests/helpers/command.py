"""What `jioc` answers to wrong words."""

import pytest

from jioc.cli.main import main


def refused(argv: list[str], capsys: pytest.CaptureFixture[str], status: int = 2) -> str:
    """The one sentence with which the command refuses the words."""
    assert main(argv) == status
    answer = capsys.readouterr().err
    assert answer.startswith("jioc: ") and answer.count("\n") == 1
    return answer
