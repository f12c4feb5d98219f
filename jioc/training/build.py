"""The parts of a run, made from its settings: plan, method, generators, images."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from jioc.config import Config
from jioc.coordination import JIOC
from jioc.data import loader, stream
from jioc.data.dataset import Dataset
from jioc.data.scenario import Scenario
from jioc.device.distributed import ALONE, World
from jioc.errors import refuse_if
from jioc.memory import Memory
from jioc.methods import Spec, base, contract, find_method, load_method, own_options
from jioc.nets.catalogue import HEADS
from jioc.nets.incremental import WIDENING, backbone, build, drawing_from
from jioc.nets.weights import Pretrained, read_weights
from jioc.resolve.validate import keeps_nothing
from jioc.training.execution import Execution

RESIDENT_SHARE = 0.6  # of a device's free memory that images may take; the network needs the rest


@dataclass(frozen=True)
class Plan:
    """What a run is made from; `preflight` gives it."""

    config: Config
    spec: Spec
    dataset: Dataset
    scenario: Scenario
    device: torch.device
    streamed: bool  # whether batches come from the disk
    execution: Execution
    world: World = ALONE
    weights: Pretrained | None = None  # of the backbone, where the run begins with some
    notes: tuple[str, ...] = ()  # to tell as it begins


def network_plan(config: Config, channels: int) -> dict[str, Any]:
    """The plan of the method's network, before its first task."""
    plain: dict[str, Any] = {
        "backbone": config.backbone,
        "stem": config.stem,
        "channels": channels,
        "cosine": False,
        "maps": False,
        "head": HEADS[config.head],
        "sizes": [],
    }
    if config.freeze not in (None, "none"):
        plain["freeze"] = config.freeze
    plan, name = load_method(config.method).plan(plain), find_method(config.method).name
    refuse_if(
        plan.get("kind") == "expanding" and plan["head"] not in WIDENING,
        f"{name}: a network that expands cannot have the head {plan['head']!r}; it can have "
        + " or ".join(map(repr, WIDENING)),
    )
    refuse_if(
        config.head != "linear" and plan["head"] != HEADS[config.head],
        f"--head {config.head}: {name} has a head of its own",
    )
    return plan


def pretrained(config: Config, channels: int) -> Pretrained | None:
    """Read the weights that the configuration names; refuse those that do not fit its network."""
    if config.weights is None:
        return None
    with torch.device("meta"):
        empty = backbone(network_plan(config, channels), None)
    return read_weights(config.weights, empty, config.backbone or "")


def make_method(
    config: Config, channels: int, generator: torch.Generator, device: torch.device
) -> base.Method:
    """Make the method of a resolved configuration, before its first task."""
    cls, spec = load_method(config.method), find_method(config.method)
    assert config.memory is not None  # which would be room for every image
    room = {"none": (0, None), "all": (None, None), "exemplars": (config.memory, config.memory_per_class)}
    parts: dict[str, Any] = {
        "net": build(network_plan(config, channels), generator).to(device),
        "memory": Memory(*room[spec.memory], config.select),
        "options": own_options(spec, config.options),
        "coordination": None
        if config.coordination.coordinate == "none"
        else JIOC(**dict(config.coordination)),
        "generator": generator,
    }
    with drawing_from(int(np.random.SeedSequence([config.init_seed or 0, 1]).generate_state(1)[0])):
        method = contract.check_init(cls(**parts))
    method.headline = config.headline or spec.headline
    return method


def exemplar_bytes(config: Config, shape: tuple[int, ...]) -> int:
    """The bytes of an exemplar, of images of that shape (c, h, w): one for each level that is kept."""
    return int(np.prod(shape)) // (4 if config.exemplar_size == "half" else 1)


def halves(config: Config) -> bool:
    """Whether exemplars are kept at half their side, and images judged as those look."""
    spec = find_method(config.method)
    return config.exemplar_size == "half" and spec.memory != "none" and not keeps_nothing(config, spec)


def fit_memory(memory: Memory, config: Config, images: loader.Images) -> None:
    """Give the memory as many exemplars as its bytes hold; keep them at the size that was asked for."""
    if config.memory_bytes is not None and memory.total:  # else the method keeps none, or all
        memory.total = config.memory_bytes // exemplar_bytes(config, tuple(images.pixels.shape[1:]))
    if images.halving is not None:
        memory.on_change = images.halve


def generators(config: Config, device: torch.device, after: int = 0) -> dict[str, torch.Generator]:
    """Seed the only sources of randomness, for a run that begins after this many tasks."""
    later = [after] if after else []
    order, noise = np.random.SeedSequence([config.data_seed or 0, *later]).generate_state(2)
    weights = config.init_seed or 0
    if later:
        weights = np.random.SeedSequence([weights, *later]).generate_state(1)[0]
    return {
        "order": torch.Generator().manual_seed(int(order)),
        "noise": torch.Generator(device).manual_seed(int(noise)),
        "weights": torch.Generator().manual_seed(int(weights)),
    }


def evaluated(dataset: Dataset, scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """The images that accuracy is measured on, and their labels."""
    return (dataset.train_x, dataset.train_y) if scenario.held_out else (dataset.test_x, dataset.test_y)


def streams(word: str, dataset: Dataset, scenario: Scenario, device: torch.device) -> bool:
    """Whether batches come from the disk. On a CPU the system itself reads what is used of a memory map."""
    if word != "auto" or device.type != "cuda":
        return word == "yes"
    size = dataset.train_x.nbytes + evaluated(dataset, scenario)[0].nbytes
    return size > RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0]


def images(
    dataset: Dataset, scenario: Scenario, device: torch.device, streamed: bool, half: bool
) -> tuple[loader.Images, loader.Images]:
    """Training images and those that accuracy is measured on, labelled in the order of learning.

    `half`: whether exemplars are kept at half their side.
    """
    kind = stream.Streamed if streamed else loader.Images

    def labelled(x: np.ndarray, y: np.ndarray, classes: list[np.ndarray]) -> loader.Images:
        labels = np.full(len(y), -1, np.int64)
        for c, index in enumerate(classes):
            labels[index] = c
        return kind(x, labels, dataset.mean, dataset.std, device, dataset.size, half)

    train = labelled(dataset.train_x, dataset.train_y, scenario.train)
    return train, labelled(*evaluated(dataset, scenario), scenario.test)
