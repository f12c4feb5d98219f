"""What a classifier takes, and what it answers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import jioc
from jioc.data.dataset import Dataset
from jioc.errors import Refused


def test_what_may_be_given_to_predict(saved: Path, digits: Dataset, tmp_path: Path) -> None:
    learner = jioc.load(saved / "model.json")
    grey = digits.test_x[:4, 0]
    named = learner.predict(grey)
    assert learner.predict(grey[..., None]) == learner.predict(grey[:, None]) == named
    images = [Image.fromarray(image) for image in grey]
    assert learner.predict(images) == learner.predict(list(grey)) == named
    images[0].save(tmp_path / "a.png")
    assert learner.predict(tmp_path / "a.png") == learner.predict([str(tmp_path / "a.png")]) == named[:1]
    assert learner.predict(images[0]) == named[:1]
    assert learner.predict([]) == [] and len(learner.predict(grey, readout="nme")) == 4
    larger = np.stack([np.asarray(image.resize((20, 20)).convert("RGB")) for image in images])
    assert learner.predict(larger) == learner.predict(list(larger))
    for wrong, sentence in [
        (grey / 255, "uint8"),
        (grey[0, 0], "an array of images is"),
        (larger[0], "is one image, .* give it in a list"),
        ([3], "not int"),
        (7, "not int"),
        ([tmp_path / "none.png"], "cannot be read"),
    ]:
        with pytest.raises(Refused, match=sentence):
            learner.predict(wrong)
    with pytest.raises(Refused, match="unknown read-out 'nmme'; did you mean 'nme'"):
        learner.predict(grey, readout="nmme")


def test_readouts_say_which_shape_they_take(saved: Path) -> None:
    with pytest.raises(Refused, match=r"readouts takes images .* \(n, 1, 8, 8\), not \(2, 8, 8, 1\)"):
        jioc.load(saved).readouts(np.zeros((2, 8, 8, 1), np.uint8))


def test_scores_are_probabilities_or_cosines(saved: Path, digits: Dataset) -> None:
    learner = jioc.load(saved)
    cnn, nme = (learner.confidence(digits.test_x[:9], name) for name in ("cnn", "nme"))
    assert torch.allclose(cnn.sum(1), torch.ones(9))
    x = learner.preprocessing.images(digits.test_x[:9], learner.device).plain(torch.arange(9))
    with torch.no_grad():
        features = learner.method.net(x).features
    assert learner.method.means is not None
    assert torch.allclose(
        nme, torch.cosine_similarity(features[:, None], learner.method.means[None], dim=2), atol=1e-5
    )
