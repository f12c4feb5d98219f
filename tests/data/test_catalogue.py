"""What is known of each data set before its images are read."""

from pathlib import Path

import pytest

from jioc.cli import main as cli
from jioc.config import values as settings
from jioc.data import catalogue
from jioc.data.find import find_dataset
from jioc.errors import Refused
from jioc.resolve.derive import resolve

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


def test_the_list_names_every_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in catalogue.DATASETS)


def test_where_official_files_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JIOC_DATA", raising=False)
    assert catalogue.data_folder(None).parts[-2:] == ("jioc", "data")
    (tmp_path / "data").mkdir()
    assert catalogue.data_folder(None) == Path("data")
    monkeypatch.setenv("JIOC_DATA", "/there")
    assert catalogue.data_folder(None) == Path("/there") and catalogue.data_folder(Path("/x")) == Path("/x")
