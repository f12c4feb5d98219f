"""Time limits."""

import pytest

from jioc.errors import Refused
from jioc.stopping import duration


@pytest.mark.parametrize(
    ("word", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1:30:05", 5405), ("0", None)]
)
def test_times(word: str, seconds: float | None) -> None:
    if seconds is not None:
        assert duration(word) == seconds
        return
    for wrong in (word, "soon", "-3m", "1:70"):
        with pytest.raises(Refused, match="--time-limit"):
            duration(wrong)
