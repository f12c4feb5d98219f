"""CIFAR files read with care, and augmentation against PIL image by image."""

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from helpers.hostile import Hostile
from jioc.config import values as settings
from jioc.data.augment.basic import Augment, brighten, crop_flip
from jioc.data.load import load
from jioc.data.loader import Images, Shuffled
from jioc.data.sources import cifar
from jioc.errors import Refused
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
    data = load(settings.make(method="icarl", data="cifar10", data_dir=tree))
    assert data.train_x.shape == (100, 3, 32, 32) and data.test_x.shape == (20, 3, 32, 32)
    assert data.classes[3] == "name3" and np.bincount(data.train_y).tolist() == [10] * 10
    first = pickle.loads((tree / "cifar-10-batches-py" / "data_batch_1").read_bytes())[b"data"][0]
    assert data.train_x[0, 1, 0, 5] == first[1024 + 5]  # green plane, first row, sixth column


@pytest.mark.data
def test_the_real_cifar100(cifar: Path) -> None:
    data = load(settings.make(method="icarl", data="cifar100", data_dir=cifar))
    assert (
        np.bincount(data.train_y).tolist() == [500] * 100 and np.bincount(data.test_y).tolist() == [100] * 100
    )
    assert data.classes[:2] == ["apple", "aquarium_fish"]


def test_missing_and_damaged_files_are_named(tree: Path) -> None:
    with pytest.raises(Refused, match="there is no folder"):
        load(settings.make(method="icarl", data="cifar100", data_dir=tree))
    victim = tree / "cifar-10-batches-py" / "data_batch_4"
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(Refused, match="data_batch_4.*damaged.*delete its folder, and jioc data get"):
        load(settings.make(method="icarl", data="cifar10", data_dir=tree))
    victim.unlink()
    with pytest.raises(Refused, match="data_batch_4.*cannot be read.*delete its folder"):
        load(settings.make(method="icarl", data="cifar10", data_dir=tree))


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
        load(settings.make(method="icarl", data="cifar10", data_dir=tree))
    assert not (tmp_path / "harm").exists()


def test_crop_and_flip_are_pils() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (8, 3, 9, 9), np.uint8)
    top, left = torch.tensor([0, 1, 2, 3, 4, 0, 4, 2]), torch.tensor([4, 3, 0, 1, 2, 0, 4, 2])
    mirrored = torch.tensor([True, False] * 4)
    got = crop_flip(torch.from_numpy(x), 2, top, left, mirrored)
    for i in range(8):
        image = ImageOps.expand(Image.fromarray(x[i].transpose(1, 2, 0)), 2)
        image = image.crop((int(left[i]), int(top[i]), int(left[i]) + 9, int(top[i]) + 9))
        if mirrored[i]:
            image = ImageOps.mirror(image)
        assert np.array_equal(got[i].numpy().transpose(1, 2, 0), np.asarray(image))


@pytest.mark.parametrize("factor", [0.753, 0.9, 1.0, 1.1, 1.247])
def test_brightness_is_pils(factor: float) -> None:
    levels = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16).repeat(3, 1)
    got = brighten(torch.from_numpy(levels), torch.tensor([factor]))[0].numpy().transpose(1, 2, 0)
    expected = ImageEnhance.Brightness(Image.fromarray(levels[0].transpose(1, 2, 0))).enhance(factor)
    assert np.array_equal(got, np.asarray(expected))


def test_augmentation_draws_from_its_generator_alone() -> None:
    x = torch.randint(0, 256, (64, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    augment, world = Augment(pad=2, flip=True, brightness=0.25), torch.random.get_rng_state()
    a = augment(x, torch.Generator().manual_seed(3))
    assert a.equal(augment(x, torch.Generator().manual_seed(3)))
    assert not a.equal(augment(x, torch.Generator().manual_seed(4)))
    assert torch.random.get_rng_state().equal(world)
    assert Augment()(x, torch.Generator()).equal(x.float())


def test_normalisation() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3, 2, 2), np.uint8)
    images = Images(pixels, np.arange(4), (0.4, 0.5, 0.6), (0.1, 0.2, 0.3), torch.device("cpu"))
    expected = (pixels[2, 1, 0, 1] / 255 - 0.5) / 0.2
    assert images.plain(torch.tensor([2]))[0, 1, 0, 1].item() == pytest.approx(expected, abs=1e-5)


def test_an_epoch_visits_every_image_once_and_keeps_the_last_batch() -> None:
    sampler, g = Shuffled(torch.arange(100, 203), 25), torch.Generator().manual_seed(0)
    first, second = sampler.epoch(g), sampler.epoch(g)
    assert [len(b) for b in first] == [25, 25, 25, 25, 3]
    assert torch.cat(first).sort().values.equal(torch.arange(100, 203))
    assert not torch.cat(first).equal(torch.cat(second))
