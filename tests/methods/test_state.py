"""What a method names in `persistent` outlives a crash exactly, or is refused before it is lost."""

import pickle
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import jioc
from helpers.runs import stop_after
from jioc.cli.main import main
from jioc.config import Options
from jioc.config import values as settings
from jioc.data.load import load_dataset
from jioc.errors import Failed, Interrupted
from jioc.methods import SPECS
from jioc.methods.base import Method
from jioc.methods.contract import check_init
from jioc.methods.foster import FOSTER
from jioc.methods.state import load_value, save_value
from jioc.training.checkpoint import pack, unpack
from jioc.training.run import run

CPU = torch.device("cpu")

KEEPS = """
from dataclasses import replace

import torch
from torch import nn

import jioc
from jioc.losses import cross_entropy


@jioc.register(replace(jioc.methods.SPECS["replay"], name="keeps", title="Keeps"))
class Keeps(jioc.Method):
    persistent = ("side", "scale", "seen", "pair")

    def __init__(self, **parts):
        super().__init__(**parts)
        self.side = nn.Sequential(nn.Linear(self.net.width, 4), nn.BatchNorm1d(4))
        self.scale = nn.Parameter(torch.ones(4))
        self.seen, self.pair = {}, (1, [torch.zeros(2)])

    def loss(self, batch, out, old, task):
        away = (self.side(out.features) * self.scale - 1).square().mean(1)
        factor = sum(self.seen[t] for t in range(task.index)) if task.n_old else 1.0
        return {"cls": factor * cross_entropy(out.logits, batch.y), "away": away}

    def learn(self, task, data, fit):
        self.net.grow(task.n_new, self.generator)
        trained = [*self.net.parameters(), *self.side.parameters(), self.scale]
        fit(self, task, data.with_memory(self.memory), params=trained)
        if task.n_old == 0:
            self.net.backbone.requires_grad_(False)
        self.seen[task.index] = 0.1
        self.pair += (task.index,)
        self.remember(task, data)
"""
QUICK: dict[str, Any] = {
    "task_sizes": (4, 3, 3), "memory": 40, "first": {"epochs": 2}, "later": {"epochs": 2}, "device": "cpu",
    "checkpoint_every": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A method's file, and the folder of its run."""
    where = tmp_path_factory.mktemp("keeps")
    (where / "keeps.py").write_text(KEEPS)
    run(method=str(where / "keeps.py"), **QUICK, out=where / "run")
    return where / "keeps.py", where / "run"


@pytest.mark.parametrize("steps", [3, 14])
def test_modules_parameters_tuples_and_numbered_dicts_outlive_a_stop(
    steps: int, alone: tuple[Path, Path], tmp_path: Path
) -> None:
    method, out = str(alone[0]), tmp_path / "stopped"
    with pytest.raises(Interrupted):
        run(method=method, **QUICK, out=out, stop=stop_after(steps))
    run(method=method, **QUICK, out=out, resume=True)
    assert (out / "model.safetensors").read_bytes() == (alone[1] / "model.safetensors").read_bytes()


def test_a_saved_model_and_a_pickled_one_hold_what_the_method_kept(alone: tuple[Path, Path]) -> None:
    loaded = jioc.load(alone[1], to_learn=True, method=str(alone[0]))
    for learner in (loaded, pickle.loads(pickle.dumps(loaded))):
        method: Any = learner.method
        assert method.seen == {0: 0.1, 1: 0.1, 2: 0.1}
        assert (
            method.pair[0] == 1
            and method.pair[2:] == (0, 1, 2)
            and torch.equal(method.pair[1][0], torch.zeros(2))
        )
        assert isinstance(method.scale, nn.Parameter) and not torch.equal(method.scale, torch.ones(4))
        assert not method.side.training and method.side[1].num_batches_tracked > 0
        assert (
            not any(p.requires_grad for p in method.net.backbone.parameters()) and method.scale.requires_grad
        )


def test_what_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    values: list[Any] = [
        {1: 0.5, "1": (True, None), (0, 2): [float("inf")]},
        {"weights": torch.ones(2), "frozen": []},
        {"plan": 1},
        (),
        ((1,), [2, (3.0, "x")]),
        {
            "a/b": torch.zeros(1),
            "a": {"b": torch.ones(1)},
            7: torch.full((1,), 2.0),
            "7": torch.full((1,), 3.0),
        },
    ]
    (tmp_path / "state").write_bytes(pack({"values": [save_value("x", value) for value in values]}))
    again = [load_value("x", value, None, CPU) for value in unpack(tmp_path / "state")["values"]]
    assert repr(again) == repr(values)


def test_a_state_fills_what_is_there_so_that_optimisers_stay_valid() -> None:
    module, parameter = nn.Linear(2, 3), nn.Parameter(torch.rand(3))
    module.bias.requires_grad_(False)
    other, its = nn.Linear(2, 3), nn.Parameter(torch.zeros(3))
    assert (
        load_value("m", save_value("m", module), other, CPU) is other
        and load_value("p", save_value("p", parameter), its, CPU) is its
    )
    assert (
        torch.equal(other.weight, module.weight)
        and other.weight.requires_grad
        and not other.bias.requires_grad
    )
    assert torch.equal(its, parameter) and its.requires_grad
    made = load_value("p", save_value("p", parameter.requires_grad_(False)), None, CPU)
    assert isinstance(made, nn.Parameter) and not made.requires_grad
    with pytest.raises(Failed, match="'m' in `persistent` is not the module that was saved"):
        load_value("m", save_value("m", module), nn.Linear(2, 4), CPU)


def test_tensors_that_share_memory_and_modules_with_dropout_are_refused() -> None:
    parts: Any = {
        "net": None,
        "memory": SimpleNamespace(classes=[]),
        "options": Options(),
        "coordination": None,
    }

    class Mine(Method):
        persistent = ("ema", "best", "side")
        spec = SPECS["icarl"]

    for ema, best, module, told in [
        (torch.ones(2), None, nn.Linear(2, 1), None),
        (torch.ones(2), (torch.ones(2), 0), None, None),
        (base := torch.ones(2), (base, 0), None, "tensors of 'ema' and 'best' in `persistent` share memory"),
        (None, [base, base[1:]], None, "tensors of 'best' in `persistent` share memory"),
        (
            None,
            (side := nn.Linear(2, 1)).weight.detach(),
            side,
            "tensors of 'side' and 'best' in `persistent` share",
        ),
        (None, None, nn.Sequential(nn.Dropout(0.1), nn.Linear(2, 1)), "'side' in `persistent` has dropout"),
    ]:
        mine: Any = Mine(**parts, generator=torch.Generator())
        mine.ema, mine.best, mine.side = ema, best, module
        with pytest.raises(Failed, match=told) if told else nullcontext():
            check_init(mine)


@pytest.mark.parametrize(
    ("value", "kind"),
    [({0: {1}}, "set"), ([nn.Linear(1, 1)], "Linear"), ((nn.Parameter(torch.ones(1)),), "Parameter"),
     (np.float32(1), "float32"), (np.ones(2), "ndarray")],
)  # fmt: skip
def test_what_cannot_be_kept_is_named(value: Any, kind: str) -> None:
    with pytest.raises(
        Failed, match=f"'mine' in `persistent` is or holds a {kind}, which no checkpoint keeps; it keeps"
    ):
        save_value("mine", value)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('("side", "scale",', '("side",', "keeps trains a parameter that a resumed run would lose"),
        ('("side", "scale",', '("scale",', "keeps trains a parameter that a resumed run would lose"),
        (
            "nn.Parameter(torch.ones(4))",
            "torch.ones(4, requires_grad=True)",
            "a parameter that a resumed run would",
        ),
        (
            "self.seen, self.pair = {}, (",
            "self.seen, self.pair = {'all': set()}, (",
            "'seen' in `persistent` is or hold",
        ),
        ("self.seen, self.pair = {}, ", "self.pair = ", "keeps has no 'seen', which `persistent` names"),
        (
            "        trained = ",
            "        self.side = nn.Linear(self.net.width, 4)\n        trained = ",
            "'side' in `persistent` is not as",
        ),
        (
            "self.scale = nn",
            "self.scale = self.side[0].bias  # nn",
            "two names in `persistent` hold the same parameter",
        ),
        ('("side", "scale", "seen", "pair")', '("side")', "`persistent` is 'side'; names are needed"),
    ],
)
def test_what_would_be_lost_is_refused_before_it_is_trained(
    old: str, new: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert KEEPS.count(old) == 1
    (tmp_path / "lost.py").write_text(KEEPS.replace(old, new))
    words = ["--task-sizes", "8,2", "--epochs", "1", "--memory", "40", "--device", "cpu"]
    assert main(["run", str(tmp_path / "lost.py"), *words, "--out", str(tmp_path / "run")]) in (1, 2)
    captured = capsys.readouterr().err
    assert sentence in captured and captured.count("\n") == 1


def test_names_of_persistent_add_to_those_of_the_classes_above() -> None:
    class Mine(FOSTER):
        persistent = ("mine",)

    assert Method.persistent == ("net", "teacher", "means")
    assert Mine.persistent == ("net", "teacher", "means", "boosted", "boosted_means", "mine")


def test_a_learner_stays_as_it_is_when_another_learns_on(alone: tuple[Path, Path]) -> None:
    learner = jioc.load(alone[1], to_learn=True, method=str(alone[0]))
    seen = dict(learner.method.seen)  # type: ignore[attr-defined]
    digits = load_dataset(settings.make(method="replay", data="digits"))
    more = learner.learn(replace(digits, classes=[f"another {name}" for name in digits.classes]))
    assert more.method.seen == seen | {3: 0.1} and learner.method.seen == seen  # type: ignore[attr-defined]
