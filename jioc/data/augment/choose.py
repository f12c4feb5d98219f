"""Find the augmentation that `--augment` names."""

from typing import Any

from jioc.data.augment.basic import Augment, Augmentation, WithPolicy
from jioc.data.augment.crops import PaddedCrop


def choose_augmentation(usual: Any, word: str) -> Augmentation:
    """The augmentation of that name, given the data set's usual one."""
    match word:
        case "autoaugment" | "autoaugment+cutout":
            return WithPolicy(usual, cutout="cutout" in word)
        case "resized-crop":
            return PaddedCrop(usual.flip)
        case "none":
            return Augment()
    return usual
