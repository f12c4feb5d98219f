"""Settings in YAML files: a wrong one is refused by its place."""

from pathlib import Path

import pytest

from helpers.command import refused
from jioc.cli.main import main
from jioc.config import files


@pytest.mark.parametrize(
    "text", ["later: 5\n", "coordination: jioc\n", "options: null\n", "1: 2\n", "memory: many\n"]
)
def test_a_config_of_wrong_types_is_a_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("method: icarl\n" + text)
    assert main(["run", "--config", str(path), "--out", str(tmp_path / "run")]) == 2
    captured = capsys.readouterr().err
    assert captured.count("\n") == 1 and "--:" not in captured and not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [["run", "--config"], ["grid"]])
def test_what_is_no_yaml_is_named_with_its_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("method: icarl\nmemory: 5\n  epochs: 3\n")
    assert main([*words, str(path)]) == 2
    assert (
        capsys.readouterr().err
        == f"jioc: '{path}', line 3: cannot be read as YAML: mapping values are not allowed here\n"
    )
    path.write_text(
        "base: &a {method: icarl, later: {epochs: 1}}\nruns:\n  a: {}\n  b: {}\n  a: {memory: 40}\n"
    )
    assert main([*words, str(path)]) == 2
    assert (
        capsys.readouterr().err == f"jioc: '{path}', line 5: cannot be read as YAML: 'a' stands there twice\n"
    )
    path.write_text("method: icarl\nseed: 2020-13-45\n")
    assert main([*words, str(path)]) == 2
    assert capsys.readouterr().err == f"jioc: '{path}' cannot be read as YAML: month must be in 1..12\n"


LISTS = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10))
MERGED = "\n".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 10))


@pytest.mark.parametrize("words", [["run", "--config"], ["grid"]])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"a0: &a0 [1]\n{LISTS}\nlater: *a9\n", "line 7: cannot be read as YAML: more than 100,000 values"),
        (f"a0: &a0 {{x: 1}}\n{MERGED}\n", "cannot be read as YAML: more than 100,000 values"),
        ("options: &a {x: *a}\n", "line 2: cannot be read as YAML: an alias stands for a part of itself"),
    ],
)
def test_aliases_that_never_end_are_refused(
    text: str, message: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("method: icarl\n" + text)
    assert message in refused([*words, str(path)], capsys)


def test_a_name_of_a_yaml_may_stand_over_the_one_it_takes_along(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("a: &a {x: 1, y: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, x: 3}\n")
    both = {"x": 1, "y": 2}
    assert files.read(path) == {"a": {"x": 1, "y": 1}, "b": both, "c": both | {"x": 3}}
