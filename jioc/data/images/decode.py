"""Image files to square arrays, whatever they hold; also the worker process that does it for many files.

The picture is turned as its EXIF says, its first frame taken, transparency laid over white, 16-bit levels scaled to 8.
The largest centred square is then resized to `canvas` (bilinear with antialiasing): the shorter side resized, and the
centre cropped. A picture of exactly that size is left as it is.

This file imports nothing of the package: a worker is `python decode.py` with orders on its standard input, so that it
starts in a moment and shares nothing with a parent that holds threads and devices.
"""

import hashlib
import io
import json
import os
import signal
import stat
import sys
import warnings

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

VERSION = 1  # of what is described above: another number, and every cache is built again
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # none that runs another program
MOST_PIXELS = 89_478_485  # Pillow's own limit: a quarter of a gibibyte of RGB
DIGEST = 16  # bytes
MOST_BYTES = 1 << 30
TRANSPARENT = {"LA", "La", "PA", "RGBA", "RGBa"}
UNREADABLE = "cannot be read: "  # how a reason begins that lies in the system, not in what the file holds
GREY = {"1", "L", "I", "I;16", "I;16B", "I;16L", "I;16N"}


class Unusable(Exception):
    """Why a file cannot be used; the sentence goes on from its name."""


def contents(path: str) -> bytes:
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
    try:
        contents(path)
    except Unusable as why:
        return not str(why).startswith(UNREADABLE)
    return True


def opened(raw: bytes) -> Image.Image:
    """The image behind the bytes, not yet decoded; one that is too large is refused here."""
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
    """In pixels, from the header alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return min(opened(contents(path)).size)


def square(raw: bytes, canvas: int, grey: bool) -> tuple[np.ndarray, bool]:
    """uint8 (1 or 3, canvas, canvas), and whether the picture has colour."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _square(raw, canvas, grey)


def _reason(error: Exception) -> str:
    told = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "truncated" in told.lower() or "broken data stream" in told or isinstance(error, EOFError):
        return "is truncated"
    return f"cannot be decoded: {told}"


def _square(raw: bytes, canvas: int, grey: bool) -> tuple[np.ndarray, bool]:
    try:
        return squared(opened(raw), canvas, grey)
    except Unusable:
        raise
    except Exception as error:  # a damaged file can make a decoder raise anything
        raise Unusable(_reason(error)) from None


def squared(image: Image.Image, canvas: int, grey: bool) -> tuple[np.ndarray, bool]:
    """As `square`, of an image that is open."""
    image.draft(
        None, (2 * canvas, 2 * canvas)
    )  # JPEG alone: decode at 1/2, 1/4 or 1/8, still twice the size needed
    image.load()
    coloured = image.mode not in GREY and image.mode != "LA"
    kind = image.format
    if kind != "JPEG" or "exif" in image.info or "xmp" in image.info:  # to look costs a tenth of a small JPEG
        image = ImageOps.exif_transpose(image)
    image = _eight_bit(image, kind)
    if image.mode != ("L" if grey else "RGB"):
        image = image.convert("L" if grey else "RGB")
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    if (width, height) != (canvas, canvas):
        image = image.resize(
            (canvas, canvas), Image.Resampling.BILINEAR, (left, top, left + side, top + side)
        )
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


def fill(
    paths: list[str], pixels: np.ndarray, digests: np.ndarray | None, grey: bool
) -> tuple[list[tuple[int, str]], bool]:
    """Decode each file into its row; the rows that cannot be used, and whether any had colour."""
    bad, colour = [], False
    canvas = pixels.shape[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, path in enumerate(paths):
            try:
                raw = contents(path)
                pixels[row], coloured = _square(raw, canvas, grey)
                if digests is not None:
                    digests[row] = np.frombuffer(hashlib.blake2b(raw, digest_size=DIGEST).digest(), np.uint8)
                colour = colour or coloured
            except Unusable as why:
                bad.append((row, str(why)))
    return bad, colour


PIECE = 8 << 20  # bytes of decoded images that a worker writes at a time


def main() -> None:
    """Orders come as lines of JSON, first what is wanted, then a part at a time, each answered."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    task = json.loads(sys.stdin.readline())
    if "paths" in task:
        keep(task)
    else:
        serve(task["canvas"], task["grey"])


def serve(canvas: int, grey: bool) -> None:
    """Each order is a list of paths; the answer is a line with what is wrong, and then the pixels of all."""
    for line in sys.stdin:
        paths = json.loads(line)
        pixels = np.zeros((len(paths), 1 if grey else 3, canvas, canvas), np.uint8)
        bad, _ = fill(paths, pixels, None, grey)
        sys.stdout.buffer.write(json.dumps(bad).encode() + b"\n")
        sys.stdout.buffer.write(pixels.data)
        sys.stdout.buffer.flush()


def keep(task: dict) -> None:
    """First come the names of the files with paths and arrays, then a range of rows at a time.

    Rows are written to the file, not through a memory map, whose faults would cost as much as a small image's decoding.
    """
    with open(task["paths"], encoding="utf-8") as file:
        paths = json.load(file)
    kept = np.lib.format.open_memmap(task["pixels"], "r")
    digests = np.lib.format.open_memmap(task["digests"], "r+")
    row_bytes = kept[0].nbytes
    piece = np.zeros((max(1, PIECE // row_bytes), *kept.shape[1:]), np.uint8)
    with open(task["pixels"], "r+b") as out:
        for line in sys.stdin:
            first, last = json.loads(line)
            bad, colour = [], False
            for at in range(first, last, len(piece)):
                part = slice(at, min(at + len(piece), last))
                rows = piece[: part.stop - at]
                wrong, coloured = fill(paths[part], rows, digests[part], task["grey"])
                bad += [(at + row, why) for row, why in wrong]
                colour = colour or coloured
                out.seek(kept.offset + at * row_bytes)
                out.write(rows.data)
            out.flush()
            print(json.dumps({"rows": last - first, "bad": bad, "colour": colour}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except OSError as failure:  # of the disk: a file that cannot be read was dealt with above
        print(json.dumps({"failed": failure.strerror or str(failure)}), flush=True)
