"""Images given in Python, as arrays, Pillow images or paths, made pixels in the shape that a model learnt."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from PIL import Image

from jioc.data.images import decode
from jioc.errors import Refused, refuse_if

ImageInput = Any
"""One path or Pillow image; or an array of images, uint8 (n, h, w), (n, h, w, c) or (n, c, h, w), c 1 or 3;
or paths, Pillow images and arrays of one image, (h, w) or (h, w, c), in any mixture."""


def pixels_of(images: ImageInput, shape: tuple[int, int, int]) -> np.ndarray:
    """Make images uint8 (n, c, h, w) of a shape; other sizes are cut to a square and resized as files are."""
    if isinstance(images, np.ndarray):
        images = _channels_first(images)
        if images.shape[1:] == shape:
            return images
        images = list(images.transpose(0, 2, 3, 1))
    if isinstance(images, (str, os.PathLike, Image.Image)):
        images = [images]
    refuse_if(
        not isinstance(images, Iterable),
        f"images are arrays, Pillow images or paths, not {type(images).__name__}",
    )
    pixels = [_one(image, shape) for image in images]
    return np.stack(pixels) if pixels else np.zeros((0, *shape), np.uint8)


def picture_form(shape: tuple[int, int, int]) -> tuple[int, bool]:
    """Side and greyness of the square that a picture becomes; refuse a model that learnt other arrays."""
    c, h, w = shape
    refuse_if(
        h != w or c not in (1, 3),
        f"this model learnt arrays of {c}x{h}x{w} (channels, height, width), which no picture becomes",
    )
    return w, c == 1


def _one(image: Any, shape: tuple[int, int, int]) -> np.ndarray:
    side, grey = picture_form(shape)
    name = repr(str(image)) if isinstance(image, (str, os.PathLike)) else "an image"
    try:
        if isinstance(image, (str, os.PathLike)):
            return decode.square(decode.contents(os.fspath(image)), side, grey)[0]
        if isinstance(image, np.ndarray):
            one_channel = image.ndim == 3 and image.shape[2] == 1
            image = Image.fromarray(_levels(image[..., 0] if one_channel else image))
        if isinstance(image, Image.Image):
            return decode.square_of(image.copy(), side, grey)[0]
    except decode.Unusable as why:
        raise Refused(f"{name} {why}") from None
    except (TypeError, ValueError, OSError) as error:
        raise Refused(f"{name} cannot be used: {error}") from None
    raise Refused(f"an image is an array, a Pillow image or a path, not {type(image).__name__}")


def _levels(pixels: np.ndarray) -> np.ndarray:
    refuse_if(pixels.dtype != np.uint8, f"pixels are uint8, levels from 0 to 255, not {pixels.dtype}")
    return pixels


def _channels_first(pixels: np.ndarray) -> np.ndarray:
    """Bring an array of images to (n, c, h, w)."""
    refuse_if(
        pixels.ndim == 3 and pixels.shape[2] in (1, 3),
        "an array (h, w, c) is one image, and an array of images is (n, h, w, c): give it in a list",
    )
    if pixels.ndim == 3:
        return _levels(pixels)[:, None]
    if (axis := channel_axis(pixels.shape)) is not None:
        return np.moveaxis(_levels(pixels), axis, 1)
    shape = "x".join(map(str, pixels.shape))
    raise Refused(
        f"an array of images is (n, h, w), (n, h, w, c) or (n, c, h, w) with 1 or 3 channels, not {shape}"
    )


def channel_axis(shape: tuple[int, ...]) -> int | None:
    """Which of four axes holds 1 or 3 channels, the second where two may; None: neither does."""
    return next((axis for axis in (1, 3) if len(shape) == 4 and shape[axis] in (1, 3)), None)
