"""What a model keeps of its test images: few, spread evenly, none that it has trained on."""

from pathlib import Path

import numpy as np
import pytest

import jioc
from jioc.data.dataset import Dataset
from jioc.training import judged


@pytest.mark.parametrize(("keep", "classes", "kept"), [(20, 8, 20), (20, 40, 4), (3, 8, 3), (0, 8, 0)])
def test_as_many_are_kept_as_there_is_room_for(keep: int, classes: int, kept: int) -> None:
    chosen = judged.spread(np.arange(100), keep, classes, 3 * 256 * 256)
    assert len(chosen) == kept and classes * kept * 3 * 256 * 256 <= judged.MOST_BYTES
    assert not kept or {*np.diff(chosen)} <= {100 // kept, 100 // kept + 1}
    assert list(judged.spread(np.arange(2), 3, 1, 1)) == [0, 1]


def test_a_run_keeps_test_images_and_knows_what_it_trained_on(saved: Path, digits: Dataset) -> None:
    model = jioc.load(saved)
    kept = model.judged
    assert [len(images) for images in kept.tests] == [20] * 10 and len(kept.rows) == 2
    for name, images in zip(model.classes, kept.tests, strict=True):
        own = {x.tobytes() for x in digits.test_x[digits.test_y == digits.classes.index(name)]}
        assert {x.tobytes() for x in images} <= own
    assert kept.has_trained_on(digits.train_x).all() and not kept.has_trained_on(digits.test_x).any()
    assert len(kept.trained) == len({x.tobytes() for x in digits.train_x})
