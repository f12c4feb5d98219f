"""Class means and ridge regression on frozen features: the formulas, and that no order matters."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import jioc
from helpers.learning import new_run, some
from helpers.runs import collect_notes
from jioc.cli.main import main
from jioc.config import make
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset
from jioc.errors import Interrupted, Refused
from jioc.methods import SPECS, simplecil
from jioc.methods.ranpac import POWERS, choose_ridge
from jioc.methods.simplecil import FrozenFeatures, fit_temperature
from jioc.resolve.derive import resolve
from jioc.training import model
from jioc.training.learner import Learner
from jioc.training.runner import Run

FROZEN = [name for name, spec in SPECS.items() if not spec.trains]
QUICK: dict[str, Any] = {"device": "cpu", "memory": 0}


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_dataset(resolve(make(method="icarl")))


def learnt(method: str, digits: Dataset, **values: Any) -> Run:
    run = new_run(digits, method=method, **QUICK, **values)
    for _ in run.scenario.sizes:
        run.learn_next()
    return run


def rows(method: Any, classes: list[str]) -> torch.Tensor:
    """The classifier's rows in the order of the digits."""
    assert isinstance(method, FrozenFeatures) and method.rows is not None
    return method.rows[[classes.index(str(c)) for c in range(10)]].double()


def gap(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


@pytest.mark.parametrize("method", FROZEN)
def test_one_task_and_eight_in_any_order_and_learning_on_twice_give_one_classifier(
    method: str, digits: Dataset, tmp_path: Path
) -> None:
    whole = learnt(method, digits, tasks=1)
    wanted = rows(whole.method, whole.scenario.classes)
    for seed in (1993, 5):
        parts = learnt(method, digits, task_sizes=(2, 1, 2, 1, 1, 1, 1, 1), order_seed=seed)
        assert gap(rows(parts.method, parts.scenario.classes), wanted) < 1e-6
    names = [str(c) for c in (4, 8, 1, 0, 9, 7, 3, 2, 6, 5)]
    learner = Learner.first(make(method=method, data="x", **QUICK), some(digits, names[:5]))
    for more in (names[5:7], names[7:]):
        model.save(tmp_path, learner)
        learner = jioc.load(tmp_path, to_learn=True).learn(some(digits, more))
    assert gap(rows(learner.method, learner.classes), wanted) < 1e-6


@pytest.mark.parametrize("method", FROZEN)
def test_further_images_of_known_classes_count_as_if_they_had_come_at_once(
    method: str, digits: Dataset
) -> None:
    def half(names: list[str], odd: int) -> Dataset:
        """Every other image of each class."""
        part = some(digits, names)
        index = np.concatenate([np.flatnonzero(part.train_y == c)[odd::2] for c in range(len(names))])
        return replace(part, train_x=part.train_x[index], train_y=part.train_y[index])

    config = make(method=method, data="x", **QUICK)
    at_once = Learner.first(config, some(digits, ["1", "2", "3"])).method
    first = Learner.first(config, half(["1", "2"], 0))
    with_more = first.learn(half(["1", "2", "3"], 1), known="add").rehearse(half(["3"], 0)).method
    assert isinstance(at_once, FrozenFeatures) and isinstance(with_more, FrozenFeatures)
    assert at_once.counts is not None and with_more.counts is not None
    assert with_more.counts.equal(at_once.counts)
    assert gap(with_more.rows.double(), at_once.rows.double()) < 1e-6  # type: ignore[union-attr]


@pytest.mark.parametrize("method", FROZEN)
def test_an_image_that_comes_again_is_not_summed_up_twice(method: str, digits: Dataset) -> None:
    config, notes = make(method=method, data="x", **QUICK), list[str]()
    first = Learner.first(config, some(digits, ["1", "2"]))
    again = first.learn(some(digits, ["1", "3"]), known="add", callback=collect_notes(notes)).method
    once = first.learn(some(digits, ["3"])).method
    assert isinstance(again, FrozenFeatures) and isinstance(once, FrozenFeatures)
    assert again.counts is not None and once.counts is not None and again.counts.equal(once.counts)
    assert notes[0].startswith("images that were learnt already, and not added again: ")
    under_another_name = replace(some(digits, ["2"]), classes=["two"])
    first.learn(under_another_name, callback=collect_notes(notes))
    assert "of class 'two' were learnt before as another class" in notes[-1]


def test_a_method_on_frozen_features_is_judged_by_its_own_readouts(
    digits: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, own = learnt("simplecil", digits, tasks=1), FrozenFeatures.readouts

    def reversed_scores(method: FrozenFeatures, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"cnn": -own(method, x)["cnn"]}

    monkeypatch.setattr(simplecil.SimpleCIL, "readouts", reversed_scores)
    run = learnt("simplecil", digits, tasks=1)
    assert usual.rows[0].cnn.all > 50 and run.rows[0].cnn.all < 10


def test_class_means_are_the_means(digits: Dataset) -> None:
    run = learnt("simplecil", digits, tasks=2)
    x = run.test.plain(torch.arange(40))
    with torch.no_grad():
        f = run.method.net.eval()(x).features.double()
        scores = run.method.readouts(x)["cnn"].double() * run.method.temperature  # type: ignore[attr-defined]
        for c, index in enumerate(run.scenario.train):
            mean = run.method.net(run.train.plain(torch.from_numpy(index))).features.double().mean(0)
            cosine = torch.cosine_similarity(f, mean[None])
            torch.testing.assert_close(scores[:, c], cosine, rtol=1e-5, atol=1e-6)


def problem(n: int, m: int, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(n)
    y = torch.arange(n) % classes
    centre = torch.randn(classes, m, generator=g, dtype=torch.float64)
    noise = 2 * torch.randn(n, m, generator=g, dtype=torch.float64)
    return (centre[y] + noise).relu(), torch.nn.functional.one_hot(y, classes).double()


@pytest.mark.parametrize(("n", "m"), [(200, 30), (25, 40)])
def test_the_ridge_has_the_least_generalised_cross_validation(n: int, m: int) -> None:
    h, y = problem(n, m)
    slow = {}
    for power in POWERS:
        hat = h @ torch.linalg.inv(h.T @ h + 10.0**power * torch.eye(m)) @ h.T
        if 10.0**power >= 1e-6 * (h * h).sum():
            slow[10.0**power] = (((y - hat @ y) ** 2).sum() / n / (1 - hat.trace() / n) ** 2).item()
    ridge, root = choose_ridge(h.T @ h, y.T @ h, n)
    assert ridge == min(slow, key=slow.__getitem__)
    torch.testing.assert_close(root.T @ root, torch.linalg.inv(h.T @ h + ridge * torch.eye(m)))


@pytest.mark.parametrize("method", FROZEN)
def test_an_image_is_scored_as_if_it_had_not_been_learnt(method: str) -> None:
    run = new_run(method=method, tasks=1, **QUICK)
    host: Any = run.method
    f, one_hot = problem(24, run.method.net.width)
    host.counts = one_hot.sum(0)
    scores = host.solve(f, one_hot)
    for i in (0, 7):
        rest = torch.arange(24) != i
        if method == "simplecil":
            means = torch.stack([f[rest & (one_hot[:, c] > 0)].mean(0) for c in range(4)])
            expected = torch.cosine_similarity(f[i][None], means)
        else:
            h = host.project(f)
            gram = h[rest].T @ h[rest] + host.ridge * torch.eye(h.shape[1])
            expected = h[i] @ torch.linalg.solve(gram, h[rest].T @ one_hot[rest])
        torch.testing.assert_close(scores[i], expected, rtol=1e-6, atol=1e-8)


def test_the_temperature_is_the_one_that_made_the_labels() -> None:
    g = torch.Generator().manual_seed(0)
    scores = torch.rand(4000, 5, generator=g, dtype=torch.float64)
    y = torch.multinomial((scores / 0.2).softmax(1), 1, generator=g).squeeze(1)
    assert fit_temperature(scores, y) == pytest.approx(0.2, rel=0.15)
    assert fit_temperature(torch.eye(3).double(), torch.arange(3)) > 0.05  # three right answers prove little


def test_the_temperature_of_a_task_counts_by_its_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = iter([0.04, 4.0])
    monkeypatch.setattr(simplecil, "fit_temperature", lambda scores, y: next(fits))
    result = jioc.run(
        method="simplecil", base=8, increment=2, data="digits", out=tmp_path / "run", device="cpu"
    )
    share = sum(result.counts[:8]) / sum(result.counts)
    expected = math.exp(share * math.log(0.04) + (1 - share) * math.log(4.0))
    assert jioc.load(tmp_path / "run").method.temperature == pytest.approx(expected)  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", FROZEN)
def test_stopped_in_any_task_it_resumes_to_the_same_result(method: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {"method": method, "data": "digits", "tasks": 3, "device": "cpu"}
    whole = jioc.run(**values, out=tmp_path / "whole")
    asked = iter(range(100))
    with pytest.raises(Interrupted):
        jioc.run(**values, out=tmp_path / "parts", stop=lambda: next(asked) > 20)
    parts = jioc.run(**values, out=tmp_path / "parts", resume=True)
    assert parts["average"] == whole["average"]
    a, b = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert a == b


@pytest.mark.parametrize("word", ["ic", "oc", "jioc"])
@pytest.mark.parametrize("method", FROZEN)
def test_nothing_is_coordinated_where_nothing_is_trained(method: str, word: str) -> None:
    with pytest.raises(Refused, match=f"--coordinate {word}: {method} trains nothing"):
        resolve(make(method=method, coordination={"coordinate": word}))


def test_settings_of_training_are_noted_and_a_dry_run_estimates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["run", "simplecil", "--data", "digits", "--epochs", "3", "--dry-run", "--device", "cpu"]) == 0
    )
    captured = capsys.readouterr()
    assert "note: --epochs: without effect, because simplecil trains nothing" in captured.err
    assert "1,258 images through the network" in captured.out


def test_the_estimator_gives_probabilities_of_images(digits: Dataset) -> None:
    x, y = digits.train_x[:300, 0], digits.train_y[:300]
    classifier = jioc.IncrementalClassifier("ranpac", random_state=0, device="cpu")
    for part in ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9]):
        classifier.partial_fit(x[np.isin(y, part)], y[np.isin(y, part)])
    p = classifier.predict_proba(digits.test_x[:, 0])
    np.testing.assert_allclose(p.sum(1), 1)
    right = p.argmax(1) == digits.test_y
    assert right.mean() > 0.5 and abs(right.mean() - p.max(1).mean()) < 0.15
