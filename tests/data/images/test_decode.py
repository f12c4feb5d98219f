"""Every kind of file is used as it looks, or named in one sentence."""

import io
import os
import re
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from helpers.paths import ROOT
from helpers.trees import read, shown
from jioc.data.images import decode
from jioc.errors import Refused

GREY, RED = (128, 128, 128), (255, 0, 0)


def _rotated(path: Path) -> None:
    """Stored lying on its side, with the EXIF word that says so; as seen, the left half is red."""
    seen = Image.new("RGB", (8, 8))
    seen.paste(RED, (0, 0, 4, 8))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees, clockwise
    seen.transpose(Image.Transpose.ROTATE_90).save(path.with_suffix(".png"), exif=exif)


def _animated(path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), c) for c in (RED, (0, 0, 255))]
    frames[0].save(path.with_suffix(".gif"), save_all=True, append_images=frames[1:])


def _palette(path: Path) -> None:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 255, 255, 0, 0])
    image.save(path.with_suffix(".png"))


def _see_through_palette(path: Path) -> None:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 255, 255, 0, 0])
    image.save(path.with_suffix(".png"), transparency=1)


def _wide(path: Path) -> None:
    """Only the centred square counts. It is grey, as are the few pixels beside it that antialiasing sees."""
    image = Image.new("RGB", (48, 16), RED)
    image.paste(GREY, (12, 0, 36, 16))
    image.save(path.with_suffix(".png"))


PICTURES: dict[str, tuple[Callable[[Path], Any], tuple[int, int, int]]] = {
    "grey": (lambda p: Image.new("L", (8, 8), 128).save(p.with_suffix(".png")), GREY),
    "one bit": (lambda p: Image.new("1", (8, 8), 1).save(p.with_suffix(".png")), (255, 255, 255)),
    "palette": (_palette, RED),
    "palette, transparent": (_see_through_palette, (255, 255, 255)),
    "cmyk": (lambda p: Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(p.with_suffix(".tif")), RED),
    "16 bit": (
        lambda p: Image.fromarray(np.full((8, 8), 32896, np.uint16)).save(p.with_suffix(".png")),
        GREY,
    ),
    "alpha": (
        lambda p: Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(p.with_suffix(".png")),
        (255, 255, 255),
    ),
    "half alpha": (lambda p: Image.new("LA", (8, 8), (0, 127)).save(p.with_suffix(".png")), GREY),
    "animated": (_animated, RED),
    "wrong extension": (lambda p: Image.new("RGB", (8, 8), RED).save(p.with_suffix(".jpg"), "PNG"), RED),
    "no extension": (lambda p: Image.new("RGB", (8, 8), RED).save(p, "PNG"), RED),
    "jpeg, large": (lambda p: Image.new("RGB", (300, 200), GREY).save(p.with_suffix(".jpg")), GREY),
    "wide": (_wide, GREY),
    "webp": (lambda p: Image.new("RGB", (8, 8), GREY).save(p.with_suffix(".webp"), lossless=True), GREY),
}


def _noise(levels: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(0).randint(0, levels, shape)


MORE: dict[str, tuple[np.ndarray, str, Any]] = {  # pixels, ending, and what of them is transparent
    "grey, one level transparent": (_noise(4, 9, 12).astype(np.uint8), ".png", 2),
    "one colour transparent": (255 * _noise(2, 9, 12, 3).astype(np.uint8), ".png", (255, 255, 0)),
    "16 bit, every level": (np.arange(1 << 16).reshape(256, 256).astype(np.uint16), ".png", None),
    "16 bit tiff": (_noise(1 << 16, 9, 12).astype(np.uint16), ".tif", None),
    "jpeg, sharp and large": (_noise(256, 150, 99, 3).astype(np.uint8), ".jpg", None),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_is_used_as_it_looks(folder: Path, kind: str) -> None:
    write, seen = PICTURES[kind]
    (folder / "odd").mkdir()
    write(folder / "odd" / "it")
    d, notes = read(folder)
    assert shown(d.train_x[d.train_y == 2][0]) == seen
    assert notes == ["class 'odd' has no test image; it is learnt and not judged"]


def test_the_lines_beside_an_exported_model_give_the_pixels_of_training(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "models.md").read_text()
    (shown_there,) = [
        lines for lines in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def pixels_of" in lines
    ]
    assert shown_there in (ROOT / "examples" / "add_classes.sh").read_text()
    names: dict[str, Any] = {"np": np, "Image": Image, "ImageOps": ImageOps}
    exec(shown_there, names)
    for name, write in [*((kind, write) for kind, (write, _) in PICTURES.items()), ("rotated", _rotated)]:
        (tmp_path / name).mkdir()
        write(tmp_path / name / "it")
    for name, (pixels, ending, transparent) in MORE.items():
        how = {} if transparent is None else {"transparency": transparent}
        Image.fromarray(pixels).save(tmp_path / f"{name}{ending}", **how)
    for file in filter(Path.is_file, tmp_path.rglob("*")):
        for canvas, grey in [(8, False), (5, True), (256, True)]:
            pixels, _ = decode.square(file.read_bytes(), canvas, grey)
            found = names["pixels_of"](file, canvas, 1 if grey else 3)
            assert np.array_equal(found.transpose(2, 0, 1), pixels), file


def test_a_picture_is_turned_as_its_exif_says(folder: Path) -> None:
    (folder / "odd").mkdir()
    _rotated(folder / "odd" / "it")
    image = read(folder)[0].train_x[-1]
    assert (image[0, :, :4] == 255).all() and (image[0, :, 4:] == 0).all()


def _png(width: int, height: int, data: bytes = b"", interlaced: int = 0) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def _truncated(path: Path, kind: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.random.RandomState(0).randint(0, 255, (32, 32, 3), np.uint8)).save(buffer, kind)
    path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])


def _adam7(pixels: np.ndarray) -> bytes:
    """The rows of an interlaced PNG, with a filter of none before each."""
    passes = [pixels[y::dy, x::dx] for x, y, dx, dy in decode.PASSES]
    return b"".join(b"\0" + row.tobytes() for part in passes if part.size for row in part)


def _ended_early(path: Path, interlaced: int = 0) -> None:
    """A PNG in good order that holds half of its data."""
    pixels = _noise(255, 32, 32, 3).astype(np.uint8)
    rows = _adam7(pixels) if interlaced else b"".join(b"\0" + row.tobytes() for row in pixels)
    path.write_bytes(_png(32, 32, rows[: len(rows) // 2], interlaced))


def _strip_missing(path: Path) -> None:
    """A TIFF that claims twice the rows that its one strip has."""
    Image.fromarray(_noise(255, 16, 16, 3).astype(np.uint8)).save(path, "TIFF")
    height = struct.pack("<HHII", 257, 4, 1, 16)
    raw = path.read_bytes()
    raw = raw if height in raw else raw.replace(struct.pack("<HHII", 257, 3, 1, 16), height)
    assert height in raw
    path.write_bytes(raw.replace(height, struct.pack("<HHII", 257, 4, 1, 32)))


UNUSABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "truncated jpeg": (lambda p: _truncated(p, "JPEG"), "is truncated"),
    "truncated png": (lambda p: _truncated(p, "PNG"), "is truncated"),
    "png that ends early": (_ended_early, "is truncated"),
    "interlaced png that ends early": (lambda p: _ended_early(p, interlaced=1), "is truncated"),
    "png with next to no data": (lambda p: p.write_bytes(_png(9000, 9000, b"\0")), "is truncated"),
    "tiff without its last strip": (_strip_missing, "is truncated"),
    "long bomb": (lambda p: p.write_bytes(_png(1, 80_000_000, b"\0\1\2\3")), "a side of which is over"),
    "wide bomb": (lambda p: p.write_bytes(_png(80_000_000, 1, b"\0\1\2\3")), "a side of which is over"),
    "zero bytes": (lambda p: p.write_bytes(b""), "is empty"),
    "a film": (lambda p: p.write_bytes(b"\0\0\0\x18ftypisom"), "is not an image of a known format"),
    "no image": (lambda p: p.write_text("hello"), "is not an image of a known format"),
    "bomb": (lambda p: p.write_bytes(_png(30_000, 30_000)), "is not opened"),
    "smaller bomb": (lambda p: p.write_bytes(_png(10_000, 10_000)), "10,000 x 10,000 pixels"),
    "postscript": (
        lambda p: p.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n"),
        "is not an image",
    ),
    "32 bit": (lambda p: Image.new("F", (8, 8), 0.5).save(p, "TIFF"), "has 32-bit levels"),
    "pipe": (os.mkfifo, "is not a regular file"),
    "link to nothing": (lambda p: p.symlink_to("nowhere"), "is a link to nothing"),
    "link that leaves": (lambda p: p.symlink_to("/etc/hostname"), "is a link that leaves the folder"),
    "linked folder": (lambda p: p.symlink_to("../cat", target_is_directory=True), "is a link to a folder"),
    "loop": (lambda p: p.symlink_to(p.name), "is a link to nothing"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_an_unusable_file_is_named_and_left_out_or_ends_the_run(folder: Path, kind: str) -> None:
    make, why = UNUSABLE[kind]
    make(folder / "dog" / "bad.jpg")
    d, notes = read(folder)
    assert len(d.train_y) + len(d.test_y) == 10 and len(notes) == 1
    assert notes[0].startswith("'dog/bad.jpg' ") and why in notes[0] and notes[0].endswith("; it is left out")
    assert [file for file, _ in d.record["skipped"]] == ["dog/bad.jpg"]
    with pytest.raises(Refused, match="dog/bad.jpg.*--on-bad skip leaves such files out"):
        read(folder, on_bad="fail")


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "RGBA", "LA", "I;16"])
def test_a_png_is_used_whatever_is_black_in_it(mode: str) -> None:
    for height, width in [(1, 1), (5, 3), (8, 8), (9, 31)]:
        for black in (slice(0), slice(-1, None), slice(None)):  # nothing, the last row, all
            pixels, written = _noise(256, height, width, 3).astype(np.uint8), io.BytesIO()
            pixels[black] = 0
            Image.fromarray(pixels).convert("L" if mode == "I;16" else "RGB").convert(mode).save(
                written, "PNG"
            )
            decode.square(written.getvalue(), 8, grey=False)


def test_an_interlaced_png_is_used() -> None:
    for shape in [(1, 1), (2, 5), (5, 9), (16, 16)]:
        pixels = _noise(256, *shape, 3).astype(np.uint8)
        taken, _ = decode.square(_png(shape[1], shape[0], _adam7(pixels), interlaced=1), min(shape), False)
        if shape == (16, 16):
            assert np.array_equal(taken, pixels.transpose(2, 0, 1))


PHONES = [
    pytest.param("AVIF", marks=pytest.mark.skipif(not decode._is_read("AVIF"), reason="an older Pillow")),
    pytest.param("HEIF", marks=pytest.mark.extras),
]


def _saved(kind: str, image: Image.Image, **how: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **how)
    return buffer.getvalue()


def _photograph(kind: str, image: Image.Image, **how: Any) -> bytes:
    """An image as a telephone would save it."""
    if not decode._is_read(kind):
        pytest.skip("the extra heic is not installed")
    return _saved(kind, image, quality=95, **how)


@pytest.mark.parametrize("kind", PHONES)
def test_what_telephones_save_looks_as_they_show_it(kind: str) -> None:
    """The left half is red as seen, whichever way up the telephone was."""
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees, clockwise
    seen = Image.new("RGB", (64, 64), GREY)
    seen.paste(RED, (0, 0, 32, 64))
    for raw in (
        _photograph(kind, seen),
        _photograph(kind, seen.transpose(Image.Transpose.ROTATE_90), exif=exif.tobytes()),
    ):
        pixels, coloured = decode.square(raw, 64, grey=False)
        assert coloured
        assert np.abs(pixels.astype(int) - np.asarray(seen).transpose(2, 0, 1))[:, 8:-8, 8:24].max() < 12


@pytest.mark.parametrize("kind", PHONES)
def test_a_photograph_of_a_format_that_was_missing_is_read_as_soon_as_it_can_be(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "dog" / "new.jpg").write_bytes(_photograph(kind, Image.new("RGB", (8, 8), RED)))
    with monkeypatch.context() as without:
        without.setattr(decode, "_is_read", lambda kind: False)
        for _ in range(2):
            d, notes = read(folder)
            assert len(d.train_y) + len(d.test_y) == 10
            assert notes == [f"'dog/new.jpg' {decode.NEEDS[kind]}; it is left out"]
    d, notes = read(folder)
    assert len(d.train_y) + len(d.test_y) == 11 and notes == []


def test_without_what_reads_it_a_photograph_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)  # importing it fails
    monkeypatch.setattr(decode, "_is_read", decode._is_read.__wrapped__)
    with pytest.raises(decode.Unusable, match=r"is a HEIC image, which needs .* pip install 'jioc\[heic\]'"):
        decode.square(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", 8, grey=False)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", *PHONES])
def test_damage_anywhere_is_an_image_or_a_reason(kind: str) -> None:
    draw = np.random.RandomState(0)
    image = Image.fromarray(draw.randint(0, 255, (24, 20, 3), np.uint8))
    whole = _photograph(kind, image) if kind in decode.NEEDS else _saved(kind, image)
    for _ in range(60):
        raw = bytearray(whole)
        for at in draw.randint(0, len(raw), draw.randint(1, 6)):
            raw[at] = draw.randint(256)
        raw = raw[: draw.randint(1, len(raw))] if draw.rand() < 0.3 else raw
        try:
            pixels, _ = decode.square(bytes(raw), 8, grey=False)
            assert pixels.shape == (3, 8, 8) and pixels.dtype == np.uint8
        except decode.Unusable as why:
            assert "\n" not in str(why)


def test_a_jpeg_read_at_a_smaller_scale_looks_the_same() -> None:
    rows, cols = np.mgrid[0:512, 0:512] / 511
    image = Image.fromarray((255 * np.stack([rows, cols, (rows + cols) / 2], 2)).astype(np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=95)
    small, _ = decode.square(buffer.getvalue(), 32, grey=False)
    whole = np.asarray(image.resize((32, 32), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(small.astype(int) - whole).max() <= 4
