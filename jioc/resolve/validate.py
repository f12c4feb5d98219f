"""Check settings alone, before any image is read. `training/preflight.py` adds data and device."""

import itertools
from collections.abc import Iterable

from jioc.config import Config, Schedule, index
from jioc.config.index import flag
from jioc.data.catalogue import Entry
from jioc.errors import Refused
from jioc.methods import Spec
from jioc.nets import catalogue as backbones
from jioc.text import counted


def validate(config: Config, spec: Spec, entry: Entry) -> None:
    """Refuse settings that contradict each other, the method or the data."""
    second_stage(config, spec)
    idle_coordination(config.coordination.coordinate, _given(config, "coordination"))
    _fixed_size(config, entry)
    _network(config, entry)
    _memory(config, spec)
    if entry.place is None:  # in a folder, some classes may turn out to be empty
        small_memory(config, entry.classes, spec)
    for stage in index.STAGES:
        _increasing(stage, getattr(config, stage).milestones or ())


def excluded(given: dict[str, object]) -> None:
    """Refuse flags that exclude each other. How classes are split is checked once their number is known."""
    for a, b in itertools.permutations(given, 2):
        one = index.setting(a)
        if b in one.about.excludes and one.about.group != "tasks":
            raise Refused(f"{one.flag} and {index.setting(b).flag} exclude each other")


def second_stage(config: Config, spec: Spec) -> None:
    """Refuse a second stage where the method has none."""
    if spec.second is None and config.second != Schedule():
        raise Refused(f"second: {spec.name} has no second stage")


def _fixed_size(config: Config, entry: Entry) -> None:
    """Refuse to change the size of images that come as arrays."""
    if entry.source in ("image_files", "vectors"):
        return
    if (config.image_size, config.canvas) != (entry.size, entry.size):
        raise Refused(
            f"{entry.name} comes as images of {entry.size}x{entry.size}; "
            "--image-size and --canvas cannot change that"
        )


def _network(config: Config, entry: Entry) -> None:
    """Refuse an unknown backbone, a multi-layer perceptron for images, and convolutions for vectors."""
    name = config.backbone or ""
    for_vectors = isinstance(backbones.shape(name), backbones.Layers)
    if for_vectors and entry.source != "vectors":
        raise Refused(f"--backbone {name} is for vectors, and {entry.name} holds images")
    if entry.source == "vectors" and not for_vectors:
        raise Refused(f"--backbone {name} is for images; vectors are learnt by mlp")


def _memory(config: Config, spec: Spec) -> None:
    """Refuse a memory that the method or JIOC cannot work with."""
    outputs = config.coordination.coordinate in ("oc", "jioc")
    if spec.memory == "none" and outputs:
        raise Refused(
            f"{spec.name} keeps no exemplars, so outputs cannot be coordinated; --coordinate ic can"
        )
    if spec.memory != "exemplars":
        return
    if config.memory_per_class is not None:
        if config.memory != Config.model_fields["memory"].default:
            raise Refused(
                f"memory {config.memory} and memory_per_class {config.memory_per_class}: give one of them"
            )
    elif config.memory == 0 and spec.needs_memory:
        raise Refused(
            f"--memory 0 keeps no exemplars, and {spec.name} cannot do without; replay and icarl can"
        )
    elif config.memory == 0 and spec.headline == "nme":
        raise Refused(
            f"--memory 0 keeps no exemplars, and {spec.name} is judged by their means (nme); "
            "the entry of a method that has means without them says memory='none'"
        )
    elif config.memory == 0 and outputs:
        raise Refused("--memory 0 keeps no exemplars, so outputs cannot be coordinated; --coordinate ic can")


def small_memory(config: Config, classes: int, spec: Spec) -> None:
    """Refuse a memory that leaves a class without an exemplar."""
    if spec.memory == "exemplars" and config.memory_per_class is None and 0 < config.memory < classes:
        raise Refused(
            f"--memory {config.memory} leaves no exemplar for each of {classes} classes; "
            f"give at least {classes}, or 0 for none"
        )


def _increasing(stage: str, milestones: tuple[int, ...]) -> None:
    """Refuse milestones out of order."""
    increasing = sorted(set(milestones))
    if list(milestones) != increasing:
        given, better = (",".join(map(str, epochs)) for epochs in (milestones, increasing))
        name = index.setting(f"{stage}.milestones").flag
        raise Refused(f"{name} {given}: each should be later than the one before, as in {name} {better}")


# --- settings that change nothing ---


def idle_coordination(coordinate: str, given: Iterable[str]) -> None:
    """Refuse options of JIOC where nothing is coordinated and nobody chose that."""
    if coordinate == "none" and "coordinate" not in given and (flags := ", ".join(map(flag, given))):
        raise Refused(
            f"{flags}: without effect, because nothing is coordinated; add --coordinate jioc, ic or oc"
        )


def _given(config: Config, section: str) -> list[str]:
    """The names of the settings of a section that were given."""
    return [path.rpartition(".")[2] for path in config.given if path.startswith(f"{section}.")]


def unused(config: Config) -> list[str]:
    """List notes on given settings that change nothing; refuse them where nobody gave the reason for it."""
    notes = [note for stage in index.STAGES for note in _unused_schedule(stage, config)]
    c = config.coordination
    unused_names = index.without_effect(c.coordinate, c.host_kd)
    if names := [name for name in _given(config, "coordination") if name in unused_names]:
        by_host_kd = not set(names) <= set(index.without_effect(c.coordinate, None))
        why = f"--coordinate {c.coordinate}" + f" --host-kd {c.host_kd}" * by_host_kd
        notes.append(f"{', '.join(map(flag, names))}: without effect under {why}")
    return notes


def _unused_schedule(stage: str, config: Config) -> list[str]:
    """Note or refuse milestones with a cosine or after the last epoch; refuse steps without a milestone."""
    used, given = getattr(config, stage), _given(config, stage)
    epochs, decay, milestones = (
        index.setting(f"{stage}.{name}").flag for name in ("epochs", "decay", "milestones")
    )
    if "milestones" not in given:
        if "decay" in given and used.decay == "steps" and used.milestones is None:
            raise Refused(
                f"{decay} steps: the rate would never fall, because there are no milestones; add {milestones}"
            )
        return []
    if used.decay == "cosine":
        if "decay" not in given:
            raise Refused(
                f"{milestones}: without effect, because the rate falls along a cosine; add {decay} steps"
            )
        return [f"{milestones}: without effect under {decay} cosine"]
    late = [m for m in used.milestones or () if m >= (used.epochs or 0)]
    unused_flag = f"{milestones} {','.join(map(str, late))}: without effect"
    length = counted(used.epochs or 0, "epoch")
    if late and "epochs" not in given:
        raise Refused(f"{unused_flag}, because there are {length}; {epochs} gives more")
    return [f"{unused_flag} in {length}"] if late else []
