"""The trial of a method that is not ours finds mistakes before a run begins, and leaves nothing behind."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers.learning import most_coordination
from helpers.paths import ROOT
from helpers.runs import collect_notes, logged
from jioc.config import make
from jioc.data.load import load_dataset
from jioc.errors import Failed, Refused
from jioc.methods import SPECS
from jioc.resolve.derive import resolve
from jioc.training.run import run
from jioc.training.trial import try_method

QUICK: dict[str, Any] = {
    "task_sizes": (8, 2), "memory": 40, "first": {"epochs": 1}, "later": {"epochs": 1}, "device": "cpu",
}  # fmt: skip
METHOD = """
import random
from dataclasses import replace

import numpy as np
import torch

import jioc
from jioc.losses import cross_entropy


spec = replace(jioc.methods.SPECS["podnet"], name="tried", title="Tried", options=jioc.Spec.options)


@jioc.register(spec)
class Tried(jioc.Method):
    def loss(self, batch, out, old, task):
        LOSS

    def tuning(self, batch, out, old, task):
        return {"tune": TUNED}

    def learn(self, task, data, fit):
        super().learn(task, data, fit)
        if task.n_old:
            fit(self, task, data.alone(), stage="second", loss=self.tuning)
"""
RIGHT = 'return {"cls": cross_entropy(out.logits, batch.y)}'


def written(folder: Path, loss: str = RIGHT, tuned: str = "cross_entropy(out.logits, batch.y)") -> str:
    """The file of a method with these losses."""
    path = folder / "tried.py"
    path.write_text(METHOD.replace("LOSS", loss.replace("\n", "\n        ")).replace("TUNED", tuned))
    return str(path)


@pytest.mark.parametrize("coordinate", ["none", "jioc"])
@pytest.mark.parametrize("method", SPECS)
def test_every_method_of_ours_keeps_the_rules_and_ends_alike_when_each_step_is_resumed(
    method: str, coordinate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jioc.methods.registry.is_ours", lambda cls: False)  # so that the rules are asked for
    word = most_coordination(method) if coordinate == "jioc" else coordinate
    config = resolve(make(method=method, coordination={"coordinate": word}))
    assert not try_method(config, load_dataset(config))


@pytest.mark.parametrize("coordinate", ["none", "jioc"])
def test_a_run_has_the_same_bits_with_and_without_a_trial(
    coordinate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = QUICK | {"method": str(ROOT / "examples" / "own_method.py")}
    for name in ("with", "without"):
        torch.manual_seed(0)  # of what a method draws of its own accord
        run(**settings, coordination={"coordinate": coordinate}, out=tmp_path / name)
        monkeypatch.setattr("jioc.training.preflight.try_method", lambda *parts: ())
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("with", "without"))
    assert one == other


def test_the_random_numbers_of_others_stay_as_they_are(tmp_path: Path) -> None:
    draws = "torch.rand(3), np.random.rand(3), random.random()\n"
    config = resolve(make(method=written(tmp_path, draws + RIGHT), **QUICK))
    dataset = load_dataset(config)

    def states() -> tuple[bytes, bytes, Any]:
        return torch.get_rng_state().numpy().tobytes(), np.random.get_state()[1].tobytes(), random.getstate()

    before = states()
    try_method(config, dataset)
    assert states() == before


def test_a_second_stage_is_tried_too(tmp_path: Path) -> None:
    method = written(tmp_path, tuned="out.logits.mean()")
    with pytest.raises(Failed, match=r"the loss 'tune' has the shape \(\); one number per image is needed"):
        run(method=method, **QUICK, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


NEEDS_MORE = """
if len(batch.y) < 20:
    raise IndexError("too few images for this loss")
"""


def test_a_method_that_needs_more_than_a_trial_gives_goes_on_to_the_run(tmp_path: Path) -> None:
    run(method=written(tmp_path, NEEDS_MORE + RIGHT), **QUICK | {"batch_size": 256}, out=tmp_path / "run")
    assert [line["stage"] for line in logged(tmp_path / "run")] == ["first", "later", "second"]


def test_an_error_in_the_trial_is_told_before_the_run(tmp_path: Path) -> None:
    notes: list[str] = []
    fails_later = "if old is not None and len(batch.y) < 20:\n    missing\n"
    method = written(tmp_path, fails_later + RIGHT)
    run(method=method, **QUICK | {"batch_size": 256}, callback=collect_notes(notes))
    assert notes[0].startswith(
        "'tried' stopped in a trial of small tasks of noise (NameError: name 'missing'"
    )


def test_a_loss_that_adds_no_prior_is_refused_with_adjust(tmp_path: Path) -> None:
    right = RIGHT.replace("out.logits", "self.adjusted(out.logits)")
    missing = {
        RIGHT: "task 1, task 2, task 3",
        f"if old is None:\n    {RIGHT}\n{right}": "task 1",
        f"if old is None:\n    {right}\n{RIGHT}": "task 2, task 3",
    }
    for loss, tasks in missing.items():
        with pytest.raises(
            Refused, match=rf"the loss of tried does not call `self\.adjusted` in {tasks}, so"
        ):
            run(method=written(tmp_path, loss), **QUICK, adjust=1.0)
    run(method=written(tmp_path, right), **QUICK, adjust=1.0)


def test_what_a_trial_did_not_reach_is_refused_in_the_run(tmp_path: Path) -> None:
    method = written(tmp_path, NEEDS_MORE + 'return {"cls": out.logits.mean()}')
    with pytest.raises(Failed, match="one number per image is needed"):
        run(method=method, **QUICK, out=tmp_path / "run")
    assert not logged(tmp_path / "run")


def test_a_loss_that_is_not_finite_on_noise_is_no_reason_to_refuse(tmp_path: Path) -> None:
    on_noise = 'if len(batch.y) < 20:\n    return {"cls": out.logits[:, 0] * torch.inf}\n'
    assert run(method=written(tmp_path, on_noise + RIGHT), **QUICK | {"batch_size": 256})["complete"]
