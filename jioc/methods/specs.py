"""What is known about each method without torch: its paper, its schedules, its own options, what it keeps.

The formula of method `name` is in `methods/<name>.py`. Schedules are PyCIL's for CIFAR-100, batch 128, unless
a line says otherwise.
"""

from dataclasses import dataclass
from typing import Literal

from jioc.config import Options, Schedule
from jioc.methods.options import (
    BiCOptions,
    COILOptions,
    DEROptions,
    Distilling,
    FOSTEROptions,
    ICaRLOptions,
    LwFOptions,
    PODNetOptions,
    SSILOptions,
)


@dataclass(frozen=True)
class Spec:
    """What is known about a method: its entry in the registry."""

    name: str
    title: str
    paper: str
    first: Schedule
    later: Schedule
    second: Schedule | None = None  # BiC's bias, FOSTER's compression, PODNet's balanced tuning
    options: type[Options] = Options
    memory: Literal["exemplars", "none", "all"] = "exemplars"  # none: keeps nothing; all: keeps every image
    distils: bool = False
    expands: bool = False
    readouts: tuple[str, ...] = ("cnn", "nme")
    headline: str = "cnn"  # the read-out by which the method is judged
    needs_memory: bool = False  # refused without exemplars
    host_kd: Literal["replace", "keep"] = "replace"  # keep: its distillation is JIOC's already


def steps(epochs: int, *milestones: int, weight_decay: float, lr: float = 0.1) -> Schedule:
    return Schedule(epochs=epochs, lr=lr, decay="steps", milestones=milestones, weight_decay=weight_decay)


def cosine(epochs: int, *, weight_decay: float, lr: float = 0.1) -> Schedule:
    return Schedule(epochs=epochs, lr=lr, decay="cosine", weight_decay=weight_decay)


FIRST = steps(200, 60, 120, 170, weight_decay=5e-4)
BIC = steps(170, 60, 100, 140, weight_decay=2e-4)
COIL = steps(160, 80, 120, weight_decay=5e-4)


SPECS: dict[str, Spec] = {
    spec.name: spec
    for spec in [
        Spec(
            "finetune", "Finetune", "new images alone: the floor",
            FIRST, steps(80, 40, 70, weight_decay=2e-4), memory="none",
        ),
        Spec(
            "joint", "Joint", "all images seen so far: the ceiling",
            FIRST, steps(70, 30, 50, weight_decay=2e-4), memory="all",
        ),
        Spec(
            "replay", "Replay", "cross-entropy on new images and exemplars",
            FIRST, steps(70, 30, 50, weight_decay=2e-4),
        ),
        Spec(
            "lwf", "LwF", "Li and Hoiem, ECCV 2016",
            steps(200, 60, 120, 160, weight_decay=5e-4), steps(250, 60, 120, 180, 220, weight_decay=2e-4),
            options=LwFOptions, memory="none", distils=True,
        ),
        Spec(
            "icarl", "iCaRL", "Rebuffi et al., CVPR 2017",
            FIRST, steps(170, 80, 120, weight_decay=2e-4), options=ICaRLOptions, distils=True,
        ),
        Spec(
            "wa", "WA", "Zhao et al., CVPR 2020",
            FIRST, steps(170, 60, 100, 140, weight_decay=2e-4), options=Distilling, distils=True,
            readouts=("cnn", "nme", "unaligned"),
        ),
        Spec(
            "bic", "BiC", "Wu et al., CVPR 2019",
            BIC, BIC, BIC, options=BiCOptions, distils=True, readouts=("cnn", "nme", "uncorrected"),
            needs_memory=True,
        ),
        Spec(
            "podnet", "PODNet", "Douillard et al., ECCV 2020",
            cosine(160, weight_decay=5e-4), cosine(160, weight_decay=5e-4),
            cosine(20, lr=0.005, weight_decay=5e-4),
            options=PODNetOptions, distils=True,
        ),
        Spec(
            "ssil", "SS-IL", "Ahn et al., ICCV 2021",
            FIRST, steps(170, 80, 120, weight_decay=2e-4), options=SSILOptions, distils=True, host_kd="keep",
        ),
        Spec(
            "der", "DER", "Yan et al., CVPR 2021",
            FIRST, steps(170, 80, 120, 150, weight_decay=2e-4), options=DEROptions, expands=True,
            readouts=("cnn", "nme", "unaligned"),
        ),
        Spec(
            "foster", "FOSTER", "Wang et al., ECCV 2022",
            cosine(200, weight_decay=5e-4), cosine(170, weight_decay=5e-4), cosine(130, weight_decay=0.0),
            options=FOSTEROptions, distils=True, expands=True, needs_memory=True,
            readouts=("cnn", "nme", "boosted", "compressed"),
        ),
        Spec(
            "coil", "COIL", "Zhou et al., ACM MM 2021",
            COIL, COIL, options=COILOptions, distils=True, needs_memory=True,
        ),
    ]
}  # fmt: skip
