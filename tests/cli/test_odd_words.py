"""Odd words, and files of odd depth, length or letters, get one sentence that says what is wrong."""

import importlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers import hostile
from helpers.command import refused
from helpers.models import about
from helpers.results import keep, made
from helpers.trees import class_folders
from jioc.cli.main import main

DIGITS = "9" * 5000
RUN = ["run", "replay", "--backbone", "tiny", "--memory", "20", "--dry-run"]
MANY = ("later.epochs", "first.epochs", "memory", "batch_size", "increment", "later.lr")
REPLAY = [
    "run", "replay", "--task-sizes", "6,4", "--epochs", "1", "--first-epochs", "1", "--memory", "60",
    "--backbone", "tiny", "--device", "cpu", "--out",
]  # fmt: skip
DEEP = {  # deeper than Python 3.13 reads, which reads deeper than 3.11
    "lists": "[" * 10000,
    "objects": '{"a":' * 20000 + "1" + "}" * 20000,
    "YAML": "\n".join(" " * i + "a:" for i in range(2000)),
    "YAML in itself": "a: &a [*a]\n",
}
PYCIL = {
    "model_name": "icarl", "dataset": "cifar100", "convnet_type": "resnet32", "init_cls": 10, "increment": 10,
    "memory_size": 200, "memory_per_class": 20, "fixed_memory": False, "shuffle": True, "seed": [1993],
}  # fmt: skip


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd word is a name in the folder of the test."""
    monkeypatch.chdir(tmp_path)


def written(name: str, content: str) -> str:
    Path(name).write_text(content)
    return name


WORDS: dict[str, tuple[list[str], str]] = {
    "24 digits": ([*RUN, "--batch-size", "9" * 24], "--batch-size: '99"),
    "5,000 digits": ([*RUN, "--memory", DIGITS], "--memory: '99"),
    "more than a float holds": ([*RUN, "--weight-decay", "1e300"], "it should be at most 1e+38"),
    "10**400": (["grid", "table6", "--dry-run", "--seeds", "1" + "0" * 400], "whole numbers below 2**32"),
    "5,000 digits of a seed": (["grid", "table6", "--dry-run", "--seeds", DIGITS], "below 2**32"),
    "no finite scale": (["grid", "table6", "--dry-run", "--scale", "1e308"], "at most 1000"),
    "5,000 digits of classes": (["predict", "run", "x.png", "--top", DIGITS], "is no number of classes"),
    "NUL in --order": ([*RUN, "--order", "a\0b"], "holds a NUL character"),
    "NUL in a page's name": (["report", "run", "-o", "a\0b"], "holds a NUL character"),
    "a page without a name": (["report", "run", "-o", ""], "a file or folder has an empty name"),
    "runs without a name": (["table", ""], "a file or folder has an empty name"),
    "a run without a name": ([*RUN, "--out", ""], "a file or folder has an empty name"),
    "data without a name": ([*RUN, "--data", ""], "unknown data set ''"),
    "data check without a name": (["data", "check", ""], "unknown data set ''"),
    "None": (["run", "None"], "unknown method 'None'; there is best, bic"),
}


@pytest.mark.parametrize("name", WORDS)
def test_an_odd_word_gets_a_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, sentence = WORDS[name]
    answer = refused(words, capsys)
    assert sentence in answer and "--debug" not in answer and len(answer) < 3000
    assert os.listdir() == []


@pytest.mark.parametrize("words", [["table"], ["run"], ["data", "check"]])
def test_a_name_that_is_too_long_gets_a_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = "./" + "x" * 300 + (".py" if words == ["run"] else "")
    status = main([*words, name])
    captured = capsys.readouterr().err
    assert status in (1, 2) and "File name too long" in captured and "--debug" not in captured


FILES: dict[str, tuple[str, list[str], str]] = {
    "a number of 5,000 digits in YAML": (f"memory: {DIGITS}", ["run", "--config"], "too many digits"),
    "10**400 in YAML": (f"method: icarl\nseed: 1{'0' * 400}", ["run", "--config"], "--seed: 10000"),
    "a switch in place of a number": ("method: icarl\ntasks: true", ["run", "--config"], "neither true"),
    "a switch among numbers": ("method: icarl\ntask_sizes: [4, true]", ["run", "--config"], "neither true"),
    "a switch in a recipe": (
        "base: {method: icarl, tasks: true}\nruns: {a: {}}", ["grid"], "--tasks: True is refused",
    ),
    "a switch for a seed": ("base: {method: icarl}\nruns: {a: {}}\nseeds: [true]", ["grid"], "neither true"),
    "a huge matrix": (
        "base: {method: icarl}\nmatrix: " + json.dumps({name: list(range(1, 999)) for name in MANY}),
        ["grid"], "runs, and a grid has at most 10,000",
    ),
    "a list among the names that were given": (
        "method: icarl\ngiven: [method, [memory]]", ["run", "--config"], "given: it should be a list",
    ),
    "a cache without a name": ("method: icarl\ndata_cache: ''", ["run", "--config"], "should not be empty"),
    "an option that is no text": (
        'method: icarl\noptions: {kd_weight: "half \\ud800"}', ["run", "--config"], "it should be UTF-8",
    ),
    "a list for a method": ("method: [icarl]", ["run", "--config"], "method: ['icarl'] is refused"),
    "PyCIL's method that is none": (
        json.dumps(PYCIL | {"model_name": None}), ["run", "--pycil"], "has model_name None, which is no name",
    ),
    "PyCIL's 10**400": (json.dumps(PYCIL | {"seed": [10**400]}), ["run", "--pycil"], "--order-seed: 1000"),
    "a class of an order that is no text": ("a\0b\n", [*RUN, "--order"], "it should be UTF-8, without NUL"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_an_odd_value_in_a_file_gets_a_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    content, words, sentence = FILES[name]
    answer = refused([*words, written("file.yaml", content)], capsys)
    assert sentence in answer and "--debug" not in answer


@pytest.mark.parametrize("depth", DEEP)
def test_a_deep_file_gets_a_sentence(depth: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = written("deep.yaml", DEEP[depth])
    for words in (["run", "--config"], ["run", "--help", "--config"], ["grid"]):
        answer = refused([*words, file], capsys)
        assert "cannot be read as YAML" in answer or ", line " in answer
    assert "cannot be read as JSON" in refused(["run", "--pycil", file], capsys)
    os.mkdir("run")
    shutil.copy(file, "run/result.json")
    shutil.copy(file, "run/model.json")
    assert "is not a whole result" in refused(["table", "run"], capsys)
    assert "is not a whole result" in refused(["report", "run", "-o", "page.html"], capsys)
    assert "is damaged: it does not describe a model" in refused(["predict", "run", "x.png"], capsys)
    assert "is damaged: it does not describe a model" in refused(["learn", "run", "folder"], capsys)
    assert sorted(os.listdir()) == ["deep.yaml", "run"]


def test_a_class_may_be_a_number_of_any_length(capsys: pytest.CaptureFixture[str]) -> None:
    class_folders(Path("photos"), {"a": 3, "b": 3})
    rows = [f"photos/{c}/{i}.png,{label}\n" for c, label in (("a", DIGITS), ("b", "2")) for i in range(3)]
    written("photos.csv", "path,label\n" + "".join(rows))
    assert main(["data", "check", "photos.csv", "--image-size", "8"]) == 0
    assert "2 classes" in capsys.readouterr().out


def test_an_image_that_is_no_whole_one_is_named_by_data_check(capsys: pytest.CaptureFixture[str]) -> None:
    """One whose chunks are whole though its pixels end early, and few bytes that claim a long image."""
    class_folders(Path("photos"), {"a": 3, "b": 3})
    Path("photos/a/half.png").write_bytes(hostile.png(64, 64, rows=32))
    Path("photos/b/long.png").write_bytes(hostile.png(1, 80_000_000, rows=4))
    assert main(["data", "check", "photos/", "--image-size", "8"]) == 0
    out, captured = capsys.readouterr()
    assert (
        "'a/half.png' is truncated" in out + captured
        and "80,000,000 pixels, a side of which" in out + captured
    )
    assert "2 files left out" in out


@pytest.mark.parametrize(
    "part", [{"classes": ["b", "a"]}, {"record": {"mean": [float("nan")]}}, {"layout": 1}]
)
def test_a_changed_cache_is_built_again(part: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    class_folders(Path("photos"), {"a": 3, "b": 3})
    words = ["data", "check", "photos/", "--image-size", "8", "--counts", "--data-cache", "cache"]
    assert main(words) == 0
    right = capsys.readouterr().out
    (about,) = Path("cache").glob("*/about.json")
    about.write_text(json.dumps(json.loads(about.read_text()) | part))
    assert main(words) == 0
    out, captured = capsys.readouterr()
    assert "is damaged; it is built again" in out + captured and out.endswith(right[-200:])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two tasks."""
    folder = tmp_path_factory.mktemp("odd") / "run"
    assert main([*REPLAY, str(folder)]) == 0
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "run"))


def resume(folder: Path) -> int:
    return main([*REPLAY, str(folder), "--resume"])


def test_a_folder_beside_the_checkpoints_is_none(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("²", "٣", "1 2", "x"):
        (copy / "checkpoint" / name).mkdir()
    (copy / "result.json").unlink()
    assert resume(copy) == 0
    assert "--debug" not in capsys.readouterr().err and (copy / "result.json").exists()


def test_checkpoints_of_odd_depth_are_left_by_name(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (copy / "checkpoint").glob("*/checksums.json"):
        path.write_text(DEEP["lists"])
    (copy / "result.json").unlink()
    (copy / "model.json").unlink()
    assert resume(copy) == 1
    captured = capsys.readouterr().err
    assert "is damaged and not used: it is nested too deeply" in captured and "--debug" not in captured


MODELS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no method": (lambda m: m["config"].pop("method"), "the settings of this model name no method"),
    "None for a method": (lambda m: m["config"].update(method=None), "name no method"),
    "None for its data": (
        lambda m: m["config"].update(data=None),
        "run' holds no whole model: of its settings",
    ),
    "a switch for its memory": (lambda m: m["config"].update(memory=True), "neither true nor false"),
    "a switch for its canvas": (lambda m: m.update(canvas=True), "canvas: input should be neither true nor"),
    "a plan that lacks a part": (lambda m: m["plans"]["net"].pop("maps"), "it lacks 'maps'"),
    "10**400 images": (lambda m: m.update(counts=[10**400] * 10), "is damaged: counts.0"),
    "10**400 bytes": (
        lambda m: m["files"]["model.safetensors"].update(bytes=10**400),
        "holds no whole model",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_odd_model_gets_a_sentence_about_it(
    name: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, sentence = MODELS[name]
    about(copy, change)
    capsys.readouterr()
    answer = refused(["predict", "run", "x.png"], capsys)
    assert sentence in answer and "podnet" not in answer and "--debug" not in answer


def test_a_class_may_have_any_name_in_a_model(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A label of a csv may hold NUL; its run has to be kept and read all the same."""
    about(copy, lambda model: model["classes"].__setitem__(0, "a\0b"))
    class_folders(Path("photos"), {"a": 1})
    assert main(["predict", "run", "photos/a/0.png"]) == 0


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)  # fmt: skip
def test_too_little_memory_is_said(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(argv: list[str]) -> int:
        raise error

    monkeypatch.setattr(importlib.import_module("jioc.cli.list"), "main", fail)
    answer = refused(["list", "methods"], capsys, status=1)
    assert "there is too little memory" in answer and "no message" not in answer and "--debug" not in answer


def test_a_result_with_a_switch_for_a_number_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    keep(Path("runs"), made())
    (path,) = Path("runs").rglob("result.json")
    values = json.loads(path.read_text())
    values["config"]["memory"] = True
    path.write_text(json.dumps(values))
    assert "is damaged: setting 'memory'" in refused(["table", "runs"], capsys)
