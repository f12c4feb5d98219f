"""The kernels of a ResNet compute what the network does: on a GPU, and on the CPU by Triton's interpreter."""

import copy
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from helpers.paths import ROOT
from helpers.runs import same
from jioc.config import values as settings
from jioc.data.dataset import Dataset
from jioc.data.sources.cifar import CROP_FLIP_BRIGHTNESS, STATISTICS
from jioc.device.compile import compiling
from jioc.device.streams import SideStream, own_stream
from jioc.events import Event, Note
from jioc.nets.backbones import ResNet, initialise
from jioc.nets.batchnorm import BatchNorm
from jioc.nets.catalogue import BACKBONES, Shape
from jioc.nets.incremental import fused_kernels
from jioc.resolve.derive import resolve
from jioc.training.preflight import preflight
from jioc.training.runner import Run


def made(shape: Shape, device: str, cosine: bool = False, stem: str = "cifar") -> ResNet:
    """A network whose batch norms are not the identity."""
    g = torch.Generator().manual_seed(0)
    net = ResNet(shape, stem, 3, cosine)
    initialise(net, g)
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, BatchNorm):
                module.weight.uniform_(0.5, 1.5, generator=g)
                module.bias.uniform_(-0.5, 0.5, generator=g)
    return net.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a.double() - b).norm() / b.norm()).item()


NARROW = Shape((16, 32, 64), (1, 1, 1), "A", "")
PAIR = Shape((16, 32), (1, 1), "B", "")
DEEP = Shape((16, 32, 64, 128), (1, 1, 1, 1), "B", "")
WIDE = Shape((64, 128), (1, 1), "B", "")  # channels in blocks, a shortcut with weights


def mend_interpreter() -> None:
    """Let Triton's interpreter take an array of one for a number, which numpy has ceased to do."""
    import triton.runtime.interpreter as interpreter

    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patched


def interpreted_halves(stem: str) -> None:
    """In float16 as near to float64 as torch's autocast is; the interpreter multiplies no bf16."""
    mend_interpreter()
    from jioc.nets import fused
    from jioc.nets.fused.run import run

    fused.POOLING = True
    g = torch.Generator().manual_seed(1)
    ours = made(PAIR, "cpu", stem=stem)
    cast, exact = copy.deepcopy(ours), copy.deepcopy(ours).double()
    x, k = (torch.randn(size, generator=g) for size in ((16, 3, 16, 16), (16, 32)))
    with torch.autocast("cpu", torch.float16):
        usual = cast(x)[0]
    features, wanted = run(ours, x, dtype=torch.float16)[0], exact(x.double())[0]
    for out in (features, usual.float(), wanted):
        (out * k).sum().backward()

    def off(net: ResNet) -> float:
        return sum(apart(p.grad, q.grad) for p, q in zip(net.parameters(), exact.parameters(), strict=True))

    assert apart(features, wanted) < 1.5 * apart(usual, wanted) and off(ours) < 1.2 * off(cast)


def interpreted(
    shape: Shape,
    side: int,
    cosine: bool = False,
    programs: int | None = None,
    scale: float = 1,
    known: bool = True,
    stem: str = "cifar",
    positions: int = 2,
    images: int = 2,
    near: float = 1e-6,
) -> None:
    """In float32 against float64: outputs, every gradient, running statistics, and the frozen network.

    Weights are `scale` times as large as usual, and the running statistics follow where they are `known`.
    `near`: how far apart outputs may be; a batch norm of few values enlarges rounding.
    """
    mend_interpreter()
    from jioc.nets import fused
    from jioc.nets.fused import layers
    from jioc.nets.fused.run import run

    fused.POOLING, layers.POSITIONS = True, positions
    layers.FILLED, layers.PARTED = programs or layers.FILLED, programs or layers.PARTED
    net = made(shape, "cpu", cosine, stem)
    for module in net.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.weight.data *= scale
        elif isinstance(module, BatchNorm) and known:
            module.running_var *= scale**2
    g = torch.Generator().manual_seed(1)
    twin, x = copy.deepcopy(net).double(), torch.randn(images, 3, side, side, generator=g)
    assert layers.fits(net, x)

    def compare() -> torch.Tensor:
        """The outputs agree; a random product of each with each."""
        (features, maps), (wanted, kept) = run(net, x, cosine, torch.float32), twin(x.double(), cosine)
        total = torch.zeros(2, dtype=torch.float64)
        for out, expected in zip([features, *maps], [wanted, *kept], strict=True):
            assert apart(out, expected) < near
            k = torch.randn(out.shape, generator=g)
            total = total + torch.stack([(out * k).sum().double(), (expected * k).sum()])
        return total

    compare().sum().backward()
    for (name, p), q in zip(net.named_parameters(), twin.parameters(), strict=True):
        assert p.grad is not None and q.grad is not None
        assert apart(p.grad, q.grad) < 10 * near, name
        assert p.grad.stride() == p.stride(), name
    for a, b in zip(net.buffers(), twin.buffers(), strict=True):
        assert apart(a, b) < near
    net.eval()
    twin.eval()
    with torch.no_grad():
        compare()


@pytest.mark.extras
@pytest.mark.parametrize(
    "case",
    [
        "NARROW, 32",
        "NARROW, 16, cosine=True",
        "WIDE, 16",
        "WIDE, 10, programs=1",  # tiles that are not whole, gradients in one part
        "NARROW, 8, scale=1e5",  # more than 64 bits hold in one unit
        "NARROW, 8, scale=1e-3, near=3e-6",  # each program rounds its sums to the unit
        "NARROW, 8, scale=100, known=False",  # within one step
        "NARROW, 16, stem='cifar-pool', cosine=True, near=3e-6",
        "DEEP, 32, stem='imagenet', images=24, near=3e-6",  # down to a map of 1x1
        "DEEP, 32, stem='imagenet', images=11, positions=8, near=1e-5",
    ],
)
def test_the_kernels_compute_the_network(case: str) -> None:
    interpret(f"interpreted({case})")


@pytest.mark.extras
@pytest.mark.parametrize("stem", ["cifar", "imagenet"])
def test_in_halves_they_are_as_near_as_autocast(stem: str) -> None:
    interpret(f"interpreted_halves({stem!r})")


def interpret(call: str) -> None:
    """Call a function of this file in a process that has Triton's interpreter on."""
    pytest.importorskip("triton", reason="the kernels are written in Triton, which is not installed")
    here, path = os.path.dirname(__file__), os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    argv = [sys.executable, "-c", f"from test_run import *; {call}"]
    env = {**os.environ, "PYTHONPATH": path, "TRITON_INTERPRET": "1"}
    subprocess.run(argv, check=True, cwd=here, env=env, timeout=600)


@pytest.mark.extras
def test_they_serve_no_batch_without_variance_and_no_frozen_statistics() -> None:
    pytest.importorskip("triton", reason="the kernels are written in Triton, which is not installed")
    from jioc.nets.fused.layers import fits

    net, x = made(NARROW, "cpu"), torch.zeros(2, 3, 8, 8)
    assert fits(net, x) and not fits(net, x[:0])
    assert not fits(net, x.clone().requires_grad_())
    net.bn.eval()
    assert not fits(net, x)
    bottlenecks = Shape((16, 32), (1, 1), "B", "", bottleneck=True)
    assert not fits(made(bottlenecks, "cpu"), x)


@pytest.mark.extras
def test_a_stem_that_pools_is_served_where_its_maps_halve_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="the kernels are written in Triton, which is not installed")
    from jioc.nets import fused
    from jioc.nets.fused.layers import fits

    net = made(DEEP, "cpu", stem="imagenet")
    assert fits(net, torch.zeros(2, 3, 32, 32)) and not fits(net, torch.zeros(2, 3, 48, 48))
    monkeypatch.setattr(fused, "POOLING", False)  # as a benchmark has it
    assert not fits(net, torch.zeros(2, 3, 32, 32))


def test_on_a_cpu_the_network_runs_as_it_is() -> None:
    with compiling(2):
        assert not fused_kernels(made(BACKBONES["resnet32"], "cpu"), torch.zeros(2, 3, 32, 32))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("backbone", "cosine", "stem"),
    [
        ("resnet32", False, "cifar"),
        ("resnet32", True, "cifar"),
        ("resnet18", False, "cifar"),
        ("resnet18", False, "imagenet"),
        ("resnet18", True, "cifar-pool"),
    ],
)
def test_on_a_gpu_they_are_as_near_as_autocast_and_repeat_to_the_bit(
    backbone: str, cosine: bool, stem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jioc.nets import fused
    from jioc.nets.fused.run import run

    monkeypatch.setattr(fused, "POOLING", True)
    net = made(BACKBONES[backbone], "cuda", cosine, stem)
    exact, cast = copy.deepcopy(net).double(), copy.deepcopy(net)
    x = torch.randn(112, 3, 32, 32, device="cuda")
    with compiling(128), torch.autocast("cuda", torch.bfloat16):
        assert fused_kernels(net, x)
        usual = cast(x, cosine)
    ours, wanted = run(net, x, cosine), exact(x.double(), cosine)
    ks = [torch.randn(out.shape, device="cuda") for out in (wanted[0], *wanted[1])]

    def go_back(features: torch.Tensor, maps: list[torch.Tensor]) -> None:
        torch.stack([(out * k).sum() for out, k in zip([features, *maps], ks, strict=True)]).sum().backward()

    for out, seen, expected in zip(
        [ours[0], *ours[1]], [usual[0], *usual[1]], [wanted[0], *wanted[1]], strict=True
    ):
        assert apart(out, expected) < 1.5 * apart(seen, expected)
    for outputs in (ours, usual, wanted):
        go_back(*outputs)

    def off(other: ResNet, of: str) -> float:
        """How far gradients or statistics are from the exact ones, in all."""
        pairs = zip(getattr(other, of)(), getattr(exact, of)(), strict=True)
        return sum(apart(a.grad, b.grad) if of == "parameters" else apart(a, b) for a, b in pairs)

    assert off(net, "parameters") < 1.2 * off(cast, "parameters")
    assert off(net, "buffers") < 1.2 * off(cast, "buffers")
    first = [p.grad.clone() for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    go_back(*run(net, x, cosine))
    assert all(p.grad is not None and p.grad.equal(g) for p, g in zip(net.parameters(), first, strict=True))


@pytest.mark.gpu
def test_on_a_gpu_a_lost_weight_shows() -> None:
    from jioc.nets.fused.run import run

    net, x = made(BACKBONES["resnet32"], "cuda"), torch.randn(16, 3, 32, 32, device="cuda")
    with torch.no_grad():
        net.stages[0][0].conv1.weight[0, 0, 0, 0] = torch.nan
        for training in (True, False):
            features, _ = run(net.train(training), x)
            assert features.isnan().any()


def weights_after(method: str, seed: int, **values: Any) -> dict[str, torch.Tensor]:
    """Two tasks of random images of CIFAR's size, in bf16 with the kernels, everything captured."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 70)
    x = rng.integers(0, 256, (len(y), 3, 32, 32), np.uint8)
    names, augment = [str(c) for c in range(20)], CROP_FLIP_BRIGHTNESS
    data = Dataset("cifar100", names, x, y, x[::70], y[::70], *STATISTICS["cifar100"], augment)
    values |= {
        "data": "cifar100",
        "backbone": "resnet32",
        "task_sizes": (10, 10),
        "memory": 100,
        "seed": seed,
    }
    values |= {"first": {"epochs": 2}, "later": {"epochs": 2}, "coordination": {"coordinate": "jioc"}}
    config = resolve(settings.make(method=method, device="cuda", **values))
    events: list[Event] = []
    with own_stream(torch.device("cuda")):
        run = Run(preflight(config, data), callback=events.append)
        run.run_tasks()
    assert not [event for event in events if isinstance(event, Note)]
    return {name: value.cpu() for name, value in run.method.net.state_dict().items()}


@pytest.mark.gpu
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute"
)  # torch's compiler hides it, but not from other threads
@pytest.mark.parametrize("method", ["icarl", "der", "foster", "podnet", "coil"])
def test_packed_is_alone_and_twice_is_once_in_bf16(method: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda seed: weights_after(method, seed), (1, 2, 1, 2)))
    assert same(together[0], together[2]) and same(together[1], together[3])
    assert same(together[0], weights_after(method, 1))


@pytest.mark.gpu
def test_a_branch_that_lags_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """FOSTER's teacher is a branch with one within it, and its student runs on meanwhile."""
    usual = weights_after("foster", 1)
    join = SideStream.join

    def late(branch: SideStream) -> None:
        join(branch)
        torch.cuda._sleep(1_000_000)  # cycles

    monkeypatch.setattr(SideStream, "join", late)
    assert same(usual, weights_after("foster", 1))
