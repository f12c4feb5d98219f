"""Read a PyCIL experiment file (exps/*.json) as settings of the run that PyCIL would run. No torch here.

Every key becomes a setting, or has the only value that there is here, or is refused by name. The schedules in
PyCIL's code are those of `methods/specs.py`. Where PyCIL's code of a method departs from its paper, the
option that departs in the same way is set. `docs/pycil.md` explains it to users.
"""

from dataclasses import dataclass, field
from pathlib import Path

from jioc.config import Values, flat, make, nested, rescale
from jioc.config.index import STAGES, flag
from jioc.errors import Refused, refuse_if, refuse_unknown, unknown
from jioc.files import from_json, read_text
from jioc.methods import SPECS, Spec, own_options
from jioc.scripts import is_script

Targets = dict[str, tuple[str, ...]]  # the dotted names of the settings that a key of PyCIL sets

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
class MethodKeys:
    """The keys of a method of PyCIL, in addition to those that all have."""

    targets: Targets
    only: Values = field(default_factory=lambda: dict(DECAYS))  # keys with a single value here
    ignored: tuple[str, ...] = ()  # keys that change nothing in PyCIL either
    cosine: bool = False  # its networks are called cosine_...
    options: Values = field(default_factory=dict)  # the options that do as PyCIL's code


METHODS = {
    "finetune": MethodKeys(STEPS),
    "replay": MethodKeys(STEPS),
    "lwf": MethodKeys({**STEPS, **TEMPERATURE, "lamda": ("options.kd_weight",)}),
    "icarl": MethodKeys({**STEPS, **TEMPERATURE}),
    "wa": MethodKeys({**STEPS, **TEMPERATURE}),
    "der": MethodKeys(STEPS),
    "bic": MethodKeys({**_shared("first", "later", "second"), **TEMPERATURE}, options={"bias_loss": "pycil"}),
    "podnet": MethodKeys(PODNET, only={}, cosine=True, options={"nca": "pycil"}),
    "coil": MethodKeys(
        {**_shared("first", "later"), **TEMPERATURE, "sinkhorn": ("options.sinkhorn",)},
        only={**DECAYS, "norm_term": 3.0, "reg_term": 1e-3},
        ignored=("calibration_term",),
        cosine=True,
    ),
    "foster": MethodKeys(
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


def read(path: Path, ordered: bool = False) -> tuple[Values, list[str]]:
    """Read the settings of a PyCIL file, and notes on them for the user.

    `ordered`: the class order comes from a flag, so the file may list several seeds.
    """
    given, notes, place = _load(path), list[str](), f"in {path.name!r}"
    name = str(given["model_name"]).lower()
    refuse_unknown(f"model_name {place}", name, METHODS)
    known, spec = METHODS[name], SPECS[name]
    _refuse_unknown(given, known, name, place)
    values = _usual(spec, known) | {"data": str(given["dataset"]).lower()}
    code = f"dataset {given['dataset']!r} {place} is a Python file, which is not run for it; give --data"
    refuse_if(is_script(values["data"]), code)
    _fill(values, given, {**COMMON, **known.targets}, place)
    values["backbone"] = _backbone(str(given["convnet_type"]).lower(), known, name, place)
    _memory(given, values, name, place, notes)
    if not ordered:
        _order(given, values, place)
    _device(given, values, place, notes)
    for key, value in known.options.items():
        notes.append(f"as in PyCIL's code, {flag(key)} {value}, unless a flag says otherwise")
    try:
        own_options(spec, make(**nested(values)).options)
    except Refused as error:
        raise Refused(f"{place} {error}") from None
    return nested(values), notes


def rescaled(values: Values, flags: Values) -> Values:
    """Scale all stages of a file to --epochs and --lr, so that they keep the file's own proportions."""
    file = make(**values)
    given = make(method=file.method, later=flags.get("later", {})).later
    length, rate = (
        (getattr(given, n) or getattr(file.later, n)) / getattr(file.later, n) for n in ("epochs", "lr")
    )
    return values | rescale(file, length, rate)


def _load(path: Path) -> Values:
    """Read the JSON; refuse what is no file of PyCIL."""
    try:
        given = from_json(read_text(path))
    except FileNotFoundError:
        raise Refused(f"there is no PyCIL file {str(path)!r}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Refused(f"{str(path)!r} cannot be read as JSON: {why}") from None
    wrong = f"{str(path)!r} is no PyCIL file: it"
    refuse_if(not isinstance(given, dict), f"{wrong} holds no names and values")
    for key in NEEDED:
        refuse_if(key not in given, f"{wrong} has no {key!r}")
    for key in ("model_name", "dataset", "convnet_type"):
        refuse_if(not isinstance(given[key], str), f"{wrong} has {key} {given[key]!r}, which is no name")
    for key in ("shuffle", "fixed_memory"):
        value = given.get(key, False)
        refuse_if(
            not isinstance(value, bool), f"{key} in {path.name!r} is {value!r}; it should be true or false"
        )
    return given


def _refuse_unknown(given: Values, known: MethodKeys, name: str, place: str) -> None:
    """Refuse keys that nobody knows, and values that have no counterpart here."""
    keys = {*NEEDED, *MORE, *IGNORED, *COMMON, *known.targets, *known.only, *known.ignored}
    strange = [key for key in given if key not in keys]
    if len(strange) == 1:
        raise unknown(f"key {place} for {name}", strange[0], keys)
    refuse_if(strange, f"unknown keys {place} for {name}: {', '.join(map(repr, strange))}")
    for key, only in known.only.items():
        value = given.get(key, only)
        refuse_if(
            value != only, f"{key} {value!r} {place} has no counterpart: {name} is here with {only!r} alone"
        )


def _usual(spec: Spec, known: MethodKeys) -> Values:
    """The method with all schedules of PyCIL's code, so that a key of the file changes nothing else."""
    stages = {name: stage for name in STAGES if (stage := getattr(spec, name)) is not None}
    schedules = {name: stage.model_dump(exclude_none=True) for name, stage in stages.items()}
    return flat({"method": spec.name, **schedules, "options": known.options})


def _fill(values: Values, given: Values, targets: Targets, place: str) -> None:
    """Set what each key stands for. Versions of PyCIL differ in names; refuse two that disagree."""
    set_by: dict[str, str] = {}
    for key in [key for key in targets if key in given]:
        refuse_if(given[key] is None, f"{key} {place} has no value")
        for target in targets[key]:
            before = set_by.setdefault(target, key)
            differ = before != key and given[before] != given[key]
            refuse_if(differ, f"{before} and {key} {place} contradict each other")
            values[target] = given[key]


def _backbone(network: str, known: MethodKeys, name: str, place: str) -> str:
    """Take cosine_ off the name: it means no last ReLU, and here the method decides that."""
    plain = network.removeprefix("cosine_")
    kind = "with cosine_ networks alone" if known.cosine else "without cosine_ networks"
    refuse_if(
        (plain != network) != known.cosine,
        f"convnet_type {network!r} {place}: {name} is here {kind}; "
        f"{'cosine_' * known.cosine}{plain} would be known",
    )
    return plain


def _memory(given: Values, values: Values, name: str, place: str, notes: list[str]) -> None:
    """Set the memory: a total, or exemplars of each class."""
    fixed, per_class = given.get("fixed_memory", False), given.get("memory_per_class")
    refuse_if(fixed and per_class is None and name != "coil", f"fixed_memory {place} needs memory_per_class")
    if name == "coil":
        values["memory"] = COIL_MEMORY
        if fixed or given["memory_size"] != COIL_MEMORY:
            notes.append(
                f"PyCIL's COIL keeps {COIL_MEMORY} exemplars whatever the file says; --memory changes that"
            )
    elif fixed:
        values["memory_per_class"] = per_class
        notes.append(f"fixed_memory: {per_class} exemplars of each class; memory_size has no effect")
    else:
        values["memory"] = given["memory_size"]


def _order(given: Values, values: Values, place: str) -> None:
    """Set the class order by PyCIL's seed. Its weights always start from seed 1, as ours do by default."""
    seeds = given["seed"] if isinstance(given["seed"], list) else [given["seed"]]
    refuse_if(
        given["shuffle"] and len(seeds) != 1,
        f"seed {place} lists {len(seeds)} class orders, and a run has one: choose with --order-seed "
        "(jioc grid --seeds varies the weights and the data order)",
    )
    if given["shuffle"]:
        values["order_seed"] = seeds[0]
    else:
        values["order"] = "original"


def _device(given: Values, values: Values, place: str, notes: list[str]) -> None:
    """Set the device; -1 is the CPU."""
    named = given.get("device", [])
    devices = [str(d) for d in (named if isinstance(named, list) else [named])]
    wrong = devices != ["-1"] and not all(d.isdecimal() for d in devices)
    refuse_if(wrong, f"device {named!r} {place} names no GPUs by number; -1 is the CPU")
    if len(devices) > 1:
        notes.append(
            f"one device is used; PyCIL splits each batch, and its batch statistics, over {len(devices)}"
        )
    elif devices and devices != ["0"]:
        values["device"] = "cpu" if devices == ["-1"] else f"cuda:{devices[0]}"
