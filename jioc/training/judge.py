"""Judge a model on images whose classes are known: accuracies, confusions, calibration."""

from collections import Counter
from collections.abc import Iterable

import torch
from torch import Tensor

from jioc import __version__, diagnostics, metrics
from jioc.data.images.listing import normalise_name
from jioc.data.labelled import Part
from jioc.errors import Refused
from jioc.results import EVALUATION, Calibration, Evaluation
from jioc.training import threshold
from jioc.training.model import Classifier

UNCALIBRATED = ("nme",)  # read-outs whose scores are cosines, not probabilities


def judge(
    model: Classifier,
    parts: Iterable[Part],
    readout: str | None = None,
    trained: bool = False,
    keep: float | None = None,
) -> Evaluation:
    """Judge a model on images; those of classes that it does not know are counted apart.

    `readout`: the method's headline unless another is named. `trained`: count images that it has trained on
    too, where it knows them. `keep`: fit a threshold for `unknown` that this share of right answers reach.
    """
    answers = Answers(model, readout or model.method.headline, trained, keep)
    for part in parts:
        answers.add(part)
    return answers.evaluation()


class Answers:
    """What a model answers to images, collected."""

    def __init__(self, model: Classifier, readout: str, trained: bool, keep: float | None):
        self.model, self.readout, self.count_trained, self.keep = model, readout, trained, keep
        self.label = {normalise_name(name): c for c, name in enumerate(model.classes)}
        self.ranked: list[Tensor] = []  # of each part, the classes of each image, best first
        self.scores: list[Tensor] = []  # and the best one's score
        self.labels: list[Tensor] = []
        self.strangers: list[Tensor] = [torch.zeros(0)]  # scores of images of classes that are not known
        self.skipped: list[tuple[str, str]] = []
        self.not_known: Counter[str] = Counter()
        self.trained = 0

    def add(self, part: Part) -> None:
        """Let the model answer to some images."""
        self.skipped += part.skipped
        y = torch.tensor([self.label.get(normalise_name(name), -1) for name in part.names])
        self.not_known.update(name for name, c in zip(part.names, y.tolist(), strict=True) if c < 0)
        kept = y >= 0
        if self.keep is not None and (y < 0).any():
            strange = self.model.confidence(part.pixels[(y < 0).numpy()], self.readout)
            self.strangers.append(strange.max(1).values)
        if len(part.names) and not self.count_trained:
            seen = torch.from_numpy(self.model.judged.has_trained_on(part.pixels)) & kept
            self.trained += int(seen.sum())
            kept &= ~seen
        if kept.any():
            confidence = self.model.confidence(part.pixels[kept.numpy()], self.readout)
            best = confidence.topk(min(5, confidence.shape[1]))
            self.ranked.append(best.indices)
            self.scores.append(best.values[:, 0])
            self.labels.append(y[kept])

    def evaluation(self) -> Evaluation:
        """The figures of all images so far."""
        if not self.labels:
            raise Refused(self._why_none())
        model, y = self.model, torch.cat(self.labels)
        ranked, scores, n = torch.cat(self.ranked), torch.cat(self.scores), len(self.model.classes)
        accuracy = metrics.accuracy(ranked, y, model.sizes)
        right = ranked[:, 0] == y
        known = [a for a in accuracy.per_class if a is not None]
        return Evaluation(
            format=EVALUATION,
            jioc=__version__,
            readout=self.readout,
            classes=model.classes,
            sizes=list(model.sizes),
            images=torch.bincount(y, minlength=n).tolist(),
            accuracy=accuracy,
            each_class_alike=sum(known) / len(known),
            calibration=None if self.readout in UNCALIBRATED else calibration(scores, right),
            confusion=diagnostics.confusion(y, ranked[:, 0], n),
            not_known=dict(self.not_known),
            trained=self.trained,
            knows_trained=bool(len(model.judged.trained)),
            skipped=[list(pair) for pair in self.skipped],
            unknown=None
            if self.keep is None
            else threshold.fit(scores, right, torch.cat(self.strangers), self.keep),
        )

    def _why_none(self) -> str:
        if self.trained:
            return f"the model has trained on all of the {self.trained:,} images; --trained counts them"
        if self.not_known:
            return f"the model knows none of the classes: {', '.join(map(repr, sorted(self.not_known)[:5]))}"
        file, why = next(iter(self.skipped), ("", ""))
        return "there is no image to evaluate" + (f": {file!r} {why}" if file else "")


def calibration(scores: Tensor, right: Tensor) -> Calibration:
    """Compare the scores of answers with how often they are right."""
    bins = diagnostics.bin_of(scores)
    filled = []
    for b in bins.unique().tolist():
        inside = bins == b
        means = (100 * v[inside].double().mean().item() for v in (scores, right))
        filled.append([int(inside.sum()), *means])
    return Calibration(
        error=diagnostics.calibration_error(scores, right),
        score=100 * scores.double().mean().item(),
        bins=filled,
    )
