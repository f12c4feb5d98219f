"""Arrays in memory as the network takes them.

They hold vectors (n, d), or images (n, h, w), (n, h, w, c) or (n, c, h, w). uint8 is kept as whole levels,
everything else as float32 of its own scale; each channel (of vectors: each number) is standardised by the
images that are learnt first.
"""

from dataclasses import dataclass, replace

import numpy as np

from jioc.data.augment.basic import Augment
from jioc.data.augment.crops import usual_augment
from jioc.data.dataset import Dataset
from jioc.data.images.inputs import channel_axis
from jioc.errors import Refused, refuse_if


@dataclass(frozen=True)
class ArrayLayout:
    """The layout of a row. The first array decides; every later one must have the same."""

    row: tuple[int, ...]  # its shape as given
    axis: int | None  # of the array that holds the channels; None: there is none
    whole: bool  # whether it holds whole levels, uint8

    @classmethod
    def of(cls, x: np.ndarray) -> "ArrayLayout":
        """The layout of an array; refuse one that holds neither vectors nor images."""
        axis = channel_axis(x.shape)
        refuse_if(
            x.ndim > 3 and axis is None,
            f"X of shape {x.shape} holds neither vectors (n, d) nor images (n, h, w), (n, h, w, c) or "
            "(n, c, h, w) of 1 or 3 channels",
        )
        form = cls(x.shape[1:], axis, x.ndim > 2 and x.dtype == np.uint8)
        if x.ndim > 2 and not 4 <= form.side <= 1024:
            raise Refused(
                f"X holds images whose shorter side is {form.side}; from 4 to 1024 pixels can be learnt"
            )
        return form

    @property
    def vectors(self) -> bool:
        return len(self.row) == 1

    @property
    def side(self) -> int:
        """The shorter side of an image; 1 for vectors."""
        return 1 if self.vectors else min(n for a, n in enumerate(self.row, 1) if a != self.axis)

    def read(self, x: np.ndarray) -> np.ndarray:
        """Bring an array to (n, c, h, w), uint8 or float32."""
        refuse_if(
            x.shape[1:] != self.row,
            f"a row of X has the shape {x.shape[1:]}, but {self.row} is what was learnt from",
        )
        if self.whole and x.dtype != np.uint8:
            levels = np.clip(x, 0, 255).astype(np.uint8)
            refuse_if(
                not np.array_equal(levels, x),
                "uint8 images were learnt from, so X must hold whole levels from 0 to 255; it holds others",
            )
        else:
            levels = x.astype(np.uint8 if self.whole else np.float32, copy=False)
        if self.vectors:
            return levels[:, :, None, None]
        images = levels[:, None] if self.axis is None else np.moveaxis(levels, self.axis, 1)
        return images.copy()  # laid out alike however they came, or rounding would differ

    def dataset(self, x: np.ndarray, y: np.ndarray, classes: list[str], flip: bool) -> Dataset:
        """A data set to learn, of images as `read` gives them; `y`: positions in `classes`."""
        augment = Augment() if self.vectors else replace(usual_augment(self.side, self.side), flip=flip)
        none = np.zeros(0, np.int64)
        return Dataset("X", classes, x, y, x[:0], none, *statistics(x), augment, tasks=1)


def statistics(x: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel, of levels in [0, 1] or of floats; 1 where nothing deviates."""
    levels = 255 if x.dtype == np.uint8 else 1
    mean, std = x.mean((0, 2, 3), np.float64) / levels, x.std((0, 2, 3), np.float64) / levels
    return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1).tolist())
