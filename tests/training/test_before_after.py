"""Read-outs before an alignment or a correction: what the head said until then, through files and interruptions."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import jioc
from helpers.learning import some, some_images, started
from helpers.models import signed
from jioc.config import values as settings
from jioc.data.load import load
from jioc.errors import Interrupted, Refused
from jioc.methods.aligned import Aligned
from jioc.methods.bic import BiC
from jioc.training.checkpoint import pack, unpack
from jioc.training.learner import Learner
from jioc.training.runner import Run

QUICK: dict[str, Any] = {
    "data": "digits", "memory": 60, "first": {"epochs": 1}, "later": {"epochs": 1}, "device": "cpu",
}  # fmt: skip
THREE = QUICK | {"method": "wa", "task_sizes": (4, 3, 3)}


@torch.no_grad()
def logits(run: Run) -> Tensor:
    """The head's, as it is now."""
    return run.method.net.eval()(some_images(run)).logits


@torch.no_grad()
def read_out(run: Run) -> dict[str, Tensor]:
    run.method.net.eval()
    return run.method.readouts(some_images(run))


@pytest.mark.parametrize("method", ["wa", "der"])
def test_unaligned_is_the_head_before_its_new_rows_were_scaled(method: str) -> None:
    run = started(method, 1)
    host, before = run.method, []
    assert isinstance(host, Aligned)
    first = read_out(run)
    assert first["unaligned"].equal(first["cnn"])
    align: Callable[[Any], None] = host.align

    def watched(task: Any) -> None:
        before.append(logits(run))
        align(task)

    host.align = watched  # type: ignore[method-assign]
    for _ in range(2):  # the scaling of the task before stays
        run.learn_next()
        found = read_out(run)
        torch.testing.assert_close(found["unaligned"], before[-1])
        n = run.rows[-1]["classes"][0]
        assert found["unaligned"][:, :n].equal(found["cnn"][:, :n])
        assert (found["unaligned"] - found["cnn"])[:, n:].abs().max() > 1e-3
    assert not torch.allclose(before[0], before[1][:, :7])


def test_uncorrected_is_the_head_before_the_newest_pair_was_fitted() -> None:
    run = started("bic", 1)
    host, before = run.method, []
    assert isinstance(host, BiC)
    first = read_out(run)
    assert first["uncorrected"].equal(first["cnn"])
    fit = run.engine.fit

    def watched(*words: Any, **options: Any) -> None:
        if options.get("stage") == "second":
            before.append(logits(run))
        fit(*words, **options)

    run.engine.fit = watched  # type: ignore[method-assign]
    for _ in range(2):  # the pair of the task before stays
        run.learn_next()
        found = read_out(run)
        torch.testing.assert_close(found["uncorrected"], before[-1])
        assert not torch.allclose(found["uncorrected"], found["cnn"])


# --- in files ---


def without_gamma(path: Path) -> bytes:
    """A state as versions before this read-out wrote it."""
    state = unpack(path)
    del state.get("method", state)["gamma"]
    for row in state.get("rows", []):
        row["readouts"] = {}
    return pack(state)


def test_a_model_from_before_the_readout_answers_without_it_and_learns_on(tmp_path: Path) -> None:
    digits = load(settings.make(method="wa", data="digits"))
    jioc.run(**QUICK, method="wa", task_sizes=(6, 4), out=tmp_path)
    now = jioc.load(tmp_path).readouts(digits.test_x)
    signed(tmp_path, without_gamma(tmp_path / "model.safetensors"))
    learner = jioc.load(tmp_path, to_learn=True)
    then = learner.readouts(digits.test_x)
    assert [*then] == ["cnn", "nme"] and all(then[name].equal(now[name]) for name in then)
    with pytest.raises(Refused, match="unknown read-out 'unaligned'; there is cnn, nme"):
        learner.predict(digits.test_x[:2], "unaligned")
    more = learner.learn(replace(digits, classes=[f"another {name}" for name in digits.classes]))
    assert more.row is not None and "unaligned" in more.row["readouts"]


def test_a_gamma_that_is_no_number_is_refused(tmp_path: Path) -> None:
    jioc.run(**QUICK, method="wa", task_sizes=(6, 4), out=tmp_path)
    for gamma in ("much", [1.0], {"a": 1}, torch.ones(3)):
        signed(tmp_path, pack(unpack(tmp_path / "model.safetensors") | {"gamma": gamma}))
        with pytest.raises(Refused, match="holds no whole model"):
            jioc.load(tmp_path)


def test_a_run_from_before_the_readout_goes_on_and_claims_no_average_of_it(tmp_path: Path) -> None:
    whole, old = tmp_path / "whole", tmp_path / "old"
    jioc.run(**THREE, out=whole)
    done: list[str] = []
    with pytest.raises(Interrupted):
        jioc.run(
            **THREE, out=old, callback=lambda kind, _: done.append(kind), stop=lambda: done.count("task") == 2
        )
    for sums in (old / "checkpoint").rglob("checksums.json"):
        states = {
            sums.parent / name: without_gamma(sums.parent / name) for name in json.loads(sums.read_bytes())
        }
        for path, content in states.items():
            path.write_bytes(content)
        sums.write_text(json.dumps({path.name: hashlib.sha256(c).hexdigest() for path, c in states.items()}))
    result = jioc.run(**THREE, out=old, resume=True)
    assert [[*row["readouts"]] for row in result["tasks"]] == [[], [], ["unaligned"]]
    assert (
        result["complete"] and result["average"]["unaligned"] is None and result["average"]["cnn"] is not None
    )
    assert (old / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


# --- learning on ---


def test_after_rehearsal_the_head_as_it_is_was_never_scaled() -> None:
    digits = load(settings.make(method="wa", data="digits"))
    learner = Learner.first(settings.make(**QUICK, method="wa"), some(digits, ["0", "1", "2"]))
    learner = learner.learn(some(digits, ["3", "4"]))
    again = learner.rehearse(some(digits, ["1", "4"]))
    for of, same in ((learner, False), (again, True)):
        found = of.readouts(digits.test_x)
        assert found["unaligned"].equal(found["cnn"]) is same
