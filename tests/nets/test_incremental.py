"""What is frozen stays, a teacher costs nothing, growing keeps old logits, a plan rebuilds its network."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from helpers.formulas import PLAN
from helpers.learning import some_images, started
from jioc.methods import SPECS
from jioc.methods.bic import BiC
from jioc.methods.der import DER
from jioc.methods.foster import FOSTER
from jioc.methods.podnet import PODNet
from jioc.nets.backbones import ResNet
from jioc.nets.heads import ProxyHead
from jioc.nets.incremental import ExpandingNet, IncrementalNet, build


def digest(part: nn.Module) -> str:
    """Of weights and BN statistics."""
    return hashlib.sha256(b"".join(v.numpy().tobytes() for v in part.state_dict().values())).hexdigest()


# --- what is frozen ---


def test_der_freezes_every_backbone_but_the_newest() -> None:
    run = started("der", 2, coordination={"coordinate": "jioc"})
    net = run.method.net
    assert isinstance(net, ExpandingNet)
    before = [digest(part) for part in net.backbones]
    run.learn_next()
    after = [digest(part) for part in net.backbones]
    assert after[:2] == before and len(set(after)) == 3


def test_foster_boosts_beside_the_frozen_student() -> None:
    run = started("foster", 1, coordination={"coordinate": "jioc"})
    method = run.method
    assert isinstance(method, FOSTER)
    backbone, head = digest(method.net.backbone), digest(method.net.head)
    run.learn_next()
    assert method.boosted is not None and method.boosted.before is not None
    assert digest(method.boosted.backbones[0]) == backbone and digest(method.boosted.before) == head
    assert digest(method.boosted.backbones[1]) != backbone != digest(method.net.backbone)


def test_foster_compression_leaves_the_boosted_network_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    run = started("foster", 1)
    method, seen = run.method, []
    assert isinstance(method, FOSTER)
    compress = method._compress

    def watched(*args: Any) -> None:
        assert method.boosted is not None
        seen.append(digest(method.boosted))
        compress(*args)
        seen.append(digest(method.boosted))

    monkeypatch.setattr(method, "_compress", watched)
    run.learn_next()
    assert len(seen) == 2 and seen[0] == seen[1]


@pytest.mark.parametrize("oofc", ["ft", "az"])
def test_foster_old_features_can_be_kept_from_new_classes(oofc: str) -> None:
    method = started("foster", 2, options={"oofc": oofc}).method
    assert isinstance(method, FOSTER) and method.boosted is not None
    block = method.boosted.head.weight[4:, : method.net.width]
    assert bool((block == 0).all()) == (oofc == "az")


def test_podnet_freezes_old_proxies_in_both_stages() -> None:
    run = started("podnet", 1, coordination={"coordinate": "jioc"})
    head = run.method.net.head
    assert isinstance(run.method, PODNet) and isinstance(head, ProxyHead)
    for _ in range(2):
        before = head.rows().detach().clone()
        run.learn_next()
        assert torch.equal(head.frozen, before)


def test_bic_second_stage_changes_the_newest_pair_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    run = started("bic", 2)
    method, changed = run.method, []
    assert isinstance(method, BiC)
    fit_bias = method._fit_bias

    def watched(*args: Any) -> None:
        before = {name: value.clone() for name, value in method.net.state_dict().items()}
        fit_bias(*args)
        after = method.net.state_dict()
        changed.extend(name for name in after if not torch.equal(before[name], after[name]))

    monkeypatch.setattr(method, "_fit_bias", watched)
    run.learn_next()
    assert changed == ["head.pairs.2"]


@pytest.mark.parametrize("method", [name for name, spec in SPECS.items() if spec.memory == "exemplars"])
def test_a_teacher_never_changes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(method, 1, coordination={"coordinate": "jioc"})
    host = run.method
    if isinstance(host, DER | FOSTER):
        assert host.teacher is None  # the previous head on frozen features, watched above
        return
    assert host.teacher is not None
    before, keep = digest(host.teacher), host.keep_teacher

    def watched() -> None:
        assert host.teacher is not None and digest(host.teacher) == before
        keep()

    monkeypatch.setattr(host, "keep_teacher", watched)
    run.learn_next()
    assert digest(host.teacher) != before


# --- the teacher for nothing ---


def forwards(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> int:
    calls, forward = [0], ResNet.forward

    def counted(self: ResNet, *args: Any) -> Any:
        calls[0] += 1
        return forward(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(ResNet, "forward", counted)
        work()
    return calls[0]


@pytest.mark.parametrize("method", ["der", "foster"])
def test_the_teacher_of_an_expanding_network_adds_no_backbone_forward(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for word in ("none", "jioc"):
        run = started(method, 2, coordination={"coordinate": word})
        counts.append(forwards(monkeypatch, run.learn_next))
    assert counts[0] == counts[1]


def test_the_saved_head_is_the_previous_network_exactly() -> None:
    run = started("der", 2, coordination={"coordinate": "jioc"})
    x, previous = some_images(run), run.method.net.frozen_copy()
    run.learn_next()
    with torch.no_grad():
        old = run.method.old_output(run.method.net(x), run.method.teacher_output(x))
        assert old is not None
        assert torch.equal(old.logits, previous(x).logits)


def test_without_output_coordination_der_asks_no_teacher() -> None:
    run = started("der", 2, coordination={"coordinate": "ic"})
    x = some_images(run)
    assert run.method.old_output(run.method.net(x), run.method.teacher_output(x)) is None


# --- growing ---


@pytest.mark.parametrize("method", SPECS)
def test_a_network_that_grows_leaves_old_logits_alone_and_its_plan_rebuilds_it(method: str) -> None:
    run = started(method, 2)
    x, net = some_images(run), run.method.net
    nets = [net, ExpandingNet.over(net)] if isinstance(run.method, FOSTER) else [net]
    for net in nets:
        with torch.no_grad():
            before = net.eval()(x).logits
            extra = {"aux": 4} if isinstance(net, ExpandingNet) else {}
            net.grow(3, torch.Generator().manual_seed(0), **extra)
            out = net.eval()(x)
            torch.testing.assert_close(out.logits[:, :7], before, rtol=1e-6, atol=1e-6)
            twin = build(net.plan)
            twin.load_state_dict(net.state_dict())
            assert torch.equal(twin.eval()(x).logits, out.logits)
        learns = [[(name, p.requires_grad) for name, p in n.named_parameters()] for n in (twin, net)]
        assert learns[0] == learns[1]  # in the same order, which a resumed optimiser relies on
        assert twin.plan["sizes"] == [4, 3, 3]


def test_channels_are_innermost_however_a_network_came_to_be() -> None:
    net = build(PLAN | {"backbone": "tiny"}, torch.Generator().manual_seed(0))
    assert isinstance(net, IncrementalNet)
    twin, wide = build(net.plan), ExpandingNet.over(net)
    twin.load_state_dict({name: value.contiguous() for name, value in net.state_dict().items()})
    wide.grow(2, torch.Generator())
    wide.grow(2, torch.Generator(), aux=3)
    for one in (net, twin, net.frozen_copy(), wide):
        convolutions = [m for m in one.modules() if isinstance(m, nn.Conv2d)]
        assert convolutions and all(
            m.weight.is_contiguous(memory_format=torch.channels_last) for m in convolutions
        )


def test_frozen_backbones_stay_in_eval_mode() -> None:
    net = started("der", 2).method.net.train()
    assert isinstance(net, ExpandingNet)
    assert [part.training for part in net.backbones] == [False, True]


def test_a_new_backbone_leaves_old_logits_and_the_network_before_as_they_were() -> None:
    net = ExpandingNet(
        {**PLAN, "kind": "expanding", "backbones": 1, "aux": 0}, torch.Generator().manual_seed(0)
    )
    weights = torch.Generator().manual_seed(1)
    net.grow(3, weights)
    x = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    before = net.eval()(x).logits
    net.grow(2, weights, 3)
    out = net.eval()(x)
    assert net.previous(out).logits.equal(before) and not net.head.weight[:3, net.unit :].any()
    assert torch.allclose(out.logits[:, :3], before, rtol=1e-6, atol=1e-6)
