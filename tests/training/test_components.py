"""What raises any method, against slow formulas: average, rebalanced head, mixtures, half-size exemplars."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.learning import most_coordination, new_run, some, some_images, started
from helpers.runs import outcome, stop_after
from jioc import load
from jioc.config import make
from jioc.coordination import JIOC
from jioc.data.augment.basic import Augment
from jioc.data.augment.mix import Mix, mixed_terms
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset
from jioc.data.loader import Balanced, Images, halved_and_enlarged
from jioc.errors import Interrupted, Refused
from jioc.losses import cross_entropy
from jioc.methods import SPECS
from jioc.nets.heads import LinearHead, ScaledCosineHead
from jioc.report.runs import not_begun
from jioc.resolve.derive import resolve
from jioc.resolve.validate import unused
from jioc.training.averaging import WeightAverage
from jioc.training.model import save
from jioc.training.run import run
from jioc.types import Batch, Output, Task

SHORT: dict[str, Any] = {
    "data": "digits",
    "task_sizes": (5, 5),
    "long_tail": 9,
    "memory": 30,
    "first": {"epochs": 2},
    "later": {"epochs": 2},
    "device": "cpu",
}
ALL: dict[str, Any] = {  # every component at once
    "method": "icarl",
    "coordination": {"coordinate": "jioc"},
    **{name: value for name, value in SHORT.items() if name != "memory"},
    "ema": 0.9,
    "mix": "cutmix",
    "adjust": 1.0,
    "rebalance": "scale",
    "rebalance_epochs": 2,
    "memory_bytes": 20 * 64,
    "exemplar_size": "half",
    "checkpoint_every": 0,
}


# --- the average of the weights ---


@pytest.mark.parametrize("beta", [0.5, 0.999])
def test_the_average_is_the_bias_corrected_sum(beta: float) -> None:
    net = nn.BatchNorm1d(3).double().train()
    draws = torch.Generator().manual_seed(0)
    average, slow = WeightAverage(beta, [net.weight], net), [torch.zeros(3, dtype=torch.float64)] * 3
    for t in range(1, 8):
        with torch.no_grad():
            for tensor in (net.weight, net.running_mean, net.running_var):
                assert tensor is not None
                tensor.copy_(torch.randn(3, generator=draws, dtype=torch.float64))
        live = [net.weight.detach(), net.running_mean, net.running_var]
        slow = [beta * a + (1 - beta) * w for a, w in zip(slow, live, strict=True)]  # type: ignore[operator]
        average.update()
        for mean, total in zip(average.average, slow, strict=True):
            torch.testing.assert_close(mean, total / (1 - beta**t), rtol=1e-12, atol=1e-13)
    average.hand_over()
    assert net.running_var is not None and net.running_var.equal(average.average[2])
    assert net.weight.detach().equal(average.average[0]) and net.bias.detach().equal(torch.zeros(3).double())


def test_a_mask_is_not_averaged() -> None:
    """The average of -inf with itself would be no number."""
    net = nn.Linear(2, 2).train()
    net.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    average = WeightAverage(0.9, [net.weight], net)
    for _ in range(3):
        average.update()
    average.hand_over()
    assert net.mask.equal(torch.tensor([0.0, -torch.inf])) and len(average.weights) == 1  # type: ignore[operator]


def test_a_stage_ends_with_the_average_of_its_steps() -> None:
    """And so the test, the exemplars, the teacher and the next task have it."""
    beta, seen = 0.8, []
    averaged, plain = (new_run(**SHORT, method="icarl", ema=value) for value in (beta, 0.0))
    step = plain.engine.step

    def watched(*args: Any) -> None:
        step(*args)
        seen.append({name: value.clone() for name, value in plain.method.net.state_dict().items()})

    plain.engine.step = watched  # type: ignore[method-assign]
    plain.learn_next()
    averaged.learn_next()
    t = len(seen)
    shares = [(1 - beta) * beta ** (t - 1 - i) / (1 - beta**t) for i in range(t)]
    for name, value in averaged.method.net.state_dict().items():
        slow = sum(share * weights[name] for share, weights in zip(shares, seen, strict=True))
        torch.testing.assert_close(value, slow, rtol=1e-4, atol=1e-6)
    assert averaged.method.teacher is not None
    x = some_images(averaged)
    assert averaged.method.teacher(x).logits.equal(averaged.method.net.eval()(x).logits)


# --- the head ---


def test_a_balanced_epoch_has_equally_many_of_each_class() -> None:
    classes = [torch.arange(0, 3), torch.arange(3, 23), torch.arange(23, 33)]
    batches = Balanced(classes, 11, 8).epoch(torch.Generator().manual_seed(0))
    drawn = torch.cat(batches)
    assert [len(b) for b in batches] == [8, 8, 8, 9]
    assert [int(torch.isin(drawn, index).sum()) for index in classes] == [11, 11, 11]
    assert sorted((drawn == i).sum().item() for i in range(3)) == [3, 4, 4]  # whole passes, and part of one
    assert all((drawn == i).sum() <= 1 for i in range(3, 23))


def test_a_scale_is_folded_into_rows_and_biases() -> None:
    head, f = LinearHead(4).double(), torch.randn(6, 4, dtype=torch.float64)
    head.grow(3, torch.Generator().manual_seed(0))
    before = head(f)
    head.scale = nn.Parameter(torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64))
    scaled = head(f)
    torch.testing.assert_close(scaled, before * torch.tensor([0.5, 2.0, -1.0]))
    head.fold_scale()
    torch.testing.assert_close(head(f), scaled)
    assert head.scale is None and "scale" not in head.state_dict()


@pytest.mark.parametrize("method", ["icarl", "der"])
@pytest.mark.parametrize("kind", ["head", "scale"])
def test_rebalancing_trains_the_head_alone(kind: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {**SHORT, "method": method, "coordination": {"coordinate": "jioc"}, "ema": 0.9}
    made: list[list[nn.Parameter]] = []

    def average(beta: float, trained: list[nn.Parameter], nets: nn.Module) -> WeightAverage:
        made.append(trained)
        return WeightAverage(beta, trained, nets)

    monkeypatch.setattr("jioc.training.engine.WeightAverage", average)
    plain, other = (new_run(**values, rebalance=word) for word in ("none", kind))
    plain.learn_next()
    other.learn_next()
    assert len(made) == 2  # the weights of the task; an average with a head drawn anew would be no head
    ours, theirs = other.method.net, plain.method.net  # of the first task, whose start is the same
    kept = {name: v for name, v in ours.state_dict().items() if not name.startswith("head.")}
    assert all(v.equal(theirs.state_dict()[name]) for name, v in kept.items())
    ratio = ours.head.weight / theirs.head.weight
    spread = (ratio.amax(1) - ratio.amin(1)).detach()
    assert (spread < 1e-4).all() if kind == "scale" else (spread > 1).all()
    assert not ours.head.weight.equal(theirs.head.weight)
    assert all(p.requires_grad for p in ours.parameters())
    other.learn_next()
    scores = other.method.readouts(some_images(other))
    if "unaligned" in scores:
        assert scores["unaligned"].equal(scores["cnn"])  # nothing was corrected


def test_a_head_drawn_anew_learns_within_an_epoch() -> None:
    """With a temperature of 5, as official DER has it, this one is right in 47 of 100."""
    values = SHORT | {"first": {"epochs": 12}, "batch_size": 32, "seed": 2, "method": "replay"}
    plain, anew = new_run(**values), new_run(**values, rebalance="head", rebalance_epochs=1)
    plain.learn_next()
    anew.learn_next()
    assert anew.rows[0].cnn.all > plain.rows[0].cnn.all - 5 > 80


@pytest.mark.parametrize("method", ["replay", "wa"])
def test_balanced_classes_are_not_rebalanced(method: str) -> None:
    """WA then aligns its weights as without --rebalance."""
    values = SHORT | {"method": method, "long_tail": None, "memory": 1600}  # room for every image
    plain, other = (new_run(**values, rebalance=word) for word in ("none", "head"))
    for each in (plain, other):
        each.learn_next()
        each.learn_next()
    assert other.method.net.head.weight.equal(plain.method.net.head.weight)


@pytest.mark.parametrize("wider", [0, 3])
def test_a_cosine_head_knows_directions_alone(wider: int) -> None:
    """16 times the cosine; new features count for nothing in old classes until they are learnt."""
    draws = torch.Generator().manual_seed(0)
    head, f = ScaledCosineHead(4), torch.randn(6, 4 + wider, generator=draws)
    head.grow(3, draws)
    head.grow(2, draws, wider)
    slow = [[16 * (a @ b / (a.norm() * b.norm())).item() for b in head.weight] for a in f]
    torch.testing.assert_close(head(f), torch.tensor(slow))
    head.weight.data *= torch.tensor([[0.1], [1], [3], [7], [50]])
    torch.testing.assert_close(head(5 * f), torch.tensor(slow))
    assert (head.weight[:3, 4:] == 0).all() and head.weight[3:].ne(0).all()


@pytest.mark.parametrize("method", [name for name, spec in SPECS.items() if not spec.own_head])
def test_a_cosine_head_learns_on_every_host_that_has_none_of_its_own(method: str, tmp_path: Path) -> None:
    """Saved it answers alike, and learns on; WA and DER have nothing to align."""
    coordinate = most_coordination(method)
    ours = started(method, 2, data="digits", head="cosine", coordination={"coordinate": coordinate})
    pixels, x = ours.dataset.test_x[:20], ours.test.plain(torch.arange(20))
    scores = ours.method.readouts(x)
    assert scores["cnn"].abs().max() <= 16.001
    assert scores.get("unaligned", scores["cnn"]).equal(scores["cnn"])
    save(tmp_path, ours.classifier())
    if method != "joint":
        learner = load(tmp_path, to_learn=True)
        with pytest.raises(Refused, match="learnt with head='cosine', so head cannot be 'linear' now"):
            linear = learner.config.model_copy(update={"head": "linear"})
            learner.learn(some(ours.dataset, ["9"]), config=linear)
        assert learner.readouts(pixels)["cnn"].equal(scores["cnn"])
        assert isinstance(learner.method.net.head, ScaledCosineHead)
    ours.learn_next()
    assert ours.rows[-1].cnn.all is not None


@pytest.mark.parametrize(
    ("base", "lines", "head", "message"),
    [
        ("replay", ['return {**plan, "head": "cosine"}'], "cosine", "has a head of its own"),
        ("replay", ['plan["head"] = "cosine"', "return plan"], "cosine", "has a head of its own"),
        ("der", ['return {**DER.plan(plan), "head": "corrected"}'], "linear", "cannot have .* 'corrected'"),
    ],
)
def test_a_head_that_a_method_of_ones_own_cannot_have_is_refused(
    base: str, lines: list[str], head: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.py"
    body = "\n        ".join(lines)
    path.write_text(f"""
from dataclasses import replace
import jioc
from jioc.methods import SPECS
from jioc.methods.der import DER
from jioc.methods.replay import Replay

@jioc.register(replace(SPECS["{base}"], name="own", title="Own"))
class Own({"DER" if base == "der" else "Replay"}):
    @staticmethod
    def plan(plan):
        {body}
""")
    with pytest.raises(Refused, match=message):
        run(method=str(path), data="digits", memory=40, head=head, device="cpu")


@pytest.mark.parametrize(("t", "share"), [(1, 0.5**0.5), (2, None)])
def test_the_cosines_of_old_classes_shrink_as_features_become_longer(t: int, share: float | None) -> None:
    """By as much; to the root of a half with the first copy. The network as it was is still there."""
    run = started("der", t, head="cosine")
    before = run.method.net(x := some_images(run))
    run.method.net.grow(3, run.method.generator, 4)
    out = run.method.net(x)
    shares = before.features.norm(dim=1, keepdim=True) / out.features.norm(dim=1, keepdim=True)
    torch.testing.assert_close(out.logits[:, : before.logits.shape[1]], before.logits * (share or shares))
    torch.testing.assert_close(run.method.net.previous(out).logits, before.logits)


# --- the read-out that counts ---


def test_a_run_is_judged_by_its_headline_and_its_model_answers_with_it(tmp_path: Path) -> None:
    values = SHORT | {"method": "der", "memory": 10}
    usual, means = (run(**values, headline=name, out=tmp_path / name) for name in ("cnn", "nme"))
    assert (usual.headline, means.headline) == ("cnn", "nme")
    assert usual.average == means.average  # all read-outs are measured, whichever counts
    models, x = [load(tmp_path / name) for name in ("cnn", "nme")], load_digits()
    scores = models[0].readouts(x)
    for model, name in zip(models, ("cnn", "nme"), strict=True):
        assert model.predict(x) == [model.classes[c] for c in scores[name].argmax(1)]
    assert models[0].predict(x) != models[1].predict(x)


def load_digits() -> np.ndarray:
    return load_dataset(resolve(make(method="der", data="digits"))).test_x[:100]


@pytest.mark.parametrize("method", ["icarl", "foster"])
def test_the_headline_of_a_run_that_does_not_say_is_the_methods(method: str) -> None:
    config = resolve(make(method=method, data="digits"))
    assert config.headline == "cnn" and "headline" not in config.given


def test_a_run_that_nobody_began_is_judged_by_its_headline(tmp_path: Path) -> None:
    config = resolve(make(method="icarl", data="digits", headline="nme"))
    assert not_begun(tmp_path, config).result.headline == "nme"


def test_a_method_of_ones_own_without_exemplars_may_have_means_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "protos.py"
    path.write_text("""
from dataclasses import replace
import jioc
from jioc.methods import SPECS
from jioc.methods.replay import Replay

@jioc.register(replace(SPECS["replay"], name="protos", title="Protos", memory="none"))
class Protos(Replay):
    def readouts(self, x):
        scores = super().readouts(x)
        return scores | {"nme": 2 * scores["cnn"]}
""")
    result = run(method=str(path), **{**SHORT, "memory": None}, headline="nme")
    assert result.headline == "nme" and result.average["nme"] == result.average["cnn"]


# --- logit adjustment ---


def equal_digits() -> Dataset:
    """Digits with as many images of each class."""
    digits = load_dataset(resolve(make(method="icarl", data="digits")))
    first = np.concatenate([np.flatnonzero(digits.train_y == c)[:40] for c in range(len(digits.classes))])
    return replace(digits, train_x=digits.train_x[first], train_y=digits.train_y[first])


@pytest.mark.parametrize(("tail", "acts"), [(9, [True, True]), (None, [False, True])])
def test_adjusting_acts_wherever_classes_have_unequal_numbers(tail: float | None, acts: list[bool]) -> None:
    ours = new_run(equal_digits(), **SHORT | {"long_tail": tail}, method="icarl", adjust=2.0)
    for wanted in acts:
        task, data = ours.arrival(ours.done)
        ours.prepare(task, data, ours.engine.fit)
        counts = [len(index) for index in [*ours.method.memory.classes, *data.classes]]
        assert (ours.method.prior is not None) == wanted == (len({*counts}) > 1)
        if ours.method.prior is not None:
            torch.testing.assert_close(ours.method.prior, 2 * torch.tensor(counts).log())
        ours.learn_next()


def test_adjusting_changes_no_bit_where_classes_have_equal_numbers() -> None:
    """And WA scales as usual then: there is nothing that balances in its place."""
    values = SHORT | {"long_tail": None, "memory": 10_000}
    runs = [new_run(equal_digits(), **values, method="wa", adjust=tau) for tau in (0.0, 2.0)]
    for each in runs:
        each.learn_next()
        each.learn_next()
    plain, adjusted = (each.method.net.state_dict() for each in runs)
    assert all(value.equal(adjusted[name]) for name, value in plain.items())


# --- mixtures ---


def test_cutmix_pastes_a_box_and_counts_its_pixels() -> None:
    x, other = torch.zeros(200, 1, 8, 8), torch.ones(200, 1, 8, 8)
    _, share, centre = Mix("cutmix").draw(200, torch.Generator().manual_seed(0))
    mixed, left = Mix("cutmix").apply(x, other, share, centre)
    torch.testing.assert_close(left, 1 - mixed.mean((1, 2, 3)))
    rows, columns = mixed.amax(3).sum(2).flatten(), mixed.amax(2).sum(2).flatten()
    assert (mixed.sum((1, 2, 3)) == rows * columns).all()  # a box
    side = 8 * (1 - share).sqrt()
    assert (rows <= side + 1).all() and (left >= share - 0.3).all() and left.unique().numel() > 10


def test_mixup_draws_a_partner_for_each_image_and_a_share_from_beta() -> None:
    partner, share, _ = Mix("mixup", 0.4).draw(4000, torch.Generator().manual_seed(0))
    assert partner.sort().values.equal(torch.arange(4000))
    assert share.mean().item() == pytest.approx(0.5, abs=0.02)
    assert share.var().item() == pytest.approx(1 / (4 * (2 * 0.4 + 1)), abs=0.01)
    x, other = torch.randn(2, 3, 1, 2, 2)
    mixed, left = Mix("mixup").apply(x, other, share[:3], torch.zeros(2, 3))
    assert left.equal(share[:3])
    torch.testing.assert_close(mixed[1], share[1] * x[1] + (1 - share[1]) * other[1])


def mixture() -> tuple[Batch, Output, Task]:
    draws = torch.Generator().manual_seed(1)
    z = torch.randn(5, 4, generator=draws, dtype=torch.float64)
    y, other = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 3, 3, 0, 0])
    share = torch.rand(5, generator=draws, dtype=torch.float64)
    old = (y < 2) & (other < 2)
    task = Task(1, (2, 2), new_images=10, old_images=4)
    return Batch(torch.zeros(5, 1, 2, 2), y, old, other=other, share=share), Output(z), task


def test_terms_of_a_mixture_are_those_of_both_labels() -> None:
    batch, out, task = mixture()

    def loss(batch: Batch, out: Output, old: Output | None, task: Task) -> dict[str, torch.Tensor]:
        assert batch.old.equal(batch.y < task.n_old)
        return {"cls": cross_entropy(out.logits, batch.y), "kd": out.logits.sum(1)}

    terms, p = mixed_terms(loss, batch, out, None, task), out.logits.softmax(1)
    assert batch.other is not None and batch.share is not None
    for i, (y, other, s) in enumerate(zip(batch.y, batch.other, batch.share, strict=True)):
        slow = -s * p[i, y].log() - (1 - s) * p[i, other].log()
        torch.testing.assert_close(terms["cls"][i], slow)
    torch.testing.assert_close(terms["kd"], out.logits.sum(1))
    batch.share = torch.ones(5, dtype=torch.float64)  # nothing of the other image
    assert mixed_terms(loss, batch, out, None, task)["cls"].equal(cross_entropy(out.logits, batch.y))


def test_jioc_weighs_a_mixture_by_both_labels_and_suppresses_it_where_both_are_old() -> None:
    batch, out, task = mixture()
    p, ones = out.logits.softmax(1), torch.ones(5, dtype=torch.float64)
    terms = JIOC(reading="printed", gamma1=0)({"cls": ones}, batch, out, None, task)
    assert batch.other is not None and batch.share is not None
    for i, (y, other, s) in enumerate(zip(batch.y, batch.other, batch.share, strict=True)):
        torch.testing.assert_close(terms["cls"][i], 1 - s * p[i, y] - (1 - s) * p[i, other])
    slow = torch.tensor([True, False, False, False, True]) * p[:, 2:].sum(1) * (14 / 10)
    torch.testing.assert_close(terms["suppress"], slow)


@pytest.mark.parametrize("kind", ["mixup", "cutmix"])
def test_a_mixture_is_the_same_whoever_takes_it(kind: Any) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (40, 3, 8, 8)).astype(np.uint8)
    parts = (pixels, np.arange(40), (0.5,) * 3, (0.25,) * 3, torch.device("cpu"))
    index, augment, mix = torch.randperm(40)[:11], Augment(pad=2, flip=True), Mix(kind)
    x, partner, share = Images(*parts).mixed(index, augment, mix, torch.Generator().manual_seed(3))
    for rank in range(3):
        own = Images(*parts)
        own.share = slice(rank, None, 3)
        mine, whole, left = own.mixed(index, augment, mix, torch.Generator().manual_seed(3))
        assert mine.equal(x[rank::3]) and whole.equal(partner) and left.equal(share[rank::3])


# --- exemplars at half size ---


def test_an_image_is_halved_by_means_and_enlarged_bilinearly() -> None:
    x = torch.randint(0, 256, (3, 2, 8, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    small = (F.avg_pool2d(x.double(), 2) + 1e-9).round()  # halves are rounded up
    slow = F.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)
    kept = halved_and_enlarged(x, torch.tensor([True, False, True]))
    assert kept[1].equal(x[1]) and ((kept.double() - slow)[::2].abs() <= 0.5).all()


def test_bytes_hold_four_times_as_many_exemplars_at_half_size() -> None:
    values = {name: value for name, value in SHORT.items() if name not in ("memory", "long_tail")}
    memory = [
        new_run(method="icarl", **values, memory_bytes=64 * 20, exemplar_size=size).method.memory
        for size in ("full", "half")
    ]
    assert [m.total for m in memory] == [20, 80] and [m.quota(10) for m in memory] == [2, 8]


def test_exemplars_are_halved_from_when_they_are_chosen_and_every_image_is_judged_so() -> None:
    values = {name: value for name, value in SHORT.items() if name != "memory"}
    half = new_run(method="icarl", **values, memory_bytes=64 * 10, exemplar_size="half")
    half.learn_next()
    kept = half.method.memory.index
    assert half.train.halving is not None
    assert (half.train.halving == 1).nonzero().flatten().equal(kept.sort().values)
    for images, pixels in ((half.train, half.dataset.train_x), (half.test, half.dataset.test_x)):
        every = halved(torch.from_numpy(pixels))
        assert images.plain(torch.arange(len(pixels))).equal(images.normal(every))
    saved = half.classifier().exemplars
    as_used = halved(torch.from_numpy(half.dataset.train_x)[kept])
    assert saved is not None and (np.concatenate(saved) == as_used.numpy()).all()


def halved(pixels: torch.Tensor) -> torch.Tensor:
    return halved_and_enlarged(pixels, torch.ones(len(pixels), dtype=torch.bool))


def coarse(half: bool, share: slice | None = None, n: int = 600) -> Images:
    """Images of noise, whose first third are exemplars."""
    pixels = np.random.RandomState(0).randint(0, 256, (n, 1, 4, 4)).astype(np.uint8)
    images = Images(pixels, np.arange(n), (0.0,), (1 / 255,), torch.device("cpu"), half=half)
    images.share = share
    if half:
        images.halve(torch.arange(n // 3))
    return images


def test_training_shows_every_exemplar_halved_and_about_half_of_the_others() -> None:
    images, index, noise = coarse(half=True), torch.randperm(600), torch.Generator().manual_seed(3)
    as_they_are, small = images.pixels[index].float(), halved(images.pixels[index]).float()
    shown = [images.augmented(index, Augment(), noise) for _ in range(2)]
    halves = torch.stack([(x == small).all(3).all(2).all(1) for x in shown])
    wholes = torch.stack([(x == as_they_are).all(3).all(2).all(1) for x in shown])
    assert halves[:, index < 200].all() and (halves ^ wholes).all()
    assert ((halves[:, index >= 200].float().mean(1) - 0.5).abs() < 0.1).all()
    assert not halves[0].equal(halves[1])  # drawn anew in each step


@pytest.mark.parametrize("mix", [None, Mix("mixup"), Mix("cutmix")])
def test_processes_halve_the_same_images(mix: Mix | None) -> None:
    index, augment = torch.randperm(600)[:50], Augment(pad=1)

    def taken(images: Images) -> torch.Tensor:
        noise = torch.Generator().manual_seed(3)
        if mix is None:
            return images.augmented(index, augment, noise)
        return images.mixed(index, augment, mix, noise)[0]

    for rank in range(3):
        own = slice(rank, None, 3)
        assert taken(coarse(half=True, share=own)).equal(taken(coarse(half=True))[own])


def test_at_full_size_nothing_is_drawn_but_the_augmentation() -> None:
    images, index, augment = coarse(half=False), torch.arange(50), Augment(pad=1, flip=True)
    one, two = (torch.Generator().manual_seed(3) for _ in range(2))
    x = images.augmented(index, augment, one)
    assert x.equal(augment(images.pixels[index], two)) and one.get_state().equal(two.get_state())


@pytest.mark.parametrize(
    ("method", "memory", "halves"),
    [
        ("lwf", {"memory": 60}, False),
        ("replay", {"memory": 0}, False),
        ("replay", {"memory": 60}, True),
        ("replay", {"memory": None, "memory_per_class": 3}, True),
        ("replay", {"memory": None, "memory_bytes": 64 * 10}, True),
        ("joint", {"memory": 0}, True),  # keeps every image
    ],
)
def test_nothing_is_halved_where_no_exemplar_is_kept(
    method: str, memory: dict[str, int | None], halves: bool
) -> None:
    run = started(method, 0, data="digits", exemplar_size="half", **memory)
    assert (run.train.halving is not None) == (run.test.halving is not None) == halves
    assert run.classifier().preprocessing.half == halves
    noted = any("--exemplar-size half: without effect" in note for note in unused(run.config))
    assert noted != halves


def test_a_saved_model_judges_as_its_run_does(tmp_path: Path) -> None:
    half = started("icarl", 2, data="digits", exemplar_size="half")
    save(tmp_path, half.classifier())
    pixels = half.dataset.test_x[:50]
    with torch.no_grad():
        scores = half.method.readouts(half.test.plain(torch.arange(50)))
    for learner in (load(tmp_path), pickle.loads(pickle.dumps(load(tmp_path, to_learn=True)))):
        got = learner.readouts(pixels)
        assert got.keys() == scores.keys() and all(got[name].equal(scores[name]) for name in scores)
    sharp = half.test.normal(torch.from_numpy(pixels))
    with torch.no_grad():
        assert not half.method.readouts(sharp)["cnn"].equal(scores["cnn"])


def test_a_model_whose_images_cannot_be_halved_is_refused(tmp_path: Path) -> None:
    save(tmp_path, started("icarl", 1, data="digits", exemplar_size="half").classifier())
    about = json.loads((tmp_path / "model.json").read_bytes())
    (tmp_path / "model.json").write_text(json.dumps(about | {"image": [1, 7, 7], "canvas": 7}))
    with pytest.raises(Refused, match="holds no whole model"):
        load(tmp_path, judged=False)


def grainy(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of four classes: a bright quarter says which, under grain that halving takes away."""
    y, draws = np.repeat(np.arange(4), n), np.random.RandomState(n)
    quarter = np.kron(np.eye(4).reshape(4, 2, 2), np.ones((6, 6)))[y]
    levels = 90 + 50 * quarter + draws.normal(0, 30, quarter.shape)
    return levels.clip(0, 255).astype(np.uint8)[:, None], y


def test_old_images_are_not_taken_for_new_ones_because_they_are_sharp() -> None:
    """Where exemplars alone were halved, all were: grain said that an image is new."""
    dataset = Dataset("grain", list("abcd"), *grainy(60), *grainy(50), (0.5,), (0.25,), Augment())
    half = new_run(
        dataset,
        **{"method": "replay", "data": "digits", "backbone": "tiny", "device": "cpu", "batch_size": 32},
        **{"task_sizes": (2, 2), "memory": 24, "exemplar_size": "half"},
        **{"first": {"epochs": 4}, "later": {"epochs": 12}},
    )
    half.learn_next()
    half.learn_next()
    assert half.rows[-1]["cnn"]["old"] > 75 and half.rows[-1]["cnn"]["new"] > 75


# --- all at once ---


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("components") / "alone"
    run(**ALL, out=folder)
    return folder


@pytest.mark.parametrize("steps", [4, 8, 20])  # in the first task, and in rebalancing both
def test_interrupted_anywhere_it_ends_as_if_left_alone(steps: int, alone: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(**ALL, out=tmp_path / "run", stop=stop_after(steps))
    run(**ALL, out=tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "podnet", "rebalance": "head"}, "podnet does not say rebalances=True"),
        ({"method": "bic", "rebalance": "scale"}, "bic does not say"),
        ({"method": "lwf", "rebalance": "head"}, "keeps no exemplars"),
        ({"rebalance": "head", "memory": 0}, "none is kept"),
        ({"rebalance_epochs": 3}, "nothing is rebalanced"),
        ({"mix_alpha": 0.4}, "no images are mixed"),
        (
            {"mix": "mixup", "coordination": {"coordinate": "ic", "delta_scale": "per-class"}},
            "averages over the images of a class",
        ),
        ({"memory": 20, "memory_bytes": 5000}, "exclude each other"),
        ({"memory_bytes": 100}, "leaves no exemplar of 64 bytes for each of 10 classes; give at least 640"),
        ({"judge_by": "test"}, "nothing is held out"),
        ({"method": "bic", "head": "cosine"}, "--head cosine: bic has a head of its own"),
        ({"method": "podnet", "head": "linear"}, "--head linear: podnet has a head of its own"),
        ({"head": "cosine", "rebalance": "head"}, "--rebalance head trains a linear head; leave out"),
        ({"headline": "nne"}, "unknown read-out of icarl 'nne'.*nme"),
        ({"headline": "boosted"}, "unknown read-out of icarl 'boosted'"),
        ({"headline": "nme", "memory": 0}, "means of exemplars, and --memory 0 keeps none"),
        ({"headline": "nme", "method": "lwf"}, "means of exemplars, and lwf keeps none"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        run(**{"method": "icarl", "data": "digits", "device": "cpu", **change})
