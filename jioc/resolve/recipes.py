"""Our recipes: the paper's tables, controls that it lacks, and a study of what it leaves open. No torch here.

A recipe is a function that returns named settings, nested as in config.yaml. A name tells the whole setting:
recipes can share a folder, and a run of two recipes runs once.
"""

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from jioc.config import Values, nested
from jioc.errors import refuse_unknown
from jioc.events import Callback, ignore
from jioc.methods import FIRST
from jioc.resolve import components, recipe_file
from jioc.resolve.columns import RES18, RES18_TAIL, RES32, RES32_LARGE, RES32_TAIL, Column
from jioc.resolve.recipe_file import Recipe, Runs

HOSTS = ("bic", "podnet", "ssil", "coil", "icarl", "icarl+jioc", "der", "der+jioc", "foster", "foster+jioc")
LOSSES = (  # CE + KD, IC + KD, CE + OC, JIOC; the reading changes nothing in CE + OC on iCaRL
    *("icarl", "icarl+ic", "icarl+ic-printed", "icarl+oc", "icarl+jioc", "icarl+jioc-printed"),
)
PAIRED = ("icarl", "wa", "bic", "podnet", "der", "foster")  # hosts of the comparison that JIOC is put on
COMPARED = (  # the last row, and JIOC on BiC and PODNet, the paper does not have
    *(row for host in ("bic", "podnet") for row in (host, f"{host}+jioc", f"{host}+jioc-printed")),
    *("ssil", "ssil+oc", "coil"),
    *(
        row
        for host in ("icarl", "der", "foster", "wa")
        for row in (host, f"{host}+jioc", f"{host}+jioc-printed")
    ),
    *("replay", "finetune", "joint"),
)


TABLE2 = [
    Column(data, backbone, memory, tail=True)
    for data, backbone in [("cifar10", "resnet18"), ("cifar100", "resnet18"), ("cifar100", "resnet32")]
    for memory in (1000, 1500)
]
TABLE3 = [
    Column(data, backbone, memory)
    for data, backbone, memories in [
        ("miniimagenet", "resnet18", (1000, 2000)),
        ("tinyimagenet", "resnet18", (1000, 2000)),
        ("cub200", "resnet18", (500,)),
        ("cifar100", "resnet18", (1000, 2000)),
        ("cifar100", "resnet32", (1000, 2000)),
    ]
    for memory in memories
]


CIFAR = [column for column in TABLE2 + TABLE3 if column.data.startswith("cifar")]


def cells(columns: list[Column], rows: tuple[str, ...]) -> Runs:
    """Every row of every column."""
    return {name: values for column in columns for name, values in column.runs(rows)}


def cifar_columns() -> Runs:
    """The paper's rows on CIFAR, each once; a kept run of the same setting has the same name."""
    return {column.name(row): column.values(row) for column in CIFAR for row in HOSTS}


def comparison_checks() -> Runs:
    """What may explain figures of the comparison.

    - What PyCIL's code does whatever its settings: 20 exemplars a class in FOSTER, 2000 in COIL.
    - FOSTER with the augmentation of its published figure.
    - BiC without last batches of a few images, which batch normalisation takes by themselves.
    - JIOC's parts on WA, which loses most by it.
    - A hundredth of the suppression on SS-IL, whose own loss does not compare new heads with old ones.
    """
    foster = RES32_LARGE.values("foster") | {"memory_per_class": 20}
    del foster["memory"]
    coil = Column("cifar100", "resnet32", 2000, tail=True)
    runs = {
        f"{RES32_LARGE.prefix}-foster-20-a-class": foster,
        f"{RES32_LARGE.prefix}-foster-20-a-class-autoaugment-cutout": foster
        | {"augment": "autoaugment+cutout"},
        coil.name("coil"): coil.values("coil"),
        f"{RES32_TAIL.prefix}-bic-batch-121": RES32_TAIL.values("bic") | {"batch_size": 121},
    }
    parts: list[tuple[str, str, Values]] = [
        ("wa", "ic", {}),
        ("wa", "oc", {}),
        ("wa", "jioc", {"delta_scale": "mean1"}),
        ("ssil", "oc", {"gamma2": 0.01}),
    ]
    return runs | {
        f"{RES32_TAIL.prefix}-{host}-{_reading(loss, change)}": RES32_TAIL.values(host)
        | {"coordination": _as_printed(loss, change)}
        for host, loss, change in parts
    }


def table6_controls() -> Runs:
    """Controls that JIOC must beat: more distillation, the focal loss, class-balanced cross-entropy."""
    changes: Runs = {
        **{f"icarl-kd-weight-{w}": {"options": {"kd_weight": w}} for w in (2, 4)},
        "icarl-focal": {"coordination": _as_printed("ic", {"delta": "differentiated"})},
        **{f"icarl-balance-{b}": {"options": {"balance": b}} for b in (0.99, 0.999)},
    }
    return {f"{RES32.prefix}-{name}": RES32.values("icarl") | change for name, change in changes.items()}


def training_changes(column: Column) -> Runs:
    """CE + KD and JIOC on iCaRL, trained otherwise: what may explain the rows of tables 4 and 5."""
    longer = {"epochs": 2 * (FIRST.epochs or 0), "milestones": [2 * m for m in FIRST.milestones or ()]}
    changes: Runs = {
        "weight-decay": {"later": {"weight_decay": FIRST.weight_decay}},
        "long-first-task": {"first": longer},
        "autoaugment": {"augment": "autoaugment"},
    }
    return {
        f"{column.prefix}-icarl-{row.partition('+')[2] or 'none'}-{name}": column.values(row) | change
        for row, (name, change) in itertools.product(("icarl", "icarl+jioc"), changes.items())
    }


def _coordinated(loss: str, change: Values, **others: Any) -> Values:
    """Table 6's setting on a hold-out, under a loss with changed options."""
    coordination = {"coordinate": loss} if loss == "none" else _as_printed(loss, change)
    return RES32.values("icarl") | {"holdout": 0.1, "coordination": coordination} | others


def _as_printed(loss: str, change: Values) -> Values:
    """A loss by the formulas as printed, which the studies start from, but for a change."""
    return {"coordinate": loss, "reading": "printed"} | change


def study() -> Runs:
    """Table 6's losses on a hold-out, and each reading of the paper changed alone where it matters."""
    words = ("none", "ic", "oc", "jioc")
    readings = {
        _reading(loss, change): _coordinated(loss, change)
        for losses, changes in STUDIED.items()
        for change, loss in itertools.product(changes, losses)
    }
    # on the paper's two GPUs, batch normalisation saw half a batch
    halved = {f"{loss}-half-batch-bn": _coordinated(loss, {}, accumulate=2) for loss in words}
    return {loss: _coordinated(loss, {}) for loss in words} | readings | halved


STUDIED: dict[tuple[str, ...], list[Values]] = {  # by the losses that use them
    ("ic", "jioc"): [{"delta": "differentiated"}, {"delta_scale": "mean1"}, {"delta_scale": "per-class"}],
    ("oc", "jioc"): [
        *({"temperature": t} for t in (1, 4)),
        {"kd_t2": True},
        *({"gamma1": g} for g in (0.25, 0.5, 2)),
        *({"gamma2": g} for g in (0, 0.1, 0.5, 5)),
        *({"suppress_scale": scale} for scale in ("batch", "old-mean")),
        *({"oc_data": images} for images in ("new", "old")),
        {"oc_heads": "joint"},
        {"host_kd": "add"},
    ],
}


def study_suppression() -> Runs:
    """The suppression's strength, which the study found to matter, alone and with what else helped."""
    strong = {"suppress_scale": "old-mean"}
    others: list[Values] = [
        *({}, {"gamma2": 2}, {"gamma2": 4}, {"gamma1": 0.5}, {"gamma1": 2}),
        *({"delta_scale": "mean1"}, {"delta": "differentiated"}, {"temperature": 4}),
    ]
    changes: list[Values] = [*({"gamma2": g} for g in (2, 10, 20)), *(strong | other for other in others)]
    return {"none": RES32.values("icarl") | {"holdout": 0.1}} | {
        _reading(loss, change): _coordinated(loss, change)
        for loss, change in itertools.product(("oc", "jioc"), changes)
        if loss == "jioc" or not any(key.startswith("delta") for key in change)
    }


MEAN1 = {"delta_scale": "mean1"}
CONTROLS: dict[str, list[Values]] = {  # changes of each host alone: what JIOC on it is compared with
    "icarl": [{}, *({"adjust": tau} for tau in (1, 1.5, 2))],
    "wa": [{}, {"adjust": 1}],
    "der": [{}, *({"adjust": tau} for tau in (1, 1.5, 2))],
    "foster": [{}, {"options.beta1": 0}, {"adjust": 1}],
}
EVERYWHERE: list[Values] = [{}, MEAN1, {"oc_reduce": "mean"}]
EVERYWHERE += [MEAN1 | {"oc_reduce": "mean"}, {"adjust": 1}]
COORDINATED: dict[str, list[Values]] = {  # changes of each host with JIOC as printed
    "icarl": EVERYWHERE,
    "wa": EVERYWHERE,
    "der": EVERYWHERE,
    "foster": [*EVERYWHERE, {"options.beta1": 0}],
}


def readings() -> Runs:
    """Readings of JIOC on four hosts, CIFAR-100-LT, each changed alone, and controls, on a hold-out."""
    arms = (("none", CONTROLS), ("jioc", COORDINATED))
    return {
        name: values
        for word, by_host in arms
        for host, changes in by_host.items()
        for name, values in _on_holdout(RES32_TAIL, host, word, changes)
    }


NAMED: list[Values] = [{"reading": word} for word in ("printed", "averaged", "normalised")]
NAMED += [{"reading": "normalised", "oc_reduce": "mean"}]
SHARED: list[Values] = [  # WA and BiC have factors of their own
    {"reading": "normalised", "host_factors": "keep"},
    {"reading": "averaged", "host_factors": "drop"},
]
WEAKER: list[Values] = [{"reading": "normalised", "gamma1": 0}, {"reading": "averaged", "gamma2": 0}]
STRONGER: list[Values] = [{"reading": "normalised", "gamma2": gamma2} for gamma2 in (2, 4)]
ADJUSTED: dict[str, Values] = {  # the default of each, and logits adjusted
    "normalised": {"reading": "normalised", "adjust": 1},
    "averaged": {"reading": "averaged", "adjust": 1},
}
LONG_TAIL_ALONE: dict[str, list[Values]] = {
    "icarl": [*STRONGER, ADJUSTED["normalised"]],
    "wa": [*SHARED, ADJUSTED["normalised"]],
    "bic": SHARED,
    "der": [*WEAKER, ADJUSTED["averaged"]],
    "foster": [*WEAKER, ADJUSTED["averaged"]],
}


def readings_on_hosts() -> Runs:
    """The readings with a name, and what they consist of, on six hosts of two columns, on a hold-out."""
    runs: Runs = {}
    for column, host in itertools.product((RES32_TAIL, RES32_LARGE), PAIRED):
        more = LONG_TAIL_ALONE.get(host, []) if column is RES32_TAIL else []
        runs |= _on_holdout(column, host, "none", [{}])
        runs |= _on_holdout(column, host, "jioc", [*NAMED, *more])
    for host, part in itertools.product(("der", "foster"), ("ic", "oc")):  # which part costs them accuracy
        runs |= _on_holdout(RES32_TAIL, host, part, [{"reading": "averaged"}])
    return runs


def _on_holdout(column: Column, host: str, word: str, changes: list[Values]) -> Iterator[tuple[str, Values]]:
    """Runs of a host under a word of --coordinate, one for each change of options, by name."""
    for change in changes:
        options = {name: value for name, value in change.items() if "." in name or name == "adjust"}
        read = {k: v for k, v in change.items() if k not in options}
        coordination = {"coordinate": word} if word == "none" else _as_printed(word, read)
        values = column.values(host) | {"holdout": 0.1, "coordination": coordination}
        shown = {name.removeprefix("options."): value for name, value in change.items()}
        yield f"{column.prefix}-{host}-{_reading(word, shown)}", values | nested(options)


def _reading(loss: str, change: Values) -> str:
    """The studies' name of a setting: jioc-suppress-scale-old-mean-gamma2-2."""
    changes = (
        f"{key.replace('_', '-')}-{'yes' if value is True else value}" for key, value in change.items()
    )
    return "-".join([loss, *changes])


def stems() -> Runs:
    """ResNet18's first task under each stem: the paper's 87.10 and 80.70."""
    return {
        f"{column.prefix}-first-task-{stem}": first_task(column) | {"stem": stem}
        for column in (RES18, RES18_TAIL)
        for stem in ("cifar", "cifar-pool", "imagenet")
    }


def parity() -> Runs:
    """The first task as it is trained by default on a GPU, and op by op in full precision."""
    engines = {"fast": {}, "eager": {"engine": "eager", "precision": "fp32"}}
    networks = {"": RES32, "-imagenet-stem": RES18}
    return {
        engine + network: first_task(column) | how
        for network, column in networks.items()
        for engine, how in engines.items()
    }


def first_task(column: Column) -> Values:
    """The first task in full, the other classes in one short task."""
    values = column.values("icarl") | {"base": 10, "increment": 90}
    del values["tasks"]
    first = {"epochs": FIRST.epochs, "milestones": list(FIRST.milestones or ())}
    return values | {"first": first, "later": {"epochs": 1}}


RECIPES = {
    recipe.name: recipe
    for recipe in [
        Recipe("table2", "the long-tailed data sets, ten methods", partial(cells, TABLE2, HOSTS)),
        Recipe("table3", "the balanced data sets, ten methods", partial(cells, TABLE3, HOSTS)),
        Recipe(
            "columns", "the ten CIFAR columns of tables 2 and 3, ten rows each", cifar_columns, seeds=(1,)
        ),
        Recipe(
            "table4",
            "iCaRL's four losses, CIFAR-100-LT, ResNet18",
            partial(cells, [RES18_TAIL], LOSSES),
        ),
        Recipe("table5", "iCaRL's four losses, CIFAR-100, ResNet18", partial(cells, [RES18], LOSSES)),
        Recipe("table6", "iCaRL's four losses, CIFAR-100, ResNet32", partial(cells, [RES32], LOSSES)),
        Recipe(
            "table4-training",
            "table 4's CE + KD and JIOC, trained otherwise",
            partial(training_changes, RES18_TAIL),
            seeds=(1,),
        ),
        Recipe(
            "table5-training",
            "table 5's CE + KD and JIOC, trained otherwise",
            partial(training_changes, RES18),
            seeds=(1,),
        ),
        Recipe(  # the paper does not say with how many exemplars
            "figure4",
            "SS-IL without and with output coordination",
            partial(cells, [RES18_TAIL, RES18, RES32], ("ssil", "ssil+oc")),
        ),
        Recipe(
            "comparison",
            "CIFAR-100 and its long tail, ResNet32, the paper's methods and baselines",
            partial(cells, [RES32_LARGE, RES32_TAIL], COMPARED),
            seeds=(1,),
        ),
        Recipe(
            "comparison-checks", "what may explain figures of the comparison", comparison_checks, seeds=(1,)
        ),
        Recipe(
            "table6-controls",
            "what JIOC must be more than, in table 6's setting",
            table6_controls,
            seeds=(1,),
        ),
        Recipe(
            "study",
            "the readings of the paper, one change at a time, on a hold-out",
            study,
            seeds=(1,),
            scale=0.3,
        ),
        Recipe(
            "study-suppression",
            "the suppression's strength, alone and with other readings, on a hold-out",
            study_suppression,
            seeds=(1, 2),
            scale=0.3,
        ),
        Recipe(
            "readings",
            "readings of JIOC on four hosts of the long tail, with controls, on a hold-out",
            readings,
            seeds=(1,),
        ),
        Recipe(
            "readings-on-hosts",
            "the best readings on six hosts of the long tail and of CIFAR-100, on a hold-out",
            readings_on_hosts,
            seeds=(1,),
        ),
        Recipe("stems", "the first task of ResNet18 under each stem", stems, seeds=(1,)),
        Recipe(
            "parity", "the first task by the fast engine and op by op in fp32", parity, seeds=(1, 2, 3, 4, 5)
        ),
        *components.recipes(),
    ]
}


def find_recipe(name: str, tell: Callback = ignore) -> Recipe:
    """Find the recipe of that name, or read the one in a YAML file."""
    if name.endswith((".yaml", ".yml")):
        return recipe_file.read(Path(name), tell)
    refuse_unknown("recipe", name, RECIPES)
    return RECIPES[name]
