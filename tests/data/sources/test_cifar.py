"""CIFAR's official files, read with care."""

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.hostile import Hostile
from jioc.config import values as settings
from jioc.data import scenario
from jioc.data.load import load_dataset
from jioc.data.sources import cifar
from jioc.errors import Refused
from jioc.resolve import recipes
from jioc.training.run import run


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small CIFAR-10 in the official layout, its checksums taken as official."""
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    rng = np.random.default_rng(0)
    train, test, meta = ({name: "" for name in part} for part in cifar.FILES["cifar10"])
    for files in (train, test, meta):
        for name in files:
            content: dict[bytes, Any] = {b"label_names": [f"name{c}".encode() for c in range(10)]}
            if files is not meta:
                content = {
                    b"data": rng.integers(0, 256, (20, 3072), np.uint8),
                    b"labels": list(range(10)) * 2,
                }
            raw = pickle.dumps(content)
            (folder / name).write_bytes(raw)
            files[name] = hashlib.md5(raw).hexdigest()
    monkeypatch.setitem(cifar.FILES, "cifar10", (train, test, meta))
    return tmp_path


def test_cifar10_in_the_official_layout(tree: Path) -> None:
    data = load_dataset(settings.make(method="icarl", data="cifar10", data_dir=tree))
    assert data.train_x.shape == (100, 3, 32, 32) and data.test_x.shape == (20, 3, 32, 32)
    assert data.classes[3] == "name3" and np.bincount(data.train_y).tolist() == [10] * 10
    first = pickle.loads((tree / "cifar-10-batches-py" / "data_batch_1").read_bytes())[b"data"][0]
    assert data.train_x[0, 1, 0, 5] == first[1024 + 5]  # green plane, first row, sixth column


@pytest.mark.data
def test_the_real_cifar100(cifar: Path) -> None:
    data = load_dataset(settings.make(method="icarl", data="cifar100", data_dir=cifar))
    assert np.bincount(data.train_y).tolist() == [500] * 100
    assert np.bincount(data.test_y).tolist() == [100] * 100
    assert data.classes[:2] == ["apple", "aquarium_fish"] and data.train_x.shape == (50_000, 3, 32, 32)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cifar10-lt-resnet18-1000", [3_673, 1_014, 6_727, 1_143, 3_714]),
        ("cifar100-lt-resnet18-1000", [2_898, 3_346, 3_377, 3_438, 3_202, 2_912, 3_436, 3_569, 3_516, 3_081]),
    ],
)
def test_the_papers_long_tails_of_the_real_files(cifar: Path, name: str, counts: list[int]) -> None:
    values = recipes.find_recipe("columns").make()[f"{name}-icarl-none"]
    if not (cifar / "cifar-10-batches-py").is_dir() and values["data"] == "cifar10":
        pytest.skip("JIOC_DATA names no folder with cifar-10-batches-py")
    config = settings.make(**values, data_dir=cifar)
    made = scenario.make(load_dataset(config), config)
    per_class = np.split(np.array(made.counts), np.cumsum(made.sizes)[:-1])
    assert [int(task.sum()) for task in per_class] == counts


def test_missing_and_damaged_files_are_named(tree: Path) -> None:
    with pytest.raises(Refused, match="there is no folder"):
        load_dataset(settings.make(method="icarl", data="cifar100", data_dir=tree))
    victim = tree / "cifar-10-batches-py" / "data_batch_4"
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(Refused, match="data_batch_4.*damaged.*delete its folder, and jioc data get"):
        load_dataset(settings.make(method="icarl", data="cifar10", data_dir=tree))
    victim.unlink()
    with pytest.raises(Refused, match="data_batch_4.*cannot be read.*delete its folder"):
        load_dataset(settings.make(method="icarl", data="cifar10", data_dir=tree))


def test_a_run_with_a_holdout_needs_no_test_files(tree: Path, small: dict[str, Any]) -> None:
    (tree / "cifar-10-batches-py" / "test_batch").unlink()
    small |= {
        "data": "cifar10",
        "data_dir": tree,
        "backbone": "tiny",
        "task_sizes": (10,),
        "first": {"epochs": 1},
    }
    with pytest.raises(Refused, match="test_batch.*cannot be read"):
        run(method="icarl", **small)
    assert run(method="icarl", holdout=0.2, **small)["complete"]


def test_a_pickle_that_wants_more_than_arrays_runs_nothing(tree: Path, tmp_path: Path) -> None:
    raw = pickle.dumps({b"data": Hostile(str(tmp_path / "harm"))})
    path = tree / "cifar-10-batches-py" / "test_batch"
    path.write_bytes(raw)
    cifar.FILES["cifar10"][1]["test_batch"] = hashlib.md5(raw).hexdigest()
    with pytest.raises(Refused, match="system"):
        load_dataset(settings.make(method="icarl", data="cifar10", data_dir=tree))
    assert not (tmp_path / "harm").exists()
