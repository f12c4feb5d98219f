"""iCaRL's class balance against a slow formula, in float64."""

import torch
from torch import Tensor

from helpers.formulas import TASK, Y, close, log_softmax, method, numbers
from jioc.data.loader import TaskData
from jioc.methods import ICaRLOptions
from jioc.types import Batch, Output, Task


def test_icarl_balanced_weighs_the_cross_entropy_by_class_after_the_first_task() -> None:
    host, z = method("icarl"), numbers(6, 7)
    host.options = ICaRLOptions(balance=0.9)
    taught: list[Task] = []
    host.memory.classes = [torch.arange(c, c + 4) for c in range(5)]
    data = TaskData(
        [torch.arange(20), torch.arange(20, 50)],
        8,
        lambda *_: numbers(50, 3),
        torch.Generator(),
    )
    host.net.grow(5, host.generator)
    host.remember = lambda task, data: None  # type: ignore[method-assign]
    host.learn(TASK, data, lambda *_: taught.append(TASK))
    raw = [0.1 / (1 - 0.9**n) for n in [4] * 5 + [20, 30]]
    w = [7 * v / sum(raw) for v in raw]
    assert taught and isinstance(host.class_weights, Tensor)
    host.class_weights = host.class_weights.double()
    batch = Batch(torch.zeros(6, 0), Y, Y < 5)
    weighed = host.loss(batch, Output(z, z), Output(numbers(6, 5, seed=1), z), TASK)["cls"]
    rows = [log_softmax(row) for row in z.tolist()]
    slow = [-w[y] * rows[i][y] for i, y in enumerate(Y.tolist())]
    torch.testing.assert_close(weighed, torch.tensor(slow, dtype=torch.float64), rtol=1e-6, atol=0)
    first = host.loss(batch, Output(z, z), None, TASK)["cls"]
    close(first, [-rows[i][y] for i, y in enumerate(Y.tolist())])
