"""On CUDA: a replayed step is the step, packed is alone, and a deterministic run resumes bit for bit."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers.runs import collect_notes, figures, same, stop_after, weights
from jioc.cli.dry_run import measured
from jioc.config import READINGS as NAMED
from jioc.config import values as settings
from jioc.data.load import load_dataset
from jioc.errors import Interrupted
from jioc.grid.pack import pack
from jioc.methods.icarl import ICaRL
from jioc.resolve.derive import resolve
from jioc.results import Result
from jioc.training.engine import Engine
from jioc.training.execution import AHEAD, WARM_UP, GraphSteps
from jioc.training.preflight import preflight
from jioc.training.run import run
from jioc.training.runner import Run

pytestmark = pytest.mark.gpu

EXACT: dict[str, Any] = {"precision": "fp32", "deterministic": True, "compile": False, "device": "cuda"}
JIOC = {"coordinate": "jioc"}
READINGS = [JIOC | {"reading": name} for name in NAMED]


def after_twenty_steps(**values: Any) -> dict[str, torch.Tensor]:
    """Weights after 20 steps of the second task of iCaRL + JIOC, the last of each epoch's five smaller."""
    values = {"later": {"epochs": 4}, "coordination": JIOC} | values
    config = resolve(settings.make(method="icarl", task_sizes=(5, 5), memory=20, batch_size=128, 
                                   backbone="resnet32", **values))  # fmt: skip
    r = Run(preflight(config, load_dataset(config)))
    r.method.net.grow(5, r.method.generator)
    r.method.memory.classes = [torch.from_numpy(index[:4]) for index in r.scenario.train[:5]]
    r.method.keep_teacher()
    task, data = r.arrival(1)
    assert len(data.with_memory(r.method.memory).epoch(torch.Generator())) == 6
    r.method.net.grow(5, r.method.generator)
    r.engine.note = pytest.fail  # a step that cannot be captured is told
    r.engine.fit(r.method, task, data.with_memory(r.method.memory))
    return {name: value.cpu() for name, value in r.method.net.state_dict().items()}


@pytest.mark.parametrize("adjust", [0, 1.5])
@pytest.mark.parametrize("coordination", READINGS, ids=str)
def test_a_graph_gives_the_weights_of_eager_bit_for_bit(coordination: dict[str, str], adjust: float) -> None:
    values = EXACT | {"coordination": coordination, "adjust": adjust}
    assert same(after_twenty_steps(**values), after_twenty_steps(**values, engine="eager"))


def test_what_a_loss_counts_is_counted_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps that warm a graph up leave no trace in a tensor of the method's own."""
    counts: list[float] = []
    usual, fit = ICaRL.loss, Engine.fit

    def counting(method: ICaRL, *parts: Any) -> Any:
        method.seen.add_(1)  # type: ignore[attr-defined]
        return usual(method, *parts)

    def fitting(engine: Engine, method: ICaRL, *parts: Any, **how: Any) -> None:
        method.seen = torch.zeros((), device="cuda")  # type: ignore[attr-defined]
        fit(engine, method, *parts, **how)
        counts.append(method.seen.item())  # type: ignore[attr-defined]

    monkeypatch.setattr(ICaRL, "persistent", (*ICaRL.persistent, "seen"))
    monkeypatch.setattr(ICaRL, "seen", torch.zeros(()), raising=False)
    monkeypatch.setattr(ICaRL, "loss", counting)
    monkeypatch.setattr(Engine, "fit", fitting)
    after_twenty_steps(**EXACT)
    after_twenty_steps(**EXACT, engine="eager")
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(
    "component",
    [
        {"ema": 0.9},
        {"mix": "mixup"},
        {"mix": "cutmix", "augment": "autoaugment"},
        {"exemplar_size": "half"},
        {"head": "cosine"},
    ],
    ids=str,
)
def test_a_graph_holds_every_component(component: dict[str, Any]) -> None:
    values = EXACT | component
    assert same(after_twenty_steps(**values), after_twenty_steps(**values, engine="eager"))


def test_compiled_backbones_agree_to_rounding() -> None:
    gentle = EXACT | {"later": {"epochs": 4, "lr": 1e-5}}  # the usual rate amplifies any rounding
    eager = after_twenty_steps(**gentle, engine="eager")
    compiled = after_twenty_steps(**gentle | {"compile": True})
    worst = {name: (compiled[name] - value).abs().max().item() for name, value in eager.items()}
    assert max(worst.values()) < 1e-4, max(worst.items(), key=lambda kv: kv[1])


def test_every_replay_draws_anew() -> None:
    from jioc.data.augment.basic import Augment

    device, noise = torch.device("cuda"), torch.Generator("cuda").manual_seed(0)
    x = torch.randint(0, 256, (64, 3, 8, 8), dtype=torch.uint8, device=device)
    seen = torch.zeros(64, 3, 8, 8, device=device)
    augment = Augment(pad=2, flip=True, brightness=0.2)
    steps = GraphSteps(
        lambda index, sums: seen.copy_(augment(x[index], noise)), device, noise, lambda: [seen]
    )
    before = noise.get_state()
    steps.begin([torch.arange(64)], 0)
    replays = []
    for _ in range(3):
        steps.place.zero_()
        steps.run(0)
        replays.append(seen.clone())
    assert not replays[0].equal(replays[1]) and not replays[1].equal(replays[2])
    noise.set_state(before)
    assert all(augment(x, noise).equal(r) for r in replays)  # and the same as without a graph


@pytest.mark.filterwarnings(
    "ignore:TensorFloat32 tensor cores"
)  # a resized crop multiplies matrices, here in full
@pytest.mark.parametrize("word", ["standard", "autoaugment", "autoaugment+cutout", "resized-crop"])
def test_compiled_augmentation_is_the_augmentation(word: str) -> None:
    """Level for level; a resized crop's weights are quotients, which the compiler rounds in its own way."""
    from jioc.data.augment.choose import choose_augmentation
    from jioc.data.loader import Images
    from jioc.data.sources.cifar import CROP_FLIP_BRIGHTNESS, STATISTICS
    from jioc.device.compile import compiling

    augment = choose_augmentation(CROP_FLIP_BRIGHTNESS, word)
    pixels = np.random.default_rng(0).integers(0, 256, (300, 3, 32, 32), np.uint8)
    images = Images(pixels, np.zeros(300, int), *STATISTICS["cifar100"], torch.device("cuda"))
    index = torch.randperm(300, device="cuda")[:128]
    plain = images.augmented(index, augment, torch.Generator("cuda").manual_seed(1))
    with compiling(128):
        compiled = images.augmented(index, augment, torch.Generator("cuda").manual_seed(1))
    differ = (compiled - plain).abs() > 1e-5  # a level is 0.015
    assert differ.float().mean() <= (1e-3 if word == "resized-crop" else 0)


def test_compiled_pooled_maps_are_the_pooled_maps() -> None:
    from jioc.device.compile import compiling, maybe_compiled
    from jioc.methods.podnet import pooled_distance

    def maps() -> list[torch.Tensor]:
        sizes = ((8, 32, 32, 16), (8, 16, 16, 32), (8, 8, 8, 64))  # as the kernels give them: channels last
        return [torch.randn(s, device="cuda", dtype=torch.bfloat16).relu().permute(0, 3, 1, 2) for s in sizes]

    def both(student: list[torch.Tensor], teacher: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        own = [h.detach().requires_grad_() for h in student]
        distance = maybe_compiled(pooled_distance, 8)(own, teacher)
        return distance.detach(), *torch.autograd.grad(distance.sum(), own)

    a, b = maps(), maps()
    plain = both(a, b)
    with compiling(8):
        compiled, alike = both(a, b), both(a, a)
    for one, other in zip(compiled, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0.01, atol=1e-5)
    distance, *gradients = alike  # equal maps, whose sums the compiler may order in two ways
    torch.testing.assert_close(distance, torch.zeros_like(distance), rtol=0, atol=1e-6)
    assert all(g.isfinite().all() for g in gradients)  # of a norm near or at 0


def small_config(**values: Any) -> dict[str, Any]:
    return {
        "method": "icarl",
        "task_sizes": (4, 3, 3),
        "memory": 40,
        "later": {"epochs": 5},
        **EXACT,
        **values,
    }


def test_packed_is_alone() -> None:
    every = [small_config(seed=s, coordination=c) for s, c in itertools.product((1, 2), ({}, *READINGS))]
    together = pack([resolve(settings.make(**values)) for values in every], 4)
    for values, result in zip(every, together, strict=True):
        assert isinstance(result, Result), result
        assert figures(result) == figures(run(**values))


def test_steps_are_launched_only_a_few_ahead() -> None:
    noise, batch = torch.Generator("cuda"), torch.zeros(2, dtype=torch.long)
    steps = GraphSteps(lambda index, sums: torch.cuda._sleep(10**8), torch.device("cuda"), noise, list)
    steps.begin([batch] * (AHEAD + 1), 0)
    torch.cuda.synchronize()
    done = [torch.cuda.Event() for _ in range(AHEAD + 1)]
    for i, event in enumerate(done):
        steps.run(i)
        event.record()
    assert done[0].query() and not done[-1].query()


@pytest.mark.parametrize("coordination", READINGS, ids=str)
def test_a_deterministic_run_resumes_bit_for_bit(coordination: dict[str, str], tmp_path: Path) -> None:
    values = small_config(coordination=coordination)
    run(**values, out=tmp_path / "alone")
    with pytest.raises(Interrupted):
        run(**values, out=tmp_path / "stopped", stop=stop_after(23))
    run(**values, out=tmp_path / "stopped", resume=True)
    assert same(weights(tmp_path / "alone"), weights(tmp_path / "stopped"))


def test_jioc_switched_off_is_none(tmp_path: Path) -> None:
    run(**small_config(), out=tmp_path / "none")
    run(**small_config(coordination={"coordinate": "oc", "gamma1": 0, "gamma2": 0}), out=tmp_path / "off")
    assert same(weights(tmp_path / "none"), weights(tmp_path / "off"))


def test_what_cannot_be_captured_runs_as_it_is_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    real, notes = ICaRL.loss, list[str]()

    def loss(self: ICaRL, *args: Any) -> Any:
        terms = real(self, *args)
        float(terms["cls"].detach().sum())  # waits for the device, which a capture refuses
        return terms

    expected = run(**small_config())
    monkeypatch.setattr(ICaRL, "loss", loss)
    result = run(**small_config(), callback=collect_notes(notes))
    assert len(notes) == 1 and "cannot be captured" in notes[0]
    assert figures(result) == figures(expected)


def test_a_dry_run_times_replayed_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = dict.fromkeys(("step", "_captured", "run"), 0)

    def counting(cls: type, name: str) -> None:
        real = getattr(cls, name)

        def counted(self: Any, *args: Any) -> Any:
            counts[name] += 1
            return real(self, *args)

        monkeypatch.setattr(cls, name, counted)

    counting(Engine, "step")
    counting(GraphSteps, "_captured")
    counting(GraphSteps, "run")
    config = resolve(settings.make(**small_config(coordination=JIOC)))
    found = measured(Run(preflight(config, load_dataset(config))))
    assert found.images > 0 and found.training > 0 and counts["run"] > 0
    assert counts["step"] == counts["_captured"] * (WARM_UP + 1)  # no other step was launched piece by piece
