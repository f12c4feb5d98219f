"""Recipes towards the best accuracy: what each component adds, the best together, LT-CIL's protocol.

A component is a change of settings. The studies judge by a hold-out and choose the preset `best`; its recipes
and `lt-cil` judge by the test set.
"""

import itertools

from jioc.config import Values, nested
from jioc.resolve.columns import RES32_LARGE, RES32_TAIL, Column
from jioc.resolve.overlay import overlay
from jioc.resolve.presets import PRESETS
from jioc.resolve.recipe_file import Recipe, Runs

IMAGE = 3 * 32 * 32  # bytes of an exemplar of CIFAR
COSINE: Values = {"first.decay": "cosine", "later.decay": "cosine"}
DECAY: Values = {"later.weight_decay": 5e-4}  # that of the first task
TOGETHER = COSINE | DECAY
HEAD: Values = {"rebalance": "head"}
SCALE: Values = {"rebalance": "scale"}
ADJUST_1: Values = {"adjust": 1}
ADJUST: Values = {"adjust": 1.5}
COSINE_HEAD: Values = {"head": "cosine"}
AUTO: Values = {"augment": "autoaugment"}
ALONE: dict[str, Values] = {
    "none": {},
    "adjust-1": ADJUST_1,
    "adjust-1.5": ADJUST,
    "rebalance-head": HEAD,
    "rebalance-scale": SCALE,
    "ema": {"ema": 0.999},
    "cosine": COSINE,
    "weight-decay": DECAY,
    "cosine-head": COSINE_HEAD,
}
JIOC: Values = {"coordination.coordinate": "jioc"}
MORE_DECAY: Values = {"later.weight_decay": 1e-3}
CANDIDATES = {  # for `best`
    "weight-decay-0.001": MORE_DECAY,
    "weight-decay-0.001-cosine-head": MORE_DECAY | COSINE_HEAD,
    "weight-decay-0.001-cosine-head-adjust": MORE_DECAY | COSINE_HEAD | ADJUST_1,
    "weight-decay-0.001-cosine-head-adjust-jioc": MORE_DECAY | COSINE_HEAD | ADJUST_1 | JIOC,
}
COMBINED: dict[str, Values] = {
    "together": TOGETHER,
    "together-head": TOGETHER | HEAD,
    "together-scale": TOGETHER | SCALE,
    "together-head-adjust": TOGETHER | HEAD | ADJUST_1,
    "together-adjust": TOGETHER | ADJUST,
    # these leave the first task as it is, so that they differ by less chance
    **{
        f"weight-decay-{each:g}-head": {"later.weight_decay": each} | HEAD
        for each in (5e-4, 1e-3, 2e-3, 4e-3)
    },
    "weight-decay-0.001-head-adjust": MORE_DECAY | HEAD | ADJUST_1,
    "weight-decay-0.001-head-jioc": MORE_DECAY | HEAD | JIOC,
} | CANDIDATES
UNAUGMENTED = ALONE | COMBINED
TAILED = {
    name: ALONE[name] for name in ("none", "adjust-1", "adjust-1.5", "rebalance-head", "weight-decay")
} | COMBINED
EXTRA: dict[str, Values] = {  # smaller images in the same bytes; extra augmentation, on boards of its own
    "half-size": {"memory_bytes": 2000 * IMAGE, "exemplar_size": "half"},
    "mixup": {"mix": "mixup"},
    "cutmix": {"mix": "cutmix"},
    "autoaugment": AUTO,
    "autoaugment-cutout": {"augment": "autoaugment+cutout"},
    "together-head-autoaugment": TOGETHER | HEAD | AUTO,
    "weight-decay-0.001-autoaugment": MORE_DECAY | AUTO,
}
CHANGES = UNAUGMENTED | EXTRA
LACKING = {  # what a host is not run with: of what corrects a head, the other's; the candidates are DER's
    "der": {"adjust-1.5", "together-adjust"},
    "icarl": {name for name, change in CHANGES.items() if "rebalance" in change and len(change) > 1}
    | {name for name, change in CHANGES.items() if change.items() >= MORE_DECAY.items()},
}
HOSTS = tuple(LACKING)


def changed(values: Values, change: Values) -> Values:
    """Settings with a change by dotted names; bytes of exemplars take the place of their number."""
    if "memory_bytes" in change:
        values = {name: value for name, value in values.items() if name != "memory"}
    return nested(values | change)


def study(column: Column, changes: dict[str, Values]) -> Runs:
    """Each change of each host that is to have it, judged by a hold-out."""
    return {
        f"{column.prefix}-{host}-{name}": changed(column.values(host) | {"holdout": 0.1}, change)
        for host, (name, change) in itertools.product(HOSTS, changes.items())
        if name not in LACKING[host]
    }


def components() -> Runs:
    """DER and iCaRL on CIFAR-100: one component at a time, then together, on a hold-out; full schedules."""
    return study(RES32_LARGE, CHANGES)


def components_long_tail() -> Runs:
    """The best again on the long tail."""
    return study(RES32_TAIL, TAILED)


def best(settings: Values, change: Values) -> Runs:
    """What the study chose, on both columns, and once more with a change."""
    suffix = "".join(f"-{value}" for value in change.values())
    return {
        f"{column.prefix}-best{suffix}": changed(column.values(str(settings["method"])), settings | change)
        for column in (RES32_LARGE, RES32_TAIL)
    }


# --- LT-CIL: long-tailed class-incremental learning (Liu et al., ECCV 2022) ---

STAGE: Values = {"epochs": 160, "lr": 0.1, "decay": "steps", "milestones": [80, 120], "weight_decay": 5e-4}
LT_CIL: Values = {
    "data": "cifar100",
    "backbone": "resnet32",
    "long_tail": 100,
    "memory_per_class": 20,
    "base": 50,
    "holdout": 0.1,
    "judge_by": "test",
    "augment": "resized-crop",
    "first": STAGE,
    "later": STAGE,
}


def lt_cil() -> Runs:
    """iCaRL, PODNet, DER and `best`, with and without JIOC: 50 classes, then 5 or 10 tasks, in two orders.

    The protocol's epochs, rates, weight decay and memory stand over those of `best`; what it does not name
    stays.
    """
    hosts: dict[str, Values] = {host: {"method": host} for host in ("icarl", "podnet", "der")}
    hosts["best"] = PRESETS["best"].values
    orders: dict[str, Values] = {"shuffled": {}, "ordered": {"order": "original"}}
    runs: Runs = {}
    for (order, ordered), tasks, word in itertools.product(orders.items(), (5, 10), ("none", "jioc")):
        protocol = LT_CIL | ordered | {"increment": 50 // tasks}
        for host, values in hosts.items():
            name = f"lt-cil-{order}-{tasks}-{host}-{word}"
            runs[name] = overlay(values, protocol | {"coordination": {"coordinate": word}})
    return runs


def recipes() -> list[Recipe]:
    """The recipes of this module."""
    settings = PRESETS["best"].settings
    return [
        Recipe(
            "components",
            "what each component adds to DER and iCaRL, CIFAR-100, on a hold-out",
            components,
            seeds=(1,),
        ),
        Recipe(
            "components-long-tail",
            "the best of these without augmentation, CIFAR-100-LT, on a hold-out",
            components_long_tail,
            seeds=(1,),
        ),
        Recipe("lt-cil", "LT-CIL's protocol: long tail, 50 classes, 5 or 10 tasks", lt_cil, seeds=(1,)),
        Recipe("best", "the components that won, both columns", lambda: best(settings, {})),
        Recipe("best-augmented", "the same with AutoAugment", lambda: best(settings, AUTO)),
    ]
