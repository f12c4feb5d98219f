"""JIOC against loops over images in float64; what it leaves alone; what it refuses."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers.losses import slow_cross_entropy, slow_distill, softmax
from jioc.config import READINGS, Coordination, make
from jioc.coordination import JIOC, heads
from jioc.errors import Failed, Refused
from jioc.losses import cross_entropy, distill
from jioc.methods import SPECS
from jioc.resolve.derive import resolve
from jioc.types import Batch, Output, Task, Terms

TASK = Task(2, (2, 3, 2), new_images=50, old_images=10)
Y = torch.tensor([0, 1, 2, 3, 4, 5, 6, 5, 6])


def step(seed: int = 0, y: Tensor = Y, task: Task = TASK) -> tuple[Terms, Batch, Output, Output]:
    """A host with cross-entropy and one joint distillation, as iCaRL."""
    g = torch.Generator().manual_seed(seed)
    z = (2 * torch.randn(len(y), task.n_seen, generator=g, dtype=torch.float64)).requires_grad_()
    t = 2 * torch.randn(len(y), task.n_old, generator=g, dtype=torch.float64)
    none = torch.zeros(len(y), 0)
    terms = {"cls": cross_entropy(z, y), "kd": distill(z[:, : task.n_old], t, 2.0)}
    return terms, Batch(none, y, y < task.n_old), Output(z, none), Output(t, none)


def slow(jioc: JIOC, z: Tensor, t: Tensor, y: Tensor, task: Task) -> dict[str, list[float]]:
    """The paper's formulas, image by image."""
    n = len(y)
    p = [softmax(row) for row in z.tolist()]
    ce, joint = slow_cross_entropy(z, y), slow_distill(z[:, : task.n_old], t, 2.0)
    delta = [1 - p[i][int(y[i])] for i in range(n)]
    if jioc.delta_scale == "mean1":
        delta = [d / (sum(delta) / n) for d in delta]
    if jioc.delta_scale == "per-class":
        mates = [[delta[j] for j in range(n) if y[j] == y[i]] for i in range(n)]
        delta = [sum(m) / len(m) for m in mates]
    terms = {"cls": [d * c for d, c in zip(delta, ce, strict=True)] if jioc.inputs else ce}
    kept = [0.0] * n
    slices = task.past if jioc.oc_heads == "task" else [slice(0, task.n_old)]
    for s in slices:
        share = {"sum": 1, "mean": 1 / len(slices)}[jioc.oc_reduce]
        for i, value in enumerate(slow_distill(z[:, s], t[:, s], jioc.temperature)):
            used = {"all": True, "old": bool(y[i] < task.n_old), "new": bool(y[i] >= task.n_old)}[
                jioc.oc_data
            ]
            kept[i] += share * jioc.gamma1 * (jioc.temperature**2 if jioc.kd_t2 else 1) * value * used
    if not jioc.distils or jioc.host_kd == "keep":
        terms["kd"] = joint
    elif jioc.host_kd == "replace":
        terms["kd"] = kept
    elif jioc.host_kd == "add":
        terms["kd"] = [a + b for a, b in zip(joint, kept, strict=True)]
    if jioc.suppresses:
        n_new = sum(bool(c >= task.n_old) for c in y)
        factor = {
            "task": (task.old_images + task.new_images) / task.new_images,
            "batch": n / max(n_new, 1),
            "old-mean": n / max(n - n_new, 1),
        }[jioc.suppress_scale]
        on_new = [sum(row[task.n_old :]) for row in p]
        terms["suppress"] = [
            jioc.gamma2 * factor * m if c < task.n_old else 0.0 for m, c in zip(on_new, y, strict=True)
        ]
    return terms


VARIANTS: list[dict[str, Any]] = [
    *({"coordinate": c} for c in ("none", "ic", "oc", "jioc")),
    {"gamma1": 0.5, "gamma2": 3.0, "temperature": 4.0},
    *({"reading": reading} for reading in READINGS),
    {"kd_t2": True},
    {"oc_reduce": "mean"},
    {"delta_scale": "plain"},
    {"delta_scale": "per-class"},
    {"oc_data": "new"},
    {"oc_data": "old"},
    {"oc_heads": "joint"},
    *({"host_kd": h} for h in ("keep", "add", "drop")),
    {"suppress_scale": "batch"},
    {"suppress_scale": "old-mean"},
    {"gamma1": 0},
    {"gamma2": 0},
]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_terms_equal_the_slow_formula(options: dict[str, Any]) -> None:
    jioc = JIOC(**options)
    terms, batch, out, old = step()
    got, expected = jioc(terms, batch, out, old, TASK), slow(jioc, out.logits, old.logits, Y, TASK)
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        assert got[name].tolist() == pytest.approx(values, abs=1e-6), name


def test_the_default_reading_follows_from_whether_the_method_expands() -> None:
    assert JIOC() == JIOC(reading="normalised")
    found = {
        name: resolve(make(method=name, coordination={"coordinate": "jioc"})).coordination.reading
        for name, spec in SPECS.items()
        if spec.memory != "none"
    }
    assert {name for name, word in found.items() if word == "averaged"} == {"der", "foster"}
    assert {*found.values()} == {"averaged", "normalised"}


@pytest.mark.parametrize("reading", READINGS)
def test_a_reading_is_the_options_that_follow_from_it(reading: Any) -> None:
    assert JIOC(reading=reading, **READINGS[reading]) == JIOC(reading=reading)
    assert JIOC(reading=reading, delta_scale="per-class").delta_scale == "per-class"


@pytest.mark.parametrize("options", [{}, {"coordinate": "oc"}, {"gamma1": 0.5}], ids=str)
def test_gamma1_takes_the_place_of_the_hosts_shares_where_its_distillation_is_replaced(
    options: dict[str, Any],
) -> None:
    assert JIOC(host_factors="drop", **options).balances
    assert not JIOC(host_factors="keep", **options).balances
    for other in ({"coordinate": "ic"}, {"gamma1": 0}, *({"host_kd": h} for h in ("keep", "add", "drop"))):
        assert not JIOC(**options | other, host_factors="drop").balances, other


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_heads_of_one_size_equal_the_slow_formula(reduce: Any) -> None:
    task, y = Task(3, (2, 2, 2, 3), 50, 10), torch.tensor([0, 3, 5, 6, 8])
    terms, batch, out, old = step(y=y, task=task)
    jioc = JIOC(oc_reduce=reduce)
    got = jioc(terms, batch, out, old, task)["kd"]
    assert got.tolist() == pytest.approx(slow(jioc, out.logits, old.logits, y, task)["kd"], abs=1e-6)


@pytest.mark.parametrize("scale", ["task", "batch", "old-mean"])
def test_parts_of_a_batch_have_the_terms_of_the_whole(scale: Any) -> None:
    jioc = JIOC(delta_scale="mean1", suppress_scale=scale)
    terms, batch, out, old = step()
    whole = jioc(terms, batch, out, old, TASK)
    weight = jioc.weight(batch, out, None).mean()
    for part in (slice(0, None, 2), slice(1, None, 2)):
        own = Batch(batch.x[part], batch.y[part], batch.old[part], whole_old=batch.old)
        got = jioc(
            {name: term[part] for name, term in terms.items()},
            own,
            Output(out.logits[part]),
            Output(old.logits[part]),
            TASK,
            mean=lambda _: weight,
        )
        for name, term in got.items():
            torch.testing.assert_close(term, whole[name][part], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("delta", ["detached", "differentiated"])
def test_gradient_of_the_input_weight(delta: str) -> None:
    """Detached: (1 - p_y)(p - onehot). Differentiated: ((1 - p_y) - p_y log p_y)(p - onehot)."""
    terms, batch, out, old = step()
    (gradient,) = torch.autograd.grad(
        JIOC(coordinate="ic", reading="printed", delta=delta)(terms, batch, out, old, TASK)["cls"].sum(),
        out.logits,
    )
    p = out.logits.detach().softmax(1)
    p_y = p.gather(1, Y[:, None])
    factor = 1 - p_y if delta == "detached" else (1 - p_y) - p_y * p_y.log()
    assert torch.allclose(gradient, factor * (p - torch.nn.functional.one_hot(Y, 7)), atol=1e-9)


@pytest.mark.parametrize("name", ["kd", "suppress"])
def test_gradients_of_the_output_terms_are_finite_differences(name: str) -> None:
    _, batch, out, old = step()

    def term(z: Tensor) -> Tensor:
        terms = {"cls": cross_entropy(z, Y), "kd": distill(z[:, :5], old.logits)}
        return JIOC()(terms, batch, Output(z, out.features), old, TASK)[name].sum()

    assert torch.autograd.gradcheck(
        term, (out.logits.detach().clone().requires_grad_(),), eps=1e-6, atol=1e-6
    )


def test_the_first_task_is_untouched() -> None:
    first = Task(0, (7,), new_images=50, old_images=0)
    terms, batch, out, _ = step()
    assert JIOC()(terms, batch, out, None, first) is terms


@pytest.mark.parametrize("task", [Task(0, (7,), new_images=50, old_images=0), TASK], ids=["first", "later"])
@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({0: torch.ones(len(Y))}, "the loss of this method names a term 0"),
        ({"cls": Y}, "'cls' of this method holds int64"),
    ],
)
def test_terms_are_named_and_floating_point_in_any_training_loop(
    terms: dict[Any, Tensor], sentence: str, task: Task
) -> None:
    _, batch, out, old = step()
    with pytest.raises(Failed, match=sentence):
        JIOC()(terms, batch, out, old, task)


@pytest.mark.parametrize("off", [JIOC(coordinate="none"), JIOC(coordinate="oc", gamma1=0, gamma2=0)])
def test_switched_off_changes_nothing(off: JIOC) -> None:
    terms, batch, out, old = step()
    after = off(terms, batch, out, old, TASK)
    assert after.keys() == terms.keys() and all(after[name] is terms[name] for name in terms)
    assert not off.needs_teacher


def test_the_weight_uses_what_the_host_normalises() -> None:
    terms, batch, out, old = step()
    other = out.logits / 3
    got = JIOC(coordinate="ic", reading="printed")(terms, batch, out, old, TASK, other)["cls"]
    p_y = other.softmax(1).gather(1, Y[:, None]).squeeze(1)
    assert torch.allclose(got, (1 - p_y) * terms["cls"])


def test_a_missing_teacher_is_an_error() -> None:
    terms, batch, out, _ = step()
    with pytest.raises(Failed, match="teacher"):
        JIOC()(terms, batch, out, None, TASK)


@pytest.mark.parametrize("y", [torch.tensor([0, 1, 4]), torch.tensor([5, 6]), torch.tensor([3])])
@pytest.mark.parametrize("scale", ["task", "batch", "old-mean"])
def test_batches_without_old_or_new_images_stay_finite(y: Tensor, scale: str) -> None:
    terms, batch, out, old = step(y=y)
    total = sum(term.mean() for term in JIOC(suppress_scale=scale)(terms, batch, out, old, TASK).values())
    assert isinstance(total, Tensor)
    (gradient,) = torch.autograd.grad(total, out.logits)
    assert gradient.isfinite().all()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_heads_cover_every_old_class_once_and_none_is_alone(sizes: list[int]) -> None:
    past = Task(len(sizes), (*sizes, 2), 1, 1).past
    merged = heads(past)
    assert list(itertools.chain(*(range(s.start, s.stop) for s in merged))) == list(range(sum(sizes)))
    assert all(s.stop - s.start > 1 for s in merged) or sum(sizes) == 1
    starts = {s.start for s in past}
    assert all(s.start in starts for s in merged)


def test_tasks_of_several_classes_are_never_merged() -> None:
    past = Task(3, (2, 3, 4, 1), 1, 1).past
    assert heads(past) == past


def test_what_nobody_chose_does_not_drop_the_hosts_distillation() -> None:
    terms, batch, out, old = step()
    assert "kd" in JIOC()(terms, batch, out, old, TASK)
    with pytest.raises(Refused, match="'replace', 'keep', 'add' or 'drop'"):
        JIOC(host_kd=None)
    unfilled = Coordination(coordinate="jioc").model_dump()  # `resolve` fills in what fits the method
    with pytest.raises(Refused, match="reading"):
        JIOC(**unfilled)
    with pytest.raises(Refused, match="host_kd"):
        JIOC(**unfilled | {"reading": "printed"})


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"gama2": 1}, "unknown option of JIOC 'gama2'; did you mean 'gamma2'?"),
        ({"coordinate": "foo"}, "coordinate: 'foo' is refused: it should be 'none', 'ic', 'oc' or 'jioc'"),
        ({"temperature": 0}, "temperature: 0 is refused: it should be greater than 0"),
        (
            {"delta_scale": "mean"},
            "delta_scale: 'mean' is refused: it should be 'plain', 'mean1' or 'per-class'",
        ),
    ],
)
def test_a_wrong_option_is_one_sentence(option: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused) as told:
        JIOC(**option)
    assert str(told.value) == sentence


@pytest.mark.parametrize("task", [TASK, Task(0, (7,), 50, 0)])
@pytest.mark.parametrize("word", ["ic", "oc", "jioc"])
def test_logits_that_are_not_of_the_classes_seen_are_refused(word: Any, task: Task) -> None:
    terms, batch, out, old = step()
    wider = Output(torch.cat([out.logits, out.logits], 1))
    with pytest.raises(Failed, match="of 14 classes, and the task has seen 7; out.logits"):
        JIOC(coordinate=word)(terms, batch, wider, old, task)
    with pytest.raises(Failed, match="the logits are of 6 classes, and the task has seen 7$"):
        JIOC(coordinate=word)(terms, batch, Output(out.logits[:, :6]), old, task)
    assert JIOC(coordinate="none")(terms, batch, wider, old, task) == terms


def test_bare_tensors_and_labels_of_the_data_set_are_refused() -> None:
    terms, batch, out, old = step()
    for parts in ((out.logits, old), (out, old.logits)):
        with pytest.raises(Failed, match="is a Tensor; Output.logits. is needed"):
            JIOC()(terms, batch, *parts, TASK)
    with pytest.raises(Failed, match="a label is 7, and the task has seen 7 classes; labels are numbered"):
        JIOC()(terms, replace(batch, y=batch.y + 7 - batch.y.max()), out, old, TASK)
    with pytest.raises(Failed, match="a label is -1, and the task has seen 7 classes"):
        JIOC()(terms, replace(batch, y=batch.y - batch.y.min() - 1), out, old, TASK)


def test_a_teacher_of_fewer_than_the_old_classes_is_refused_and_one_of_more_is_cut() -> None:
    terms, batch, out, old = step()
    with pytest.raises(Failed, match="the teacher's logits are of 4 classes, and 5 are old"):
        JIOC()(terms, batch, out, Output(old.logits[:, :4]), TASK)
    wider = Output(torch.cat([old.logits, old.logits], 1))
    of_more, usual = (JIOC()(terms, batch, out, teacher, TASK)["kd"] for teacher in (wider, old))
    assert torch.equal(of_more, usual)


@pytest.mark.parametrize(
    ("change", "task", "sentence"),
    [
        ({"old": None}, TASK, "batch.old says of each image whether it is of an old class"),
        ({"old": Y >= 5}, TASK, "batch.old does not fit batch.y: labels below 5 are of old classes"),
        ({}, replace(TASK, new_images=0), "the task has 0 new images; by their number the suppression is"),
    ],
)
def test_what_a_loop_of_ones_own_gives_wrongly_gets_a_sentence(
    change: dict[str, Any], task: Task, sentence: str
) -> None:
    terms, batch, out, old = step()
    with pytest.raises(Failed, match=sentence):
        JIOC()(terms, replace(batch, **change), out, old, task)
