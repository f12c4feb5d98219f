"""Fill in the settings that nobody gave: one rule for each setting that others decide. No torch here.

`config/schema.py` declares which settings a setting follows from; the rules say how.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from jioc.config import (
    READING,
    READING_OF_EXPANDING,
    READINGS,
    Config,
    Reading,
    Values,
    flat,
    index,
    make,
    nested,
    rescale_milestones,
)
from jioc.data.catalogue import Entry, network_for, usual_canvas, with_name
from jioc.data.find import find_dataset, image_size
from jioc.methods import Spec, find_method, own_options
from jioc.nets import catalogue as backbones
from jioc.resolve import validate

REBALANCE_EPOCHS = 30  # of a head trained anew on balanced images: official DER's
READ_OPTIONS = tuple(READINGS["printed"])  # options of JIOC that follow from the reading
PRETRAINED_LR = 0.1  # rate of pretrained layers, as a share of the others'


def resolve(config: Config, entry: Entry | None = None, spec: Spec | None = None) -> Config:
    """Fill in every setting that was not given, and refuse what contradicts itself.

    `entry`: of data that is already in memory; else `config.data` names it. `spec`: likewise of the method.
    """
    spec = spec or find_method(config.method)
    if entry is None:
        config = config.filled(config.given, data=with_name(config.data))
        entry = find_dataset(config.data)
    options = own_options(spec, config.options)
    known = Known(flat(dict(config.model_dump(), options=options.model_dump())), spec, entry).fill()
    filled = make(**nested(known.values)).filled(config.given)
    validate.validate(filled, spec, entry)
    return filled


class Known:
    """The settings that are known so far, by dotted names, with the entries of the method and the data.

    Without an entry, what follows from it stays unknown.
    """

    def __init__(self, values: Values, spec: Spec | None = None, entry: Entry | None = None):
        self.values, self.spec, self.entry = values, spec, entry

    def fill(self) -> "Known":
        """Give every setting that has no value the one that follows from the others."""
        for path, rule in RULES.items():
            if self.values.get(path) is None:
                self.values[path] = rule(self)
        for stage in index.STAGES:
            path = f"{stage}.milestones"
            has_stage = getattr(self.spec, stage, None) is not None
            never_falls = has_stage and not self.usual(path) and not self.values[path]
            if never_falls or self.values[f"{stage}.decay"] == "cosine":
                self.values[path] = None
        return self

    def follows(self, path: str) -> Any:
        """The value that a setting would have if nobody had given it and all others stayed as they are."""
        setting = index.every(self.spec and self.spec.options).get(path)
        value = RULES[path](self) if path in RULES else setting and setting.field.default
        return list(value) if isinstance(value, tuple) else value

    def departures(self) -> Values:
        """The settings that do not have the value that follows from the others. For values as in JSON."""
        given = {path: value for path, value in self.values.items() if value is not None}
        return {path: value for path, value in given.items() if value != self.follows(path)}

    def usual(self, path: str) -> Any:
        """The method's own value of a setting of a schedule, such as first.epochs."""
        stage, _, name = path.partition(".")
        return getattr(getattr(self.spec, stage, None), name, None)


Rule = Callable[[Known], Any]


def _scaled(known: Known, path: str) -> Any:
    """The method's own epochs or learning rate, scaled as those of the later tasks are."""
    stage, _, name = path.partition(".")
    usual, later, now = known.usual(path), known.usual(f"later.{name}"), known.values.get(f"later.{name}")
    if stage == "later" or None in (usual, later, now):
        return usual
    return max(1, round(usual * (now / later))) if name == "epochs" else usual * (now / later)


def _milestones(known: Known, path: str) -> tuple[int, ...] | None:
    """The method's own milestones, moved as the stage got longer or shorter; none along a cosine."""
    stage = path.partition(".")[0]
    epochs, decay = (known.values.get(f"{stage}.{name}") for name in ("epochs", "decay"))
    if not known.usual(path) or not epochs or decay == "cosine":
        return None
    return rescale_milestones(known.usual(path), known.usual(f"{stage}.epochs") or epochs, epochs)


def _rebalance_epochs(known: Known) -> int | None:
    """Official DER's 30 epochs, whatever the tasks have; none where nothing is trained anew."""
    return None if known.values.get("rebalance") in (None, "none") else REBALANCE_EPOCHS


def _pretrained_backbone(known: Known) -> str | None:
    """The backbone of the pretrained weights, if there are any: the one given, or that of a name."""
    word, usual = known.values.get("weights"), known.entry and known.entry.backbone
    if word is None:
        return None
    named = backbones.WEIGHTS[word].backbone if word in backbones.WEIGHTS else None
    return known.values.get("backbone") or named or usual or "resnet18"


def _look(known: Known) -> backbones.TrainedOn | None:
    """The images that pretrained weights are for; None without weights, or where nobody knows."""
    name = _pretrained_backbone(known)
    return backbones.shape(name).look if name else None


def _statistics(known: Known, name: str) -> tuple[float, ...] | None:
    look = _look(known)
    return getattr(look, name) if look else None


def _size(known: Known) -> int | None:
    if known.entry is None or known.entry.source == "vectors":
        return None
    if (look := _look(known)) is None:
        return image_size(known.entry)
    return look.size if known.entry.place else max(look.size, image_size(known.entry))


def _canvas(known: Known) -> int | None:
    size = known.values.get("image_size") if known.entry else None
    if not size or known.entry is None:
        return size
    return usual_canvas(size) if known.entry.source == "image_files" else known.entry.size


def _network(known: Known, part: int) -> str | None:
    """The backbone (0) or its stem (1): that of the weights, the data set's, or one that suits the size."""
    if known.entry is None:
        return None
    if (look := _look(known)) is not None or (part == 0 and known.values.get("weights")):
        return (_pretrained_backbone(known), "imagenet" if look else None)[part]
    usual = (known.entry.backbone, known.entry.stem)[part]
    return usual or network_for(known.values.get("image_size") or 1)[part]


def _read(known: Known, name: str) -> Any:
    """The value that the chosen --reading gives this option of JIOC."""
    return READINGS.get(str(known.values.get("coordination.reading")), {}).get(name)


def usual_reading(spec: Spec | None) -> Reading:
    """The reading of JIOC's formulas that did best on a hold-out: docs/results/readings.md."""
    return READING_OF_EXPANDING if spec and spec.expands else READING


SCHEDULE: dict[str, Callable[..., Any]] = {  # the rules of each stage
    "epochs": _scaled,
    "lr": _scaled,
    "decay": Known.usual,
    "milestones": _milestones,
    "weight_decay": Known.usual,
}
RULES: dict[str, Rule] = {  # each after those that it follows from
    "image_size": _size,
    "canvas": _canvas,
    "backbone": partial(_network, part=0),
    "stem": partial(_network, part=1),
    "memory": lambda known: known.entry and known.entry.memory,
    "headline": lambda known: known.spec and known.spec.headline,
    "mean": partial(_statistics, name="mean"),
    "std": partial(_statistics, name="std"),
    "freeze": lambda known: None if known.spec is None or known.spec.trains else "all",
    "pretrained_lr": lambda known: PRETRAINED_LR if known.values.get("weights") else None,
    "coordination.reading": lambda known: known.spec and usual_reading(known.spec),
    "coordination.host_kd": lambda known: known.spec and known.spec.host_kd,
    **{f"coordination.{name}": partial(_read, name=name) for name in READ_OPTIONS},
    "init_seed": lambda known: known.values.get("seed"),
    "data_seed": lambda known: known.values.get("seed"),
    **{
        f"{stage}.{name}": partial(rule, path=f"{stage}.{name}")
        for stage in index.STAGES
        for name, rule in SCHEDULE.items()
    },
    "rebalance_epochs": _rebalance_epochs,
}
