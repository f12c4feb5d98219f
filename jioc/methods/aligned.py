"""What WA and DER share: a head whose new rows are scaled once they are trained (Zhao et al., CVPR 2020).

    w_k <- gamma w_k,   gamma = mean |w_old| / mean |w_new|            for each new class k; biases stay
    unaligned:   z_k = (z_k - b_k) / gamma + b_k                       the newest task's logits before that

Read-outs: `cnn` is the head after the scaling, `unaligned` before that of the newest task; earlier tasks'
rows keep theirs. In the first task nothing is scaled, and both are the same.
"""

import torch
from torch import Tensor

from jioc.data.loader import TaskData
from jioc.methods.base import Method
from jioc.nets.heads import LinearHead
from jioc.types import Output, Task


class Aligned(Method):
    persistent = ("gamma",)

    gamma: float = 1.0  # of the newest task

    def align(self, task: Task) -> None:
        self.gamma = self.linear_head.align(task.n_old)

    def rehearsed(self, task: Task, data: TaskData) -> None:
        self.gamma = 1.0  # the rows as they are now were never scaled
        super().rehearsed(task, data)

    def extra_readouts(self, out: Output) -> dict[str, Tensor]:
        n, bias = self.net.plan["sizes"][-1], self.linear_head.bias
        new = out.logits[:, -n:] / self.gamma + (bias - bias / self.gamma)[-n:]  # exact where gamma is 1
        return {"unaligned": torch.cat([out.logits[:, :-n], new], dim=1)}

    @property
    def linear_head(self) -> LinearHead:
        assert isinstance(self.net.head, LinearHead)
        return self.net.head
