"""What JIOC does to the terms of each method: the table of docs/methods.md, in float64."""

import pytest
import torch
from torch import Tensor

from helpers.formulas import BATCH, TASK, Y, close, kl, method, numbers
from helpers.paths import ROOT
from jioc.config import Coordination
from jioc.coordination import JIOC
from jioc.methods import SPECS, bic, coil, foster, wa
from jioc.nets.heads import CorrectedHead, CosineHead, LinearHead, ProxyHead, ScaledCosineHead
from jioc.types import Batch, Output, Task, Terms


@pytest.mark.parametrize("name", ["wa", "bic", "coil"])
def test_the_mix_of_cls_and_kd_is_the_share_of_old_classes(name: str) -> None:
    host = method(name)
    assert isinstance(host, wa.WA | bic.BiC | coil.COIL)
    factors = host.weights(TASK)
    assert factors["cls"] == pytest.approx(2 / 7) and factors["kd"] == pytest.approx(5 / 7)


TOUCHED = {  # where OC's distillation goes, and what it is multiplied by
    "replay": ("added", 1),
    "joint": ("added", 1),
    "icarl": ("replaced", 1),
    "wa": ("replaced", 5 / 7),
    "bic": ("replaced", 5 / 7),
    "podnet": ("added", 1),
    "ssil": ("kept", 1),
    "der": ("added", 1),
    "foster": ("replaced", 1),
    "coil": ("replaced", 5 / 7),
}


def test_the_table_is_of_every_method_with_a_memory() -> None:
    assert set(TOUCHED) == {name for name, spec in SPECS.items() if spec.memory != "none"}
    text = (ROOT / "docs" / "methods.md").read_text()
    assert all(f"| {name} |" in text for name in SPECS)


@pytest.mark.parametrize("name", TOUCHED)
def test_jioc_touches_the_terms_that_the_table_says(name: str) -> None:
    host, (how, factor) = method(name), TOUCHED[name]
    z, old = numbers(6, 7), Output(numbers(6, 5, seed=1), numbers(6, 8, seed=2), [numbers(6, 2, 3, 3)])
    out = Output(
        z,
        numbers(6, 8),
        [numbers(6, 2, 3, 3, seed=3)],
        {"aux": numbers(6, 3 if name == "der" else 7, seed=4)},
    )
    if isinstance(host, foster.FOSTER):
        host.balance = foster.class_balance([4] * 5 + [20] * 2, 0.96)
    if isinstance(host, coil.COIL):
        host.ahead, host.back = numbers(2, 8).float(), numbers(5, 8).float()
        out.features = out.features.float()
    terms = host.loss(BATCH, out, old, TASK)
    assert all(term.shape == (6,) for term in terms.values()) and ("kd" in terms) == (how != "added")
    host.coordination = JIOC(reading="printed", host_kd=host.spec.host_kd)
    both = host.coordination(terms, BATCH, out, old, TASK, host.cls_logits(out, TASK))
    assert set(both) == {*terms, "kd", "suppress"}
    assert all(both[other] is terms[other] for other in terms.keys() - {"cls", "kd"})
    slow = [
        kl(t[:2], s[:2], 2) + kl(t[2:], s[2:5], 2)
        for t, s in zip(old.logits.tolist(), z.tolist(), strict=True)
    ]
    if how == "kept":
        assert both["kd"] is terms["kd"]
    else:
        close(both["kd"], slow)
    assert host.weights(TASK).get("kd", 1.0) == pytest.approx(factor)
    assert (factor != 1) == host.spec.shares
    host.coordination = JIOC(host_kd=host.spec.host_kd)  # by default, JIOC balances the two
    assert {host.weights(TASK).get(name, 1.0) for name in ("cls", "kd")} == {1.0}
    p = host.cls_logits(out, TASK).softmax(1)[range(6), Y]
    close(both["cls"].detach(), ((1 - p) * terms["cls"]).detach())
    close(both["suppress"], (Y < 5) * z.softmax(1)[:, 5:].sum(1) * 60 / 40)


@pytest.mark.parametrize("kind", [LinearHead, CorrectedHead, CosineHead, ProxyHead, ScaledCosineHead])
def test_a_head_that_grows_leaves_old_logits_alone(kind: type) -> None:
    g, f = torch.Generator().manual_seed(0), numbers(5, 8)
    head = kind(8).double()
    head.grow(3, g)
    for n in (2, 1):
        rows, before = head.rows().detach(), head(f).detach()
        head.grow(n, g)
        assert torch.equal(head.rows()[: len(rows)], rows)
        close(head(f)[:, : before.shape[1]], before)  # products of other shapes may be rounded otherwise


def test_every_reading_is_an_option_of_the_formula_too() -> None:
    assert set(Coordination.model_fields) == set(JIOC.model_fields)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.adjusts])
def test_an_adjusted_loss_is_that_of_logits_with_the_prior_added(name: str) -> None:
    host, prior = method(name), torch.tensor([3, 3, 2, 2, 2, 40, 60], dtype=torch.float64).log()
    z, old = numbers(6, 7), numbers(6, 5, seed=1)
    if name == "foster":
        host.balance = torch.ones(7, dtype=torch.float64)  # type: ignore[attr-defined]
    if name == "coil":
        host.ahead, host.back = numbers(2, 3).float(), numbers(5, 3).float()  # type: ignore[attr-defined]

    def terms(logits: Tensor) -> Terms:
        maps = [numbers(6, 2, 4, 4)]
        out = Output(logits, numbers(6, 3), maps, {"aux": numbers(6, 7 if name == "foster" else 3)})
        return host.loss(BATCH, out, Output(old, numbers(6, 3, seed=2), maps), TASK)

    plain, shifted = terms(z), terms(z + prior)
    host.prior = prior
    if name == "foster":
        host.balance *= 2  # type: ignore[attr-defined]  # has no part in it then
    adjusted = terms(z)
    close(adjusted["cls"], shifted["cls"])
    assert not torch.allclose(adjusted["cls"], plain["cls"])
    assert all(adjusted[term].equal(plain[term]) for term in plain if term != "cls")
    assert host.cls_logits(Output(z, z), TASK).equal(z)  # the input weight's


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.adjusts])
def test_the_first_task_is_adjusted_too(name: str) -> None:
    host, prior = method(name), torch.tensor([3.0, 40.0, 7.0], dtype=torch.float64).log()
    first = Task(0, (3,), new_images=50, old_images=0)
    batch = Batch(torch.zeros(6, 1, 2, 2), torch.arange(6) % 3, torch.zeros(6, dtype=torch.bool))

    def terms(logits: Tensor) -> Terms:
        return host.loss(batch, Output(logits, numbers(6, 3), [numbers(6, 2, 4, 4)]), None, first)

    shifted = terms(numbers(6, 3) + prior)
    host.prior = prior
    close(terms(numbers(6, 3))["cls"], shifted["cls"])
