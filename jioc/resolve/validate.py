"""Check settings alone, before any image is read. `training/preflight.py` adds data and device."""

import itertools
from collections.abc import Collection, Iterable
from typing import Any

from jioc.config import Config, Schedule, index
from jioc.config.index import flag
from jioc.data.catalogue import Entry
from jioc.errors import refuse_if, refuse_unknown
from jioc.methods import SPECS, Spec, find_method
from jioc.nets import catalogue as backbones
from jioc.text import counted

TRAINING = (
    "batch_size",
    "momentum",
    "augment",
    "mix",
    "mix_alpha",
    "ema",
    "pretrained_lr",
)  # settings of a training step alone


def validate(config: Config, spec: Spec, entry: Entry) -> None:
    """Refuse settings that contradict each other, the method or the data."""
    excluded(config.given)
    second_stage(config, spec)
    idle_coordination(config.coordination.coordinate, _given(config, "coordination"))
    _images(config, entry)
    _pretrained(config, spec)
    _memory(config, spec)
    _headline(config, spec)
    _adjustment(config, spec)
    _rebalance(config, spec)
    _head(config, spec)
    _mix(config)
    if entry.place is None:  # in a folder, some classes may turn out to be empty
        small_memory(config, entry.classes, spec)
    for stage in index.STAGES:
        _increasing(stage, getattr(config, stage).milestones or ())


def excluded(given: Iterable[str]) -> None:
    """Refuse settings that exclude each other."""
    for a, b in itertools.permutations(map(index.setting, given), 2):
        one_way = "say how classes are split in one way: --tasks, or --base and --increment, or --task-sizes"
        two = f"{a.flag} and {b.flag} exclude each other"
        refuse_if(b.path in a.about.excludes, one_way if a.about.group == "tasks" else two)


def second_stage(config: Config, spec: Spec) -> None:
    """Refuse a second stage where the method has none."""
    refuse_if(spec.second is None and config.second != Schedule(), f"second: {spec.name} has no second stage")


def _images(config: Config, entry: Entry) -> None:
    """Refuse another size of images that come as arrays, an unknown backbone, and one for other data."""
    vectors, name = entry.source == "vectors", config.backbone or ""
    for_vectors = isinstance(backbones.shape(name), backbones.Layers)
    size, canvas = config.image_size or 0, config.canvas or 0
    refuse_if(
        (size < (entry.size or 0) or canvas != entry.size) and entry.source not in ("image_files", "vectors"),
        f"{entry.name} comes as images of {entry.size}x{entry.size}; --image-size can enlarge them alone, "
        "and --canvas cannot change that",
    )
    refuse_if(
        "canvas" in config.given and canvas < size,
        f"--canvas {canvas} is smaller than --image-size {size}",
    )
    refuse_if(
        config.augment == "resized-crop" and (vectors or config.canvas != config.image_size),
        "--augment resized-crop is for images that are kept at the size the network sees",
    )
    refuse_if(config.mix == "cutmix" and vectors, "--mix cutmix is for images; mixup mixes vectors, too")
    refuse_if(
        config.judge_by == "test" and not config.holdout and "judge_by" in config.given,
        "--judge-by test: without effect, because nothing is held out; add --holdout",
    )
    refuse_if(for_vectors and not vectors, f"--backbone {name} is for vectors, and {entry.name} holds images")
    refuse_if(vectors and not for_vectors, f"--backbone {name} is for images; vectors are learnt by mlp")


def _pretrained(config: Config, spec: Spec) -> None:
    """Refuse to freeze what is not there, to train what never learns, and a rate of nothing."""
    stages = backbones.shape(config.backbone or "").stages
    refuse_if(
        isinstance(config.freeze, int) and config.freeze > stages,
        f"--freeze {config.freeze}: {config.backbone} "
        + (f"has {counted(stages, 'stage')}" if stages else "is frozen as a whole: all or none"),
    )
    refuse_if(
        config.weights is None and "pretrained_lr" in config.given,
        "--pretrained-lr: without effect, because there are no --weights",
    )
    if spec.trains:
        return
    why = f"{spec.name} trains nothing: it keeps the backbone and computes the classifier"
    refuse_if(config.freeze != "all", f"--freeze {config.freeze}: {why}")
    refuse_if(
        config.coordination.coordinate != "none",
        f"--coordinate {config.coordination.coordinate}: {why}, so there is no loss to coordinate",
    )


def keeps_nothing(config: Config, spec: Spec) -> bool:
    """Whether a method that keeps exemplars has room for none."""
    room = config.memory or config.memory_per_class or config.memory_bytes
    return spec.memory == "exemplars" and not room


def _memory(config: Config, spec: Spec) -> None:
    """Refuse a memory that the method or JIOC cannot work with."""
    outputs = config.coordination.coordinate in ("oc", "jioc")
    empty = keeps_nothing(config, spec)
    nothing = "--memory 0 keeps no exemplars"
    refuse_if(
        spec.memory == "none" and outputs,
        f"{spec.name} keeps no exemplars, so outputs cannot be coordinated; --coordinate ic can",
    )
    refuse_if(
        empty and spec.needs_memory,
        f"{nothing}, and {spec.name} cannot do without; replay and icarl can",
    )
    refuse_if(empty and outputs, f"{nothing}, so outputs cannot be coordinated; --coordinate ic can")


def _headline(config: Config, spec: Spec) -> None:
    """Refuse to judge a method by a read-out that it will not give."""
    name = str(config.headline)
    refuse_unknown(f"read-out of {spec.name}", name, spec.readouts)
    empty = keeps_nothing(config, spec)
    refuse_if(
        empty and name == "nme" == spec.headline,
        f"--memory 0 keeps no exemplars, and {spec.name} is judged by their means (nme); "
        "the entry of a method that has means without them says memory='none'",
    )
    ours = SPECS.get(spec.name) is spec  # one in a file may have means of something else
    none = ours and spec.memory == "none" and spec.headline != "nme"
    refuse_if(
        name == "nme" and (empty or none),
        "--headline nme is for the means of exemplars, and "
        + (f"{spec.name} keeps none" if none else "--memory 0 keeps none"),
    )


def _head(config: Config, spec: Spec) -> None:
    """Refuse another head for a method that has its own, and to train what is no linear one anew."""
    asked = config.head != "linear" or "head" in config.given
    refuse_if(asked and spec.own_head, f"--head {config.head}: {spec.name} has a head of its own")
    refuse_if(
        config.head != "linear" and config.rebalance != "none",
        f"--rebalance {config.rebalance} trains a linear head; leave out --head {config.head}",
    )


def _adjustment(config: Config, spec: Spec) -> None:
    """Refuse to adjust logits where old classes have no images to count, or the loss is not made for it."""
    none = spec.memory == "none" or keeps_nothing(config, spec)
    refuse_if(config.adjust and none, "--adjust counts the images of old classes, and no exemplar is kept")
    refuse_if(
        config.adjust and not spec.adjusts,
        f"--adjust: the entry of {spec.name} does not say adjusts=True, so its loss does not add the prior",
    )


def _rebalance(config: Config, spec: Spec) -> None:
    """Refuse to rebalance what is no linear head, or where old classes have no images."""
    if config.rebalance == "none":
        refuse_if(
            "rebalance_epochs" in config.given,
            "--rebalance-epochs: without effect, because nothing is rebalanced; add --rebalance head",
        )
        return
    word = f"--rebalance {config.rebalance}"
    refuse_if(spec.memory == "none", f"{word}: {spec.name} keeps no exemplars, so old classes have no images")
    refuse_if(
        not spec.rebalances,
        f"{word} is for one linear head that answers; the entry of {spec.name} does not say rebalances=True",
    )
    refuse_if(keeps_nothing(config, spec), f"{word} needs images of old classes, and none is kept")


def _mix(config: Config) -> None:
    """Refuse an alpha without a mixture, and weights averaged by class where an image has two."""
    refuse_if(
        config.mix == "none" and "mix_alpha" in config.given,
        "--mix-alpha: without effect, because no images are mixed; add --mix mixup or cutmix",
    )
    c = config.coordination
    idle = index.without_effect(c.coordinate)
    refuse_if(
        config.mix != "none" and c.delta_scale == "per-class" and "delta_scale" not in idle,
        f"--delta-scale per-class averages over the images of a class, and --mix {config.mix} gives each two",
    )


def small_memory(config: Config, classes: int, spec: Spec) -> None:
    """Refuse a memory that leaves a class without an exemplar."""
    rivals = (config.memory_per_class, config.memory_bytes)
    shared = spec.memory == "exemplars" and rivals == (None, None)
    refuse_if(
        shared and 0 < (config.memory or 0) < classes,
        f"--memory {config.memory} leaves no exemplar for each of {classes} classes; "
        f"give at least {classes}, or 0 for none",
    )


def _increasing(stage: str, milestones: tuple[int, ...]) -> None:
    """Refuse milestones out of order."""
    name = index.setting(f"{stage}.milestones").flag
    given, better = (",".join(map(str, epochs)) for epochs in (milestones, sorted(set(milestones))))
    refuse_if(
        given != better,
        f"{name} {given}: each should be later than the one before, as in {name} {better}",
    )


# --- settings that change nothing ---


def idle_coordination(coordinate: str, given: Collection[str]) -> None:
    """Refuse options of JIOC where nothing is coordinated and nobody chose that."""
    flags = ", ".join(map(flag, given))
    refuse_if(
        flags and coordinate == "none" and "coordinate" not in given,
        f"{flags}: without effect, because nothing is coordinated; add --coordinate jioc, ic or oc",
    )


def unused(config: Config) -> list[str]:
    """List notes on settings that change nothing, and on a cosine head that nothing balances.

    Refuse a given setting that changes nothing where nobody gave the reason for it.
    """
    spec = find_method(config.method)
    if not spec.trains:
        idle = [p for p in config.given if p.partition(".")[0] in (*index.STAGES, *TRAINING)]
        flags = ", ".join(index.setting(path).flag for path in idle)
        return [f"{flags}: without effect, because {config.method} trains nothing"] if idle else []
    notes = [note for stage in index.STAGES for note in _unused_schedule(stage, config)]
    if config.exemplar_size == "half" and (spec.memory == "none" or keeps_nothing(config, spec)):
        notes.append("--exemplar-size half: without effect, because no exemplar is kept")
    balanced = config.adjust or config.headline != "cnn"
    if config.head == "cosine" and "unaligned" in spec.readouts and not balanced:
        notes.append(
            f"--head cosine: {spec.title} aligns no weights then; --adjust 1, or --headline nme, "
            "balances old and new classes instead"
        )
    c = config.coordination
    reasons: dict[str, dict[str, Any]] = {  # the first that makes an option idle is told
        f"under --coordinate {c.coordinate}": {"coordinate": c.coordinate},
        f"under --gamma1 {c.gamma1:g}": {"gamma1": c.gamma1},
        f"under --coordinate {c.coordinate} --host-kd {c.host_kd}": {"host_kd": c.host_kd},
        f"under --gamma2 {c.gamma2:g}": {"gamma2": c.gamma2},
        f"because {spec.title} has no such factors": {"shares": spec.shares},
    }
    given = _given(config, "coordination")
    for why, reason in reasons.items():
        idle = index.without_effect(**reason)
        if names := [name for name in given if name in idle]:
            notes.append(f"{', '.join(map(flag, names))}: without effect {why}")
        given = [name for name in given if name not in idle]
    return notes


def _unused_schedule(stage: str, config: Config) -> list[str]:
    """Note or refuse milestones with a cosine or after the last epoch; refuse steps without a milestone."""
    used, given = getattr(config, stage), _given(config, stage)
    names = ("epochs", "decay", "milestones")
    epochs, decay, milestones = (index.setting(f"{stage}.{name}").flag for name in names)
    if "milestones" not in given:
        refuse_if(
            "decay" in given and used.decay == "steps" and used.milestones is None,
            f"{decay} steps: the rate would never fall, because there are no milestones; add {milestones}",
        )
        return []
    if used.decay == "cosine":
        refuse_if(
            "decay" not in given,
            f"{milestones}: without effect, because the rate falls along a cosine; add {decay} steps",
        )
        return [f"{milestones}: without effect under {decay} cosine"]
    late = [str(m) for m in used.milestones or () if m >= (used.epochs or 0)]
    length, late_flag = counted(used.epochs or 0, "epoch"), f"{milestones} {','.join(late)}: without effect"
    refuse_if(late and "epochs" not in given, f"{late_flag}, because there are {length}; {epochs} gives more")
    return [f"{late_flag} in {length}"] if late else []


def _given(config: Config, section: str) -> list[str]:
    """The names of the settings of a section that were given."""
    return [path.rpartition(".")[2] for path in config.given if path.startswith(f"{section}.")]
