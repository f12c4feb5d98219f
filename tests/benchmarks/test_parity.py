"""The fast engine beside the eager one."""

import csv
from pathlib import Path

import pytest

from helpers.scripts import script
from jioc.errors import Refused


def test_engines_are_compared_seed_by_seed(tmp_path: Path) -> None:
    parity, path = script("parity"), tmp_path / "parity.csv"
    heads = ["run", "seed", *parity.FIGURES, "outcome"]
    values = {"eager": {3: 70.0, 1: 50.0, 2: 90.0}, "fast": {2: 92.0, 1: 51.0, 3: 73.0, 10: 0.0}}
    lines = [[f"{name}-seed{s}", s, v, v, "finished"] for name, of in values.items() for s, v in of.items()]
    lines.append(["eager-seed10", "", "", "", "out of memory"])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([heads, *lines])
    stem = [[f"{name}-imagenet-stem-seed{s}", s, 7, 7, "finished"] for name in values for s in (1, 2)]
    with path.open("a", newline="") as file:
        csv.writer(file).writerows(stem)
    told = parity.table(parity.read(path)).splitlines()
    assert "| seeds 1, 2, 3 |" in told[0] and len(told) == 2 * (2 + 3 * 2) + 1
    assert "ImageNet's stem" in told[9] and "| seeds 1, 2 |" in told[9]
    assert (
        told[4] == "|  | difference | +1.0 +2.0 +3.0 | +2.00 ± 0.58 |"
    )  # 1 / sqrt(3): the seeds' spread has no part
    with path.open("a") as file:
        csv.writer(file).writerow(lines[0])
    with pytest.raises(Refused, match="two lines of 'eager-seed3'"):
        parity.read(path)
    with pytest.raises(Refused, match="there is no"):
        parity.read(tmp_path / "none.csv")
