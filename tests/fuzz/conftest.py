"""One bench for all tests of this folder: its worker takes seconds to start."""

from collections.abc import Iterator

import pytest

from fuzz.bench import Bench


@pytest.fixture(scope="package")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("fuzz") / "bench", seconds=15) as bench:
        yield bench
