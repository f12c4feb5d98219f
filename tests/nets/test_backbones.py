"""Networks: PyCIL's sizes, growth that leaves old logits alone, weights from the generator alone.

Vectors: floats as images of a pixel, standardised; the MLP under every kind of network.
"""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from jioc.cli.main import main
from jioc.data.augment.basic import Augment
from jioc.data.loader import Images
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
    captured = capsys.readouterr().out
    assert all(name in captured for name in BACKBONES) and not any(
        word in captured for word in ("stem", "cifar", "imagenet")
    )


# --- vectors ---

VECTORS: dict[str, Any] = {
    "backbone": "mlp", "stem": None, "channels": 5, "cosine": False, "maps": False, "head": "linear",
    "sizes": [],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["incremental", "expanding"])
def test_growing_an_mlp_leaves_the_old_logits(kind: str) -> None:
    g, x = generator(), torch.randn(7, 5, 1, 1)
    net = build(VECTORS | {"kind": kind, "backbones": 1, "aux": 0}, g).eval()
    net.grow(3, g)
    before = net(x).logits
    net.grow(2, g)
    after = net.eval()(x)
    assert torch.allclose(after.logits[:, :3], before, atol=1e-5)
    assert after.features.shape == (7, net.width)


def test_a_layer_is_a_convolution_of_a_pixel() -> None:
    """Maps are the layers' outputs, the last one the features; a cosine backbone's have both signs."""
    net = build(VECTORS | {"maps": True, "cosine": True, "sizes": [2]}, generator()).eval()
    x = torch.randn(9, 5, 1, 1)
    out = net(x)
    first = torch.nn.functional.conv2d(x, net.backbone.linear[0].weight[:, :, None, None]).relu()
    assert torch.allclose(out.maps[0], first / np.sqrt(1 + 1e-5), atol=1e-5)  # batch normalisation at rest
    assert out.maps[1].shape == (9, 64, 1, 1) and out.maps[1].flatten(1).equal(out.features)
    assert (out.features < 0).any() and (out.maps[0] >= 0).all()


def test_weights_of_an_mlp_come_from_the_generator_alone() -> None:
    a, b, c = (build(VECTORS, generator(seed)) for seed in (7, 7, 8))
    assert all(p.equal(q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert not a.backbone.linear[0].weight.equal(c.backbone.linear[0].weight)


def test_floats_are_standardised_and_not_augmented() -> None:
    rows = (
        np.random.RandomState(0).normal([3, -400], [0.1, 50], (200, 2)).astype(np.float32)[:, :, None, None]
    )
    mean, std = rows.mean((0, 2, 3)), rows.std((0, 2, 3))
    images = Images(rows, np.zeros(200, np.int64), tuple(mean), tuple(std), torch.device("cpu"))
    every = torch.arange(200)
    seen = images.plain(every)
    assert torch.allclose(seen.mean((0, 2, 3)), torch.zeros(2), atol=1e-4)
    assert torch.allclose(seen.std((0, 2, 3), correction=0), torch.ones(2), atol=1e-4)
    assert images.augmented(every, Augment(), generator()).equal(seen)


def test_the_mlp_is_for_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "icarl", "--data", "digits", "--backbone", "mlp"]) == 2
    assert capsys.readouterr().err.strip().endswith("--backbone mlp is for vectors, and digits holds images")
