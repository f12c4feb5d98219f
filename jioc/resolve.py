"""From what a user said to everything that a run needs: defaults filled in, impossible wishes refused. No torch."""

import copy
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from .config import Config, Coordination, Schedule, at, without_effect
from .data import catalogue as datasets
from .errors import Refused
from .methods.specs import Spec, find, own_options
from .nets import catalogue as backbones


def resolve(config: Config, entry: datasets.Entry | None = None, spec: Spec | None = None) -> Config:
    """`entry`: of data that is in memory already; otherwise `config.data` names it. `spec`: likewise of the method."""
    spec = spec or find(config.method)
    entry = entry or datasets.find(config.data, config.image_size)
    size = config.image_size or entry.size
    if entry.module != "pictures" and (size, config.canvas or size) != (entry.size, entry.size):
        raise Refused(
            f"{entry.name} comes as images of {entry.size}x{entry.size}; --image-size and --canvas cannot change that"
        )
    options = own_options(spec, config.options)
    coordination = config.coordination
    refuse_idle(coordination, coordination.model_fields_set)
    backbone = config.backbone or entry.backbone
    _check_backbone(backbone, entry)
    if spec.memory == "none" and config.coordination.coordinate in ("oc", "jioc"):
        raise Refused(f"{spec.name} keeps no exemplars, so outputs cannot be coordinated; --coordinate ic can")
    if spec.memory == "exemplars":
        _check_memory(config, entry.classes, spec)
    if spec.second is None and config.second != Schedule():
        raise Refused(f"second: {spec.name} has no second stage")
    whole = {"coordinate": coordination.coordinate, "host_kd": coordination.host_kd or spec.host_kd}
    later = _schedule(config.later, spec.later)
    ratios = (_ratio(config.later.epochs, spec.later.epochs), _ratio(config.later.lr, spec.later.lr))
    canvas = datasets.usual_canvas(size) if entry.module == "pictures" else size
    sizes = {"image_size": size, "canvas": config.canvas or canvas}
    return config.model_copy(
        update={
            "options": options.model_dump(),
            "coordination": coordination.model_copy(update=whole),
            "backbone": backbone,
            "stem": config.stem or entry.stem,
            **({} if entry.module == "vectors" else sizes),
            "later": later,
            "first": _schedule(config.first, scaled(spec.first, *ratios)),
            "second": _schedule(config.second, scaled(spec.second, *ratios)) if spec.second else Schedule(),
            **({} if config.memory_per_class is None else {"memory": Config.model_fields["memory"].default}),
            "init_seed": config.seed if config.init_seed is None else config.init_seed,
            "data_seed": config.seed if config.data_seed is None else config.data_seed,
        }
    )


def refuse_idle(coordination: Coordination, said: Collection[str]) -> None:
    """Options of JIOC that somebody said without choosing what is coordinated."""
    names = [name for name in Coordination.model_fields if name in said and name in without_effect("none", None)]
    if names and "coordinate" not in said and coordination.coordinate == "none":
        told = ", ".join("--" + name.replace("_", "-") for name in names)
        raise Refused(f"{told}: without effect, because nothing is coordinated; add --coordinate jioc, ic or oc")


STALE: dict[str, tuple[str, ...]] = {  # what a file's settings no longer say once another is given
    "method": ("options", "later", "first", "second", "coordination.host_kd"),
    "data": ("backbone", "stem", "image_size", "canvas", "mean", "std"),
    "backbone": ("stem",),
    "image_size": ("canvas", "backbone", "stem"),
    "seed": ("init_seed", "data_seed"),
    "memory": ("memory_per_class",),
    "memory_per_class": ("memory",),
    "order_seed": ("order",),
    "tasks": ("base", "increment", "task_sizes"),
    "base": ("tasks", "task_sizes"),
    "increment": ("tasks", "task_sizes"),
    "task_sizes": ("tasks", "base", "increment"),
    "later.epochs": ("later.milestones", "first.epochs", "first.milestones", "second.epochs", "second.milestones"),
    "later.lr": ("first.lr", "second.lr"),
    "first.epochs": ("first.milestones",),
    "second.epochs": ("second.milestones",),
}


RIVALS = {
    "seed",
    "memory",
    "memory_per_class",
    "order_seed",
    "tasks",
    "base",
    "increment",
    "task_sizes",
}  # they hold, changed or not


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """A file's settings with others over them; what was derived from a setting that changes is derived anew. Of a
    setting that the file does not have nothing was derived: somebody wrote it."""
    both = copy.deepcopy(below)
    for name, derived in STALE.items():
        given, before = at(above, name), at(below, name)
        if given is not None and (name in RIVALS or (before is not None and _differ(name, given, before))):
            for other in _of_size(both, before) if name == "image_size" else derived:
                section, _, key = other.rpartition(".")
                holder = both.get(section) if section else both
                if isinstance(holder, dict):
                    holder.pop(key, None)
    for key, value in above.items():
        both[key] = both[key] | value if isinstance(value, dict) and isinstance(both.get(key), dict) else value
    return both


def _differ(name: str, given: Any, before: Any) -> bool:
    """Whether a setting changes: words as they are written, numbers however they are."""
    if name not in ("method", "data", "backbone"):
        with suppress(TypeError, ValueError):
            return float(given) != float(before)
    return str(given) != str(before)


def _of_size(values: dict[str, Any], size: Any) -> list[str]:
    """What is as the image size gives it; anything else somebody chose."""
    if not isinstance(size, int):
        return []
    usual: dict[str, Any] = {"canvas": datasets.usual_canvas(size)}
    if values.get("data") not in datasets.DATASETS:
        usual |= dict(zip(("backbone", "stem"), datasets.network_for(size), strict=True))
    return [name for name in STALE["image_size"] if values.get(name) == usual.get(name)]


def _check_backbone(name: str, entry: datasets.Entry) -> None:
    """Vectors are learnt by layers, images by convolutions; a name that nobody knows is refused too."""
    layers = isinstance(backbones.shape(name), backbones.Layers)
    if layers and entry.module != "vectors":
        raise Refused(f"--backbone {name} is for vectors, and {entry.name} holds images")
    if entry.module == "vectors" and not layers:
        raise Refused(f"--backbone {name} is for images; vectors are learnt by mlp")


def _check_memory(config: Config, classes: int, spec: Spec) -> None:
    if config.memory_per_class is not None:
        if config.memory != Config.model_fields["memory"].default:
            raise Refused(f"memory {config.memory} and memory_per_class {config.memory_per_class}: give one of them")
        return
    if config.memory == 0 and spec.needs_memory:
        raise Refused(f"--memory 0 keeps no exemplars, and {spec.name} cannot do without; replay and icarl can")
    if config.memory == 0 and config.coordination.coordinate in ("oc", "jioc"):
        raise Refused("--memory 0 keeps no exemplars, so outputs cannot be coordinated; --coordinate ic can")
    if 0 < config.memory < classes:
        raise Refused(
            f"--memory {config.memory} leaves no exemplar for each of {classes} classes; "
            f"give at least {classes}, or 0 for none"
        )


def _ratio(given: float | None, usual: float | None) -> float:
    return 1.0 if given is None or usual is None else given / usual


def scaled(usual: Schedule, epochs: float, lr: float) -> Schedule:
    """A stage that many times as long and as fast, its milestones moved with it."""
    assert usual.epochs is not None and usual.lr is not None
    length = max(1, round(usual.epochs * epochs))
    return _with_length(usual, length).model_copy(update={"lr": usual.lr * lr})


def _schedule(given: Schedule, usual: Schedule) -> Schedule:
    """What was given, the rest as usual with milestones moved in proportion; along a cosine there are none. To say that
    there are none says something only where there are usual ones."""
    usual = _with_length(usual, given.epochs or usual.epochs)
    said = {name: value for name in Schedule.model_fields if (value := getattr(given, name)) is not None}
    found = usual.model_copy(update=said)
    silent = found.decay == "cosine" or not (found.milestones or usual.milestones)
    return found.model_copy(update={"milestones": None}) if silent else found


def _with_length(usual: Schedule, epochs: int | None) -> Schedule:
    assert usual.epochs is not None and epochs is not None
    if usual.milestones is None:
        return usual.model_copy(update={"epochs": epochs})
    milestones = tuple(sorted({max(1, round(m * epochs / usual.epochs)) for m in usual.milestones}))
    return usual.model_copy(update={"epochs": epochs, "milestones": milestones})


def total_epochs(config: Config, spec: Spec, task: int) -> int:
    """Epochs that a task (0 for the first) trains, second stages included."""
    if task == 0:
        return config.first.epochs or 0
    return (config.later.epochs or 0) + ((config.second.epochs or 0) if spec.second else 0)
