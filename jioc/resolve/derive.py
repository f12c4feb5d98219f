"""From what a user said to everything that a run needs: defaults filled in, impossible wishes refused. No torch."""

import copy
import itertools
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from jioc.config.schema import Config, Coordination, Options, Schedule, at, make, plain, without_effect
from jioc.data import catalogue as datasets
from jioc.errors import Refused
from jioc.methods.specs import Spec, find, own_options
from jioc.nets import catalogue as backbones
from jioc.text import counted

PREFIX = {"later": "", "first": "first_", "second": "second_"}  # of the flags of a stage
STAGES = (*PREFIX,)  # the others follow the first of them


def resolve(config: Config, entry: datasets.Entry | None = None, spec: Spec | None = None) -> Config:
    """`entry`: of data that is in memory already; otherwise `config.data` names it. `spec`: likewise of the method."""
    spec = spec or find(config.method)
    if entry is None:
        config = config.model_copy(update={"data": datasets.with_name(config.data)})
        entry = datasets.find(config.data, config.image_size)
    size = config.image_size or entry.size
    if entry.module != "image_files" and (size, config.canvas or size) != (entry.size, entry.size):
        raise Refused(
            f"{entry.name} comes as images of {entry.size}x{entry.size}; --image-size and --canvas cannot change that"
        )
    options = of_method(config, spec)
    coordination = config.coordination
    refuse_idle(coordination, coordination.model_fields_set)
    backbone = config.backbone or entry.backbone
    _check_backbone(backbone, entry)
    if spec.memory == "none" and config.coordination.coordinate in ("oc", "jioc"):
        raise Refused(f"{spec.name} keeps no exemplars, so outputs cannot be coordinated; --coordinate ic can")
    if spec.memory == "exemplars":
        _check_memory(config, spec)
    if entry.place is None:  # of somebody's own images some classes may prove to hold none
        refuse_small_memory(config, entry.classes, spec)
    for stage in STAGES:
        _check_milestones(stage, getattr(config, stage).milestones or ())
    whole = {"coordinate": coordination.coordinate, "host_kd": coordination.host_kd or spec.host_kd}
    canvas = datasets.usual_canvas(size) if entry.module == "image_files" else size
    sizes = {"image_size": size, "canvas": config.canvas or canvas}
    return config.model_copy(
        update={
            "options": options.model_dump(),
            "coordination": coordination.model_copy(update=whole),
            "backbone": backbone,
            "stem": config.stem or entry.stem,
            **({} if entry.module == "vectors" else sizes),
            **_schedules(config, spec),
            **({} if config.memory_per_class is None else {"memory": Config.model_fields["memory"].default}),
            "init_seed": config.seed if config.init_seed is None else config.init_seed,
            "data_seed": config.seed if config.data_seed is None else config.data_seed,
        }
    )


def of_method(config: Config, spec: Spec) -> Options:
    """The method's own options, checked; a second stage is refused where it has none."""
    if spec.second is None and config.second != Schedule():
        raise Refused(f"second: {spec.name} has no second stage")
    return own_options(spec, config.options)


def refuse_idle(coordination: Coordination, said: Collection[str]) -> None:
    """Options of JIOC that somebody said without choosing what is coordinated."""
    names = [name for name in Coordination.model_fields if name in said and name in without_effect("none", None)]
    if names and "coordinate" not in said and coordination.coordinate == "none":
        told = ", ".join("--" + name.replace("_", "-") for name in names)
        raise Refused(f"{told}: without effect, because nothing is coordinated; add --coordinate jioc, ic or oc")


def refuse_idle_schedules(given: Config, used: Config) -> None:
    """Parts of a schedule that leave the rate as it is, where what makes them so was not given beside them. A written
    config.yaml gives everything."""
    for stage in STAGES:
        part = getattr(given, stage)
        idle_schedule(stage, {name: getattr(part, name) for name in part.model_fields_set}, getattr(used, stage))


def idle_schedule(stage: str, given: dict[str, Any], used: Schedule) -> list[str]:
    """Notes on milestones along a cosine or after the last epoch, and on steps at no milestone; refused where nobody
    chose that."""
    epochs, decay, milestones = (_flag(stage, name) for name in ("epochs", "decay", "milestones"))
    if given.get("decay") == "steps" and "milestones" not in given and used.milestones is None:
        raise Refused(f"{decay} steps: the rate would never fall, because there are no milestones; add {milestones}")
    if given.get("milestones") and used.decay == "cosine":
        if "decay" not in given:
            raise Refused(f"{milestones}: without effect, because the rate falls along a cosine; add {decay} steps")
        return [f"{milestones}: without effect under {decay} cosine"]
    late = [m for m in used.milestones or () if m >= (used.epochs or 0)] if given.get("milestones") else []
    told, length = f"{milestones} {','.join(map(str, late))}: without effect", counted(used.epochs or 0, "epoch")
    if late and "epochs" not in given:
        raise Refused(f"{told}, because there are {length}; {epochs} gives more")
    return [f"{told} in {length}"] if late else []


RIVALS: dict[str, tuple[str, ...]] = {  # what a setting rules out
    "seed": ("init_seed", "data_seed"),
    "memory": ("memory_per_class",),
    "memory_per_class": ("memory",),
    "order_seed": ("order",),
    "tasks": ("base", "increment", "task_sizes"),
    "base": ("tasks", "task_sizes"),
    "increment": ("tasks", "task_sizes"),
    "task_sizes": ("tasks", "base", "increment"),
}

FILLED = (
    *("method", "data", "backbone", "stem", "coordination.host_kd"),
    *("later.epochs", "later.lr", "first.epochs", "first.lr"),
)
"""What `resolve` fills in and nobody writes whole: it tells a run's own config.yaml from a file that somebody wrote."""


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """A file's settings with others over them. What somebody wrote or chose stays but for what is over it and for its
    rivals; milestones move with the length of their stage."""
    both = _chosen(below, above.get("data"))
    for name, rivals in RIVALS.items():
        if above.get(name) is not None:
            for rival in rivals:
                both.pop(rival, None)
    for key, value in above.items():
        both[key] = both[key] | value if isinstance(value, dict) and isinstance(both.get(key), dict) else value
    for stage in STAGES:
        if at(both, f"{stage}.milestones") and at(above, f"{stage}.milestones") is None:
            both[stage]["milestones"] = _moved(below[stage], stage, both)
    return both


def _chosen(values: dict[str, Any], other: Any) -> dict[str, Any]:
    """A run's own settings less those that follow from others of them, and will again: what departs, somebody chose.
    A file that somebody wrote is left as it is. `other`: data that takes the place of the file's."""
    found = copy.deepcopy(values)
    if all(at(values, path) is not None for path in FILLED):
        for path in (*_of_method(values), *_of_data(values, other)):
            section, _, name = path.rpartition(".")
            if section == "options":
                del found[section][name]
            else:  # None fills nothing in, and tells that it was written
                (found[section] if section else found)[name] = None
    return found


def _of_method(values: dict[str, Any]) -> list[str]:
    """What follows from the method. Of one that is gone nobody can tell what departs: its schedules stay as they are;
    what another may not have, its options and a second stage, cannot."""
    parts = {name: part for name in (*STAGES, "options") if isinstance(part := values.get(name), dict)}
    try:
        spec = find(str(values["method"]))
    except Refused:
        own = [f"{section}.{name}" for section in ("options", "second") for name in parts.get(section, {})]
        return [*own, "coordination.host_kd"]
    found = ["coordination.host_kd"] * (values["coordination"]["host_kd"] == spec.host_kd)
    said: dict[str, dict[str, Any]] = {stage: {} for stage in STAGES}
    for stage, name in itertools.product(STAGES, Schedule.model_fields):  # each after those that it follows from
        usual = plain(_schedules(make(method=spec.name, **said), spec)[stage])[name]
        if (value := at(values, f"{stage}.{name}")) not in (None, usual):
            said[stage][name] = value
        elif name in parts.get(stage, {}):
            found.append(f"{stage}.{name}")
    options = plain(spec.options.model_construct())
    return found + [f"options.{n}" for n, value in parts.get("options", {}).items() if options.get(n, ...) == value]


def _of_data(values: dict[str, Any], other: Any) -> list[str]:
    """What follows from the data and from the size at which it is seen. Only where other data takes its place does it
    matter whether somebody chose the size of a folder's images, and only then is the folder looked at."""
    name, size = str(values["data"]), values.get("image_size")
    if not isinstance(size, int):
        return []
    entry = datasets.DATASETS.get(name)
    backbone, stem = (entry.backbone, entry.stem) if entry else datasets.network_for(size)
    usual: dict[str, Any] = {"backbone": backbone, "stem": stem, "canvas": datasets.usual_canvas(size)}
    if entry:
        usual["image_size"] = entry.size
    elif other not in (None, name):
        usual["image_size"] = datasets.size_in(name) or size
    return [name for name in usual if values.get(name) == usual[name]]


def _moved(written: dict[str, Any], name: str, values: dict[str, Any]) -> Any:
    """Milestones that were written for a stage of one length, in one of another; what is no schedule as it is."""
    with suppress(ValidationError, Refused):
        stage, epochs = Schedule.model_validate(written), at(values, f"{name}.epochs")
        if stage.epochs is not None and epochs is None:
            said = {section: values.get(section, {}) for section in STAGES}
            epochs = _schedules(make(method="", **said), find(str(values.get("method"))))[name].epochs
        length = Schedule(epochs=epochs).epochs
        if None not in (stage.epochs, length) and stage.epochs != length:
            return list(_with_length(stage, length).milestones or ())
    return values[name]["milestones"]


def _check_backbone(name: str, entry: datasets.Entry) -> None:
    """Vectors are learnt by layers, images by convolutions; a name that nobody knows is refused too."""
    layers = isinstance(backbones.shape(name), backbones.Layers)
    if layers and entry.module != "vectors":
        raise Refused(f"--backbone {name} is for vectors, and {entry.name} holds images")
    if entry.module == "vectors" and not layers:
        raise Refused(f"--backbone {name} is for images; vectors are learnt by mlp")


def _check_memory(config: Config, spec: Spec) -> None:
    if config.memory_per_class is not None:
        if config.memory != Config.model_fields["memory"].default:
            raise Refused(f"memory {config.memory} and memory_per_class {config.memory_per_class}: give one of them")
        return
    if config.memory == 0 and spec.needs_memory:
        raise Refused(f"--memory 0 keeps no exemplars, and {spec.name} cannot do without; replay and icarl can")
    if config.memory == 0 and spec.headline == "nme":
        raise Refused(
            f"--memory 0 keeps no exemplars, and {spec.name} is judged by their means (nme); "
            "the entry of a method that has means without them says memory='none'"
        )
    if config.memory == 0 and config.coordination.coordinate in ("oc", "jioc"):
        raise Refused("--memory 0 keeps no exemplars, so outputs cannot be coordinated; --coordinate ic can")


def refuse_small_memory(config: Config, classes: int, spec: Spec) -> None:
    if spec.memory == "exemplars" and config.memory_per_class is None and 0 < config.memory < classes:
        raise Refused(
            f"--memory {config.memory} leaves no exemplar for each of {classes} classes; "
            f"give at least {classes}, or 0 for none"
        )


def _schedules(config: Config, spec: Spec) -> dict[str, Schedule]:
    """Of every stage; the first task and a second stage follow the later tasks."""
    ratios = (_ratio(config.later.epochs, spec.later.epochs), _ratio(config.later.lr, spec.later.lr))
    return {
        "later": _schedule(config.later, spec.later),
        "first": _schedule(config.first, scaled(spec.first, *ratios)),
        "second": _schedule(config.second, scaled(spec.second, *ratios)) if spec.second else Schedule(),
    }


def _check_milestones(stage: str, given: tuple[int, ...]) -> None:
    rising = sorted(set(given))
    if list(given) != rising:
        told, better = (",".join(map(str, epochs)) for epochs in (given, rising))
        flag = _flag(stage, "milestones")
        raise Refused(f"{flag} {told}: each should be later than the one before, as in {flag} {better}")


def _flag(stage: str, name: str) -> str:
    return f"--{PREFIX[stage]}{name}".replace("_", "-")


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
