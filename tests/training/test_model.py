"""The files of a model are whole at any moment, and hold what the next task needs."""

import os
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

import jioc
from helpers.models import QUICK
from jioc.data.dataset import Dataset
from jioc.errors import Refused
from jioc.files import write
from jioc.methods import SPECS
from jioc.training import model
from jioc.training.learner import Learner


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


def test_exemplars_may_be_left_out(tmp_path: Path) -> None:
    jioc.run(method="replay", **QUICK, keep_exemplars=False, out=tmp_path / "run")
    assert not {"exemplars.safetensors", "judged.safetensors"} & {*os.listdir(tmp_path / "run")}
    assert len(jioc.load(tmp_path / "run").classes) == 10
    with pytest.raises(Refused, match="saved without its exemplars, so learning cannot continue"):
        jioc.load(tmp_path / "run", to_learn=True)


def test_exemplars_left_out_later_are_removed(copy: Path) -> None:
    model.save(copy, replace(jioc.load(copy, to_learn=True), exemplars=None))
    assert sorted(os.listdir(copy)) == ["model.json", "model.safetensors"]


def test_a_folder_is_made_for_a_model(saved: Path, tmp_path: Path) -> None:
    model.save(str(tmp_path / "new" / "place"), jioc.load(saved, to_learn=True))
    assert jioc.load(tmp_path / "new" / "place", to_learn=True).classes == jioc.load(saved).classes


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
        assert sorted(os.listdir(folder)) == sorted(["model.json", *model.TENSORS])
        assert torch.equal(jioc.load(folder).readouts(x)["cnn"], after)
    assert len(found) > 8 and found == sorted(found) and found[-1] and not found[0]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
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

folder, least, draw = Path(sys.argv[1]), int(sys.argv[2]), random.Random(1)
learners = [jioc.load(folder, to_learn=True) for _ in range(2)]
with torch.no_grad():
    learners[1].method.net.head.weight.neg_()
signs = [float(l.method.net.head.weight.detach().sum()) for l in learners]
seen, kills = set(), 0
while kills < least or len(seen) < 2:  # on a busy machine it takes longer until the other one is there
    kills += 1
    child = os.fork()
    if not child:
        while True:
            for learner in reversed(learners):
                model.save(folder, learner)
    try:
        end = time.monotonic() + draw.uniform(0, 0.05) * max(1, kills / least)
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


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_model_whose_writer_is_killed_is_whole(kills: int, copy: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", KILLED, str(copy), str(kills)], capture_output=True, text=True, timeout=240
    )
    assert (told.returncode, told.stdout.strip(), told.stderr) == (0, "[0, 1]", "")


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
