"""A saved model is loaded as it was saved; nothing is believed that does not fit."""

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import jioc
from helpers.models import QUICK, about, signed
from helpers.paths import ROOT
from jioc.cli.main import main
from jioc.data.dataset import Dataset
from jioc.errors import Refused
from jioc.training.checkpoint import pack, unpack


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, reads = unpack, []

    def torn(path: Path) -> Any:
        reads.append(path)
        if len(reads) > 1:
            return whole(path)
        path.with_name("other").write_bytes(path.read_bytes())
        path.with_name("other").rename(path)
        raise RuntimeError(f"unable to open file <{path}>: No such file or directory (2)")  # as torch says it

    monkeypatch.setattr("jioc.training.checkpoint.unpack", torn)
    assert jioc.load(copy, judged=False).classes and len(reads) == 2


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/jioc-trap-was-sprung",)


def deep(folder: Path) -> None:
    (folder / "model.json").write_text("[" * 100_000)


def flipped(folder: Path) -> None:
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-9] ^= 1
    (folder / "model.safetensors").write_bytes(content)


def part(name: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: about(folder, lambda values: values.__setitem__(name, value))


def plan(name: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: about(folder, lambda values: values["plans"]["net"].__setitem__(name, value))


def setting(name: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: about(folder, lambda values: values["config"].__setitem__(name, value))


def broken(folder: Path, value: float) -> None:
    """A model one of whose layers has diverged."""
    state = unpack(folder / "model.safetensors")
    state["net"]["head.weight"].fill_(value)
    signed(folder, pack(state))


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no model.json": (lambda f: (f / "model.json").unlink(), "there is no model in"),
    "a folder for model.json": (
        lambda f: ((f / "model.json").unlink(), (f / "model.json").mkdir()),
        "there is no model in",
    ),
    "cut": (lambda f: (f / "model.json").write_text('{"format": 2, "cl'), "is damaged"),
    "a list": (lambda f: (f / "model.json").write_text("[2]"), "is damaged"),
    "deep": (deep, "is damaged"),
    "not text": (lambda f: (f / "model.json").write_bytes(b"\x80\x04\xff"), "is damaged"),
    "newer": (part("format", 3), "has format 3; this jioc .* reads up to 2: update it"),
    "older": (part("format", 1), "is damaged: format"),
    "no number": (part("format", "2"), "is damaged"),
    "something more": (part("more", 1), "is damaged: more"),
    "twice the same class": (part("classes", ["a"] * 10), "a class is named twice"),
    "too few classes": (part("classes", ["a"]), "do not add up"),
    "a number for a class": (part("classes", [1] * 10), "is damaged: classes.0"),
    "negative sizes": (part("sizes", [16, -6]), "is damaged: sizes.1"),
    "huge sizes": (part("sizes", [6, 4 * 10**15]), "do not add up"),
    "a huge canvas": (part("canvas", 10**9), "no image is of"),
    "a huge image": (part("image", [1, 10**8, 10**8]), "a network sees at most 1,048,576 pixels"),
    "an image that a network would see for minutes": (
        lambda f: about(f, lambda values: values.update(image=[1, 4096, 4096], canvas=4096)),
        "a network sees at most 1,048,576 pixels",
    ),
    "a million channels": (
        lambda f: about(
            f,
            lambda values: (
                values.update(image=[10**6, 4, 4], canvas=None, mean=[0] * 10**6, std=[1] * 10**6),
                values["plans"]["net"].update(channels=10**6),
            ),
        ),
        "the tensors of net do not have the shapes of its plan",
    ),
    "channels that the plan does not have": (
        lambda f: about(f, lambda values: values.update(image=[3, 8, 8], mean=[0] * 3, std=[1] * 3)),
        "the plan of net does not fit its images",
    ),
    "weights that are not finite": (lambda f: broken(f, torch.inf), "some weights are not finite"),
    "weights that overflow": (lambda f: broken(f, 1e38), "scores of the read-out 'cnn' are not finite"),
    "two means": (part("mean", [0.1, 0.2]), "no mean and deviation"),
    "no deviation": (part("std", [0]), "is damaged: std.0"),
    "an augmentation of text": (part("augment", {"kind": "shift", "pad": "8"}), "its augmentation has '8'"),
    "an augmentation by true": (part("augment", {"kind": "shift", "pad": True}), "its augmentation has True"),
    "a flip of 1": (part("augment", {"kind": "shift", "pad": 1, "flip": 1}), "its augmentation has 1"),
    "a crop of one area": (part("augment", {"kind": "crop", "size": 8, "area": [1.0]}), r"has \(1.0,\)"),
    "an unknown augmentation": (part("augment", {"kind": "os.system"}), "it lacks 'os.system'"),
    "a plan of other classes": (plan("sizes", [10]), "the plan of net does not fit"),
    "a plan without sizes": (plan("sizes", None), "the plan of net does not fit"),
    "an unknown backbone": (plan("backbone", "resnet9000"), "unknown backbone"),
    "a larger backbone": (
        plan("backbone", "resnet18"),
        "the tensors of net do not have the shapes of its plan",
    ),
    "huge channels": (plan("channels", 10**12), "holds no whole model"),
    "an unknown head": (plan("head", "eval"), "it lacks 'eval'"),
    "an unknown kind": (plan("kind", "pickle"), "it lacks 'pickle'"),
    "many backbones": (plan("backbones", 10**9), "the plan of net does not fit"),
    "another network": (plan("kind", "expanding"), "holds no whole model"),
    "no plan": (part("plans", {}), "holds no whole model"),
    "an unknown method": (setting("method", "icarlo"), "unknown method 'icarlo'"),
    "another method": (setting("method", "foster"), "unknown option of foster"),
    "a wrong setting": (setting("memory", "many"), "--memory"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
    "no weights named": (part("files", {}), "model.safetensors is missing"),
    "other files named": (
        part("files", {"../../etc/passwd": {"bytes": 1, "sha256": "0" * 64}}),
        "is missing",
    ),
    "no checksum": (part("files", {"model.safetensors": {"bytes": 1, "sha256": "x"}}), "is damaged: files"),
    "one bit": (flipped, "model.safetensors does not match its checksum"),
    "cut weights": (lambda f: os.truncate(f / "model.safetensors", 999), "has 999 bytes, not"),
    "a pickle": (lambda f: signed(f, pickle.dumps(Trap())), "model.safetensors is no safetensors file"),
    "nothing": (lambda f: signed(f, b""), "model.safetensors is no safetensors file"),
    "a header alone": (lambda f: signed(f, (1 << 60).to_bytes(8, "little")), "is no safetensors file"),
    "no tensors": (lambda f: signed(f, pack({})), "it lacks net"),
    "tensors of nothing": (lambda f: signed(f, pack({"net": {}, "means": None})), "does not fit"),
    "numbers for tensors": (lambda f: signed(f, pack({"net": {"a": 1}, "means": 3})), "holds no whole model"),
    "means of others": (
        lambda f: signed(f, pack(jioc.load(f).method.state() | {"means": torch.zeros(3, 9)})),
        "holds no whole model",
    ),
    "a pipe": (
        lambda f: ((f / "model.safetensors").unlink(), os.mkfifo(f / "model.safetensors")),
        "model.safetensors is missing",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_model_that_does_not_fit_is_refused_in_a_sentence(
    what: str, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, sentence = HOSTILE[what]
    change(copy)
    with pytest.raises(Refused, match=sentence):
        jioc.load(copy)
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    assert main(["predict", str(copy), str(tmp_path / "a.png")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("jioc: ") and err.count("\n") == 1
    assert not Path("/tmp/jioc-trap-was-sprung").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("generators"),
        lambda state: state["generators"]["order"].__setitem__("state", torch.zeros(8, dtype=torch.uint8)),
        lambda state: state["held"].__setitem__(0, 10**9),
        lambda state: state["held"].__setitem__(0, -1),
        lambda state: state.__setitem__("images", torch.zeros(60, 3, 8, 8, dtype=torch.uint8)),
        lambda state: state.__setitem__("images", "all of them"),
        lambda state: state.__setitem__("teacher", {"head.weight": torch.zeros(1)}),
        lambda state: state.pop("teacher"),
    ],
)
def test_exemplars_that_do_not_fit_are_refused(copy: Path, change: Callable[[Any], Any]) -> None:
    state = unpack(copy / "exemplars.safetensors")
    change(state)
    signed(copy, pack(state), "exemplars.safetensors")
    jioc.load(copy)  # to predict, nobody reads them
    with pytest.raises(Refused, match="holds no whole model"):
        jioc.load(copy, to_learn=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("rows"),
        lambda state: state.__setitem__("rows", [{"task": 1}]),
        lambda state: state["rows"][0].__setitem__("classes", [0, 99]),
        lambda state: state["held"].__setitem__(0, 10**9),
        lambda state: state["held"].__setitem__(0, -1),
        lambda state: state["held"].pop(),
        lambda state: state.__setitem__("images", torch.zeros(200, 3, 8, 8, dtype=torch.uint8)),
        lambda state: state.__setitem__("trained", torch.zeros(2, 2)),
        lambda state: state.__setitem__("trained", "all"),
    ],
)
def test_what_a_model_was_judged_by_is_refused_where_it_does_not_fit(
    copy: Path, change: Callable[[Any], Any]
) -> None:
    state = unpack(copy / "judged.safetensors")
    change(state)
    signed(copy, pack(state), "judged.safetensors")
    jioc.load(copy, judged=False)  # to predict, nobody reads it
    with pytest.raises(Refused, match="holds no whole model"):
        jioc.load(copy)


def test_a_method_in_a_file_is_not_run_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = ROOT / "examples" / "own_method.py"
    quick = ["--task-sizes", "6,4", "--epochs", "1", "--memory", "60", "--device", "cpu"]
    assert main(["run", str(example), *quick, "--out", str(tmp_path / "r")]) == 0
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    about(tmp_path / "r", lambda values: values["config"].__setitem__("method", str(trap)))
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    words = [str(tmp_path / "r"), str(tmp_path / "a.png")]
    capsys.readouterr()
    assert main(["predict", *words]) == 2
    assert "is not run unasked; give --method FILE" in capsys.readouterr().err
    assert main(["learn", *words]) == 2
    assert not (tmp_path / "sprung").exists()
    assert main(["predict", *words, "--method", str(example)]) == 0
    assert main(["predict", *words, "--method", "icarl"]) == 2
    assert "--method 'icarl' does not fit: the method of this model is" in capsys.readouterr().err


def test_a_model_answers_and_learns_on_with_the_method_file_that_it_was_trained_with(
    tmp_path: Path, digits: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (ROOT / "examples" / "own_method.py").read_text()
    own, moved, other = (tmp_path / name for name in ("own.py", "moved.py", "other.py"))
    for path in (own, moved):
        path.write_text(source)
    other.write_text(source.replace("feature-replay", "other") + f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    jioc.run(method=str(own), **QUICK, out=tmp_path / "r")
    said = json.loads((tmp_path / "r" / "model.json").read_bytes())["method"]
    assert said == {"name": "feature-replay", "sha256": hashlib.sha256(source.encode()).hexdigest()}
    learner = jioc.load(tmp_path / "r", to_learn=True, method=str(moved))
    pickled = pickle.dumps(learner)
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    predict = ["predict", str(tmp_path / "r"), str(tmp_path / "a.png"), "--method"]
    learn = ["learn", str(tmp_path / "r"), str(tmp_path), "--method"]
    assert main([*predict, str(moved)]) == 0
    capsys.readouterr()
    moved.write_text(source + "# another\n")
    for path in (moved, other):
        for words in (predict, learn):
            assert main([*words, str(path)]) == 2
            captured = capsys.readouterr().err
            assert (
                "is not the method's file as it was when this model learnt" in captured
                and captured.count("\n") == 1
            )
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(Refused, match="give that file as it was, or train a model with this one"):
        pickle.loads(pickled)
    with pytest.raises(Refused, match="is not the method's file as it was"):
        learner.learn(replace(digits, classes=[f"another {name}" for name in digits.classes]))
