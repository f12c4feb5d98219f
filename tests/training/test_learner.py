"""Learning on from a learner: the same as one run, and what it refuses."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from helpers.learning import most_coordination, new_run, some
from helpers.runs import collect_notes, same_state
from jioc.config import Config
from jioc.config import values as settings
from jioc.data import loader
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset
from jioc.errors import Refused
from jioc.methods import SPECS
from jioc.training.learner import Learner, joined
from jioc.training.runner import Run

QUICK: dict[str, Any] = {
    "data": "digits", "task_sizes": (4, 3, 3), "memory": 60, "first": {"epochs": 2}, "later": {"epochs": 2},
    "device": "cpu", "seed": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def digits() -> Dataset:
    """A third of the digits."""
    whole = load_dataset(settings.make(method="icarl", data="digits"))
    return replace(whole, train_x=whole.train_x[::3], train_y=whole.train_y[::3])


def parted(digits: Dataset, method: str, **more: Any) -> tuple[Run, Learner]:
    """Two tasks in one run, and the same with the second through a learner."""
    run = new_run(digits, method=method, **(QUICK | more))
    run.learn_next()
    run.learn_next()
    names = run.scenario.classes
    learner = Learner.first(run.config, some(digits, names[:4])).learn(some(digits, names[4:7]))
    return run, learner


@pytest.mark.parametrize("method", list(SPECS))
def test_two_tasks_in_one_run_and_the_second_learnt_on_give_the_same_bits(
    digits: Dataset, method: str
) -> None:
    coordinate = most_coordination(method)
    run, learner = parted(digits, method, coordination={"coordinate": coordinate})
    mine, theirs = run.method.state(), learner.method.state()
    held, kept = mine.pop("memory"), theirs.pop("memory")
    assert same_state(mine, theirs)
    assert learner.exemplars is not None
    assert all(
        np.array_equal(digits.train_x[i.numpy()], e) for i, e in zip(held, learner.exemplars, strict=True)
    )
    assert [len(i) for i in kept] == [len(e) for e in learner.exemplars]
    assert all(
        torch.equal(run.generators[name].get_state(), g) for name, (_, g) in learner.generators.items()
    )
    assert learner.classes == run.scenario.classes[:7] and learner.sizes == (4, 3)
    assert learner.row is not None and learner.row["cnn"]["new"] == run.rows[-1]["cnn"]["new"]
    index = np.concatenate(run.scenario.test[:7])
    scored = learner.readouts(digits.test_x[index])["cnn"].argmax(1)
    right = 100 * (scored == run.test.labels[torch.from_numpy(index)]).double().mean().item()
    assert right == run.rows[-1]["cnn"]["all"]


def test_components_learn_on_to_the_same_bits(digits: Dataset) -> None:
    """The average of the weights, and exemplars at half size, which are not halved twice."""
    components = {"ema": 0.9, "mix": "mixup", "rebalance": "scale", "memory": 2000, "exemplar_size": "half"}
    run, learner = parted(digits, "icarl", **components)
    mine, theirs = run.method.state(), learner.method.state()
    held = mine.pop("memory")
    assert same_state(mine, {name: value for name, value in theirs.items() if name != "memory"})
    as_used = (run.train.exemplars(digits.train_x, index) for index in held)
    assert learner.exemplars is not None
    assert all(np.array_equal(a, b) for a, b in zip(as_used, learner.exemplars, strict=True))


def test_exemplars_become_half_size_later_and_never_full_size_again(digits: Dataset) -> None:
    def chosen(size: str) -> Config:
        return settings.make(method="replay", **(QUICK | {"task_sizes": None, "exemplar_size": size}))

    full = Learner.first(chosen("full"), some(digits, ["3", "1", "4"]))
    half = full.learn(some(digits, ["5", "9"]), config=chosen("half"))
    assert half.preprocessing.half and not full.preprocessing.half
    assert full.exemplars is not None and half.exemplars is not None
    for before, now in zip(full.exemplars, half.exemplars[:3], strict=True):
        whole = torch.from_numpy(before[: len(now)])
        assert np.array_equal(
            now, loader.halved_and_enlarged(whole, torch.ones(len(now), dtype=torch.bool)).numpy()
        )
    with pytest.raises(Refused, match="exemplar_size cannot be 'full'"):
        half.learn(some(digits, ["7"]), config=chosen("full"))
    with pytest.raises(Refused, match="memory cannot be 0"):
        half.learn(some(digits, ["7"]), config=chosen("half").model_copy(update={"memory": 0}))


def test_an_image_that_is_an_exemplar_is_known_again_at_half_size_too(digits: Dataset) -> None:
    given = some(digits, ["3", "1"])
    # the first two images of "3" are given as of "7"; they are exemplars of "3"
    wrong = replace(
        some(digits, ["7"]), train_x=given.train_x[given.train_y == 0][:2], train_y=np.zeros(2, int)
    )
    told = {}
    for size in ("full", "half"):
        values = QUICK | {"task_sizes": None, "exemplar_size": size, "select": "first"}
        first = Learner.first(settings.make(method="replay", **values), given)
        notes: list[str] = []
        first.learn(some(digits, ["3", "1", "7"]), known="add", callback=collect_notes(notes))
        first.learn(wrong, callback=collect_notes(notes))
        told[size] = notes
        assert joined(first, first.judged.tests, given, "rehearse")[1].counts == first.counts
    assert told["half"] == told["full"]
    assert "images that are among the exemplars already, and not added again: 60" in told["half"]
    assert any("is an exemplar of '3' (and 1 more such)" in note for note in told["half"])


def test_a_learner_that_an_earlier_version_pickled_at_half_size_judges_so(digits: Dataset) -> None:
    values = QUICK | {"task_sizes": None, "exemplar_size": "half"}
    learner = Learner.first(settings.make(method="replay", **values), some(digits, ["3", "1"]))
    del vars(learner.preprocessing)["half"]  # as it was: without that field
    assert not learner.preprocessing.half
    assert pickle.loads(pickle.dumps(learner)).preprocessing.half


def test_learning_on_leaves_the_learner_as_it_was_and_repeats(digits: Dataset) -> None:
    config = settings.make(method="icarl", **(QUICK | {"task_sizes": None}))
    first = Learner.first(config, some(digits, ["3", "1", "4"]))
    before = {k: v.clone() for k, v in first.method.net.state_dict().items()}
    a, b = (first.learn(some(digits, ["5", "9"])) for _ in range(2))
    other = first.learn(some(digits, ["5", "9"]), reseed=True)
    assert same_state(before, dict(first.method.net.state_dict())) and first.sizes == (3,)
    assert same_state(a.method.state(), b.method.state())
    assert not same_state(a.method.state(), other.method.state())
    assert a.counts == [*first.counts, *(int((digits.train_y == c).sum()) for c in (5, 9))]


@pytest.mark.parametrize("words", [("jioc", "none", "jioc"), ("none", "jioc", "ic"), ("oc", "ic", "oc")])
def test_coordination_is_switched_on_and_off_from_task_to_task(
    digits: Dataset, words: tuple[str, ...]
) -> None:
    def chosen(word: str) -> Config:
        return settings.make(
            method="replay", **(QUICK | {"task_sizes": None, "coordination": {"coordinate": word}})
        )

    learner = Learner.first(chosen(words[0]), some(digits, ["3", "1", "4"]))
    for word, name in zip(words[1:], ("5", "9"), strict=True):
        learner = learner.learn(some(digits, [name]), config=chosen(word))
        assert (learner.method.teacher is not None) == (word in ("oc", "jioc"))
    assert learner.sizes == (3, 1, 1)


def test_podnet_goes_on_without_exemplars(digits: Dataset) -> None:
    first = Learner.first(
        settings.make(method="podnet", **(QUICK | {"task_sizes": None})), some(digits, ["3", "1"])
    )
    bare = settings.make(method="podnet", **(QUICK | {"task_sizes": None, "memory": 0}))
    assert first.learn(some(digits, ["5", "9"]), config=bare).sizes == (2, 2)


def test_images_without_a_test_set_teach_too(digits: Dataset) -> None:
    bare = replace(some(digits, ["3", "1"]), test_x=digits.test_x[:0], test_y=digits.test_y[:0])
    learner = Learner.first(settings.make(method="bic", **(QUICK | {"task_sizes": None})), bare)
    learner = learner.learn(replace(some(digits, ["7"]), test_x=digits.test_x[:0], test_y=digits.test_y[:0]))
    assert learner.row is not None and learner.row["cnn"]["all"] is None
    assert learner.readouts(digits.test_x[:5])["cnn"].shape == (5, 3)


def test_new_images_of_known_classes_are_refused_or_added(digits: Dataset) -> None:
    config = settings.make(method="replay", **(QUICK | {"task_sizes": None, "memory": 9}))
    first = Learner.first(config, some(digits, ["3", "1"]))
    again = some(digits, ["1", "7"])
    with pytest.raises(Refused, match="already learnt: '1'"):
        first.learn(again)
    learner = first.learn(again, known="add")
    assert learner.classes == ["3", "1", "7"]
    assert first.exemplars is not None and learner.exemplars is not None
    assert [len(e) for e in learner.exemplars] == [3, 3, 3]
    assert np.array_equal(learner.exemplars[1], first.exemplars[1][:3])  # the old ones come first
    roomy = first.learn(again, known="add", config=config.model_copy(update={"memory": 60}))
    assert roomy.exemplars is not None and np.array_equal(roomy.exemplars[1][:4], first.exemplars[1])
    assert len(roomy.exemplars[1]) == 20
    with pytest.raises(Refused, match="no new class"):
        first.learn(some(digits, ["1"]), known="add")
    notes: list[str] = []
    skipped = first.learn(again, known="skip", callback=collect_notes(notes))
    alone = first.learn(some(digits, ["7"]))
    assert notes[0].startswith("learnt before, and left out: '1' (")
    assert all(a.equal(b) for a, b in zip(weights_of(skipped), weights_of(alone), strict=True))
    labels = np.concatenate([again.train_y, np.zeros(len(digits.test_y), np.int64)])
    tests = replace(again, train_x=np.concatenate([again.train_x, digits.test_x]), train_y=labels)
    kept = first.learn(tests, known="skip").judged.tests  # what is left out trains nothing, so tests stay
    assert [len(images) for images in kept[:2]] == [len(images) for images in first.judged.tests]
    with pytest.raises(Refused, match="learn takes a Dataset, not str"):
        first.learn("more")  # type: ignore[arg-type]


def weights_of(learner: Learner) -> list[torch.Tensor]:
    return list(learner.method.net.state_dict().values())


def test_what_cannot_be_learnt_on_is_refused(digits: Dataset) -> None:
    config = settings.make(method="lwf", **(QUICK | {"task_sizes": None, "first": {"epochs": 1}}))
    first = Learner.first(config, some(digits, ["3", "1"]))
    with pytest.raises(Refused, match="keeps no exemplars"):
        first.learn(some(digits, ["1", "7"]), known="add")
    larger = replace(
        some(digits, ["7"]), train_x=np.zeros((9, 3, 8, 8), np.uint8), train_y=np.zeros(9, np.int64)
    )
    with pytest.raises(Refused, match="images of 1x8x8 .*not of 3x8x8"):
        first.learn(larger)
    with pytest.raises(Refused, match="came without its exemplars"):
        replace(first, exemplars=None).learn(some(digits, ["7"]))
    with pytest.raises(Refused, match="class '8' has no training image"):
        first.learn(replace(some(digits, ["7"]), classes=["7", "8"]))
