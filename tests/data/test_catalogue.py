"""What is known of each data set before its images are read."""

from pathlib import Path
from typing import Any

import pytest

from jioc.cli import main as cli
from jioc.config import values as settings
from jioc.data import catalogue
from jioc.data.find import find_dataset
from jioc.errors import Refused
from jioc.resolve import repeat
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay

DEFAULTS = {
    "cifar10": (32, "resnet32", "cifar", 5),
    "cifar100": (32, "resnet32", "cifar", 10),
    "tinyimagenet": (64, "resnet18", "cifar", 10),
    "miniimagenet": (84, "resnet18", "cifar", 10),
    "cub200": (224, "resnet18", "imagenet", 10),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_sizes_and_stems_are_recorded_and_can_be_changed(name: str) -> None:
    c = resolve(settings.make(method="icarl", data=name))
    assert (c.image_size, c.backbone, c.stem, find_dataset(name).tasks) == DEFAULTS[name]
    if name.startswith("cifar"):
        with pytest.raises(Refused, match="comes as images of 32x32"):
            resolve(settings.make(method="icarl", data=name, image_size=24))
        c = resolve(settings.make(method="icarl", data=name, image_size=64))
        assert (c.image_size, c.canvas) == (64, 32)  # enlarged on the device
    else:
        c = resolve(settings.make(method="icarl", data=name, image_size=48, stem="cifar-pool"))
        assert (c.image_size, c.canvas, c.stem) == (48, 48, "cifar-pool")


def test_a_data_set_has_its_own_memory_and_digits_keep_few() -> None:
    def made(**values: Any) -> Any:
        return resolve(settings.make(**{"method": "icarl", **values}))

    assert (made().memory, made(data="cifar100").memory, made(memory=2000).memory) == (40, 2000, 2000)
    assert "--memory" not in repeat.line(made()) and "--memory 2000" in repeat.line(made(memory=2000))
    kept, other = settings.plain(made(data="cifar100")), {"data": "digits", "backbone": "tiny"}
    assert resolve(settings.make(**overlay(kept, other))).memory == 40
    kept = settings.plain(made(data="cifar100", memory=2000))
    assert resolve(settings.make(**overlay(kept, other))).memory == 2000


def test_the_list_names_every_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "list"]) == 0
    captured = capsys.readouterr().out
    assert all(name in captured for name in catalogue.DATASETS)


def test_where_official_files_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JIOC_DATA", raising=False)
    assert catalogue.data_folder(None).parts[-2:] == ("jioc", "data")
    (tmp_path / "data").mkdir()
    assert catalogue.data_folder(None) == Path("data")
    monkeypatch.setenv("JIOC_DATA", "/there")
    assert catalogue.data_folder(None) == Path("/there") and catalogue.data_folder(Path("/x")) == Path("/x")


def test_large_images_get_the_stem_that_makes_them_small() -> None:
    assert [catalogue.network_for(size)[1] for size in (32, 95, 96, 224)] == ["cifar"] * 2 + ["imagenet"] * 2
