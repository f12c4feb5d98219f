"""Each diagnostic against a slow direct computation, and on a head whose bias is known."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from jioc import diagnostics
from jioc.errors import Interrupted
from jioc.events import Event
from jioc.training.run import run
from jioc.types import Task

TASK = Task(2, (3, 1, 2), 40, 12)  # the task of one class has no head of its own


def case(n: int = 60, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, TASK.n_seen, generator=g)
    y = torch.arange(n) % TASK.n_seen
    before = torch.randn(int((y >= TASK.n_old).sum()), TASK.n_old, generator=g)
    return logits, y, before, torch.randn(TASK.n_seen, 8, generator=g)


def softmax(z: list[float]) -> list[float]:
    e = [math.exp(v - max(z)) for v in z]
    return [v / sum(e) for v in e]


def kl(p: list[float], q: list[float]) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def slow(logits: Tensor, y: Tensor, before: Tensor, weight: Tensor) -> dict[str, Any]:
    """The same, image by image."""
    on_new, on_old, drifts, met = [], [], [], 0
    deltas: dict[int, list[float]] = {c: [] for c in range(TASK.n_seen)}
    table = [[0] * TASK.n_seen for _ in range(TASK.n_seen)]
    bins: dict[int, list[tuple[float, bool]]] = {}
    for z, label in zip(logits.tolist(), y.tolist(), strict=True):
        p = softmax(z)
        best = p.index(max(p))
        if label < TASK.n_old:
            on_new.append(sum(p[4:]))
        else:
            on_old.append(sum(p[:4]))
            was = before[met].tolist()
            met += 1
            # heads {0, 1, 2} and {3}: the second joins the first
            drifts.append(kl(softmax([v / 2 for v in was]), softmax([v / 2 for v in z[:4]])))
        deltas[label].append(1 - p[label])
        table[label][best] += 1
        bins.setdefault(min(14, math.ceil(max(p) * 15) - 1), []).append((max(p), best == label))
    gaps = [abs(sum(right for _, right in of) - sum(c for c, _ in of)) for of in bins.values()]
    return {
        "old_mass_on_new": sum(on_new) / len(on_new),
        "new_mass_on_old": sum(on_old) / len(on_old),
        "drift_on_old": sum(drifts) / len(drifts),
        "weight_norms": [math.sqrt(sum(v * v for v in row)) for row in weight.tolist()],
        "mean_logits": [sum(column) / len(y) for column in zip(*logits.tolist(), strict=True)],
        "delta_by_class": [sum(of) / len(of) for of in deltas.values()],
        "calibration_error": 100 * sum(gaps) / len(y),
        "confusion": table,
    }


def test_each_equals_the_slow_computation() -> None:
    logits, y, before, weight = case()
    fast = diagnostics.diagnose(logits, y, TASK, before, weight, [5, 5, 5, 5, 20, 20])
    assert fast.pop("trained_on") == [5, 5, 5, 5, 20, 20]
    for name, value in slow(logits, y, before, weight).items():
        got = fast.pop(name)
        assert got == value if name == "confusion" else got == pytest.approx(value, rel=1e-5, abs=1e-6), name
    assert not fast


def test_heads_of_two_classes_drift_apart_from_each_other() -> None:
    """What one past task's logits gain together is no drift; what they gain against one another is."""
    task = Task(2, (2, 2, 1), 1, 1)
    before = torch.zeros(1, 4)
    lifted = torch.tensor([[0.0, 0.0, 7.0, 7.0, 1.0]])
    assert diagnostics.drift(lifted, before, task).item() == pytest.approx(0, abs=1e-6)
    tilted = torch.tensor([[0.0, 2 * math.log(3), 0.0, 0.0, 1.0]])  # at temperature 2: a quarter and three
    assert diagnostics.drift(tilted, before, task).item() == pytest.approx(
        kl([0.5, 0.5], [0.25, 0.75]), rel=1e-5
    )


def test_a_head_of_known_bias_shows_it() -> None:
    """Two old and two new classes, logits zero but a bias of log 3 on the new: they hold three quarters."""
    task = Task(1, (2, 2), 10, 4)
    y = torch.tensor([0, 1, 2, 3])
    logits = torch.tensor([0.0, 0.0, math.log(3), math.log(3)]).repeat(4, 1)
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0], [0.0, 5.0]])
    found = diagnostics.diagnose(logits, y, task, torch.zeros(2, 2), weight, [2, 2, 5, 5])
    assert found["old_mass_on_new"] == pytest.approx(0.75)
    assert found["new_mass_on_old"] == pytest.approx(0.25)
    assert found["drift_on_old"] == pytest.approx(0, abs=1e-7)
    assert found["weight_norms"] == pytest.approx([1, 1, 5, 5])
    assert found["mean_logits"] == pytest.approx([0, 0, math.log(3), math.log(3)])
    assert found["delta_by_class"] == pytest.approx([7 / 8, 7 / 8, 5 / 8, 5 / 8])
    assert found["confusion"] == [[0, 0, 1, 0]] * 4  # the first of equals
    assert found["calibration_error"] == pytest.approx(100 * (3 / 8 - 1 / 4))


def test_the_first_task_has_no_old_classes() -> None:
    task = Task(0, (3,), 30, 0)
    found = diagnostics.diagnose(torch.eye(3), torch.arange(3), task, None, None, [10, 10, 10])
    assert [found[k] for k in ("old_mass_on_new", "new_mass_on_old", "drift_on_old", "weight_norms")] == [
        None
    ] * 4


def test_a_class_without_test_images_has_no_delta() -> None:
    assert diagnostics.mean_by_class(torch.tensor([0.5, 0.1]), torch.tensor([0, 0]), 2) == [
        pytest.approx(0.3),
        None,
    ]


def test_a_network_that_has_diverged_still_gives_json() -> None:
    logits, y, before, weight = case()
    logits[:, 0], logits[3] = -math.inf, math.nan
    json.dumps(diagnostics.diagnose(logits, y, TASK, before, weight, [1] * 6), allow_nan=False)


def test_several_proxies_count_by_their_mean_norm() -> None:
    weight = torch.tensor([[[3.0, 4.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]])
    assert diagnostics.weight_norms(weight) == [3, 2]


def test_a_sparse_confusion_says_the_same_as_a_dense_one() -> None:
    g = torch.Generator().manual_seed(1)
    y, guess = torch.randint(25, (2, 400), generator=g)
    rows = diagnostics.confusion(y, guess, 25)
    counts = {
        (r, int(c)): int(n) for r, row in enumerate(rows) for c, n in (w.split(":") for w in row.split())
    }
    assert sum(counts.values()) == 400
    for r in range(25):
        for c in range(25):
            assert counts.get((r, c), 0) == int(((y == r) & (guess == c)).sum())


def test_thirds_are_by_rank() -> None:
    per_class = [90.0, 10.0, 50.0, 80.0, 20.0, 60.0, 70.0]
    counts = [500, 10, 90, 400, 20, 100, 300]  # ranked: 0 3 6 | 5 2 | 4 1
    assert diagnostics.thirds(per_class, counts) == {"many": 80.0, "medium": 55.0, "few": 15.0}
    assert diagnostics.thirds(per_class, [100] * 7) == {}


def test_a_run_writes_them_and_a_resumed_run_writes_the_same(tmp_path: Path, small: dict[str, Any]) -> None:
    settings = {**small, "long_tail": 10, "coordination": {"coordinate": "jioc"}, "checkpoint_every": 0}
    whole = run(method="icarl", **settings)
    events: list[Event] = []

    def stop() -> bool:
        return len(events) >= 5  # within the second task

    with pytest.raises(Interrupted):
        run(method="icarl", out=tmp_path / "r", callback=events.append, stop=stop, **settings)
    again = run(method="icarl", out=tmp_path / "r", resume=True, **settings)
    assert [row["diagnostics"] for row in again["tasks"]] == [row["diagnostics"] for row in whole["tasks"]]
    last = whole["tasks"][-1]
    found = last["diagnostics"]
    right = [found["confusion"][c][c] / sum(found["confusion"][c]) for c in range(10)]
    assert [100 * share for share in right] == pytest.approx(last["cnn"]["per_class"])
    assert found["trained_on"][:7] == [min(8, n) for n in whole["counts"][:7]]  # floor(60 / 7) exemplars each
    assert found["trained_on"][7:] == whole["counts"][7:]
    assert {"many", "medium", "few"} <= found.keys()


@pytest.mark.parametrize("method", ["finetune", "joint"])
def test_what_a_method_without_memory_or_with_all_trained_on(method: str, small: dict[str, Any]) -> None:
    result = run(method=method, **{**small, "later": {"epochs": 1}, "first": {"epochs": 1}})
    held = result["tasks"][1]["diagnostics"]["trained_on"]
    assert held == ([0] * 4 if method == "finetune" else result["counts"][:4]) + result["counts"][4:7]
