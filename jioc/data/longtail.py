"""The number of images that each class keeps under a long tail."""

from jioc.errors import Refused

PAPER = {"cifar10": 13, "cifar100": 500}
"""The denominator of the paper's counts, int(most * 0.01 ** (i / denominator)).

They are 16,271 and 32,775 images in all, 206 and 200 in the rarest class."""


def counts(available: list[int], rule: float | str, dataset: str) -> list[int]:
    """The number of images of each class, of those available; both in the order of the tail."""
    most, classes = max(available), len(available)
    if rule == "paper":
        if dataset not in PAPER:
            raise Refused(f"--long-tail paper is for {' and '.join(PAPER)}; give a factor for {dataset}")
        wanted = [int(most * 0.01 ** (i / PAPER[dataset])) for i in range(classes)]
    else:
        wanted = [int(most * float(rule) ** (-i / max(classes - 1, 1))) for i in range(classes)]
    return [max(1, min(n, a)) for n, a in zip(wanted, available, strict=True)]
