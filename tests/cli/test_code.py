"""What runs code: a Python file that the command names. What a folder or a result names is never run."""

import json
from pathlib import Path

import pytest
import yaml

from helpers.argv import QUICK
from helpers.results import made
from jioc.cli.main import main


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A Python file that says so when it is run."""
    path = tmp_path / "mine.py"
    ran = str(tmp_path / "ran")
    path.write_text(f"import sys\nprint('it runs', file=sys.stderr)\nopen({ran!r}, 'w').close()\n")
    return path


def config(folder: Path, **values: object) -> str:
    path = folder / "named.yaml"
    path.write_text(yaml.safe_dump(values))
    return str(path)


@pytest.mark.parametrize("setting", ["method", "data"])
def test_comparing_with_what_a_folder_holds_runs_nothing(
    setting: str, script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = config(tmp_path, base={"method": "icarl"}, runs={"a": {}}, seeds=[1])
    held = tmp_path / "grid" / "a-seed1"
    held.mkdir(parents=True)
    named = {"method": "icarl", "memory": 40} | {setting: str(script)}
    for place, values in [("result.json", {"format": 1, "config": named}), ("model.json", {"config": named})]:
        (held / place).write_text(json.dumps(values | {"classes": ["a"], "tasks": [], "complete": True}))
    (held / "config.yaml").write_text(yaml.safe_dump(named))
    (tmp_path / "images" / "b").mkdir(parents=True)
    for words in (
        ["grid", recipe, "--out", str(held.parent), "--dry-run"],
        ["run", "icarl", *QUICK, "--out", str(held), "--resume"],
        ["table", str(held)],
        ["report", str(held), "-o", str(tmp_path / "page.html")],
        ["predict", str(held), str(script)],
        ["learn", str(held), str(tmp_path / "images")],
    ):
        status = main(words)
        assert not (tmp_path / "ran").exists(), words
        assert status == 2, words
    assert "it runs" not in capsys.readouterr().err


def test_help_runs_nothing_that_a_file_names(script: Path, tmp_path: Path) -> None:
    named = config(tmp_path, method=str(script), data=str(script))
    recipe = config(tmp_path / "..", base={"method": str(script)}, runs={"a": {}})
    for words in (
        ["run", "--config", named, "--help"],
        ["run", "--help", "--config", named],
        ["run", "icarl", "--config", named, "--help"],
        ["grid", recipe, "--help"],
        ["table", str(tmp_path), "--recipe", recipe, "--help"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0 and not (tmp_path / "ran").exists(), words


@pytest.mark.parametrize("end", ["", "/", "/."])
@pytest.mark.parametrize("command", ["method", "data", "grid", "table"])
def test_a_file_that_names_code_is_said_before_the_code_runs(
    command: str, end: str, script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "result.json").write_text(json.dumps(made()))
    if command in ("method", "data"):
        named = config(tmp_path, **{"method": "icarl", command: f"{script}{end}"})
        words = ["run", "--config", named, "--out", str(tmp_path / "out")]
    else:
        named = config(tmp_path, base={"method": f"{script}{end}"}, runs={"a": {}})
        words = ["grid", named, "--out", str(tmp_path / "out")]
        if command == "table":
            words = ["table", str(tmp_path), "--recipe", named]
    assert main(words) == 2
    captured = capsys.readouterr().err
    assert f"{named!r} names the Python file {f'{script}{end}'!r}" in captured.partition("it runs")[0]
    assert "it runs" in captured
