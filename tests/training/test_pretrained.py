"""Runs that begin with pretrained weights: preparation, freezing, rates, provenance; the file may then go."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import jioc
from helpers.learning import new_run, some
from jioc.config import make, plain
from jioc.data.loader import Images
from jioc.errors import Interrupted, Refused
from jioc.nets.incremental import backbone
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.training.store import has_checkpoint

TINY = {"backbone": "tiny", "stem": "cifar", "channels": 1, "cosine": False, "maps": False}
SHORT: dict[str, Any] = {
    "data": "digits", "task_sizes": (6, 4), "memory": 40, "first": {"epochs": 1}, "later": {"epochs": 1},
    "device": "cpu",
}  # fmt: skip


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Weights of the tiny backbone, by our own names."""
    net = backbone(TINY, torch.Generator().manual_seed(99))
    torch.save(net.state_dict(), tmp_path / "weights.pth")
    return tmp_path / "weights.pth"


def test_preparation_follows_the_weights() -> None:
    look = resolve(make(method="ranpac", data="cifar100", weights="efficientnet-lite0"))
    assert (look.backbone, look.image_size, look.canvas, look.freeze) == (
        "efficientnet-lite0",
        224,
        32,
        "all",
    )
    assert look.mean == (127 / 255,) * 3 and look.std == (128 / 255,) * 3 and look.pretrained_lr == 0.1
    torchvision = resolve(make(method="icarl", data="cub200", weights="resnet50.pth", backbone="resnet50"))
    assert (torchvision.stem, torchvision.image_size, torchvision.canvas) == ("imagenet", 224, 256)
    assert torchvision.mean == (0.485, 0.456, 0.406) and torchvision.freeze is None
    without = resolve(make(method="icarl", data="cifar100"))
    assert (without.mean, without.pretrained_lr, without.image_size) == (None, None, 32)
    again = resolve(make(**overlay(plain(look), {"weights": "efficientnet-lite1"})))
    assert (again.backbone, again.image_size) == ("efficientnet-lite1", 240)


BREAKS = """
import jioc
from dataclasses import replace
from jioc.losses import cross_entropy
from jioc.methods import SPECS

@jioc.register(replace(SPECS["replay"], name="breaks", title="Breaks", adjusts=False))
class Breaks(jioc.Method):
    def loss(self, batch, out, old, task):
        LINE
        return {"cls": 0 * cross_entropy(out.logits, batch.y)}
"""


def test_a_run_that_begins_anew_reads_its_weights_again(tmp_path: Path, weights: Path) -> None:
    method = tmp_path / "breaks.py"
    settings = SHORT | {"method": str(method), "weights": str(weights), "backbone": "tiny"}
    method.write_text(BREAKS.replace("LINE", "assert len(batch.y) < 20"))  # a trial has fewer
    with pytest.raises(AssertionError):
        jioc.run(**settings, out=tmp_path / "run")
    method.write_text(BREAKS.replace("LINE", "pass"))
    with pytest.raises(Interrupted):
        jioc.run(**settings, out=tmp_path / "run", resume=True, stop=iter([False, True]).__next__)
    result = jioc.run(**settings, out=tmp_path / "run", resume=True)
    assert result.weights is not None
    assert result.weights["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()


def test_a_checkpoint_under_way_is_none(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoint" / ".000001.partial").mkdir(parents=True)
    assert not has_checkpoint(tmp_path / "run")
    (tmp_path / "run" / "checkpoint" / "000001").mkdir()
    assert has_checkpoint(tmp_path / "run")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"freeze": 3}, "--freeze 3: tiny has 2 stages"),
        ({"pretrained_lr": 0.1}, "--pretrained-lr: without effect, because there are no --weights"),
        ({"method": "ranpac", "freeze": "none"}, "--freeze none: ranpac trains nothing"),
        ({"weights": "efficientnet-lite9"}, "--weights 'efficientnet-lite9' cannot be read: No such file"),
        ({"image_size": 4}, "--image-size can enlarge them alone"),
        ({"data": "cifar10", "canvas": 224}, "--canvas cannot change that"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        new_run(**{"method": "icarl", "data": "digits", "device": "cpu"} | settings)


def test_weights_for_colour_are_refused_for_grey_images(weights: Path) -> None:
    with pytest.raises(Refused, match="are for images of 3 channels, and those of digits have 1"):
        new_run(method="icarl", data="digits", backbone="resnet18", weights=str(weights), device="cpu")


def test_smaller_images_are_enlarged_on_the_device() -> None:
    pixels = np.arange(2 * 16, dtype=np.uint8).reshape(2, 1, 4, 4)
    images = Images(pixels, np.zeros(2, np.int64), (0.0,), (1.0,), torch.device("cpu"), 8)
    x = images.plain(torch.arange(2)) * 255
    expected = torch.nn.functional.interpolate(torch.from_numpy(pixels).float(), (8, 8), mode="bilinear")
    assert images.side == 8 and torch.allclose(x, expected, atol=1e-4)


def backbone_of(run: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in run.method.net.learning_backbone.state_dict().items()}


@pytest.mark.parametrize("method", ["icarl", "der"])
@pytest.mark.parametrize("freeze", ["none", 1, "all"])
def test_frozen_stages_stay_and_the_others_learn(method: str, freeze: Any, weights: Path) -> None:
    run = new_run(method=method, weights=str(weights), freeze=freeze, **SHORT)
    run.load_weights()
    given = torch.load(weights, weights_only=True)
    run.learn_next()
    run.learn_next()
    moved = {name for name, value in backbone_of(run).items() if not value.equal(given[name])}
    stages = ["conv.", "bn.", "stages.0.", "stages.1."]
    frozen = {"none": [], 1: stages[:3], "all": stages}[freeze]
    assert not [name for name in moved if name.startswith(tuple(frozen))]
    assert {name for name in given if not name.startswith(tuple(frozen))} == moved
    assert run.method.net.plan["weights"]["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()


def test_pretrained_layers_get_their_share_of_the_rate(weights: Path) -> None:
    """At the first step a share of 0.1 moves the backbone a tenth as far, and the head as far."""
    moves = []
    for share in (1.0, 0.1):
        run = new_run(method="finetune", weights=str(weights), pretrained_lr=share, **SHORT, batch_size=2000)
        run.load_weights()
        before = backbone_of(run)
        run.learn_next()
        after = backbone_of(run)
        moves.append((after["conv.weight"] - before["conv.weight"], run.method.net.head.weight.detach()))
    torch.testing.assert_close(moves[1][0], 0.1 * moves[0][0], rtol=1e-3, atol=1e-6)
    assert moves[0][1].equal(moves[1][1])


@pytest.mark.parametrize("method", ["icarl", "ranpac"])
def test_a_run_keeps_whose_weights_it_began_with_and_needs_the_file_no_more(
    method: str, weights: Path, tmp_path: Path
) -> None:
    sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()
    provenance = {"name": "weights.pth", "licence": None, "sha256": sha256}
    values = {"method": method, "weights": str(weights), **SHORT}
    whole = jioc.run(**values, out=tmp_path / "whole")
    asked = iter(range(100))
    with pytest.raises(Interrupted):
        jioc.run(**values, out=tmp_path / "parts", stop=lambda: next(asked) > 8)
    weights.unlink()
    parts = jioc.run(**values, out=tmp_path / "parts", resume=True)
    assert parts["weights"] == whole["weights"] == provenance
    a, b = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert a == b
    about = json.loads((tmp_path / "whole" / "model.json").read_text())
    assert about["plans"]["net"]["weights"] == provenance and about["config"]["weights"] == "weights.pth"
    learner = jioc.load(tmp_path / "whole", to_learn=True)
    from jioc.data.load import load_dataset

    digits = some(load_dataset(make(method="icarl")), ["0", "1"])
    more = learner.learn(digits.__class__(**{**digits.__dict__, "classes": ["zero", "one"]}))
    assert len(more.classes) == 12 and more.method.net.plan["weights"] == provenance
    with pytest.raises(Refused, match="cannot be read: No such file"):
        jioc.run(**values, out=tmp_path / "new")


def test_the_estimator_takes_weights(weights: Path) -> None:
    x = np.random.RandomState(0).randint(0, 256, (40, 8, 8), np.uint8)
    classifier = jioc.IncrementalClassifier(
        "simplecil", backbone="tiny", device="cpu", settings={"weights": str(weights)}
    ).fit(x, np.arange(40) % 4)
    assert classifier.learner_.method.net.plan["weights"]["name"] == "weights.pth"
