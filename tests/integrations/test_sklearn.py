"""`IncrementalClassifier`: scikit-learn's own checks, and that it is a run behind another door."""

import pickle
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from helpers.paths import ROOT
from jioc import IncrementalClassifier
from jioc.config import values as settings
from jioc.data.load import load_dataset
from jioc.errors import Refused
from jioc.methods import SPECS
from jioc.resolve.derive import resolve
from jioc.training.load import load_model
from jioc.training.model import save
from jioc.training.preflight import preflight
from jioc.training.runner import Run

Arrays = tuple[np.ndarray, np.ndarray]
QUICK: dict[str, Any] = {"epochs": 3, "memory": 30, "random_state": 0, "device": "cpu"}


def blobs(centers: int = 6, n: int = 90, seed: int = 0) -> Arrays:
    x, y = make_blobs(n, n_features=5, centers=centers, random_state=seed)
    return x, y


def pictures(n: int = 60, side: int = 8) -> Arrays:
    """Three classes of colour images (n, h, w, 3): a bright channel each."""
    x = np.random.RandomState(0).randint(0, 120, (n, side, side, 3), np.uint8)
    y = np.arange(n) % 3
    x[np.arange(n), :, :, y] += 100
    return x, y


def in_parts(classifier: IncrementalClassifier, x: np.ndarray, y: np.ndarray, *parts: list[Any]) -> Any:
    for part in parts:
        rows = np.isin(y, part)
        classifier.partial_fit(x[rows], y[rows])
    return classifier


# --- scikit-learn's rules ---


@parametrize_with_checks([IncrementalClassifier(epochs=20, coordinate="jioc")])
def test_scikit_learn_is_content(estimator: IncrementalClassifier, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_it_works_in_pipelines_and_searches() -> None:
    x, y = blobs()
    lined = make_pipeline(StandardScaler(), IncrementalClassifier(**QUICK | {"epochs": 20}))
    alone = cross_val_score(lined, x, y, cv=2)
    assert np.array_equal(alone, cross_val_score(lined, x, y, cv=2, n_jobs=2)) and alone.min() > 0.8
    grid = {"memory": np.array([6, 30]), "settings": [None, {"kd_temperature": 9}]}
    search = GridSearchCV(IncrementalClassifier(**QUICK, tasks=3), grid, cv=2, error_score="raise").fit(x, y)
    assert len(search.best_estimator_.tasks_) == 3
    assert len(set(search.cv_results_["mean_test_score"])) > 1  # in several tasks the parameters matter


def test_images_pass_through_pipelines() -> None:
    x, y = pictures()
    grey = make_pipeline(FunctionTransformer(lambda images: images.mean(3)), IncrementalClassifier(**QUICK))
    assert grey.fit(x, y).predict(x).shape == (60,)
    assert grey[-1].n_features_in_ == 8


@pytest.mark.parametrize("method", ["icarl", "foster", "coil"])
def test_unpickled_it_answers_and_learns_on_the_same(method: str) -> None:
    x, y = blobs()
    classifier = in_parts(IncrementalClassifier(method, coordinate="jioc", **QUICK), x, y, [0, 1], [2, 3])
    twin = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(classifier.decision_function(x), twin.decision_function(x))
    in_parts(classifier, x, y, [4, 5])
    in_parts(twin, x, y, [4, 5])
    assert np.array_equal(classifier.decision_function(x), twin.decision_function(x))
    assert not hasattr(clone(twin), "classes_")


def test_what_learnt_from_levels_can_be_saved_as_a_model(tmp_path: Path) -> None:
    x, y = pictures()
    classifier = in_parts(IncrementalClassifier(**QUICK), x, y, [0, 1], [2])
    save(tmp_path, classifier.learner_)
    assert load_model(tmp_path).predict(x) == [str(label) for label in classifier.predict(x)]
    with pytest.raises(Refused, match="kept by pickling"):
        save(tmp_path, IncrementalClassifier(**QUICK).fit(x / 255, y).learner_)


def test_it_is_imported_when_asked_for() -> None:
    code = "import sys, jioc; assert not {'torch', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- tasks ---


def test_five_calls_are_five_tasks_of_a_run() -> None:
    """The same weights, bit for bit, where the images are normalised alike."""
    values: dict[str, Any] = {
        "method": "icarl", "memory": 60, "order": tuple(range(10)), "task_sizes": (4, 3, 3), "device": "cpu",
        "seed": 5, "later": {"epochs": 3}, "coordination": {"coordinate": "jioc"},
    }  # fmt: skip
    config = resolve(settings.make(**values))
    data = load_dataset(config)
    run = Run(preflight(config, data))
    for _ in range(3):
        run.learn_next()
    given = {"mean": data.mean, "std": data.std}
    classifier = IncrementalClassifier(coordinate="jioc", epochs=3, memory=60, random_state=5, settings=given)
    in_parts(classifier, data.train_x, data.train_y, [0, 1, 2, 3], [4, 5, 6], [7, 8, 9])
    ours, theirs = classifier.learner_.method.net.state_dict(), run.method.net.state_dict()
    assert ours.keys() == theirs.keys() and all(ours[name].equal(theirs[name]) for name in ours)
    assert 100 * classifier.score(data.test_x, data.test_y) == pytest.approx(run.rows[-1]["cnn"]["all"])


def test_fit_in_tasks_is_so_many_calls() -> None:
    x, y = blobs(7)
    whole = IncrementalClassifier(tasks=3, **QUICK).fit(x, y)
    parts = in_parts(IncrementalClassifier(**QUICK), x, y, [0, 1, 2], [3, 4], [5, 6])
    assert [task.tolist() for task in whole.tasks_] == [[0, 1, 2], [3, 4], [5, 6]]
    assert np.array_equal(whole.decision_function(x), parts.decision_function(x))
    sized = IncrementalClassifier(settings={"task_sizes": (3, 2, 2)}, **QUICK).fit(x, y)
    assert np.array_equal(whole.decision_function(x), sized.decision_function(x))
    again = parts.fit(x, y)  # and what was learnt before is forgotten
    assert len(again.tasks_) == 1
    assert np.array_equal(again.predict_proba(x), IncrementalClassifier(**QUICK).fit(x, y).predict_proba(x))


def test_memory_and_jioc_resist_forgetting() -> None:
    """Five tasks of two digits, as vectors; measured 0.91, and 0.44 without memory."""
    x, y = load_digits(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    order = [[7, 6], [2, 5], [0, 9], [3, 8], [4, 1]]
    kept = IncrementalClassifier("icarl", coordinate="jioc", memory=100, epochs=34, random_state=1)
    none = IncrementalClassifier("finetune", epochs=34, random_state=1)
    with_memory, without = (
        in_parts(c, x[~test], y[~test], *order).score(x[test], y[test]) for c in (kept, none)
    )
    assert with_memory > 0.85 and with_memory > without + 0.3
    assert kept.set_params(readout="nme").score(x[test], y[test]) > 0.85


def test_further_images_of_a_known_label_are_learnt() -> None:
    """Eight images a class, then fifty of two of them: these get better, the others are not lost."""
    x, y = load_digits(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    few = np.concatenate([np.flatnonzero((y == c) & ~test)[:8] for c in range(10)])
    more = np.concatenate([np.flatnonzero((y == c) & ~test)[8:58] for c in (1, 8)])
    classifier = IncrementalClassifier(epochs=34, memory=100, random_state=0).fit(x[few], y[few])

    def accuracies() -> tuple[float, float]:
        right, rare = classifier.predict(x[test]) == y[test], np.isin(y[test], [1, 8])
        return right[rare].mean(), right[~rare].mean()

    before, others = accuracies()
    earlier, vectors = classifier.learner_, x[:9].astype(np.float32)[:, :, None, None]
    scores = earlier.readouts(vectors)["cnn"]
    classifier.partial_fit(x[more], y[more])
    after, kept = accuracies()
    assert after > before + 0.05 and kept > others - 0.1
    assert earlier.readouts(vectors)["cnn"].equal(scores)  # who learns on is another
    assert classifier.tasks_[0].tolist() == list(range(10)) and len(classifier.tasks_) == 1
    assert [len(e) for e in classifier.learner_.exemplars] == [
        8,
        10,
        8,
        8,
        8,
        8,
        8,
        8,
        10,
        8,
    ]  # while there is room


@pytest.mark.parametrize("method", SPECS)
def test_every_method_learns_vectors_and_rehearses(method: str) -> None:
    """Three tasks, further images in between and after; every read-out has a score for every label."""
    x, y = blobs()
    classifier = IncrementalClassifier(method, **QUICK | {"epochs": 10})
    before = in_parts(classifier, x, y, [0, 1], [2, 3], [1, 2], [4, 5]).decision_function(x)
    in_parts(classifier, x, y, [0, 5])
    assert (classifier.decision_function(x) != before).all()
    scores = classifier.learner_.readouts(x.astype(np.float32)[:, :, None, None])
    assert all(s.shape == (90, 6) and s.isfinite().all() for s in scores.values())
    assert classifier.classes_.tolist() == list(range(6)) and len(classifier.tasks_) == 3
    if SPECS[method].memory != "none":
        assert classifier.score(x, y) > 0.6


# --- what X and y may be ---


def test_layouts_of_the_same_images_give_the_same() -> None:
    x, y = pictures()

    def answers(images: np.ndarray) -> np.ndarray:
        return IncrementalClassifier(**QUICK).fit(images, y).predict_proba(images)

    assert np.array_equal(answers(x), answers(x.transpose(0, 3, 1, 2)))
    grey = x[..., 0]
    assert np.array_equal(answers(grey), answers(grey[..., None]))
    assert np.array_equal(answers(grey), answers(grey[:, None]))
    assert np.array_equal(answers(grey / 7), answers((grey / 7)[..., None]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array([2**53, 2**53 + 1]), np.array([7.0])),
        (np.array([7.0]), np.array([2**53 + 1])),
        (np.array([2**63 - 1]), np.array([2**63], np.uint64)),
    ],
)
def test_labels_that_another_type_would_merge_are_refused(first: np.ndarray, second: np.ndarray) -> None:
    classifier = IncrementalClassifier("icarl", epochs=1, memory=8, device="cpu", random_state=0)
    x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    classifier.partial_fit(x, np.resize(first, 8))
    for more in ({}, {"classes": [*first, *second]}):
        with pytest.raises(ValueError, match="give all labels in one type"):
            classifier.partial_fit(x + 9, np.resize(second, 8), **more)
    with pytest.raises(ValueError, match="give all labels in one type"):
        classifier.partial_fit(x, np.resize(first, 8), classes=second)
    assert classifier.classes_.tolist() == first.tolist() and classifier.classes_.dtype == first.dtype


def test_the_scale_of_floats_is_measured() -> None:
    x, y = pictures()
    small, large = (IncrementalClassifier(**QUICK).fit(x * f, y).predict(x * f) for f in (0.125, 4.0))
    assert np.array_equal(small, large)
    classifier = IncrementalClassifier(**QUICK).fit(x, y)
    assert np.array_equal(classifier.predict(x), classifier.predict(x.astype(float)))
    with pytest.raises(ValueError, match="whole levels from 0 to 255"):
        classifier.predict(x / 255)


def test_labels_are_names() -> None:
    """Other labels in the same order change no score; one that sorts before the known ones moves columns."""
    x, y = blobs(4)
    plain = in_parts(IncrementalClassifier(**QUICK), x, y, [2, 3], [0, 1])
    for labels in (
        np.array([-7, 0, 3, 900]),
        np.array(["a", "bb", "d", "éa"]),
        np.array(["a", "b", "c", "d"], object),
    ):
        named = in_parts(IncrementalClassifier(**QUICK), x, labels[y], labels[2:], labels[:2])
        assert named.classes_.tolist() == labels.tolist()
        assert np.array_equal(named.decision_function(x), plain.decision_function(x))
        assert np.array_equal(named.predict(x), labels[plain.predict(x)])
    early = in_parts(IncrementalClassifier(**QUICK), x, y, [2, 3])
    assert early.decision_function(x).shape == (90,) and early.predict_proba(x).shape == (90, 2)
    assert plain.predict_proba(x).sum(1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"method": "icrl"}, "unknown method 'icrl'; did you mean 'icarl'"),
        ({"method": None}, "method is a name or a Python file's, not None"),
        ({"coordinate": "both"}, "coordinate: 'both' is refused"),
        ({"method": "lwf", "coordinate": "jioc"}, "lwf keeps no exemplars.*; coordinate ic can"),
        ({"memory": 5}, "^memory 5 leaves no exemplar for each of 6 classes"),
        ({"epochs": 0}, "epochs: 0 is refused: it should be at least 1"),
        ({"backbone": "tiny"}, "backbone tiny is for images"),
        ({"augment": "autoaugment"}, "autoaugment is for images of uint8"),
        ({"tasks": 7}, "tasks 7 is more than the 6 classes of X"),
        ({"settings": {"memory": 9}}, "settings cannot hold 'memory': it is a parameter"),
        ({"settings": {"data": "digits"}}, "settings cannot hold 'data'"),
        ({"settings": {"kd_temp": 1}}, "unknown setting 'kd_temp'; did you mean 'kd_temperature'"),
        ({"settings": {"kd_temperature": -1}}, "kd_temperature: -1 is refused"),
        ({"settings": {"lr": 0.1}}, "settings cannot hold 'lr'"),
        ({"settings": [("select", "random")]}, "settings is a dictionary"),
        ({"random_state": -1}, "seed: -1 is refused"),
    ],
)
def test_wrong_parameters_get_a_sentence(parameters: dict[str, Any], sentence: str) -> None:
    x, y = blobs()
    classifier = IncrementalClassifier(**QUICK | parameters)
    with pytest.raises(ValueError, match=sentence):
        classifier.fit(x, y)
    with pytest.raises(ValueError, match="not fitted"):
        classifier.predict(x)


def test_a_refused_call_changes_nothing() -> None:
    x, y = pictures()
    classifier = in_parts(IncrementalClassifier(**QUICK), x, y, [0, 1])
    before = classifier.predict_proba(x)
    for wrong, labels, sentence in [
        (x[:, :, :7], y, r"a row of X has the shape \(8, 7, 3\), but \(8, 8, 3\)"),
        (x[:, :7], y, "X has 7 features"),
        (x[..., 0], y, r"a row of X has the shape \(8, 8\)"),
        (x, y.astype(str), "the labels so far are numbers, so y cannot hold text"),
        (x, y / 3, "Unknown label type"),
        (x[:5], y, "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            classifier.partial_fit(wrong, labels)
    with pytest.raises(ValueError, match="not among classes: 2"):
        classifier.partial_fit(x, y, classes=[0, 1])
    for parameters, sentence in [
        ({"method": "wa"}, "method was 'icarl' in the call before and is 'wa' now"),
        ({"backbone": "resnet32"}, "backbone was 'tiny'"),
        ({"settings": {"head": "cosine"}}, "head was 'linear' in the call before and is 'cosine' now"),
        ({"memory": 2}, "memory 2 leaves no exemplar"),
        ({"lr": 1e30}, "the loss is not finite"),
        ({"readout": "boosted"}, "unknown read-out 'boosted'; there is cnn, nme"),
        ({"flip": "no"}, "flip is True or False, not 'no'"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=sentence):
            clone_with(classifier, parameters).partial_fit(x, y)
    with pytest.raises(ValueError, match="unknown read-out 'boosted'; there is cnn, nme"):
        clone_with(classifier, {"readout": "boosted"}).predict(x)
    assert np.array_equal(classifier.predict_proba(x), before) and classifier.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="lwf keeps no exemplars"):
        in_parts(IncrementalClassifier("lwf", **QUICK), x, y, [0, 1], [1, 2])


def clone_with(classifier: IncrementalClassifier, parameters: dict[str, Any]) -> IncrementalClassifier:
    """What was learnt, under other parameters."""
    return pickle.loads(pickle.dumps(classifier)).set_params(**parameters)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((20, 8, 8, 9), "neither vectors"),
        ((20, 2, 8, 8, 3), "neither vectors"),
        ((20, 3, 9), "shorter side is 3; from 4 to 1024"),
    ],
)
def test_arrays_that_are_no_images_are_refused(shape: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        IncrementalClassifier(**QUICK).fit(np.ones(shape), np.arange(20) % 2)


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "sklearn_api.py"), run_name="__main__")
    assert "digits 0 to 9" in capsys.readouterr().out


@pytest.mark.parametrize(
    "given", [{"gamma2": 5}, {"gamma1": np.float32(0)}, {"settings": {"temperature": 3}}]
)
def test_options_of_jioc_without_effect_are_refused(given: dict[str, Any]) -> None:
    name = next(iter(given.get("settings", given)))
    for learn in (
        IncrementalClassifier(**QUICK, **given).fit,
        IncrementalClassifier(**QUICK, **given).partial_fit,
    ):
        with pytest.raises(
            ValueError, match=f"^{name}: without effect, because nothing is coordinated; add coordin"
        ):
            learn(*blobs())


@pytest.mark.parametrize("door", ["fit", "partial_fit"])
def test_schedules_without_effect_are_refused(door: str) -> None:
    model = IncrementalClassifier(**QUICK | {"method": "podnet"}, settings={"milestones": [3]})
    told = "^milestones: without effect, because the rate falls along a cosine; add decay steps$"
    with pytest.raises(ValueError, match=told):
        getattr(model, door)(*blobs())


def test_an_estimator_that_diverges_in_its_last_step_is_not_fitted() -> None:
    x, y = pictures()
    one_step = IncrementalClassifier(
        lr=1e6, epochs=1, batch_size=60, random_state=0, device="cpu", settings={"first_epochs": 1}
    )
    with pytest.raises(RuntimeError, match="not finite, so training has diverged; a smaller lr may help"):
        one_step.fit(x, y)
    assert not hasattr(one_step, "learner_")
    classifier = IncrementalClassifier(**QUICK).fit(x, y)
    before = classifier.predict_proba(x)
    with pytest.raises(RuntimeError, match="not finite"):  # by plain replay
        classifier.set_params(lr=1e6, epochs=1, batch_size=200).partial_fit(x, y)
    assert np.array_equal(classifier.predict_proba(x), before)
    classifier.learner_.method.net.head.weight.data.fill_(np.nan)
    for answer in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        with pytest.raises(RuntimeError, match="not finite"):
            answer(x)
