"""A model's files: the same answers as the run, whole at any moment, and nothing believed that does not fit."""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import jioc
from helpers.models import about, signed
from helpers.paths import ROOT
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.data.dataset import Dataset
from jioc.data.load import load
from jioc.errors import Refused
from jioc.files import write
from jioc.methods.specs import SPECS
from jioc.training import model
from jioc.training.checkpoint import pack
from jioc.training.learner import Learner

QUICK: dict[str, Any] = {
    "data": "digits", "task_sizes": (6, 4), "memory": 60, "first": {"epochs": 1}, "later": {"epochs": 1},
    "device": "cpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load(settings.make(method="icarl", data="digits"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    out = tmp_path_factory.mktemp("saved") / "run"
    jioc.run(method="icarl", **QUICK, out=out)
    return out


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    """A copy of the model, without the run."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in ("model.json", "model.safetensors", "exemplars.safetensors"):
        shutil.copy(saved / file, folder)
    return folder


@pytest.mark.parametrize("method", [name for name in SPECS if name != "icarl"])
def test_a_loaded_model_answers_as_the_run_was_judged(method: str, tmp_path: Path, digits: Dataset) -> None:
    result = jioc.run(method=method, **QUICK, out=tmp_path / "run")
    learner = jioc.load(tmp_path / "run", to_learn=method != "joint")
    y = np.array([result["classes"].index(digits.classes[c]) for c in digits.test_y])
    row = result["tasks"][-1]
    for name, scores in learner.readouts(digits.test_x).items():
        of = row[name] if name in row else row["readouts"][name]
        assert 100 * (scores.argmax(1).numpy() == y).mean() == pytest.approx(of["all"])
    named = learner.predict(digits.test_x[:50, 0])
    assert named == [learner.classes[c] for c in learner.readouts(digits.test_x[:50])["cnn"].argmax(1)]


def test_learning_on_from_files_is_learning_on_from_memory(copy: Path, digits: Dataset) -> None:
    learner = jioc.load(copy, to_learn=True)
    renamed = replace(digits, classes=[f"another {name}" for name in digits.classes])
    model.save(copy, learner.learn(renamed))
    twice = jioc.load(copy, to_learn=True)
    assert len(twice.classes) == 20 and twice.sizes == (6, 4, 10)
    again = learner.learn(renamed)
    assert torch.equal(again.readouts(digits.test_x)["cnn"], twice.readouts(digits.test_x)["cnn"])
    assert twice.exemplars is not None and again.exemplars is not None
    assert all(np.array_equal(a, b) for a, b in zip(twice.exemplars, again.exemplars, strict=True))


def test_what_may_be_given_to_predict(saved: Path, digits: Dataset, tmp_path: Path) -> None:
    learner = jioc.load(saved / "model.json")
    grey = digits.test_x[:4, 0]
    named = learner.predict(grey)
    assert learner.predict(grey[..., None]) == learner.predict(grey[:, None]) == named
    images = [Image.fromarray(image) for image in grey]
    assert learner.predict(images) == learner.predict(list(grey)) == named
    images[0].save(tmp_path / "a.png")
    assert learner.predict(tmp_path / "a.png") == learner.predict([str(tmp_path / "a.png")]) == named[:1]
    assert learner.predict(images[0]) == named[:1]
    assert learner.predict([]) == [] and len(learner.predict(grey, readout="nme")) == 4
    larger = np.stack([np.asarray(image.resize((20, 20)).convert("RGB")) for image in images])
    assert learner.predict(larger) == learner.predict(list(larger))
    for wrong, sentence in [
        (grey / 255, "uint8"),
        (grey[0, 0], "an array of images is"),
        (larger[0], "is one image, .* give it in a list"),
        ([3], "not int"),
        (7, "not int"),
        ([tmp_path / "none.png"], "cannot be read"),
    ]:
        with pytest.raises(Refused, match=sentence):
            learner.predict(wrong)
    with pytest.raises(Refused, match="unknown read-out 'nmme'; did you mean 'nme'"):
        learner.predict(grey, readout="nmme")


def test_scores_are_probabilities_or_cosines(saved: Path, digits: Dataset) -> None:
    learner = jioc.load(saved)
    cnn, nme = (learner.confidence(digits.test_x[:9], name) for name in ("cnn", "nme"))
    assert torch.allclose(cnn.sum(1), torch.ones(9))
    x = learner.look.seen(digits.test_x[:9], learner.device).plain(torch.arange(9))
    with torch.no_grad():
        features = learner.method.net(x).features
    assert learner.method.means is not None
    assert torch.allclose(
        nme, torch.cosine_similarity(features[:, None], learner.method.means[None], dim=2), atol=1e-5
    )


def test_exemplars_may_be_left_out(tmp_path: Path) -> None:
    jioc.run(method="replay", **QUICK, keep_exemplars=False, out=tmp_path / "run")
    assert not (tmp_path / "run" / "exemplars.safetensors").exists()
    assert len(jioc.load(tmp_path / "run").classes) == 10
    with pytest.raises(Refused, match="saved without its exemplars, so learning cannot continue"):
        jioc.load(tmp_path / "run", to_learn=True)


def test_exemplars_left_out_later_are_removed(copy: Path) -> None:
    model.save(copy, replace(jioc.load(copy, to_learn=True), exemplars=None))
    assert sorted(os.listdir(copy)) == ["model.json", "model.safetensors"]


def test_a_folder_is_made_for_a_model(saved: Path, tmp_path: Path) -> None:
    model.save(str(tmp_path / "new" / "place"), jioc.load(saved, to_learn=True))
    assert jioc.load(tmp_path / "new" / "place", to_learn=True).classes == jioc.load(saved).classes


# --- whole at any moment ---


@pytest.fixture
def other(copy: Path) -> Learner:
    """The model with another head: what it is to be replaced by."""
    learner = jioc.load(copy, to_learn=True)
    with torch.no_grad():
        learner.method.net.head.weight.neg_()
    return learner


def test_at_every_step_of_a_replacement_the_model_is_the_old_or_the_new_one(
    copy: Path, other: Learner, digits: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, moments = digits.test_x[:20], tmp_path / "moments"
    moments.mkdir()
    before, after = (learner.readouts(x)["cnn"] for learner in (jioc.load(copy), other))

    def seen(real: Callable[..., Any]) -> Callable[..., Any]:
        def doing(*args: Any, **more: Any) -> Any:
            shutil.copytree(copy, moments / f"{len(os.listdir(moments)):03d}")  # what a kill here would leave
            return real(*args, **more)

        return doing

    with monkeypatch.context() as patch:
        for name in ("replace", "unlink", "fsync"):
            patch.setattr(os, name, seen(getattr(os, name)))
        model.save(copy, other)
        shutil.copytree(copy, moments / "end")
    found = []
    for folder in sorted(moments.iterdir()):
        scores = jioc.load(folder, to_learn=True).readouts(x)["cnn"]
        assert torch.equal(scores, before) or torch.equal(scores, after)
        found.append(torch.equal(scores, after))
        model.save(folder, other)
        assert sorted(os.listdir(folder)) == ["exemplars.safetensors", "model.json", "model.safetensors"]
        assert torch.equal(jioc.load(folder).readouts(x)["cnn"], after)
    assert len(found) > 8 and found == sorted(found) and found[-1] and not found[0]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_disk_that_fails_leaves_the_old_model_and_nothing_else(
    at: int, copy: Path, other: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, calls = {f.name: f.read_bytes() for f in copy.iterdir()}, iter(range(9))

    def failing(path: Path, content: bytes) -> None:
        if next(calls) == at:
            raise OSError(28, "No space left on device")
        write(path, content)

    monkeypatch.setattr(model, "write", failing)
    with pytest.raises(OSError):
        model.save(copy, other)
    assert {f.name: f.read_bytes() for f in copy.iterdir()} == before


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
import jioc
from jioc.training import model
from jioc.errors import Refused

folder, draw = Path(sys.argv[1]), random.Random(1)
learners = [jioc.load(folder, to_learn=True) for _ in range(2)]
with torch.no_grad():
    learners[1].method.net.head.weight.neg_()
signs = [float(l.method.net.head.weight.detach().sum()) for l in learners]
seen, kills = set(), 0
while kills < 20 or len(seen) < 2:  # on a busy machine it takes longer until the other one is there
    kills += 1
    child = os.fork()
    if not child:
        while True:
            for learner in reversed(learners):
                model.save(folder, learner)
    try:
        end = time.monotonic() + draw.uniform(0, 0.05) * max(1, kills / 20)
        while time.monotonic() < end:
            try:
                seen.add(signs.index(float(jioc.load(folder).method.net.head.weight.detach().sum())))
            except Refused as error:
                if "again and again" not in str(error):  # which is what the writer does
                    raise
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    learner = jioc.load(folder, to_learn=True)
    seen.add(signs.index(float(learner.method.net.head.weight.detach().sum())))
print(sorted(seen))
"""


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, reads = model.unpack, []

    def torn(path: Path) -> Any:
        reads.append(path)
        if len(reads) > 1:
            return whole(path)
        path.with_name("other").write_bytes(path.read_bytes())
        path.with_name("other").rename(path)
        raise RuntimeError(f"unable to open file <{path}>: No such file or directory (2)")  # as torch says it

    monkeypatch.setattr(model, "unpack", torn)
    assert jioc.load(copy).classes and len(reads) == 2


def test_a_model_whose_writer_is_killed_is_whole(copy: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", KILLED, str(copy)], capture_output=True, text=True, timeout=240
    )
    assert (told.returncode, told.stdout.strip(), told.stderr) == (0, "[0, 1]", "")


# --- nothing is believed that does not fit ---


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
    "older": (part("format", 1), "has format 1, from before models could learn on"),
    "no number": (part("format", "2"), "is damaged"),
    "something more": (part("more", 1), "is damaged: more"),
    "twice the same class": (part("classes", ["a"] * 10), "a class is named twice"),
    "too few classes": (part("classes", ["a"]), "do not add up"),
    "a number for a class": (part("classes", [1] * 10), "is damaged: classes.0"),
    "negative sizes": (part("sizes", [16, -6]), "is damaged: sizes.1"),
    "huge sizes": (part("sizes", [6, 4 * 10**15]), "do not add up"),
    "a huge canvas": (part("canvas", 10**9), "no image is of"),
    "a huge image": (part("image", [1, 10**8, 10**8]), "no image is of"),
    "two means": (part("mean", [0.1, 0.2]), "no mean and deviation"),
    "no deviation": (part("std", [0]), "is damaged: std.0"),
    "an augmentation of text": (part("augment", {"kind": "shift", "pad": "8"}), "its augmentation has '8'"),
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
    state = model.unpack(copy / "exemplars.safetensors")
    change(state)
    signed(copy, pack(state), "exemplars.safetensors")
    jioc.load(copy)  # to predict, nobody reads them
    with pytest.raises(Refused, match="holds no whole model"):
        jioc.load(copy, to_learn=True)


def test_a_method_in_a_file_is_not_run_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = ROOT / "examples" / "own_method.py"
    quick = [
        "--task-sizes",
        "6,4",
        "--epochs",
        "1",
        "--memory",
        "60",
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "r"),
    ]
    assert main(["run", str(example), *quick]) == 0
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
            told = capsys.readouterr().err
            assert (
                "is not the method's file as it was when this model learnt" in told and told.count("\n") == 1
            )
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(Refused, match="give that file as it was, or train a model with this one"):
        pickle.loads(pickled)
    with pytest.raises(Refused, match="is not the method's file as it was"):
        learner.learn(replace(digits, classes=[f"another {name}" for name in digits.classes]))
    about(
        tmp_path / "r", lambda values: [values.pop(name) for name in ("method", "frozen")]
    )  # as it was saved before
    assert main([*predict, str(moved)]) == 0


@pytest.mark.gpu
def test_a_model_trained_on_cuda_answers_and_learns_on_wherever_it_is(
    tmp_path: Path, digits: Dataset
) -> None:
    jioc.run(method="icarl", **QUICK | {"device": "cuda", "precision": "fp32"}, out=tmp_path / "run")
    here, there = (jioc.load(tmp_path / "run", device=device) for device in ("cpu", "cuda"))
    a, b = (learner.readouts(digits.test_x)["cnn"] for learner in (here, there))
    assert (a.argmax(1) == b.argmax(1)).float().mean() > 0.98 and torch.allclose(a, b, atol=0.05)
    renamed = replace(digits, classes=[f"another {name}" for name in digits.classes])
    for device in ("cpu", "cuda"):
        learner = jioc.load(tmp_path / "run", to_learn=True, device=device)
        twice = [
            learner.learn(renamed, config=learner.config.model_copy(update={"device": device}))
            for _ in range(2)
        ]
        assert len(twice[0].classes) == 20 and twice[0].device.type == device
        if device == "cpu":
            assert torch.equal(*(t.readouts(digits.test_x)["cnn"] for t in twice))
