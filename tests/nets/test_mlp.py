"""Vectors: floats as images of a pixel, standardised; the MLP under every kind of network."""

from typing import Any

import numpy as np
import pytest
import torch

from jioc.cli.main import main
from jioc.data.augment.basic import Augment
from jioc.data.loader import Images
from jioc.nets.incremental import build

PLAN: dict[str, Any] = {
    "backbone": "mlp", "stem": None, "channels": 5, "cosine": False, "maps": False, "head": "linear",
    "sizes": [],
}  # fmt: skip


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", ["incremental", "expanding"])
def test_growing_leaves_the_old_logits(kind: str) -> None:
    g, x = generator(), torch.randn(7, 5, 1, 1)
    net = build(PLAN | {"kind": kind, "backbones": 1, "aux": 0}, g).eval()
    net.grow(3, g)
    before = net(x).logits
    net.grow(2, g)
    after = net.eval()(x)
    assert torch.allclose(after.logits[:, :3], before, atol=1e-5)
    assert after.features.shape == (7, net.width)


def test_a_layer_is_a_convolution_of_a_pixel() -> None:
    """Maps are the layers' outputs, the last one the features; a cosine backbone's have both signs."""
    net = build(PLAN | {"maps": True, "cosine": True, "sizes": [2]}, generator()).eval()
    x = torch.randn(9, 5, 1, 1)
    out = net(x)
    first = torch.nn.functional.conv2d(x, net.backbone.linear[0].weight[:, :, None, None]).relu()
    assert torch.allclose(out.maps[0], first / np.sqrt(1 + 1e-5), atol=1e-5)  # batch normalisation at rest
    assert out.maps[1].shape == (9, 64, 1, 1) and out.maps[1].flatten(1).equal(out.features)
    assert (out.features < 0).any() and (out.maps[0] >= 0).all()


def test_weights_come_from_the_generator_alone() -> None:
    a, b, c = (build(PLAN, generator(seed)) for seed in (7, 7, 8))
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
