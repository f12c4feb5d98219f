"""What is known about each method without torch: its paper, its schedules, its own options, what it keeps.

The formula of method `name` is in `methods/<name>.py`. Schedules are PyCIL's for CIFAR-100, batch 128, unless
a line says otherwise.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, create_model

from jioc.config import TEMPERATURE, Above0, Amount, Options, Positive, Schedule, Share, Within01, setting


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
    shares: bool = False  # `weights` calls `shares`, so that it takes --host-factors
    adjusts: bool = False  # its `cls` calls `adjusted`, so that it takes --adjust
    cross_entropy: bool = True  # its `cls` is one: guessing among K classes gives log K
    own_head: bool = False  # its `plan` names another head than the usual one: no --head
    rebalances: bool = False  # `net` answers by a linear head, and `learn` calls `remember`: --rebalance
    trains: bool = True  # False: the backbone stays as it is, and the classifier is computed, not trained


# --- the methods' own options: flags of `jioc run METHOD`, and keys of `options` in config.yaml ---


class Distilling(Options):
    kd_temperature: Above0 = TEMPERATURE
    """Temperature of the method's own distillation."""


class LwFOptions(Distilling):
    kd_weight: Amount = 3.0
    """Weight of the distillation."""


class ICaRLOptions(Distilling):
    kd_weight: Amount = 1.0
    """Weight of the distillation."""
    balance: Share = setting(0.0, metavar="BETA")
    """Beta of the balanced cross-entropy after the first task: 0 is plain; near 1 rare classes count more."""


class BiCOptions(Distilling):
    held_share: Within01 = 0.1
    """Share of a class's exemplars that is held out to fit the bias."""
    bias_loss: Literal["paper", "pycil"] = "paper"
    """Fit the bias to a fixed network; or as in PyCIL, with softmax twice and drifting BN statistics."""


class PODNetOptions(Options):
    flat: Amount = setting(1.0, metavar="WEIGHT")
    """Weight of the distillation of the features."""
    spatial: Amount = setting(5.0, metavar="WEIGHT")
    """Weight of the distillation of the pooled stages."""
    margin: Amount = 0.6
    """By how much the label's similarity must exceed the others."""
    nca: Literal["paper", "pycil"] = "paper"
    """The paper's loss, or that of the code, whose margin cancels and whose denominator holds an extra 1."""


class SSILOptions(Distilling):
    kd_weight: Amount = 1.0
    """Weight of the task-wise distillation."""
    exemplar_share: Above0 = 0.25
    """Exemplars for each new image of a batch: 32 for 128."""


class DEROptions(Options):
    aux_weight: Amount = 1.0
    """Weight of the auxiliary loss."""


class FOSTEROptions(Distilling):
    lambda_okd: Amount = setting(1.0, metavar="WEIGHT")
    """Weight of the distillation while boosting."""
    beta1: Share = setting(0.96, metavar="BETA")
    """Balance of the classes while boosting; towards 1 rare classes count more, 0 counts all alike."""
    beta2: Within01 = setting(0.97, metavar="BETA")
    """Balance of the classes while compressing."""
    oofc: Literal["ft", "az"] = "ft"
    """The weights from old features to new classes are trained (ft) or held at zero (az)."""


class COILOptions(Distilling):
    transport_weight: Amount = 1e-3
    """Weight of the two transport terms."""
    sinkhorn: Above0 = setting(0.464, metavar="STRENGTH")
    """Entropic regularisation of the transport."""
    transport_every: Positive = setting(30, metavar="STEPS")
    """Steps between two retrospective transports."""


class RanPACOptions(Options):
    projections: Annotated[int, Field(ge=1, le=20_000)] | None = None
    """Random projections of the features: by default 2,000, or ten for each feature where those are fewer;
    the paper has 10,000."""


# --- the methods ---


def steps(epochs: int, *milestones: int, weight_decay: float) -> Schedule:
    return Schedule(epochs=epochs, lr=0.1, decay="steps", milestones=milestones, weight_decay=weight_decay)


def cosine(epochs: int, *, weight_decay: float, lr: float = 0.1) -> Schedule:
    return Schedule(epochs=epochs, lr=lr, decay="cosine", weight_decay=weight_decay)


FIRST = steps(200, 60, 120, 170, weight_decay=5e-4)
BIC = steps(170, 60, 100, 140, weight_decay=2e-4)
COIL = steps(160, 80, 120, weight_decay=5e-4)
OWN_HEADS = ("bic", "podnet", "coil", "simplecil", "ranpac")
LINEAR = ("joint", "replay", "icarl", "wa", "ssil", "der")  # keep images, and answer by one linear head


SPECS: dict[str, Spec] = {
    spec.name: replace(
        spec,
        adjusts=spec.memory != "none",
        rebalances=spec.name in LINEAR,
        own_head=spec.name in OWN_HEADS,
    )
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
            readouts=("cnn", "nme", "unaligned"), shares=True,
        ),
        Spec(
            "bic", "BiC", "Wu et al., CVPR 2019",
            BIC, BIC, BIC, options=BiCOptions, distils=True, readouts=("cnn", "nme", "uncorrected"),
            needs_memory=True, shares=True,
        ),
        Spec(
            "podnet", "PODNet", "Douillard et al., ECCV 2020",
            cosine(160, weight_decay=5e-4), cosine(160, weight_decay=5e-4),
            cosine(20, lr=0.005, weight_decay=5e-4),
            options=PODNetOptions, distils=True, cross_entropy=False,
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
            COIL, COIL, options=COILOptions, distils=True, needs_memory=True, shares=True,
        ),
        Spec(
            "simplecil", "SimpleCIL", "Zhou et al., IJCV 2024: class means of frozen features",
            Schedule(), Schedule(), memory="none", trains=False, readouts=("cnn",),
        ),
        Spec(
            "ranpac", "RanPAC", "McDonnell et al., NeurIPS 2023: ridge regression on frozen features",
            Schedule(), Schedule(), options=RanPACOptions, memory="none", trains=False, readouts=("cnn",),
        ),
    ]
}  # fmt: skip


# --- what result.json holds about a method, for readers who do not have it ---


class MethodRecord(Options):
    """A method as result.json describes it."""

    model_config = ConfigDict(extra="ignore")

    name: str
    title: str
    memory: Literal["exemplars", "none", "all"]
    host_kd: Literal["replace", "keep"]
    first: Schedule
    later: Schedule
    second: Schedule | None
    options: dict[str, Any]
    trains: bool = True
    expands: bool = False
    shares: bool = True  # a record that does not say may be of either kind
    headline: str | None = None
    sha256: str | None = None


def record(spec: Spec, sha256: str | None = None) -> MethodRecord:
    """Describe a method. `sha256`: the checksum of one that is not ours."""
    own: dict[str, Any] = {"options": spec.options.model_construct().model_dump(), "sha256": sha256}
    return MethodRecord(**own, **{n: getattr(spec, n) for n in MethodRecord.model_fields if n not in own})


def parse_record(value: Any) -> MethodRecord | None:
    """Read the description of a method; None if it is no such thing."""
    try:
        return MethodRecord.model_validate(value)
    except ValidationError:
        return None


def spec_from_record(r: MethodRecord | None) -> Spec | None:
    """Make the entry of a method from its record, if that has whole schedules."""
    if r is None:
        return None
    if r.trains and not all(stage.epochs and stage.lr for stage in (r.first, r.later, r.second) if stage):
        return None
    fields = {n: (Any, v) for n, v in r.options.items() if n[:1].isalpha() and not hasattr(Options, n)}
    own: type[Options] = create_model("Own", __base__=Options, **fields)  # type: ignore[call-overload]
    known = {name: getattr(r, name) for name in ("host_kd", "trains", "expands", "shares")}
    headline = r.headline or Spec.headline
    return Spec(r.name, r.title, "", r.first, r.later, r.second, own, r.memory, headline=headline, **known)
