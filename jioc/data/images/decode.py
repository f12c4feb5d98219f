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
import struct
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError, features

VERSION = 3  # of decoding and statistics: another number, and every cache is built again
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # none that runs another program
MOST_PIXELS = 89_478_485  # Pillow's own limit: a quarter of a gibibyte of RGB
MOST_SIDE = (
    65_535  # pixels, as GIF and JPEG have at most; a row that is longer, or more rows, cost memory each
)
DIGEST = 16  # bytes
MOST_BYTES = 1 << 30
TRANSPARENT = {"LA", "La", "PA", "RGBA", "RGBa"}
UNREADABLE = "cannot be read: "  # how a reason begins that lies in the system, not in the file's content
DEFLATED = 1032  # bytes that deflate packs into one at best
LEVELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a pixel, by the colour type of a PNG
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
BRANDS = {  # of the files whose fifth to eighth bytes are ftyp
    **dict.fromkeys([b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"], "HEIF"),
    **dict.fromkeys([b"avif", b"avis"], "AVIF"),
}
NEEDS = {  # what reads these, where it is not here
    "HEIF": "is a HEIC image, which needs pillow-heif: pip install 'jioc[heic]', or save it as JPEG",
    "AVIF": "is an AVIF image, which needs Pillow 11.3: pip install -U pillow, or save it as JPEG",
}
MENDABLE = (UNREADABLE, *NEEDS.values())  # reasons, or how they begin, that may end without the file changing
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
    """Whether the system lets the file be read, and its format is one that can be, whatever it holds."""
    try:
        _formats(contents(path))
    except Unusable as why:
        return not str(why).startswith(MENDABLE)
    return True


def open_image(raw: bytes) -> ImageFile.ImageFile:
    """Open the image behind the bytes, without decoding it; one that is too large is unusable."""
    try:
        image = Image.open(io.BytesIO(raw), formats=_formats(raw))
    except Unusable:
        raise
    except UnidentifiedImageError:
        raise Unusable("is not an image of a known format") from None
    except Image.DecompressionBombError:
        raise Unusable(f"claims more than {MOST_PIXELS:,} pixels and is not opened") from None
    except Exception as error:
        raise Unusable(_reason(error)) from None
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise Unusable(f"claims {width:,} x {height:,} pixels, more than {MOST_PIXELS:,}, and is not opened")
    if max(width, height) > MOST_SIDE:
        raise Unusable(f"claims {width:,} x {height:,} pixels, a side of which is over {MOST_SIDE:,}")
    return image


def _formats(raw: bytes) -> tuple[str, ...]:
    """The formats that the bytes may have. Those of telephones tell theirs."""
    kind = BRANDS.get(raw[8:12]) if raw[4:8] == b"ftyp" else None
    if kind is None:
        return FORMATS
    if not _is_read(kind):
        raise Unusable(NEEDS[kind])
    return (kind,)


@cache
def _is_read(kind: str) -> bool:
    """Whether a telephone's format can be read here."""
    if kind == "AVIF":
        return "avif" in features.get_supported_modules()
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def shorter_side(path: str) -> int:
    """Of the image in a file, in pixels, from its header alone."""
    with warnings.catch_warnings(action="ignore"):
        return min(open_image(contents(path)).size)


def square(raw: bytes, canvas: int, grey: bool) -> tuple[np.ndarray, bool]:
    """Decode a file's bytes: uint8 (1 or 3, canvas, canvas), and whether the picture has colour."""
    try:
        with warnings.catch_warnings(action="ignore"):
            image = open_image(raw)
            _check_whole(image, raw)
            return square_of(image, canvas, grey)
    except Unusable:
        raise
    except Exception as error:  # a damaged file can make a decoder raise anything
        raise Unusable(_reason(error)) from None


def _check_whole(image: ImageFile.ImageFile, raw: bytes) -> None:
    """Refuse a PNG or TIFF whose data end early in good order: Pillow takes it, black from there on."""
    whole = True
    if image.format == "PNG":
        whole = _png_is_whole(image, raw)
    elif image.format == "TIFF":
        covered = max((box[2] * box[3] for _, box, *_ in image.tile if box), default=0)
        whole = covered >= image.width * image.height
    if not whole:
        raise Unusable("is truncated")


def _png_is_whole(image: Image.Image, raw: bytes) -> bool:
    needed = _png_bytes(raw)
    if needed > DEFLATED * len(raw):
        return False  # no memory is taken for it
    image.load()
    last = image.crop((0, image.height - 1, *image.size))  # the row is black if the data end before it
    sound = not image.info.get("interlace") and np.asarray(last).any()
    return bool(sound) or _inflates_to(_png_data(raw), needed)


def _png_bytes(raw: bytes) -> int:
    """How many bytes the pixels of a PNG are, a filter's for each row, before they are packed."""
    at = raw.index(b"IHDR") + 4
    width, height, bits, kind, _, _, interlaced = struct.unpack(">IIBBBBB", raw[at : at + 13])
    grids = [
        (-(-(width - x) // dx), -(-(height - y) // dy))
        for x, y, dx, dy in (PASSES if interlaced else ((0, 0, 1, 1),))
    ]
    return sum(rows * (1 - -cols * bits * LEVELS[kind] // 8) for cols, rows in grids if cols > 0 < rows)


def _png_data(raw: bytes) -> Iterator[bytes]:
    """The packed pixels of a PNG, chunk by chunk."""
    at = 8
    while at + 8 <= len(raw):
        size, kind = struct.unpack(">I4s", raw[at : at + 8])
        if kind == b"IDAT":
            yield raw[at + 8 : at + 8 + size]
        at += size + 12


def _inflates_to(parts: Iterable[bytes], wanted: int) -> bool:
    """Whether packed data hold at least so many bytes; they are counted, not kept."""
    stream = zlib.decompressobj()
    for part in parts:
        while part and wanted > 0:
            wanted -= len(stream.decompress(part, 1 << 20))
            part = stream.unconsumed_tail
    return wanted <= 0


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
        levels = np.asarray(image)
        eight = np.empty(levels.shape, np.uint8)
        for whole, part in zip(_some(levels), _some(eight), strict=True):
            part[:] = (whole.astype(np.int64).clip(0, 65535) * 255 + 32767) // 65535
        return Image.fromarray(eight)
    if image.mode in ("I", "F"):
        raise Unusable("has 32-bit levels, whose range nobody can know")
    if image.mode in TRANSPARENT or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image


def _some(levels: np.ndarray) -> list[np.ndarray]:
    """Some million levels at a time."""
    flat = levels.reshape(-1)
    return [flat[i : i + (1 << 20)] for i in range(0, flat.size, 1 << 20)]


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
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are the parent's to answer
    for line in sys.stdin:
        try:
            answer, pixels = decode_files(**json.loads(line))
        except OSError as error:  # of the disk: an image file that cannot be read is named in the answer
            answer, pixels = {"failed": error.strerror or str(error)}, np.zeros(0, np.uint8)
        sys.stdout.buffer.writelines([json.dumps(answer).encode() + b"\n", pixels.data])
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
