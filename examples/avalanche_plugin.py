"""JIOC in Avalanche: its Replay strategy on five experiences of two digits, with JIOC's loss and without.

pip install 'jioc[avalanche]' && python examples/avalanche_plugin.py
"""

import torch
from avalanche.benchmarks import class_incremental_benchmark
from avalanche.evaluation.metrics import accuracy_metrics, forgetting_metrics
from avalanche.models import SimpleMLP
from avalanche.training import Replay
from avalanche.training.plugins import EvaluationPlugin
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset

from jioc.integrations.avalanche import JIOCPlugin


def benchmark(seed):
    """Two digits an experience, in an order drawn from the seed; every fifth image is for testing."""
    x, y = (torch.tensor(array) for array in load_digits(return_X_y=True))
    test = torch.arange(len(y)) % 5 == 0
    streams = {}
    for name, rows in [("train", ~test), ("test", test)]:
        streams[name] = TensorDataset(x[rows].float() / 16, y[rows])
        streams[name].targets = y[rows]
    return class_incremental_benchmark(streams, num_experiences=5, seed=seed)


def learn(criterion, seed):
    """Accuracy and forgetting after the last experience, in per cent, as Avalanche measures them."""
    digits = benchmark(seed)
    torch.manual_seed(seed)
    model = SimpleMLP(input_size=64, hidden_size=128, drop_rate=0)
    strategy = Replay(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=criterion,
        mem_size=50,
        train_mb_size=32,
        train_epochs=10,
        eval_mb_size=500,
        evaluator=EvaluationPlugin(
            accuracy_metrics(stream=True), forgetting_metrics(stream=True), loggers=[]
        ),
    )
    for t, experience in enumerate(digits.train_stream):
        strategy.train(experience)
        measured = strategy.eval(digits.test_stream[: t + 1])
    return [100 * value for value in measured.values()]


if __name__ == "__main__":
    for name, loss in [("cross-entropy", torch.nn.CrossEntropyLoss), ("JIOC", JIOCPlugin)]:
        accuracy, forgetting = torch.tensor([learn(loss(), seed) for seed in (1, 2, 3)]).mean(0)
        print(f"{name:13}  accuracy {accuracy:.1f} %  forgetting {forgetting:.1f} %   (mean of three seeds)")
