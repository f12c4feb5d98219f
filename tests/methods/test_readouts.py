"""Read-outs before an alignment or a correction: what the head gave until then."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import jioc
from helpers.learning import some, some_images, started
from helpers.models import signed
from jioc.config import values as settings
from jioc.data.load import load_dataset
from jioc.errors import Refused
from jioc.methods.bic import BiC
from jioc.methods.wa import Aligned
from jioc.training.checkpoint import pack, unpack
from jioc.training.learner import Learner
from jioc.training.runner import Run

QUICK: dict[str, Any] = {
    "data": "digits", "memory": 60, "first": {"epochs": 1}, "later": {"epochs": 1}, "device": "cpu",
}  # fmt: skip


@torch.no_grad()
def logits(run: Run) -> Tensor:
    """The head's, as it is now."""
    return run.method.net.eval()(some_images(run)).logits


@torch.no_grad()
def read_out(run: Run) -> dict[str, Tensor]:
    run.method.net.eval()
    return run.method.readouts(some_images(run))


@pytest.mark.parametrize("method", ["wa", "der"])
def test_unaligned_is_the_head_before_its_new_classes_were_scaled(method: str) -> None:
    run = started(method, 1)
    host, before = run.method, []
    assert isinstance(host, Aligned)
    first = read_out(run)
    assert first["unaligned"].equal(first["cnn"])
    fit = run.engine.fit

    def watched(*args: Any, **options: Any) -> None:
        fit(*args, **options)
        before.append(logits(run))

    run.engine.fit = watched  # type: ignore[method-assign]
    for _ in range(2):  # the scale of the task before stays
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


def test_a_gamma_that_is_no_number_is_refused(tmp_path: Path) -> None:
    jioc.run(**QUICK, method="wa", task_sizes=(6, 4), out=tmp_path)
    for gamma in ("much", [1.0], {"a": 1}, torch.ones(3)):
        signed(tmp_path, pack(unpack(tmp_path / "model.safetensors") | {"gamma": gamma}))
        with pytest.raises(Refused, match="holds no whole model"):
            jioc.load(tmp_path)


# --- learning on ---


def test_after_rehearsal_the_head_as_it_is_was_never_scaled() -> None:
    digits = load_dataset(settings.make(method="wa", data="digits"))
    learner = Learner.first(settings.make(**QUICK, method="wa"), some(digits, ["0", "1", "2"]))
    learner = learner.learn(some(digits, ["3", "4"]))
    again = learner.rehearse(some(digits, ["1", "4"]))
    for of, same in ((learner, False), (again, True)):
        found = of.readouts(digits.test_x)
        assert found["unaligned"].equal(found["cnn"]) is same
