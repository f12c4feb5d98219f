"""Read a PyCIL experiment file (exps/*.json) as settings of the run that PyCIL would run. No torch here.

Every key becomes a setting, or has the only value that there is here, or is refused by name. The schedules in
PyCIL's code are those of `methods/specs.py`. Where PyCIL's code of a method departs from its paper, the
option that departs in the same way is set. `docs/pycil.md` explains it to users.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jioc.config import make, rescale
from jioc.config.index import STAGES
from jioc.data.find import find_dataset
from jioc.errors import Refused, unknown
from jioc.methods import SPECS, Spec, own_options

Targets = dict[str, tuple[str, ...]]
"""The dotted names of the settings that a key of PyCIL sets."""

STEPS: Targets = {  # the first task has its own numbers; the rate falls at milestones
    "init_epoch": ("first.epochs",),
    "init_epochs": ("first.epochs",),
    "init_lr": ("first.lr",),
    "init_milestones": ("first.milestones",),
    "init_weight_decay": ("first.weight_decay",),
    "epochs": ("later.epochs",),
    "lrate": ("later.lr",),
    "lr": ("later.lr",),
    "milestones": ("later.milestones",),
    "weight_decay": ("later.weight_decay",),
}


def _shared(*stages: str) -> Targets:
    """The targets of keys that set several stages alike."""
    keys = {"epochs": "epochs", "lrate": "lr", "milestones": "milestones", "weight_decay": "weight_decay"}
    return {key: tuple(f"{stage}.{part}" for stage in stages) for key, part in keys.items()}


PODNET: Targets = {
    "epochs": ("first.epochs", "later.epochs"),
    "lrate": ("first.lr", "later.lr"),
    "ft_epochs": ("second.epochs",),
    "ft_lrate": ("second.lr",),
    "weight_decay": ("first.weight_decay", "later.weight_decay", "second.weight_decay"),
}
FOSTER: Targets = {
    "init_epochs": ("first.epochs",),
    "init_lr": ("first.lr",),
    "init_weight_decay": ("first.weight_decay",),
    "boosting_epochs": ("later.epochs",),
    "compression_epochs": ("second.epochs",),
    "lr": ("later.lr", "second.lr"),
    "weight_decay": ("later.weight_decay",),
    **{name: (f"options.{name}",) for name in ("beta1", "beta2", "lambda_okd", "oofc")},
}
TEMPERATURE: Targets = {"T": ("options.kd_temperature",)}
DECAYS = {"init_lr_decay": 0.1, "lrate_decay": 0.1}


@dataclass(frozen=True)
class Known:
    """The keys of a method of PyCIL, in addition to those that all have."""

    targets: Targets
    only: dict[str, Any] = field(default_factory=lambda: dict(DECAYS))  # keys with a single value here
    ignored: tuple[str, ...] = ()  # keys that change nothing in PyCIL either
    cosine: bool = False  # its networks are called cosine_...
    options: dict[str, Any] = field(default_factory=dict)  # the options that do as PyCIL's code


METHODS = {
    "finetune": Known(STEPS),
    "replay": Known(STEPS),
    "lwf": Known({**STEPS, **TEMPERATURE, "lamda": ("options.kd_weight",)}),
    "icarl": Known({**STEPS, **TEMPERATURE}),
    "wa": Known({**STEPS, **TEMPERATURE}),
    "der": Known(STEPS),
    "bic": Known({**_shared("first", "later", "second"), **TEMPERATURE}, options={"bias_loss": "pycil"}),
    "podnet": Known(PODNET, only={}, cosine=True, options={"nca": "pycil"}),
    "coil": Known(
        {**_shared("first", "later"), **TEMPERATURE, "sinkhorn": ("options.sinkhorn",)},
        only={**DECAYS, "norm_term": 3.0, "reg_term": 1e-3},
        ignored=("calibration_term",),
        cosine=True,
    ),
    "foster": Known(
        {**FOSTER, **TEMPERATURE},
        only={"is_teacher_wa": False, "is_student_wa": False},
        ignored=("wa_value",),
    ),
}
COMMON: Targets = {"init_cls": ("base",), "increment": ("increment",), "batch_size": ("batch_size",)}
NEEDED = ("model_name", "dataset", "convnet_type", "init_cls", "increment", "memory_size", "shuffle", "seed")
MORE = ("memory_per_class", "fixed_memory", "device")
IGNORED = ("prefix", "num_workers", "wb-project")
COIL_MEMORY = 2000  # in PyCIL's code, whatever the file holds


def read(path: Path, ordered: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Read the settings of a PyCIL file, and notes on them for the user.

    `ordered`: the class order comes from a flag, so the file may list several seeds.
    """
    given, notes = _load(path), list[str]()
    place = f"in {path.name!r}"
    name = str(given["model_name"]).lower()
    if name not in METHODS:
        raise unknown(f"model_name {place}", name, METHODS)
    known, spec = METHODS[name], SPECS[name]
    _refuse_unknown(given, known, name, place)
    values = _usual(spec, known) | {"data": str(given["dataset"]).lower()}
    _fill(values, given, {**COMMON, **known.targets}, place)
    values["backbone"] = _backbone(str(given["convnet_type"]).lower(), known, name, place)
    _memory(given, values, name, place, notes)
    _order(given, values, place, ordered)
    _device(given, values, place, notes)
    for key, value in known.options.items():
        notes.append(f"as in PyCIL's code, --{key.replace('_', '-')} {value}, unless a flag says otherwise")
    try:
        own_options(spec, make(**values).options)
    except Refused as error:
        raise Refused(f"{place} {error}") from None
    return values, notes


def rescaled(values: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Scale all stages of a file to --epochs and --lr, so that they keep the file's own proportions."""
    file, scaled = make(**values), dict(values)
    wanted = make(method=file.method, later=flags.get("later", {})).later
    length, rate = (
        (getattr(wanted, n) or getattr(file.later, n)) / getattr(file.later, n) for n in ("epochs", "lr")
    )
    for name in STAGES:
        stage = getattr(file, name)
        if stage.epochs is not None:
            scaled[name] = rescale(stage, length, rate).model_dump(exclude_none=True)
    return scaled


def _load(path: Path) -> dict[str, Any]:
    """Read the JSON; refuse what is no file of PyCIL."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Refused(f"there is no PyCIL file {str(path)!r}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(f"{str(path)!r} cannot be read as JSON: {error}") from None
    if not isinstance(given, dict):
        raise Refused(f"{str(path)!r} is no PyCIL file: it holds no names and values")
    missing = [key for key in NEEDED if key not in given]
    if missing:
        raise Refused(f"{str(path)!r} is no PyCIL file: it has no {missing[0]!r}")
    for key in ("shuffle", "fixed_memory"):
        if not isinstance(given.get(key, False), bool):
            raise Refused(f"{key} in {path.name!r} is {given[key]!r}; it should be true or false")
    return given


def _refuse_unknown(given: dict[str, Any], known: Known, name: str, place: str) -> None:
    """Refuse keys that nobody knows, and values that have no counterpart here."""
    keys = {*NEEDED, *MORE, *IGNORED, *COMMON, *known.targets, *known.only, *known.ignored}
    strange = [key for key in given if key not in keys]
    if len(strange) == 1:
        raise unknown(f"key {place} for {name}", strange[0], keys)
    if strange:
        raise Refused(f"unknown keys {place} for {name}: {', '.join(map(repr, strange))}")
    for key, value in known.only.items():
        if given.get(key, value) != value:
            raise Refused(
                f"{key} {given[key]!r} {place} has no counterpart: {name} is here with {value!r} alone"
            )


def _usual(spec: Spec, known: Known) -> dict[str, Any]:
    """The method with all schedules of PyCIL's code, so that a key of the file changes nothing else."""
    stages = {name: stage for name in STAGES if (stage := getattr(spec, name)) is not None}
    schedules = {name: stage.model_dump(exclude_none=True) for name, stage in stages.items()}
    return {"method": spec.name, **schedules, "options": dict(known.options)}


def _fill(values: dict[str, Any], given: dict[str, Any], targets: Targets, place: str) -> None:
    """Set what each key stands for. Versions of PyCIL differ in names; refuse two that disagree."""
    set_by: dict[str, str] = {}
    for key in [key for key in targets if key in given]:
        if given[key] is None:
            raise Refused(f"{key} {place} has no value")
        for target in targets[key]:
            before = set_by.setdefault(target, key)
            if before != key and given[before] != given[key]:
                raise Refused(f"{before} and {key} {place} contradict each other")
            section, _, part = target.rpartition(".")
            (values[section] if section else values)[part] = given[key]


def _backbone(network: str, known: Known, name: str, place: str) -> str:
    """Take cosine_ off the name: it means no last ReLU, and here the method decides that."""
    plain = network.removeprefix("cosine_")
    if (plain != network) != known.cosine:
        kind = "with cosine_ networks alone" if known.cosine else "without cosine_ networks"
        raise Refused(
            f"convnet_type {network!r} {place}: {name} is here {kind}; "
            f"{'cosine_' * known.cosine}{plain} would be known"
        )
    return plain


def _memory(given: dict[str, Any], values: dict[str, Any], name: str, place: str, notes: list[str]) -> None:
    """Set the memory: a total, or exemplars of each class."""
    fixed = given.get("fixed_memory", False)
    if name == "coil":
        values["memory"] = COIL_MEMORY
        if fixed or given["memory_size"] != COIL_MEMORY:
            notes.append(
                f"PyCIL's COIL keeps {COIL_MEMORY} exemplars whatever the file says; --memory changes that"
            )
    elif not fixed:
        values["memory"] = given["memory_size"]
    elif given.get("memory_per_class") is None:
        raise Refused(f"fixed_memory {place} needs memory_per_class")
    else:
        values["memory_per_class"] = given["memory_per_class"]
        notes.append(
            f"fixed_memory: {given['memory_per_class']} exemplars of each class; memory_size has no effect"
        )


def _order(given: dict[str, Any], values: dict[str, Any], place: str, ordered: bool) -> None:
    """Set the class order by PyCIL's seed. Its weights always start from seed 1, as ours do by default."""
    if ordered:
        return
    if not given["shuffle"]:
        values["order"] = tuple(range(find_dataset(values["data"]).classes))
        return
    seeds = given["seed"] if isinstance(given["seed"], list) else [given["seed"]]
    if len(seeds) != 1:
        raise Refused(
            f"seed {place} lists {len(seeds)} class orders, and a run has one: choose with --order-seed "
            "(jioc grid --seeds varies the weights and the data order)"
        )
    values["order_seed"] = seeds[0]


def _device(given: dict[str, Any], values: dict[str, Any], place: str, notes: list[str]) -> None:
    """Set the device; -1 is the CPU."""
    devices = given.get("device", [])
    devices = [str(d) for d in (devices if isinstance(devices, list) else [devices])]
    if devices == ["-1"]:
        values["device"] = "cpu"
    elif not all(d.isdecimal() for d in devices):
        raise Refused(f"device {given['device']!r} {place} names no GPUs by number; -1 is the CPU")
    elif len(devices) > 1:
        notes.append(
            f"one device is used; PyCIL splits each batch, and its batch statistics, over {len(devices)}"
        )
    elif devices and devices != ["0"]:
        values["device"] = f"cuda:{devices[0]}"
