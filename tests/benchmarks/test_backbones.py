"""Frozen backbones in one batched pass give what they give one by one."""

from typing import Any

import pytest
import torch

from helpers.paths import ROOT
from helpers.scripts import script
from jioc.nets.incremental import build


@pytest.fixture(scope="module")
def backbones() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return script("backbones")


@pytest.mark.parametrize("count", [2, 4])
def test_one_batched_pass_is_the_passes_one_by_one(backbones: Any, count: int) -> None:
    g = torch.Generator().manual_seed(0)
    plan = {"backbone": "tiny", "stem": "cifar", "channels": 3, "cosine": False, "maps": False}
    net = build(plan | {"head": "linear", "kind": "expanding", "backbones": 1, "aux": 0, "sizes": []}, g)
    for _ in range(count + 1):
        net.grow(2, g, 3)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=g))
        for b in net.buffers():
            b.mul_(1 + 0.3 * torch.rand(b.shape, generator=g))
    net.train()
    x, twin = torch.randn(6, 3, 8, 8, generator=g), torch.randn(6, 2 * count + 2, generator=g)
    found = []
    for way in (None, backbones.together):
        net.zero_grad()
        with backbones.frozen_by(way):
            logits = net(x).logits
        (logits * twin).sum().backward()
        found.append([logits.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)])
    assert len(found[0]) == len(found[1]) > 10
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("method", "stages"), [("der", {"later"}), ("foster", {"later", "second"})])
def test_a_step_is_timed_at_a_number_of_backbones(backbones: Any, method: str, stages: set[str]) -> None:
    args = backbones.argparse.Namespace(backbone="tiny", device="cpu", epochs=2, each=2)
    found = backbones.steps_of(args, method, 2)
    assert {*found} == stages and all(ms > 0 for ms in found.values())


def test_numbers_that_no_network_has_are_refused(backbones: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert backbones.main(["--counts", "21", "--device", "cpu"]) == 2
    assert "from 1 to 20 backbones" in capsys.readouterr().err
