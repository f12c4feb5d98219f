"""`jioc.IncrementalClassifier`: class-incremental learning by scikit-learn's rules.

classifier = jioc.IncrementalClassifier(method="icarl", coordinate="jioc", memory=200)
classifier.partial_fit(images, labels)            the first task
classifier.partial_fit(more, other_labels)        the next one
classifier.predict(images)

`training.learner.Learner` learns and answers, `config.schema.Config` checks the settings.
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

from jioc.config import Config, by_keys, index, make
from jioc.data.catalogue import MEMORY, in_memory
from jioc.data.dataset import with_statistics
from jioc.data.scenario import task_sizes
from jioc.data.sources.arrays import ArrayLayout
from jioc.errors import Failed, Refused, refuse_if, unknown
from jioc.methods import Spec, find_method
from jioc.resolve.derive import resolve
from jioc.resolve.validate import unused
from jioc.training.evaluate import AT_ONCE
from jioc.training.learner import Learner

DEFAULTS = Config(method="icarl")
NO_SETTINGS = ("method", "readout", "flip", "random_state", "settings")  # the other parameters are settings
# uint8 stays as it is, everything else becomes float32
ARRAYS: dict[str, Any] = {"dtype": [np.float32, np.uint8], "allow_nd": True}


@dataclass(frozen=True)
class Fitted:
    """What an estimator has learnt so far. It never changes: a further call makes another one."""

    form: ArrayLayout  # of X
    seed: int
    tasks: tuple[np.ndarray, ...] = ()  # the labels of each
    learner: Any = None  # a Learner once there is a task

    @property
    def labels(self) -> np.ndarray:
        """All labels, in the order of learning."""
        return np.concatenate(self.tasks)

    def learn(self, x: np.ndarray, y: np.ndarray, config: Config, flip: bool) -> "Fitted":
        """Learn new labels as a task; without any, train on further images of known ones."""
        known = self.labels if self.tasks else y[:0]
        before, now = label_kind(known), label_kind(y)
        refuse_if(before != now, f"the labels so far are {before}, so y cannot hold {now}")
        refuse_merged(known, y)
        config = self._with_first_network(config)
        new, here = np.setdiff1d(y, known), np.unique(y)
        names = [self._name(label) if label in known else str(label) for label in here]
        images, positions = self.form.read(x), np.searchsorted(here, y)
        dataset = with_statistics(self.form.dataset(images, positions, names, flip), config)
        if self.learner is None:
            learner = Learner.first(config, dataset)
        elif len(new):
            learner = self.learner.learn(dataset, config=config, known="add")
        else:
            learner = self.learner.rehearse(dataset, config=config)
        return replace(self, learner=learner, tasks=(*self.tasks, new) if len(new) else self.tasks)

    def _name(self, label: Any) -> str:
        """The learner's name of a known label."""
        return self.learner.classes[np.flatnonzero(self.labels == label)[0]]

    def refuse_early(self, config: Config, classes: int) -> None:
        """Refuse before the first task what only the last one would refuse."""
        unused(resolve(config, in_memory("X", classes, self.form.side)))

    def _with_first_network(self, config: Config) -> Config:
        """Keep the method and the network of the first call; refuse others."""
        if self.learner is None:
            return config
        before = {name: getattr(self.learner.config, name) for name in ("method", "backbone", "stem", "head")}
        for name, old in before.items():
            now = getattr(config, name)
            changed = f"{name} was {old!r} in the call before and is {now!r} now; fit starts anew"
            refuse_if(now not in (None, old), changed)
        return config.filled(config.given, **before)


class IncrementalClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that learns new classes without being shown the old ones again, but for a few exemplars.

    `fit` forgets everything and learns; `partial_fit` learns on, and labels that it has not seen before are a
    new task. X holds vectors (n, d), or images (n, h, w), (n, h, w, c) or (n, c, h, w), uint8 or float; y
    labels of any kind.

    Parameters
    ----------
    method : str
        As on the command line: icarl, wa, der, ... (`jioc list methods`), or a Python file with a method.
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
    augment : {"standard", "autoaugment", "autoaugment+cutout", "resized-crop", "none"}
        Augmentation of training images: standard shifts them by up to an eighth. Vectors are never augmented.
    flip : bool
        Whether standard augmentation mirrors images too.
    readout : str or None
        What decides: the head ("cnn"), the nearest class mean ("nme"), or what else the method has; None: the
        one by which the method is judged.
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
        method: str = DEFAULTS.method,
        *,
        coordinate: str = DEFAULTS.coordination.coordinate,
        gamma1: float = DEFAULTS.coordination.gamma1,
        gamma2: float = DEFAULTS.coordination.gamma2,
        memory: int = MEMORY,
        epochs: int | None = None,
        lr: float | None = None,
        batch_size: int = DEFAULTS.batch_size,
        backbone: str | None = None,
        augment: str = DEFAULTS.augment,
        flip: bool = False,
        readout: str | None = None,
        tasks: int = 1,
        random_state: Any = None,
        device: str = DEFAULTS.device,
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
        x, y = self._checked(X, y)
        with value_errors():
            fitted, labels = self._unfitted(x), np.unique(y)
            config = self._config(fitted)
            fitted.refuse_early(config, len(labels))
            for part in np.split(labels, np.cumsum(task_sizes(len(labels), 1, config))[:-1]):
                rows = np.isin(y, part)
                fitted = fitted.learn(x[rows], y[rows], config, self.flip)
        return self._take(fitted)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn on. Labels not seen before become a task.

        Images of labels that were seen train beside the exemplars. Without any new label the network is
        trained on them and the exemplars by plain replay. `classes` is optional: where given, y may hold no
        other label.
        """
        first = not hasattr(self, "_fitted")
        x, y = self._checked(X, y, reset=first)
        with value_errors():
            if classes is not None:
                refuse_merged(np.asarray(classes), y)
                others = ", ".join(repr(python_value(label)) for label in np.setdiff1d(y, classes))
                refuse_if(others, f"y holds labels that are not among classes: {others}")
            fitted = self._unfitted(x) if first else self._fitted
            config = self._config(fitted)
            fitted.refuse_early(config, 1)
            fitted = fitted.learn(x, y, config, self.flip)
        return self._take(fitted)

    def _unfitted(self, x: np.ndarray) -> Fitted:
        state = self.random_state
        is_seed = isinstance(state, (int, np.integer))
        return Fitted(ArrayLayout.of(x), int(state if is_seed else check_random_state(state).randint(2**31)))

    def _take(self, fitted: Fitted) -> Self:
        """Make what was learnt the estimator's own."""
        self._fitted = fitted
        self.learner_, self.tasks_, self.classes_ = fitted.learner, list(fitted.tasks), np.sort(fitted.labels)
        return self

    def _config(self, fitted: Fitted) -> Config:
        """Make a configuration of the parameters and the further settings; refuse wrong ones."""
        refuse_if(
            not isinstance(self.method, str), f"method is a name or a Python file's, not {self.method!r}"
        )
        spec = find_method(self.method)
        if self.readout is not None and self.readout not in spec.readouts:
            raise unknown("read-out", self.readout, spec.readouts)
        refuse_if(not isinstance(self.flip, (bool, np.bool_)), f"flip is True or False, not {self.flip!r}")
        refuse_if(
            self.augment not in ("standard", "none") and not fitted.form.whole,
            f"{self.augment} is for images of uint8",
        )
        own = {name: v for name, v in self.get_params(deep=False).items() if name not in NO_SETTINGS}
        others = self.settings or {}
        self._check_settings(others, own, spec)
        if {"base", "increment", "task_sizes"} & others.keys() and self.tasks == 1:
            del own["tasks"]
        for name, default in dict(DEFAULTS.coordination).items():
            if name in own and np.ndim(own[name]) == 0 and bool(own[name] == default):
                del own[name]
        values = {name: python_value(value) for name, value in {**own, **others}.items() if value is not None}
        return make(**by_keys(values, spec.options), method=self.method, data="X", seed=fitted.seed)

    @staticmethod
    def _check_settings(settings: Any, parameters: dict[str, Any], spec: Spec) -> None:
        """Refuse a setting that is a parameter, that an estimator does not take, or that nobody knows."""
        refuse_if(not isinstance(settings, dict), f"settings is a dictionary, not {settings!r}")
        every = {one.key: one for one in index.every(spec.options).values()}
        taken = {key for key, one in every.items() if "estimator" in one.commands} - parameters.keys()
        for name in settings:
            if name not in every:
                raise unknown("setting", name, taken)
            why = ": it is a parameter" if name in parameters else ""
            refuse_if(name not in taken, f"settings cannot hold {name!r}{why}")

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
        """The scores of the read-out that decides, (n, K); columns as in `classes_`."""
        check_is_fitted(self, "learner_")
        x = check_arrays(self, X, **ARRAYS, reset=False)
        with value_errors():
            readouts = self.learner_.readouts(self._whole_blocks(self._fitted.form.read(x)))
            name = self.readout or self.learner_.method.headline
            if name not in readouts:
                raise unknown("read-out", name, readouts)
        scores = readouts[name].numpy().astype(np.float64)
        return scores[: len(x), np.argsort(self._fitted.labels)]

    def _whole_blocks(self, x: np.ndarray) -> np.ndarray:
        """Fill up vectors to whole blocks, so that a row's last digits do not depend on the other rows."""
        missing = -len(x) % AT_ONCE if self._fitted.form.vectors else 0
        return np.concatenate([x, np.zeros((missing, *x.shape[1:]), x.dtype)]) if missing else x

    # --- scikit-learn ---

    def _checked(self, X: Any, y: Any, reset: bool = True) -> tuple[np.ndarray, np.ndarray]:
        x, y = check_arrays(self, X, y, **ARRAYS, reset=reset)
        check_classification_targets(y)
        return x, y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def check_arrays(estimator: BaseEstimator, *arrays: Any, **how: Any) -> Any:
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn before 1.6
        return estimator._validate_data(*arrays, **how)
    return validate_data(estimator, *arrays, **how)


@contextmanager
def value_errors() -> Iterator[None]:
    """Raise our refusals as the errors that scikit-learn's users expect, with parameters for flags."""
    try:
        yield
    except Refused as error:
        text = re.sub(r"--([a-z0-9-]+)", lambda flag: flag[1].replace("-", "_"), str(error))
        raise (RuntimeError if isinstance(error, Failed) else ValueError)(text) from None


def python_value(value: Any) -> Any:
    """Turn a number of numpy, which a grid of parameters may hold, into one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def refuse_merged(known: np.ndarray, y: np.ndarray) -> None:
    """Refuse numbers of two types whose common type changes one: 2**53 + 1 as a float is 2**53."""
    if label_kind(known) != "numbers" or label_kind(y) != "numbers":
        return
    common = np.result_type(known, y)
    for labels in (known, y):
        with np.errstate(invalid="ignore"):  # a number beyond its own type does not come back either
            lost = labels[labels.astype(common).astype(labels.dtype) != labels]
        types = f"labels of {known.dtype} and {y.dtype} meet as {common}"
        refuse_if(len(lost), f"{types}, which cannot hold {lost[:1]}; give all labels in one type")


def label_kind(labels: np.ndarray) -> str:
    """The kind of labels: those of different kinds cannot be told apart or sorted together."""
    return {"O": "text", "U": "text", "S": "text", "b": "truth values"}.get(labels.dtype.kind, "numbers")
