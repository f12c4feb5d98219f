"""Decode image files to square arrays; as a script, the worker process that does so for many files.

The picture is turned as its EXIF says, its first frame taken, transparency laid over white, 16-bit levels
scaled to 8. The largest centred square is then resized to `canvas` (bilinear with antialiasing): the shorter
side resized, and the centre cropped. A picture of exactly that size is left as it is.

This file imports nothing of the package: a worker is `python decode.py` with orders on its standard input. So
it starts in a moment and shares nothing with a parent that holds threads and devices.
"""

import hashlib
import io
import json
import os
import signal
import stat
import sys
import warnings
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

VERSION = 1  # of the decoding described above: another number, and every cache is built again
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # none that runs another program
MOST_PIXELS = 89_478_485  # Pillow's own limit: a quarter of a gibibyte of RGB
DIGEST = 16  # bytes
MOST_BYTES = 1 << 30
TRANSPARENT = {"LA", "La", "PA", "RGBA", "RGBa"}
UNREADABLE = "cannot be read: "  # how a reason begins that lies in the system, not in the file's content
GREY = {"1", "L", "I", "I;16", "I;16B", "I;16L", "I;16N"}


class Unusable(Exception):
    """Why a file cannot be used; the sentence goes on from its name."""


def contents(path: str) -> bytes:
    """Read a file; what is no regular file, too large or empty is unusable."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe is not waited on
        with open(handle, "rb", buffering=0) as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise Unusable("is not a regular file")
            if about.st_size > MOST_BYTES:
                raise Unusable(f"is larger than {MOST_BYTES >> 30} GiB")
            raw = file.read()
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise Unusable(f"{UNREADABLE}{getattr(error, 'strerror', None) or error}") from None
    if not raw:
        raise Unusable("is empty")
    return raw


def readable(path: str) -> bool:
    """Whether the system lets the file be read, whatever it holds."""
    try:
        contents(path)
    except Unusable as why:
        return not str(why).startswith(UNREADABLE)
    return True


def open_image(raw: bytes) -> Image.Image:
    """Open the image behind the bytes, without decoding it; one that is too large is unusable."""
    try:
        image = Image.open(io.BytesIO(raw), formats=FORMATS)
    except UnidentifiedImageError:
        raise Unusable("is not an image of a known format") from None
    except Image.DecompressionBombError:
        raise Unusable(f"claims more than {MOST_PIXELS:,} pixels and is not opened") from None
    except Exception as error:
        raise Unusable(_reason(error)) from None
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise Unusable(f"claims {width:,} x {height:,} pixels, more than {MOST_PIXELS:,}, and is not opened")
    return image


def shorter_side(path: str) -> int:
    """Of the image in a file, in pixels, from its header alone."""
    with warnings.catch_warnings(action="ignore"):
        return min(open_image(contents(path)).size)


def square(raw: bytes, canvas: int, grey: bool) -> tuple[np.ndarray, bool]:
    """Decode a file's bytes: uint8 (1 or 3, canvas, canvas), and whether the picture has colour."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return square_of(open_image(raw), canvas, grey)
    except Unusable:
        raise
    except Exception as error:  # a damaged file can make a decoder raise anything
        raise Unusable(_reason(error)) from None


def _reason(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "truncated" in text.lower() or "broken data stream" in text or isinstance(error, EOFError):
        return "is truncated"
    return f"cannot be decoded: {text}"


def square_of(image: Image.Image, canvas: int, grey: bool) -> tuple[np.ndarray, bool]:
    """As `square`, of an image that is open."""
    image.draft(None, (2 * canvas, 2 * canvas))  # JPEG: decoded at 1/2, 1/4 or 1/8, still twice the canvas
    image.load()
    coloured, kind = image.mode not in GREY and image.mode != "LA", image.format
    if kind != "JPEG" or "exif" in image.info or "xmp" in image.info:  # turning costs a tenth of a small JPEG
        image = ImageOps.exif_transpose(image)
    image = _eight_bit(image, kind)
    if image.mode != ("L" if grey else "RGB"):
        image = image.convert("L" if grey else "RGB")
    if image.size != (canvas, canvas):
        (width, height), side = image.size, min(image.size)
        left, top = (width - side) / 2, (height - side) / 2
        box = (left, top, left + side, top + side)
        image = image.resize((canvas, canvas), Image.Resampling.BILINEAR, box)
    pixels = np.asarray(image)
    return pixels[None] if grey else pixels.transpose(2, 0, 1), coloured


def _eight_bit(image: Image.Image, kind: str | None) -> Image.Image:
    """The same picture with 8 bits a level and nothing transparent."""
    if image.mode.startswith("I;16") or (image.mode == "I" and kind in ("PNG", "PPM")):
        levels = np.asarray(image).astype(np.int64)
        return Image.fromarray(((levels.clip(0, 65535) * 255 + 32767) // 65535).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise Unusable("has 32-bit levels, whose range nobody can know")
    if image.mode in TRANSPARENT or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image


# --- many files ---


def decode_files(
    paths: list[str], canvas: int, grey: bool, file: str | None = None, offset: int = 0
) -> tuple[dict[str, Any], np.ndarray]:
    """Decode files: what is wrong with which, and the pixels of all, black where a file is bad: (n, c, h, w).

    With `file` the pixels are written there, from the byte `offset` on, and not given back; then there are
    digests of the files' bytes, too. Not through a memory map: its faults would cost as much as the decoding
    of small images.
    """
    pixels = np.zeros((len(paths), 1 if grey else 3, canvas, canvas), np.uint8)
    digests = ["00" * DIGEST] * len(paths)
    bad, coloured = [], False
    for row, path in enumerate(paths):
        try:
            raw = contents(path)
            pixels[row], has_colour = square(raw, canvas, grey)
            coloured = coloured or has_colour
            if file is not None:
                digests[row] = hashlib.blake2b(raw, digest_size=DIGEST).hexdigest()
        except Unusable as why:
            bad.append((row, str(why)))
    if file is not None:
        with open(file, "r+b") as out:
            out.seek(offset)
            out.write(pixels.data)
        pixels = pixels[:0]
    return {"bad": bad, "coloured": coloured, "digests": "".join(digests)}, pixels


def main() -> None:
    """Answer orders: lines of JSON, arguments of `decode_files`. An answer is a line, then the pixels."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    for line in sys.stdin:
        try:
            answer, pixels = decode_files(**json.loads(line))
        except OSError as error:  # of the disk: an image file that cannot be read is named in the answer
            answer, pixels = {"failed": error.strerror or str(error)}, np.zeros(0, np.uint8)
        sys.stdout.buffer.writelines([json.dumps(answer).encode() + b"\n", pixels.data])
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
