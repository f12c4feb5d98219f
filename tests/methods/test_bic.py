"""BiC against slow formulas, in float64."""

import math

import pytest
import torch

from helpers.formulas import BATCH, TASK, Y, close, log_softmax, method, numbers
from jioc.data.loader import TaskData
from jioc.memory import Memory
from jioc.methods import bic
from jioc.nets.heads import CorrectedHead
from jioc.types import Output


def test_bic_corrects_each_tasks_logits_with_its_own_pair() -> None:
    head = CorrectedHead(4, [2, 3, 2]).double()
    w, b, f = numbers(7, 4), numbers(7, seed=1), numbers(6, 4, seed=2)
    pairs = [numbers(2, seed=3 + s) for s in range(3)]
    head.load_state_dict({"weight": w, "bias": b, **{f"pairs.{s}": p for s, p in enumerate(pairs)}})
    owner = [0, 0, 1, 1, 1, 2, 2]
    slow = [
        [pairs[owner[k]][0] * (sum(x * v for x, v in zip(row, w[k], strict=True)) + b[k]) + pairs[owner[k]][1]
         for k in range(7)] for row in f
    ]  # fmt: skip
    close(head(f).detach(), slow)
    newest = f @ w[5:].T + b[5:]
    close(head.uncorrected(f).detach(), torch.cat([head(f)[:, :5].detach(), newest], dim=1))


@pytest.mark.parametrize(
    ("memory", "v"),
    [(Memory(total=100), 2), (Memory(total=20), 1), (Memory(per_class=30), 3), (Memory(per_class=4), 1)],
)
def test_bic_holds_out_as_many_images_of_every_class_and_trains_on_the_others(memory: Memory, v: int) -> None:
    memory.classes = [
        torch.arange(0, 8),
        torch.arange(10, 11),
        torch.arange(20, 24),
        *torch.arange(30, 50).split(10),
    ]
    data = TaskData(
        [torch.arange(100, 150), torch.arange(200, 203)],
        16,
        lambda: None,
        torch.Generator().manual_seed(0),
    )
    assert memory.held_out(5, 0.1) == v
    assert Memory(total=190).held_out(10, 0.1) == 1  # int(1.9), as the paper has it
    most, held = data.split(memory, v)
    assert held is not None
    kept, out = torch.cat(most.epoch(torch.Generator())).tolist(), torch.cat(held).tolist()
    assert sorted(kept + out) == sorted(torch.cat([memory.index, data.new]).tolist())
    for index in [*memory.classes, *data.classes]:
        assert len(set(index.tolist()) & set(out)) == min(v, len(index) - 1)


def test_bic_second_stage_is_plain_cross_entropy_and_pycils_takes_the_softmax_twice() -> None:
    host, z = method("bic"), numbers(6, 7)
    assert isinstance(host, bic.BiC)
    slow = [-log_softmax(row)[y] for row, y in zip(z.tolist(), Y, strict=True)]
    close(host.bias_loss(BATCH, Output(z, z), None, TASK)["bias"], slow)
    host.options = host.options.model_copy(update={"bias_loss": "pycil"})
    twice = [
        -log_softmax([math.exp(v) for v in log_softmax(row)])[y] for row, y in zip(z.tolist(), Y, strict=True)
    ]
    close(host.bias_loss(BATCH, Output(z, z), None, TASK)["bias"], twice)
