"""`jioc.IncrementalClassifier`: class-incremental learning by scikit-learn's rules.

classifier = jioc.IncrementalClassifier(method="icarl", coordinate="jioc", memory=200)
classifier.partial_fit(images, labels)            the first task
classifier.partial_fit(more, other_labels)        the next one
classifier.predict(images)

Learning and answering is `training.learner.Learner`'s, settings are `config.schema.Config`'s.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from jioc.config import index
from jioc.config.schema import Config
from jioc.config.values import by_keys, make
from jioc.data.catalogue import in_memory
from jioc.data.dataset import with_statistics
from jioc.data.scenario import task_sizes
from jioc.data.sources.arrays import ArrayLayout
from jioc.errors import Failed, Refused, unknown
from jioc.methods.registry import find
from jioc.resolve.derive import resolve
from jioc.resolve.validate import unused
from jioc.training.evaluate import AT_ONCE
from jioc.training.learner import Learner

USUAL = Config(method="icarl")
KEPT: dict[str, Any] = {
    "dtype": [np.float32, np.uint8],
    "allow_nd": True,
}  # X as float32, or uint8 where it is


class IncrementalClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that learns new classes without being shown the old ones again, but for a few exemplars.

    `fit` forgets everything and learns; `partial_fit` learns on, and labels that it has not seen before are a new task.
    X holds vectors (n, d), or images (n, h, w), (n, h, w, c) or (n, c, h, w), uint8 or float; y labels of any kind.

    Parameters
    ----------
    method : str
        As on the command line: icarl, wa, der, ... (`jioc list methods`), or a Python file that registers one.
    coordinate : {"none", "ic", "oc", "jioc"}
        Coordination of inputs, of outputs or both.
    gamma1, gamma2 : float
        Strengths of the two parts of output coordination.
    memory : int
        Exemplars in all, shared equally by the classes seen.
    epochs : int or None
        Of each task after the first, whose own scale with them; None: the method's usual number.
    lr : float or None
        Learning rate; None: the method's usual one.
    batch_size : int
        Images a step.
    backbone : str or None
        The network (`jioc list backbones`); None: one that suits the shape of X, for vectors an MLP.
    augment : {"standard", "autoaugment", "none"}
        Augmentation of training images: standard shifts them by up to an eighth. Vectors are never augmented.
    flip : bool
        Whether standard augmentation mirrors images too.
    readout : str or None
        What decides: the head ("cnn"), the nearest class mean ("nme"), or what else the method has; None: the one by
        which the method is judged.
    tasks : int
        Tasks in which `fit` learns the labels, in sorted order; what does not divide goes to the first ones.
    random_state : int, RandomState or None
        An int is the seed of `jioc run --seed`.
    device : str
        auto, cpu, cuda or cuda:N.
    settings : dict or None
        Any other setting of `jioc run` by the name of its flag: {"kd_temperature": 3, "first_epochs": 50}.

    Attributes
    ----------
    classes_ : array
        Labels seen so far, sorted; the columns of `predict_proba`.
    tasks_ : list of arrays
        The labels that each task brought, in the order of learning.
    n_features_in_ : int
        Length of X's second axis.
    learner_ : jioc.training.learner.Learner
        What was learnt: network, exemplars, generators.
    """

    def __init__(
        self,
        method: str = USUAL.method,
        *,
        coordinate: str = USUAL.coordination.coordinate,
        gamma1: float = USUAL.coordination.gamma1,
        gamma2: float = USUAL.coordination.gamma2,
        memory: int = USUAL.memory,
        epochs: int | None = None,
        lr: float | None = None,
        batch_size: int = USUAL.batch_size,
        backbone: str | None = None,
        augment: str = USUAL.augment,
        flip: bool = False,
        readout: str | None = None,
        tasks: int = 1,
        random_state: Any = None,
        device: str = USUAL.device,
        settings: dict[str, Any] | None = None,
    ):
        self.method = method
        self.coordinate = coordinate
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.memory = memory
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.backbone = backbone
        self.augment = augment
        self.flip = flip
        self.readout = readout
        self.tasks = tasks
        self.random_state = random_state
        self.device = device
        self.settings = settings

    # --- learning ---

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the labels of y in `tasks` tasks; what was learnt before is forgotten."""
        x, y = self._validated(X, y)
        with in_a_sentence():
            learnt, labels = self._nothing(x), np.unique(y)
            config = self._config(learnt)
            learnt.refuse_early(config, len(labels))
            for part in np.split(labels, np.cumsum(task_sizes(len(labels), 1, config))[:-1]):
                rows = np.isin(y, part)
                learnt = learnt.more(x[rows], y[rows], config, self.flip)
        return self._keep(learnt)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn on. Labels not seen before become a task.

        Images of labels that were seen train beside the exemplars. Without any new label the network is trained on
        them and the exemplars by plain replay. `classes` is optional: where given, y may hold no other label.
        """
        first = not hasattr(self, "_learnt")
        x, y = self._validated(X, y, reset=first)
        if classes is not None and not np.isin(y, classes).all():
            raise ValueError(f"y holds labels that are not among classes: {shown(np.setdiff1d(y, classes))}")
        with in_a_sentence():
            learnt = self._nothing(x) if first else self._learnt
            config = self._config(learnt)
            learnt.refuse_early(config, 1)
            learnt = learnt.more(x, y, config, self.flip)
        return self._keep(learnt)

    def _nothing(self, x: np.ndarray) -> "Learnt":
        state = self.random_state
        given = isinstance(state, (int, np.integer))
        return Learnt(ArrayLayout.of(x), int(state if given else check_random_state(state).randint(2**31)))

    def _keep(self, learnt: "Learnt") -> Self:
        self._learnt = learnt
        self.learner_, self.tasks_, self.classes_ = learnt.learner, list(learnt.tasks), np.sort(learnt.labels)
        return self

    def _config(self, learnt: "Learnt") -> Config:
        if not isinstance(self.method, str):
            raise Refused(f"method is a name or a Python file's, not {self.method!r}")
        spec = find(self.method)
        own = self.get_params(deep=False)
        for name in ("method", "readout", "flip", "random_state", "settings"):
            del own[name]
        if self.readout is not None and self.readout not in spec.readouts:
            raise unknown("read-out", self.readout, spec.readouts)
        if not isinstance(self.flip, (bool, np.bool_)):
            raise Refused(f"flip is True or False, not {self.flip!r}")
        others = self.settings or {}
        if not isinstance(others, dict):
            raise Refused(f"settings is a dictionary, not {others!r}")
        every = {one.key: one for one in index.every(spec.options).values()}
        taken = {key for key, one in every.items() if "estimator" in one.commands} - own.keys()
        for name in others:
            if name in every and name not in taken:
                raise Refused(
                    f"settings cannot hold {name!r}" + (": it is a parameter" if name in own else "")
                )
            if name not in every:
                raise unknown("setting", name, taken)
        if {"base", "increment", "task_sizes"} & others.keys() and self.tasks == 1:
            del own["tasks"]
        if self.augment == "autoaugment" and not learnt.form.whole:
            raise Refused("autoaugment is for images of uint8")
        usual = dict(USUAL.coordination)
        said = {
            name: value for name, value in own.items() if name not in usual or not same(value, usual[name])
        }
        flat = {name: plain(value) for name, value in {**said, **others}.items() if value is not None}
        return make(**by_keys(flat, spec.options), method=self.method, data="X", seed=learnt.seed)

    # --- answering ---

    def predict(self, X: Any) -> np.ndarray:
        """The label of each row."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The softmax of the read-out's scores, (n, K); columns as in `classes_`."""
        scores = self._scores(X)
        raised = np.exp(scores - scores.max(1, keepdims=True))
        return raised / raised.sum(1, keepdims=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """The read-out's scores, (n, K); of two classes the second's less the first's, (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "learner_")
        x = validate(self, X, **KEPT, reset=False)
        with in_a_sentence():
            found = self.learner_.readouts(self._whole_blocks(self._learnt.form.read(x)))
            wanted = self.readout or self.learner_.method.spec.headline
            if wanted not in found:
                raise unknown("read-out", wanted, found)
        scores = found[wanted].numpy().astype(np.float64)
        return scores[: len(x), np.argsort(self._learnt.labels)]

    def _whole_blocks(self, x: np.ndarray) -> np.ndarray:
        """Vectors filled up to what is answered at once: a row's last digits then do not hang on the rows beside it."""
        missing = -len(x) % AT_ONCE if self._learnt.form.vectors else 0
        return np.concatenate([x, np.zeros((missing, *x.shape[1:]), x.dtype)]) if missing else x

    # --- scikit-learn ---

    def _validated(self, X: Any, y: Any, reset: bool = True) -> tuple[np.ndarray, np.ndarray]:
        x, y = validate(self, X, y, **KEPT, reset=reset)
        check_classification_targets(y)
        return x, y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


@dataclass(frozen=True)
class Learnt:
    """What the calls so far amount to."""

    form: ArrayLayout
    seed: int
    tasks: tuple[np.ndarray, ...] = ()  # the labels of each
    learner: Any = None  # a Learner once there is a task

    @property
    def labels(self) -> np.ndarray:
        """In the order of learning."""
        return np.concatenate(self.tasks)

    def more(self, x: np.ndarray, y: np.ndarray, config: Config, flip: bool) -> "Learnt":
        """One task, or further images of labels that are known; this one stays as it is."""
        known = self.labels if self.tasks else y[:0]
        if kind(known) != kind(y):
            raise Refused(f"the labels so far are {kind(known)}, so y cannot hold {kind(y)}")
        config = self._as_before(config)
        new, here = np.setdiff1d(y, known), np.unique(y)
        called = [self.learner.classes[np.flatnonzero(known == c)[0]] if c in known else str(c) for c in here]
        images, labels = self.form.read(x), np.searchsorted(here, y)
        dataset = with_statistics(self.form.dataset(images, labels, called, flip), config)
        if self.learner is None:
            learner = Learner.first(config, dataset)
        elif len(new):
            learner = self.learner.learn(dataset, config=config, known="add")
        else:
            learner = self.learner.rehearse(dataset, config=config)
        return replace(self, learner=learner, tasks=(*self.tasks, new) if len(new) else self.tasks)

    def refuse_early(self, config: Config, classes: int) -> None:
        """What the last of several tasks would refuse is refused before the first."""
        unused(resolve(config, in_memory("X", classes, self.form.side)))

    def _as_before(self, config: Config) -> Config:
        """The method and the network of the first call stay."""
        if self.learner is None:
            return config
        before = {name: getattr(self.learner.config, name) for name in ("method", "backbone", "stem")}
        for name, old in before.items():
            now = getattr(config, name)
            if now not in (None, old):
                raise Refused(f"{name} was {old!r} in the call before and is {now!r} now; fit starts anew")
        return config.filled(config.given, **before)


def kind(labels: np.ndarray) -> str:
    """Kinds of labels that cannot be told apart, or ordered, beside each other."""
    return {"O": "text", "U": "text", "S": "text", "b": "truth values"}.get(labels.dtype.kind, "numbers")


def validate(estimator: BaseEstimator, *arrays: Any, **how: Any) -> Any:
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn before 1.6
        return estimator._validate_data(*arrays, **how)
    return validate_data(estimator, *arrays, **how)


@contextmanager
def in_a_sentence() -> Iterator[None]:
    """Our refusals as the errors that scikit-learn's users expect, with parameters in place of flags."""
    try:
        yield
    except Refused as error:
        text = re.sub(r"--([a-z0-9-]+)", lambda flag: flag[1].replace("-", "_"), str(error))
        raise (RuntimeError if isinstance(error, Failed) else ValueError)(text) from None


def plain(value: Any) -> Any:
    """numpy's numbers, which a grid of parameters may hold, as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def same(value: Any, usual: Any) -> bool:
    """Whether a parameter was left as it is."""
    return np.ndim(value) == 0 and bool(value == usual)


def shown(labels: np.ndarray) -> str:
    return ", ".join(repr(plain(label)) for label in labels)
