"""JIOC in your own training loop: the digits 0 to 4, then 5 to 9 with five exemplars of each old class.

python examples/plain_loop.py
"""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn

import jioc
from jioc.losses import cross_entropy
from jioc.types import Batch, Output, Task


def train(net, x, y, task, coordinate=None, teacher=None):
    """Learn a task; labels are numbered in the order in which classes arrive."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(20):
        for rows in torch.randperm(len(y)).split(32):
            out = Output(net(x[rows])[:, : task.n_seen])
            terms = {"cls": cross_entropy(out.logits, y[rows])}  # one number per image
            if coordinate is not None:
                batch = Batch(x[rows], y[rows], old=y[rows] < task.n_old)
                with torch.no_grad():
                    before = Output(teacher(x[rows]))
                terms = coordinate(terms, batch, out, before, task)
            loss = sum(term.mean() for term in terms.values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def learn(coordinate, seed):
    """Accuracy on old and on new classes after the second task, in per cent."""
    torch.manual_seed(seed)
    x, y = (torch.tensor(array) for array in load_digits(return_X_y=True))
    x, test = x.float() / 16, torch.arange(len(y)) % 5 == 0
    first, second = ~test & (y < 5), ~test & (y >= 5)
    kept = torch.cat([torch.where(first & (y == c))[0][:5] for c in range(5)])
    both = torch.cat([torch.where(second)[0], kept])
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    train(net, x[first], y[first], Task(0, (5,), new_images=int(first.sum()), old_images=0))
    teacher = copy.deepcopy(net)
    task = Task(1, (5, 5), new_images=int(second.sum()), old_images=len(kept))
    train(net, x[both], y[both], task, coordinate, teacher)
    right = net(x).argmax(1) == y
    return [100 * right[test & part].float().mean().item() for part in (y < 5, y >= 5)]


if __name__ == "__main__":
    for name, coordinate in [("cross-entropy", None), ("JIOC", jioc.JIOC())]:
        old, new = torch.tensor([learn(coordinate, seed) for seed in (1, 2, 3)]).mean(0)
        print(f"{name:13}  old classes {old:.1f} %  new classes {new:.1f} %   (mean of three seeds)")
