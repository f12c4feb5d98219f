"""The score below which an answer is `unknown`: fitted on labelled images, and kept in model.json."""

import math
from pathlib import Path

from torch import Tensor

from jioc.errors import Refused, refuse_if
from jioc.files import write
from jioc.results import Threshold
from jioc.training import model

DIGITS = 10**4  # a threshold is rounded down to a ten-thousandth


def fit(scores: Tensor, right: Tensor, strangers: Tensor, keep: float) -> Threshold:
    """Find the largest score that at least the share `keep` of the right answers reach.

    `strangers`: the scores of images of classes that the model does not know.
    """
    kept = scores[right].double().sort().values
    refuse_if(not len(kept), "no answer is right, so that there is no score to keep; nothing was fitted")
    least = kept[math.floor((1 - keep) * len(kept) + 1e-9)].item()
    score = math.floor(least * DIGITS) / DIGITS

    def below(values: Tensor) -> float | None:
        return 100 * (values.double() < score).double().mean().item() if len(values) else None

    return Threshold(
        score=score,
        keep=keep,
        images=len(kept),
        right_kept=100 - (below(kept) or 0.0),
        wrong_refused=below(scores[~right]),
        strangers_refused=below(strangers),
    )


def save(folder: Path, readout: str, threshold: Threshold) -> None:
    """Put a threshold into model.json, in the place of an earlier one of the read-out."""
    model.settle(folder)
    about = model.read_about(folder)
    values = about.model_dump(mode="json", exclude_unset=True)
    values["unknown"] = values.get("unknown", {}) | {readout: threshold.plain()}
    write(folder / "model.json", model.as_json(values))


def find(learnt: model.Classifier, readout: str | None) -> float:
    """The threshold that was fitted for a read-out; refuse where none was."""
    name = readout or learnt.method.headline
    if name not in learnt.unknown:
        raise Refused(
            f"no threshold was fitted for this model and its read-out {name!r}; give a score, or fit one: "
            "jioc evaluate MODEL FOLDER --fit-unknown 0.95"
        )
    return learnt.unknown[name].score
