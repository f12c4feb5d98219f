"""What `fit` trains with: a loss of its own, the method's weights, a batch in parts."""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, get_args

import pytest

from helpers.paths import ROOT
from helpers.runs import collect, logged
from jioc.events import Epoch, Event
from jioc.methods.ssil import SSIL
from jioc.training.engine import Engine
from jioc.training.run import run
from jioc.types import Batch

STAGED = """
import copy
from dataclasses import replace
from functools import partial

import jioc
from jioc.losses import cross_entropy


spec = replace(jioc.methods.SPECS["podnet"], name="staged", title="Staged", options=jioc.Spec.options)


@jioc.register(spec)
class Staged(jioc.Method):
    def loss(self, batch, out, old, task):
        return {"cls": cross_entropy(out.logits, batch.y)}

    def weights(self, task):
        return {"cls": WEIGHT}

    def tuning(self, batch, out, old, task):
        return {"TERM": cross_entropy(out.logits, batch.y)}

    def learn(self, task, data, fit):
        self.net.grow(task.n_new, self.generator)
        fit(self, task, data.with_memory(self.memory))
        if task.n_old:
            balanced = copy.copy(self.memory)
            features = partial(data.features, self.net)
            balanced.update(data.classes, features, data.generator, classes=task.n_old)
            fit(self, task, data.of(balanced.index), stage="second"HOW)
        self.remember(task, data)
        self.keep_teacher()
"""
BOTH = {"cls", "kd", "suppress"}


def staged(
    folder: Path, term: str = "cls", how: str = ", loss=self.tuning", weight: str = "1.0", **more: Any
) -> Path:
    """The folder of a run whose second stage is trained in that way."""
    folder.mkdir()
    source = STAGED.replace("TERM", term).replace("HOW", how).replace("WEIGHT", weight)
    (folder / "staged.py").write_text(source)
    values: dict[str, Any] = {"task_sizes": (8, 2), "memory": 40, "device": "cpu", "batch_size": 256}
    stages = {stage: {"epochs": 1, "lr": 0.1} for stage in ("first", "later", "second")}
    run(method=str(folder / "staged.py"), **values, **stages, **more, out=folder / "run")
    return folder / "run"


@pytest.mark.parametrize(
    ("term", "how", "terms"),
    [
        ("cls", ", loss=self.tuning", {"cls"}),
        ("tune", ", loss=self.tuning", {"tune"}),
        ("cls", ", loss=self.tuning, coordination=self.coordination", BOTH),
        ("cls", "", BOTH),
        ("cls", ", loss=self.loss", BOTH),
        ("cls", ", coordination=None", {"cls"}),
    ],
)
def test_a_second_stage_with_a_loss_of_its_own_is_coordinated_where_that_is_asked_for(
    term: str, how: str, terms: set[str], tmp_path: Path
) -> None:
    log = logged(staged(tmp_path / "jioc", term, how, coordination={"coordinate": "jioc"}))
    assert [(line["stage"], set(line["terms"])) for line in log] == [
        ("first", {"cls"}),
        ("later", BOTH),
        ("second", terms),
    ]


def test_a_loss_that_is_given_is_not_multiplied_by_the_methods_weights(tmp_path: Path) -> None:
    """So it does not matter whether its term has a name that they weigh."""
    runs = [
        staged(tmp_path / str(i), term, weight=w)
        for i, (term, w) in enumerate([("cls", "0.25"), ("tune", "0.25"), ("cls", "1.0")])
    ]
    named, other, unweighed = [(out / "model.safetensors").read_bytes() for out in runs]
    assert named == other != unweighed


def test_without_its_shares_wa_trains_as_icarl_does_under_jioc(tmp_path: Path) -> None:
    """Their losses differ in the shares alone, and WA scales its head afterwards."""

    def trained(method: str, factors: str) -> list[dict[str, float]]:
        jioc = {"coordinate": "jioc", "host_factors": factors}
        later = {"epochs": 2, "lr": 0.05, "decay": "cosine"}
        words: Any = {"method": method, "coordination": jioc, "later": later, "first": {"epochs": 1}}
        out = tmp_path / method / factors
        run(**words, data="digits", task_sizes=(6, 4), memory=60, device="cpu", out=out)
        return [line["terms"] for line in logged(out) if line["stage"] == "later"]

    assert trained("wa", "drop") == trained("icarl", "keep") != trained("wa", "keep")


def keywords(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


def test_the_docs_name_all_that_fit_and_run_take_and_tell() -> None:
    methods, python = ((ROOT / name).read_text() for name in ("docs/methods.md", "docs/python.md"))
    named = {row.split("`")[1] for row in methods.splitlines() if row.startswith("| `")}
    assert {p.name for p in keywords(Engine.fit)} <= named
    assert all(f"`{p.name}" in python for p in keywords(run))
    kinds = [kind.__name__ for kind in get_args(Event)]
    assert len(kinds) == 7 and all(f"`{kind}" in python for kind in kinds)


# --- a batch in parts ---

SHORT: dict[str, Any] = {"first": {"epochs": 1}, "later": {"epochs": 1}}


@pytest.mark.parametrize("parts", [2, 5])
def test_every_part_of_a_step_of_ssil_has_its_share_of_exemplars(
    parts: int, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    real = SSIL.loss

    def loss(self: SSIL, batch: Batch, *others: Any) -> Any:
        seen.append((len(batch.y), int(batch.old.sum())))
        return real(self, batch, *others)

    small |= {"task_sizes": (5, 5), "batch_size": 64, **SHORT}
    epochs: list[Epoch] = []
    monkeypatch.setattr(SSIL, "loss", loss)
    run(method="ssil", accumulate=parts, **small, callback=collect(Epoch, epochs))
    later = seen[next(i for i, (_, old) in enumerate(seen) if old) :]
    images = [epoch.images for epoch in epochs]
    assert sum(n for n, _ in seen) == sum(images) and sum(n for n, _ in later) == images[-1]
    for first in range(0, len(later), parts):
        of_step = later[first : first + parts]
        assert all(max(of) - min(of) <= 1 for of in zip(*of_step, strict=True)), of_step


def test_a_batch_of_fewer_images_than_parts_is_trained_on(small: dict[str, Any]) -> None:
    epochs: list[Epoch] = []
    small |= {"task_sizes": (5, 5), "long_tail": 20, "batch_size": 125, **SHORT}
    run(method="replay", accumulate=3, **small, callback=collect(Epoch, epochs))
    trained = [epoch.images for epoch in epochs]
    assert trained[0] % 125 == 2  # in three parts


def test_every_part_of_a_full_batch_is_compiled(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: set[frozenset[int]] = set()
    monkeypatch.setattr(
        "jioc.training.engine.compiling", lambda *sizes: compiled.add(frozenset(sizes)) or nullcontext()
    )
    run(method="replay", accumulate=3, compile=True, **small | {"batch_size": 64, **SHORT})
    assert compiled == {frozenset({21, 22})}
