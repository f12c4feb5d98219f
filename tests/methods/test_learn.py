"""That each method's `learn` does what its formula needs: its samplers, second stages and weights."""

from typing import Any

import pytest
import torch

from helpers.learning import started
from jioc.data.loader import Shuffled, TwoStreams
from jioc.events import Epoch
from jioc.methods.bic import BiC
from jioc.methods.coil import COIL
from jioc.methods.foster import FOSTER, class_balance
from jioc.methods.podnet import PODNet
from jioc.nets.heads import LinearHead
from jioc.training.runner import Run


def recorded(run: Run) -> list[tuple[Any, dict[str, Any], Any]]:
    """Learn the next task; the sampler, the options and the method's balance of every stage it trained."""
    stages: list[tuple[Any, dict[str, Any], Any]] = []
    real = run.engine.fit

    def fit(method: Any, task: Any, sampler: Any, **options: Any) -> None:
        stages.append((sampler, options, getattr(method, "balance", None)))
        real(method, task, sampler, **options)

    run.engine.fit = fit  # type: ignore[method-assign]
    run.learn_next()
    return stages


@pytest.mark.parametrize("method", ["wa", "der"])
def test_new_rows_have_the_old_rows_mean_norm(method: str) -> None:
    head = started(method, 2).method.net.head
    assert isinstance(head, LinearHead)
    norms = head.weight.norm(dim=1)
    assert norms[:4].mean().item() == pytest.approx(norms[4:].mean().item(), rel=1e-5)


def test_ssil_trains_on_four_new_images_to_an_exemplar() -> None:
    run = started("ssil", 1, batch_size=64)
    held = set(run.method.memory.index.tolist())
    ((sampler, _, _),) = recorded(run)
    assert isinstance(sampler, TwoStreams)
    for batch in sampler.epoch(torch.Generator().manual_seed(0))[:-1]:
        assert len(batch) == 80 and sum(i in held for i in batch.tolist()) == 16


def test_coil_looks_at_exemplars_and_new_images_alone() -> None:
    run, asked = started("coil", 1, memory=40, later={"epochs": 2}), set[int]()
    held, real = set(run.method.memory.index.tolist()), run.features

    def features(net: Any, index: torch.Tensor, **how: Any) -> torch.Tensor:
        asked.update(index.tolist())
        return real(net, index, **how)

    run.features = features  # type: ignore[method-assign]
    run.learn_next()
    old = {i for i in asked if run.train.labels[i] < 4}
    assert old == held and len(asked) > len(old)


def test_bic_fits_its_bias_on_images_that_the_first_stage_did_not_see() -> None:
    run = started("bic", 1, memory=200)
    (first, _, _), (second, options, _) = recorded(run)
    assert isinstance(first, Shuffled) and isinstance(second, Shuffled)
    seen, held = set(first.index.tolist()), set(second.index.tolist())
    assert not seen & held and options["stage"] == "second"
    labels = run.train.labels[torch.tensor(sorted(held))].tolist()
    assert {labels.count(c) for c in range(7)} == {int(0.1 * 200 / 4)}


def test_bic_without_an_old_image_to_spare_trains_on_everything() -> None:
    run = started("bic", 1, memory_per_class=1)
    stages = recorded(run)
    method = run.method
    assert isinstance(method, BiC) and len(stages) == 1
    assert stages[0][0].images == 4 + run.arrival(1)[0].new_images
    assert method.net.head.pairs[-1].tolist() == [1, 0]  # type: ignore[union-attr]


def test_podnet_tunes_on_as_many_images_of_each_class() -> None:
    run = started("podnet", 1)
    (_, _, _), (second, _, _) = recorded(run)
    assert isinstance(second, Shuffled)
    labels = run.train.labels[second.index].tolist()
    assert {labels.count(c) for c in range(7)} == {60 // 4}


def test_podnet_weighs_its_terms_as_the_paper() -> None:
    run = started("podnet", 0)
    method = run.method
    assert isinstance(method, PODNet)
    task, _ = run.arrival(1)
    assert method.weights(task) == {
        "flat": pytest.approx((7 / 3) ** 0.5),
        "spatial": pytest.approx(5 * (7 / 3) ** 0.5),
    }
    run.learn_next()
    old = method.net.frozen_copy()
    method.net.grow(3, run.generators["weights"])
    with torch.no_grad():
        for p in method.net.backbone.parameters():  # type: ignore[union-attr]
            p.mul_(1.1)
        x = run.train.plain(torch.arange(9))
        a, b = method.net.eval()(x), old(x)
        from jioc.types import Batch

        y = torch.zeros(9, dtype=torch.long)
        flat = method.loss(Batch(x, y, y == 0), a, b, task)["flat"]
    for i in range(9):
        f, g = a.features[i].double(), b.features[i].double()
        assert flat[i].item() == pytest.approx(1 - float(f @ g / f.norm() / g.norm()), abs=1e-5)


def test_foster_balances_each_stage_with_its_own_beta() -> None:
    run = started("foster", 1)
    counts = [len(c) for c in run.method.memory.classes] + [len(c) for c in run.arrival(1)[1].classes]
    method = run.method
    assert isinstance(method, FOSTER)
    (_, boost, first), (_, compress, second) = recorded(run)
    assert first.tolist() == pytest.approx(class_balance(counts, method.options.beta1).tolist())
    assert second.tolist() == pytest.approx(class_balance(counts, method.options.beta2).tolist())
    assert method.options.beta1 != method.options.beta2
    assert boost["net"] is method.boosted and compress["stage"] == "second"


@pytest.mark.parametrize(
    ("method", "terms"),
    [
        ("bic", {"bias"}),
        ("foster", {"compress"}),
        ("podnet", {"cls", "flat", "spatial", "kd", "suppress"}),  # the same loss once more
    ],
)
def test_jioc_leaves_second_stages_with_a_loss_of_their_own_alone(method: str, terms: set[str]) -> None:
    run = started(method, 1, coordination={"coordinate": "jioc"})
    lines: list[Epoch] = []
    run.engine.on_epoch = lines.append
    run.learn_next()
    assert {"cls", "kd", "suppress"} <= set(lines[0].terms) and lines[0].stage == "later"
    assert set(lines[-1].terms) == terms and lines[-1].stage == "second"


def test_foster_keeps_nothing_that_nobody_reads() -> None:
    method = started("foster", 2).method
    method.keep_teacher()  # as learning on does where there is no teacher
    assert method.teacher is None and method.means is None
    held = {name for name, value in method.state().items() if value is not None}
    assert held == {"memory", "net", "boosted", "boosted_means"}


def test_coil_starts_new_rows_at_the_transported_ones_and_looks_back() -> None:
    run = started("coil", 1, options={"transport_every": 3}, later={"epochs": 3}, batch_size=32)
    method, seen = run.method, []
    assert isinstance(method, COIL)
    real, look_back = method.before_step, method._look_back

    def before_step(task: Any, epoch: int, epochs: int, step: int) -> None:
        if (epoch, step) == (0, 0):
            assert method.ahead is not None
            assert method.net.head.rows()[4:].equal(method.ahead)
        real(task, epoch, epochs, step)
        weights = method.weights(task)
        seen.append((epoch, step, float(weights["forward"]), float(weights["backward"])))

    looked: list[torch.Tensor] = []

    def looking(task: Any) -> None:
        look_back(task)
        assert method.back is not None
        looked.append(method.back.clone())

    method.before_step, method._look_back = before_step, looking  # type: ignore[method-assign]
    run.learn_next()
    for epoch, _, ahead, back in seen:
        assert ahead == pytest.approx(0.001 if epoch == 0 else 0)
        assert back == pytest.approx(0.001 * (epoch / 3) ** 2)
    steps = max(step for _, step, _, _ in seen) + 1
    assert len(looked) == 2 * -(-steps // 3)
    assert looked[0].abs().sum() > 0 and not looked[0].equal(looked[-1])
