"""A place that holds no data set gets one sentence."""

from pathlib import Path

import pytest

from helpers.trees import picture
from jioc.cli import main as cli


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{}/nowhere/at/all"], "there is no folder"),
        (["missing.csv"], "--data: there is no file 'missing.csv'"),
        (["{}/missing.py"], "there is no file"),
        (["{}/file.txt"], "is a file; give a folder"),
        (["{}/empty"], "holds no class folders"),
        (["{}/flat"], "holds no class folders"),
        (["{}/hollow"], "holds no image to train on"),
        (["{}/broken"], "holds no usable training image"),
        (["{}/pets", "--image-size", "2"], "--image-size"),
        (["{}/pets", "--image-size", "64", "--canvas", "32"], "--canvas 32 is smaller"),
        (["cifar1000"], "did you mean 'cifar100'"),
        (["{}/empti"], "there is no folder '{}/empti'; did you mean '{}/empty'?"),
        (["imagenet"], "'imagenet' is known by its folder alone"),
        (["empti"], "--data: there is no folder 'empti'; did you mean 'empty'?"),
        (["bananas"], "--data: there is no folder 'bananas' here; data sets that have a name are cifar10,"),
    ],
)
def test_a_wrong_place_gets_one_sentence(
    folder: Path,
    tmp_path: Path,
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    picture(tmp_path / "flat" / "0.png")
    (tmp_path / "hollow" / "a").mkdir(parents=True)
    (tmp_path / "broken" / "a").mkdir(parents=True)
    (tmp_path / "broken" / "a" / "x.png").write_text("x")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["data", "check", *(word.format(tmp_path) for word in words)]) == 2
    captured = capsys.readouterr().err.splitlines()
    assert message.replace("{}", str(tmp_path)) in captured[-1] and captured[-1].startswith("jioc: ")
