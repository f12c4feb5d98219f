"""The 1,797 handwritten digits that scikit-learn ships: 8x8, 17 grey levels.

In each class the last 30 % in file order are the test set.
"""

from pathlib import Path

import numpy as np

from jioc.config import Config
from jioc.data.augment.basic import Augment
from jioc.data.catalogue import Entry
from jioc.data.dataset import Dataset
from jioc.events import Callback


def load(entry: Entry, where: Path | None, config: Config, tell: Callback, thorough: bool = False) -> Dataset:
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = np.round(digits.images * (255 / 16)).astype(np.uint8)[:, None]
    y = digits.target.astype(np.int64)
    test = np.zeros(len(y), bool)
    for c in range(10):
        rows = np.flatnonzero(y == c)
        test[rows[round(0.7 * len(rows)) :]] = True
    return Dataset(
        name=entry.name,
        classes=[str(c) for c in range(10)],
        train_x=x[~test],
        train_y=y[~test],
        test_x=x[test],
        test_y=y[test],
        mean=(0.3053,),
        std=(0.3762,),
        augment=Augment(pad=1),  # a flipped digit is another sign
        tasks=entry.tasks,
    )
