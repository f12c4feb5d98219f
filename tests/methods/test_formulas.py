"""Each method's own formula against a slow version written from the paper's symbols, in float64."""

import math
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ot = pytest.importorskip("ot", reason="POT is the oracle of COIL's transport")

from helpers.paths import ROOT
from jioc.config.schema import Coordination
from jioc.coordination import JIOC
from jioc.data.loader import TaskData
from jioc.memory import Memory
from jioc.methods import bic, coil, der, foster, podnet, specs, ssil, wa
from jioc.methods.base import Method
from jioc.nets.heads import CorrectedHead, CosineHead, LinearHead, ProxyHead
from jioc.nets.incremental import build
from jioc.types import Batch, Output, Task

PLAN = {
    "backbone": "tiny", "stem": "cifar", "channels": 1, "cosine": False, "maps": False, "head": "linear", "classes": 0,
    "sizes": [],
}  # fmt: skip


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def log_softmax(z: list[float]) -> list[float]:
    total = sum(math.exp(v) for v in z)
    return [v - math.log(total) for v in z]


def kl(teacher: list[float], student: list[float], t: float) -> float:
    q, p = log_softmax([v / t for v in teacher]), log_softmax([v / t for v in student])
    return sum(math.exp(a) * (a - b) for a, b in zip(q, p, strict=True))


def close(a: Tensor, b: list[float] | Tensor) -> None:
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=torch.float64), rtol=1e-11, atol=1e-12)


def method(name: str, coordination: JIOC | None = None, memory: Memory | None = None) -> Method:
    cls = specs.load(name)
    net = build(cls.plan(PLAN), torch.Generator().manual_seed(0))
    return cls(
        net=net, memory=memory or Memory(20), options=cls.spec.options(), coordination=coordination,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip


TASK = Task(2, (2, 3, 2), new_images=40, old_images=20)
Y = torch.tensor([0, 4, 2, 5, 6, 5])
BATCH = Batch(numbers(6, 1, 8, 8), Y, Y < 5)


# --- WA, BiC ---


def test_wa_scales_new_rows_by_the_ratio_of_mean_norms() -> None:
    head = LinearHead(4, [3, 2]).double()
    before = numbers(5, 4)
    head.load_state_dict({"weight": before, "bias": numbers(5)})
    gamma = head.align(3)
    norms = [math.sqrt(sum(v * v for v in row)) for row in before.tolist()]
    factor = (sum(norms[:3]) / 3) / (sum(norms[3:]) / 2)
    close(head.weight.detach(), torch.cat([before[:3], before[3:] * factor]))
    close(head.bias.detach(), numbers(5))
    assert gamma == pytest.approx(factor) and head.align(0) == 1
    close(head.weight.detach()[3:], before[3:] * factor)


@pytest.mark.parametrize("name", ["wa", "bic", "coil"])
def test_the_mix_of_cls_and_kd_is_the_share_of_old_classes(name: str) -> None:
    host = method(name)
    assert isinstance(host, wa.WA | bic.BiC | coil.COIL)
    factors = host.weights(TASK)
    assert factors["cls"] == pytest.approx(2 / 7) and factors["kd"] == pytest.approx(5 / 7)


def test_bic_corrects_each_tasks_logits_with_its_own_pair() -> None:
    head = CorrectedHead(4, [2, 3, 2]).double()
    w, b, f = numbers(7, 4), numbers(7, seed=1), numbers(6, 4, seed=2)
    pairs = [numbers(2, seed=3 + s) for s in range(3)]
    head.load_state_dict({"weight": w, "bias": b, **{f"pairs.{s}": p for s, p in enumerate(pairs)}})
    owner = [0, 0, 1, 1, 1, 2, 2]
    slow = [
        [pairs[owner[k]][0] * (sum(x * v for x, v in zip(row, w[k], strict=True)) + b[k]) + pairs[owner[k]][1]
         for k in range(7)] for row in f
    ]  # fmt: skip
    close(head(f).detach(), slow)
    newest = f @ w[5:].T + b[5:]
    close(head.uncorrected(f).detach(), torch.cat([head(f)[:, :5].detach(), newest], dim=1))


@pytest.mark.parametrize(
    ("memory", "v"),
    [(Memory(total=100), 2), (Memory(total=20), 1), (Memory(per_class=30), 3), (Memory(per_class=4), 1)],
)
def test_bic_holds_out_as_many_images_of_every_class_and_trains_on_the_others(memory: Memory, v: int) -> None:
    memory.classes = [
        torch.arange(0, 8),
        torch.arange(10, 11),
        torch.arange(20, 24),
        *torch.arange(30, 50).split(10),
    ]
    data = TaskData(
        [torch.arange(100, 150), torch.arange(200, 203)], 16, lambda: None, torch.Generator().manual_seed(0)
    )
    assert bic.held_out(memory, 5, 0.1) == v
    most, held = data.split(memory, v)
    kept, out = (torch.cat(s.epoch(torch.Generator())).tolist() for s in (most, held))
    assert sorted(kept + out) == sorted(torch.cat([memory.index, data.new]).tolist())
    for index in [*memory.classes, *data.classes]:
        assert len(set(index.tolist()) & set(out)) == min(v, len(index) - 1)


def test_bic_second_stage_is_plain_cross_entropy_and_pycils_takes_the_softmax_twice() -> None:
    host, z = method("bic"), numbers(6, 7)
    assert isinstance(host, bic.BiC)
    slow = [-log_softmax(row)[y] for row, y in zip(z.tolist(), Y, strict=True)]
    close(host.bias_loss(BATCH, Output(z, z), None, TASK)["bias"], slow)
    host.options = host.options.model_copy(update={"bias_loss": "pycil"})
    twice = [
        -log_softmax([math.exp(v) for v in log_softmax(row)])[y] for row, y in zip(z.tolist(), Y, strict=True)
    ]
    close(host.bias_loss(BATCH, Output(z, z), None, TASK)["bias"], twice)


# --- SS-IL ---


def test_ssil_has_a_softmax_for_old_and_one_for_new_and_distils_task_by_task() -> None:
    host, z, old = method("ssil"), numbers(6, 7), numbers(6, 5, seed=1)
    terms = host.loss(BATCH, Output(z, z), Output(old, old), TASK)
    for i, (row, teacher, y) in enumerate(zip(z.tolist(), old.tolist(), Y.tolist(), strict=True)):
        cls = -log_softmax(row[:5])[y] if y < 5 else -log_softmax(row[5:])[y - 5]
        kd = 4 * (kl(teacher[:2], row[:2], 2) + kl(teacher[2:], row[2:5], 2))
        assert terms["cls"][i].item() == pytest.approx(cls, rel=1e-12)
        assert terms["kd"][i].item() == pytest.approx(kd, rel=1e-10)


def test_ssil_a_side_of_one_class_is_told_from_all_classes() -> None:
    task = Task(1, (3, 1), 10, 10)
    z, y = numbers(2, 4), torch.tensor([1, 3])
    kept = ssil.separated(z, y < 3, task)
    assert kept.isinf().tolist() == [[False, False, False, True], [False] * 4]


def test_ssil_batches_keep_the_ratio_and_go_round_the_exemplars_evenly() -> None:
    memory = Memory(30)
    memory.classes = [torch.arange(1000, 1009)]
    data = TaskData([torch.arange(0, 70), torch.arange(100, 130)], 32, lambda: None, torch.Generator())
    visits = data.beside_memory(memory, 0.25)
    for seed in range(3):
        batches = visits.epoch(torch.Generator().manual_seed(seed))
        news, olds = [b[b < 1000] for b in batches], [b[b >= 1000] for b in batches]
        assert [len(b) for b in news] == [32, 32, 32, 4] and [len(b) for b in olds] == [8, 8, 8, 1]
        assert sorted(torch.cat(news).tolist()) == sorted(data.new.tolist())
        times = torch.bincount(torch.cat(olds) - 1000, minlength=9)
        assert times.max() - times.min() <= 1
        assert sum(map(len, batches)) == visits.images
    assert data.beside_memory(Memory(0), 0.25).images == 100


def test_in_ssil_output_coordination_adds_suppression_alone() -> None:
    host, z, old = method("ssil"), numbers(6, 7), numbers(6, 5, seed=1)
    terms = host.loss(BATCH, Output(z, z), Output(old, old), TASK)
    both = JIOC(coordinate="oc", host_kd="keep")(terms, BATCH, Output(z, z), Output(old, old), TASK)
    assert set(both) == {"cls", "kd", "quiet"}
    assert both["cls"] is terms["cls"] and both["kd"] is terms["kd"]


def test_only_the_suppression_sees_new_heads_of_ssil_sink_together() -> None:
    host, z, old = method("ssil"), numbers(6, 7), numbers(6, 5, seed=1)
    sunk = torch.cat([z[:, :5], z[:, 5:] - 3], 1)
    oc = JIOC(coordinate="oc", host_kd="keep")
    before, after = (
        oc(
            host.loss(BATCH, Output(f, f), Output(old, old), TASK),
            BATCH,
            Output(f, f),
            Output(old, old),
            TASK,
        )
        for f in (z, sunk)
    )
    torch.testing.assert_close(after["cls"], before["cls"])
    torch.testing.assert_close(after["kd"], before["kd"])
    assert (after["quiet"] < before["quiet"])[BATCH.old].all() and BATCH.old.any()


# --- PODNet ---


def test_podnet_scores_by_proxies() -> None:
    head = ProxyHead(4, [1, 2]).double()
    frozen, fresh, f = numbers(10, 4), numbers(20, 4, seed=1), numbers(3, 4, seed=2)
    head.load_state_dict({"frozen": frozen, "weight": fresh, "sigma": torch.tensor(2.5, dtype=torch.float64)})
    rows = torch.cat([frozen, fresh])
    for i in range(3):
        cos = [(f[i] @ w / f[i].norm() / w.norm()).item() for w in rows]
        for k in range(3):
            s = cos[10 * k : 10 * k + 10]
            total = sum(map(math.exp, s))
            slow = 2.5 * sum(math.exp(v) / total * v for v in s)
            assert head(f)[i, k].item() == pytest.approx(slow, rel=1e-11)


def test_podnet_nca_has_the_margin_on_the_label_alone_and_no_label_below() -> None:
    s, sigma, margin = numbers(6, 7) / 3, 3.0, 0.6
    s[0, 0] = 2.0  # by far the best
    slow = []
    for row, y in zip(s.tolist(), Y.tolist(), strict=True):
        others = sum(math.exp(sigma * v) for k, v in enumerate(row) if k != y)
        slow.append(max(0.0, -math.log(math.exp(sigma * (row[y] - margin)) / others)))
    assert slow[0] == 0 and sum(v > 0 for v in slow) > 3
    close(podnet.nca(sigma * s, Y, sigma * margin), slow)


def test_podnet_nca_as_coded_cancels_the_margin() -> None:
    z = 2 * numbers(6, 7)
    slow = []
    for row, y in zip(z.tolist(), Y.tolist(), strict=True):
        shifted = [(v - 0.6) - max(w - 0.6 for w in row) for v in row]
        slow.append(-shifted[y] + math.log(1 + sum(math.exp(v) for k, v in enumerate(shifted) if k != y)))
    close(podnet.nca_as_coded(z, Y), slow)


def test_podnet_nca_of_one_class_is_nothing() -> None:
    z = numbers(3, 1).requires_grad_()
    for loss in (
        podnet.nca(z, torch.zeros(3, dtype=torch.long), 0.6),
        podnet.nca_as_coded(z, torch.zeros(3).long()),
    ):
        close(loss.detach(), [0.0, 0.0, 0.0])
        (gradient,) = torch.autograd.grad(loss.sum(), z)
        close(gradient, torch.zeros(3, 1))


def test_podnet_distils_energy_pooled_over_width_and_over_height() -> None:
    maps, teacher = ([numbers(2, 3, 4, 5, seed=s), numbers(2, 2, 3, 2, seed=s + 1)] for s in (0, 2))

    def vector(h: Tensor) -> np.ndarray:
        c, height, width = h.shape
        over_w = [sum(h[k, i, j].item() ** 2 for j in range(width)) for k in range(c) for i in range(height)]
        over_h = [sum(h[k, i, j].item() ** 2 for i in range(height)) for k in range(c) for j in range(width)]
        v = np.array(over_w + over_h)
        return v / np.sqrt((v**2).sum())

    slow = [
        sum(np.sqrt(((vector(a[i]) - vector(b[i])) ** 2).sum()) for a, b in zip(maps, teacher, strict=True))
        / 2
        for i in range(2)
    ]
    assert podnet.pooled_distance(maps, teacher).tolist() == pytest.approx(slow, rel=1e-5)  # in float32


def test_podnet_weighs_its_distillations_by_the_growth() -> None:
    factors = method("podnet").weights(TASK)
    assert factors == pytest.approx({"flat": math.sqrt(7 / 2), "spatial": 5 * math.sqrt(7 / 2)})


# --- DER, FOSTER ---


def test_der_auxiliary_targets() -> None:
    slow = [0 if y < 5 else y - 5 + 1 for y in Y.tolist()]
    assert der.aux_targets(Y, TASK).tolist() == slow == [0, 0, 0, 1, 2, 1]


def test_icarl_balanced_weighs_the_cross_entropy_by_class_after_the_first_task() -> None:
    host, z = method("icarl"), numbers(6, 7)
    host.options = specs.ICaRLOptions(balance=0.9)
    taught: list[Task] = []
    host.memory.classes = [torch.arange(c, c + 4) for c in range(5)]
    data = TaskData([torch.arange(20), torch.arange(20, 50)], 8, lambda *_: numbers(50, 3), torch.Generator())
    host.net.grow(5, host.generator)
    host.remember = lambda task, data: None  # type: ignore[method-assign]
    host.learn(TASK, data, lambda *_: taught.append(TASK))
    raw = [0.1 / (1 - 0.9**n) for n in [4] * 5 + [20, 30]]
    w = [7 * v / sum(raw) for v in raw]
    assert taught and isinstance(host.class_weights, Tensor)
    host.class_weights = host.class_weights.double()
    batch = Batch(torch.zeros(6, 0), Y, Y < 5)
    weighed = host.loss(batch, Output(z, z), Output(numbers(6, 5, seed=1), z), TASK)["cls"]
    rows = [log_softmax(row) for row in z.tolist()]
    slow = [-w[y] * rows[i][y] for i, y in enumerate(Y.tolist())]
    torch.testing.assert_close(weighed, torch.tensor(slow, dtype=torch.float64), rtol=1e-6, atol=0)
    first = host.loss(batch, Output(z, z), None, TASK)["cls"]
    close(first, [-rows[i][y] for i, y in enumerate(Y.tolist())])


def test_foster_class_weights_come_from_real_counts() -> None:
    counts, beta = [3, 3, 2, 40, 7], 0.96
    raw = [(1 - beta) / (1 - beta**n) for n in counts]
    close(foster.class_balance(counts, beta), [w * 5 / sum(raw) for w in raw])


def test_foster_balanced_distillation() -> None:
    student, teacher, w = numbers(6, 7), numbers(6, 7, seed=1), numbers(7, seed=2).abs()
    slow = []
    for z, z_teacher in zip(student.tolist(), teacher.tolist(), strict=True):
        q = [
            math.exp(v) * a for v, a in zip(log_softmax([v / 2 for v in z_teacher]), w.tolist(), strict=True)
        ]
        slow.append(-sum(a / sum(q) * b for a, b in zip(q, log_softmax([v / 2 for v in z]), strict=True)))
    close(foster.balanced_distill(student, teacher, w, 2.0), slow)


def test_foster_classifies_logits_divided_by_the_weights() -> None:
    host, z = method("foster"), numbers(6, 7)
    assert isinstance(host, foster.FOSTER)
    host.balance = foster.class_balance([4] * 5 + [20] * 2, 0.96)
    out = Output(z, z, extra={"aux": numbers(6, 7, seed=1)})
    terms = host.loss(BATCH, out, Output(numbers(6, 5), z), TASK)
    w = host.balance.tolist()
    slow = [
        -log_softmax([v / a for v, a in zip(row, w, strict=True)])[y]
        for row, y in zip(z.tolist(), Y, strict=True)
    ]
    close(terms["cls"], slow)
    weighed = JIOC(coordinate="ic")(terms, BATCH, out, None, TASK, host.cls_logits(out, TASK))
    close(weighed["cls"], [(1 - math.exp(-v)) * v for v in slow])
    assert weighed["fe"] is terms["fe"] and weighed["kd"] is terms["kd"]


# --- COIL ---


@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 1), (1, 4), (10, 10)])
def test_coil_plan_is_pots(m: int, n: int) -> None:
    cost = numbers(m, n).abs()
    plan = coil.sinkhorn(cost, 0.464)
    oracle = ot.sinkhorn(
        np.full(m, 1 / m), np.full(n, 1 / n), cost.numpy(), 0.464, stopThr=1e-15, numItermax=5000
    )
    torch.testing.assert_close(plan, torch.from_numpy(oracle), rtol=1e-9, atol=1e-12)


def test_coil_plan_becomes_the_exact_one_as_the_regularisation_vanishes() -> None:
    cost = numbers(6, 4).abs()
    masses = np.full(6, 1 / 6), np.full(4, 1 / 4)
    best = ot.emd2(*masses, cost.numpy())
    gaps = [(coil.sinkhorn(cost, eps, 2000) * cost).sum().item() - best for eps in (0.3, 0.1, 0.03)]
    assert gaps[0] > gaps[1] > gaps[2] > 0 and gaps[2] < 0.03 * math.log(6 * 4)
    clear = 1 - torch.eye(5).roll(2, 0).double() + numbers(5, 5) / 10
    exact = torch.from_numpy(ot.emd(np.full(5, 1 / 5), np.full(5, 1 / 5), clear.numpy()))
    torch.testing.assert_close(coil.sinkhorn(clear, 0.02), exact, rtol=0, atol=1e-9)


def test_coil_pycils_marginals_give_the_same_weights() -> None:
    source, target, rows = (torch.nn.functional.normalize(numbers(k, 4, seed=k), dim=1) for k in (6, 3, 6))
    rows = 3 * rows + 0.1
    cost = torch.cdist(source, target, p=3).numpy()
    each = np.full(6, 1 / 6), np.full(3, 1 / 6)  # the second sums to a half
    plan = torch.from_numpy(ot.sinkhorn(*each, cost, 0.464, numItermax=1000, warn=False))
    mixed = plan.T @ (rows / rows.norm(dim=1, keepdim=True)) * 6
    slow = mixed * (rows.norm(dim=1).mean() / mixed.norm(dim=1).mean())
    torch.testing.assert_close(coil.transported(rows, source, target, 0.464), slow, rtol=1e-8, atol=1e-10)


def test_coil_a_lone_class_passes_its_weights_on() -> None:
    row = numbers(1, 4)
    ahead = coil.transported(row, numbers(1, 4, seed=1), numbers(3, 4, seed=2), 0.464)
    close(ahead, row.expand(3, 4))


# --- JIOC on each: the table of docs/methods.md ---

TOUCHED = {  # where OC's distillation goes, and what it is multiplied by
    "replay": ("added", 1),
    "joint": ("added", 1),
    "icarl": ("replaced", 1),
    "wa": ("replaced", 5 / 7),
    "bic": ("replaced", 5 / 7),
    "podnet": ("added", 1),
    "ssil": ("kept", 1),
    "der": ("added", 1),
    "foster": ("replaced", 1),
    "coil": ("replaced", 5 / 7),
}


def test_the_table_is_of_every_method_with_a_memory() -> None:
    assert set(TOUCHED) == {name for name, spec in specs.SPECS.items() if spec.memory != "none"}
    text = (ROOT / "docs" / "methods.md").read_text()
    assert all(f"| {name} |" in text for name in specs.SPECS)


@pytest.mark.parametrize("name", TOUCHED)
def test_jioc_touches_the_terms_that_the_table_says(name: str) -> None:
    host, (how, factor) = method(name), TOUCHED[name]
    z, old = numbers(6, 7), Output(numbers(6, 5, seed=1), numbers(6, 8, seed=2), [numbers(6, 2, 3, 3)])
    out = Output(
        z,
        numbers(6, 8),
        [numbers(6, 2, 3, 3, seed=3)],
        {"aux": numbers(6, 3 if name == "der" else 7, seed=4)},
    )
    if isinstance(host, foster.FOSTER):
        host.balance = foster.class_balance([4] * 5 + [20] * 2, 0.96)
    if isinstance(host, coil.COIL):
        host.ahead, host.back = numbers(2, 8).float(), numbers(5, 8).float()
        out.features = out.features.float()
    terms = host.loss(BATCH, out, old, TASK)
    assert all(term.shape == (6,) for term in terms.values()) and ("kd" in terms) == (how != "added")
    both = JIOC(host_kd=host.spec.host_kd)(terms, BATCH, out, old, TASK, host.cls_logits(out, TASK))
    assert set(both) == {*terms, "kd", "quiet"}
    assert all(both[other] is terms[other] for other in terms.keys() - {"cls", "kd"})
    slow = [
        kl(t[:2], s[:2], 2) + kl(t[2:], s[2:5], 2)
        for t, s in zip(old.logits.tolist(), z.tolist(), strict=True)
    ]
    if how == "kept":
        assert both["kd"] is terms["kd"]
    else:
        close(both["kd"], slow)
    assert host.weights(TASK).get("kd", 1.0) == pytest.approx(factor)
    p = host.cls_logits(out, TASK).softmax(1)[range(6), Y]
    close(both["cls"].detach(), ((1 - p) * terms["cls"]).detach())
    close(both["quiet"], (Y < 5) * z.softmax(1)[:, 5:].sum(1) * 60 / 40)


# --- growing ---


@pytest.mark.parametrize("kind", [LinearHead, CorrectedHead, CosineHead, ProxyHead])
def test_a_head_that_grows_leaves_old_logits_alone(kind: type) -> None:
    g, f = torch.Generator().manual_seed(0), numbers(5, 8).float()
    head = kind(8)
    head.grow(3, g)
    for n in (2, 1):
        before = head(f).detach()
        head.grow(n, g)
        assert torch.equal(head(f)[:, : before.shape[1]], before)


def test_every_reading_is_an_option_of_the_formula_too() -> None:
    assert set(Coordination.model_fields) == set(JIOC.model_fields)
