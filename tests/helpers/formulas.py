"""Slow formulas in plain Python; a method without a run, a task and a batch to try it on."""

import math

import torch
from torch import Tensor

from jioc.coordination import JIOC
from jioc.memory import Memory
from jioc.methods import registry
from jioc.methods.base import Method
from jioc.nets.incremental import build
from jioc.types import Batch, Task

PLAN = {
    "backbone": "tiny", "stem": "cifar", "channels": 1, "cosine": False, "maps": False, "head": "linear",
    "classes": 0, "sizes": [],
}  # fmt: skip


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def log_softmax(z: list[float]) -> list[float]:
    total = sum(math.exp(v) for v in z)
    return [v - math.log(total) for v in z]


def kl(teacher: list[float], student: list[float], t: float) -> float:
    q, p = log_softmax([v / t for v in teacher]), log_softmax([v / t for v in student])
    return sum(math.exp(a) * (a - b) for a, b in zip(q, p, strict=True))


def close(a: Tensor, b: list[float] | Tensor) -> None:
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=torch.float64), rtol=1e-11, atol=1e-12)


def method(name: str, coordination: JIOC | None = None, memory: Memory | None = None) -> Method:
    cls = registry.load_method(name)
    net = build(cls.plan(PLAN), torch.Generator().manual_seed(0))
    return cls(
        net=net, memory=memory or Memory(20), options=cls.spec.options(), coordination=coordination,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip


TASK = Task(2, (2, 3, 2), new_images=40, old_images=20)
Y = torch.tensor([0, 4, 2, 5, 6, 5])
BATCH = Batch(numbers(6, 1, 8, 8), Y, Y < 5)
