"""Checks of settings with data and device. They give a plan that the run takes: nothing is built twice."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

from jioc.config import Config
from jioc.data import scenario as scenarios
from jioc.data.dataset import Dataset
from jioc.data.scenario import Scenario
from jioc.device.distributed import ALONE, World
from jioc.device.pick import pick_device
from jioc.methods import Spec, registry, source
from jioc.resolve.validate import small_memory
from jioc.training.build import streams
from jioc.training.execution import Execution, choose_execution
from jioc.training.trial import try_method


@dataclass(frozen=True)
class Plan:
    """What a run is made from."""

    config: Config
    spec: Spec
    dataset: Dataset
    scenario: Scenario
    device: torch.device
    streamed: bool  # whether batches come from the disk
    execution: Execution
    world: World = ALONE


def preflight(
    config: Config, dataset: Dataset, world: World = ALONE, scenario: Scenario | None = None
) -> Plan:
    """Refuse what a run would refuse, before it has a folder.

    `scenario`: the tasks, if they do not follow from the settings.
    """
    scenario = scenario or scenarios.make(dataset, config)
    spec, device = registry.find_method(config.method), pick_device(config.device)
    small_memory(config, len(scenario.classes), spec)
    streamed = streams(config.stream, dataset, scenario, device)
    execution = choose_execution(config, device, not streamed, world)
    if not source.is_ours(registry.load_method(config.method)):
        try_method(config, dataset)
    if world.size > 1:
        rows = np.concatenate([*scenario.train, *scenario.test, dataset.train_y, dataset.test_y])
        images = dataset.record.get("fingerprint"), hashlib.sha256(rows.tobytes()).hexdigest()
        world.must_agree("code of the method", registry.sha256(config.method))
        world.must_agree("images", images)
    return Plan(config, spec, dataset, scenario, device, streamed, execution, world)
