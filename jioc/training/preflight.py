"""Checks of settings with data and device. They give the plan that the run takes: nothing is built twice.

A method that is not ours learns small tasks of noise first (`trial.py`).
"""

import hashlib

import numpy as np

from jioc.config import Config
from jioc.data import scenario as scenarios
from jioc.data.dataset import Dataset
from jioc.device import distributed, pick
from jioc.errors import refuse_if
from jioc.methods import Spec, find_method, registry
from jioc.resolve.validate import small_memory
from jioc.training import build
from jioc.training.execution import choose_execution, set_up_torch
from jioc.training.trial import try_method


def preflight(
    config: Config,
    dataset: Dataset,
    world: distributed.World = distributed.ALONE,
    scenario: scenarios.Scenario | None = None,
    begins: bool = True,
) -> build.Plan:
    """Refuse what a run would refuse, before it has a folder; set the switches that torch has for a process.

    `scenario`: the tasks, if they do not follow from the settings; `begins`: whether the network is new, so
    that pretrained weights are read.
    """
    scenario = scenario or scenarios.make(dataset, config)
    spec, device = find_method(config.method), pick.pick_device(config.device)
    small_memory(config, len(scenario.classes), spec)
    _exemplars(config, dataset, len(scenario.classes), spec)
    streamed = build.streams(config.stream, dataset, scenario, device)
    execution = choose_execution(config, device, world)
    weights = build.pretrained(config, dataset.channels) if begins else None
    ours = registry.is_ours(registry.load_method(config.method))
    notes = () if ours else try_method(config, dataset)
    if world.size > 1:
        rows = np.concatenate([*scenario.train, *scenario.test, dataset.train_y, dataset.test_y])
        images = dataset.record.get("fingerprint"), hashlib.sha256(rows.tobytes()).hexdigest()
        world.must_agree("code of the method", registry.sha256(config.method))
        world.must_agree("images", images)
        world.must_agree("pretrained weights", weights and weights.about["sha256"])
    set_up_torch(execution, config.deterministic)
    return build.Plan(config, spec, dataset, scenario, device, streamed, execution, world, weights, notes)


def _exemplars(config: Config, dataset: Dataset, classes: int, spec: Spec) -> None:
    """Refuse bytes that hold no exemplar of each class, and images that cannot be halved."""
    shape = tuple(dataset.train_x.shape[1:])
    if config.memory_bytes is not None and spec.memory == "exemplars":
        one = build.exemplar_bytes(config, shape)
        refuse_if(
            config.memory_bytes < classes * one,
            f"--memory-bytes {config.memory_bytes} leaves no exemplar of {one:,} bytes for each of {classes} "
            f"classes; give at least {classes * one}",
        )
    odd = shape[1] % 2 or shape[2] % 2 or dataset.train_x.dtype != np.uint8
    refuse_if(
        config.exemplar_size == "half" and odd,
        "--exemplar-size half is for images of uint8 whose height and width are even",
    )
