"""Networks: PyCIL's sizes, growth that leaves old logits alone, weights from the generator alone."""

import copy
from typing import Any

import pytest
import torch

from jioc.cli.main import main
from jioc.nets.catalogue import BACKBONES
from jioc.nets.incremental import build

PLAN: dict[str, Any] = {
    "backbone": "tiny", "stem": "cifar", "channels": 3, "cosine": False, "maps": False, "head": "linear",
    "sizes": [],
}  # fmt: skip


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("backbone", "stem", "cosine", "count"),
    [
        ("resnet32", "cifar", False, 463_504),
        ("resnet32", "cifar", True, 463_504 + 2_752),
        ("resnet18", "cifar", False, 11_168_832),
        ("resnet18", "cifar-pool", False, 11_168_832),
        ("resnet18", "imagenet", False, 11_176_512),
    ],
)
def test_parameter_counts_are_pycils(backbone: str, stem: str, cosine: bool, count: int) -> None:
    net = build(PLAN | {"backbone": backbone, "stem": stem, "cosine": cosine}, generator())
    assert sum(p.numel() for p in net.backbone.parameters()) == count


@pytest.mark.parametrize(("stem", "side"), [("cifar", 32), ("cifar-pool", 16), ("imagenet", 8)])
def test_the_stem_decides_the_size_of_the_maps(stem: str, side: int) -> None:
    net = build(PLAN | {"stem": stem, "maps": True, "sizes": [2]}, generator()).eval()
    maps = net(torch.randn(2, 3, 32, 32)).maps
    assert [m.shape[-1] for m in maps] == [side, side // 2]


@pytest.mark.parametrize("head", ["linear", "cosine"])
def test_growing_leaves_the_old_logits(head: str) -> None:
    g = generator()
    net = build(PLAN | {"head": head}, g).eval()
    x = torch.randn(5, 3, 8, 8)
    net.grow(3, g)
    before = net(x).logits
    net.grow(2, g)
    after = net(x).logits
    assert after.shape == (5, 5) and torch.allclose(after[:, :3], before, atol=1e-6)
    assert net.plan["sizes"] == [3, 2]


def test_weights_come_from_the_generator_alone() -> None:
    torch.manual_seed(1)
    world = torch.random.get_rng_state()
    a, b, c = build(PLAN, generator(7)), build(PLAN, generator(7)), build(PLAN, generator(8))
    assert torch.random.get_rng_state().equal(world)
    assert all(p.equal(q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert not a.backbone.conv.weight.equal(c.backbone.conv.weight)


def test_a_cosine_backbone_has_features_of_both_signs_and_a_plain_one_has_not() -> None:
    x = torch.randn(20, 3, 8, 8)
    assert build(PLAN | {"cosine": True, "sizes": [1]}, generator()).eval()(x).features.min() < 0
    assert build(PLAN | {"sizes": [1]}, generator()).eval()(x).features.min() >= 0


def test_a_net_of_the_same_plan_takes_the_weights() -> None:
    g = generator()
    net = build(PLAN, g).eval()
    net.grow(4, g)
    twin = build(copy.deepcopy(net.plan)).eval()
    twin.load_state_dict(net.state_dict())
    x = torch.randn(3, 3, 8, 8)
    assert twin(x).logits.equal(net(x).logits)


def test_a_frozen_copy_is_apart_and_without_gradients() -> None:
    g = generator()
    net = build(PLAN, g)
    net.grow(2, g)
    frozen = net.frozen_copy()
    with torch.no_grad():
        net.head.weight.add_(1)
    assert not frozen.training and not any(p.requires_grad for p in frozen.parameters())
    assert not frozen.head.weight.equal(net.head.weight)


def test_the_list_names_the_backbones_and_no_stem(capsys: pytest.CaptureFixture[str]) -> None:
    """Which stem is used is the data set's to say: jioc data list."""
    assert main(["list", "backbones"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in BACKBONES) and not any(
        word in told for word in ("stem", "cifar", "imagenet")
    )
