"""How many images each class keeps under a long tail: arithmetic only."""

from jioc.errors import Refused

PAPER = {"cifar10": 13, "cifar100": 500}
"""JIOC's counts, int(most * 0.01 ** (i / denominator)): 16,271 and 32,775 images, 206 and 200 in the rarest class."""


def counts(available: list[int], rule: float | str, dataset: str) -> list[int]:
    """Images of the i-th class in the tail's order, of those available (given in that order)."""
    most, classes = max(available), len(available)
    if rule == "paper":
        if dataset not in PAPER:
            raise Refused(f"--long-tail paper is for {' and '.join(PAPER)}; give a factor for {dataset}")
        wanted = [int(most * 0.01 ** (i / PAPER[dataset])) for i in range(classes)]
    else:
        wanted = [int(most * float(rule) ** (-i / max(classes - 1, 1))) for i in range(classes)]
    return [max(1, min(n, a)) for n, a in zip(wanted, available, strict=True)]
