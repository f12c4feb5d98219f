"""Names of classes, pickles and files that an attacker would write, all made by code."""

import io
import json
import os
import pickle
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

NAMES = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!-- & \"quoted\" 'names' -->",
    "כלב גדול",
    "قطة‮",
    "line\u2028separator\u2029",
    "/*DATA*/",
    "",
    "emoji 🐈 and \ud800 half",
    "a" * 300,
]


class Hostile:
    """A pickle of it runs a command."""

    def __init__(self, target: str):
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)


# --- values in JSON and YAML ---

ODD_TEXTS = [
    "", " ", "x", "None", "nan", "-1", "0", "1e400", "true", "\x1b[31mred\x1b[0m", "\x9b31m", "a\x00b",
    "\r\n", "../../up", "/etc/hostname", "trap.py", "HERE/trap.py", "./trap.py", "~", "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "$(touch ran)", "`touch ran`", "\\input{/etc/hostname}", "%\n\\write18{touch ran}", "{0.__class__}",
    "%s%n", "__import__('os').system('touch ran')", "!!python/name:os.system", "²", "٣", "9" * 24, "9" * 5000,
    "x" * 70_000, *NAMES,
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 10**6, 2**31, 2**53 + 1, 2**63, -(2**64), 10**18, 10**400, 0.0, -0.0, 0.5,
    1e-320, 1e308, float("inf"), float("-inf"), float("nan"), [], {}, [[]], [None], [[[[[[]]]]]], {"": {}},
    {"a": [1, {"b": None}]}, [1] * 1000, list("icarl"), [1.5, "x", None],
]  # fmt: skip

# --- the contents of files ---


def png(
    width: int, height: int, chunks: int | None = None, end: bool = True, rows: int | None = None
) -> bytes:
    """A PNG of one grey level that claims a size; its pixels are cut after so many bytes, or rows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress(bytes(min((width + 1) * (rows or height), 1 << 20)), 9)[:chunks]
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", pixels) + (chunk(b"IEND", b"") if end else b"")


def safetensors(header: bytes, size: int | None = None, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header) if size is None else size) + header + data


def _npy(array: np.ndarray, **more: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **more)
    return file.getvalue()


def _npy_claim(shape: str) -> bytes:
    """An array's header that claims a shape, without the array."""
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head


def _zip_bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../ran", "x")
        archive.writestr("zeros", bytes(1 << 24))
    return file.getvalue()


def _yaml_bomb() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    return ("method: icarl\n" + "\n".join(lines) + "\nmemory: *a11\n").encode()


def _tensors(shape: list[int], end: int) -> bytes:
    header = {
        "__metadata__": {"tree": '{"tensor": "x"}'},
        "x": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]},
    }
    return safetensors(json.dumps(header).encode())


CONTENTS: dict[str, bytes] = {
    "nothing": b"",
    "a zero": b"\x00",
    "zeros": bytes(5000),
    "a line": b"x\n",
    "no utf-8": b"\xff\xfe\xfd {\x80}",
    "utf-16": '{"format": 1}'.encode("utf-16"),
    "a mark": b"\xef\xbb\xbf{}",
    "half a letter": b'{"a": "\\ud800"}',
    "{}": b"{}",
    "[]": b"[]",
    "null": b"null",
    "a number": b"17",
    "a text": b'"x"',
    "infinity": b"Infinity",
    "nan": b'{"format": NaN, "tasks": NaN}',
    "10**400": b'{"format": 1' + b"0" * 400 + b"}",
    "5,000 digits": b'{"format": ' + b"9" * 5000 + b"}",
    "1e999": b'{"format": 1e999}',
    "deep lists": b"[" * 100_000,
    "deep lists, closed": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep yaml": b"\n".join(b" " * i + b"a:" for i in range(2000)),
    "deep yaml lists": b"- " * 5000 + b"x",
    "twice": b'{"format": 1, "format": 2}',
    "a long line": b'{"a": "' + b"x" * 5_000_000 + b'"}',
    "a million rows": b"a,b\n" * 500_000,
    "an open quote": b'path,label\n"x,y\n' + b"z" * 200_000,
    "a million columns": b"path,label" + b"," * 1_000_000,
    "yaml bomb": _yaml_bomb(),
    "yaml object": b"method: !!python/object/apply:os.system ['touch ran']\n",
    "yaml name": b"method: !!python/name:os.system\n",
    "yaml merges": b"a: &a {<<: *a}\n",
    "yaml itself": b"a: &a [*a]\nmethod: icarl\n",
    "yaml date": b"method: 2021-99-99\n",
    "yaml documents": b"method: icarl\n---\nmethod: der\n",
    "yaml numbers": b"method: icarl\nmemory: 1_000:59:59\nseed: 0o17\n",
    "yaml keys": b"{[1, 2]: 3, {a: b}: c}\n",
    "a pickle": pickle.dumps(Hostile("ran")),
    "a pickled array": _npy(np.array([Hostile("ran")], dtype=object), allow_pickle=True),
    "an array of 2**60": _npy_claim(f"({2**60},)"),
    "an array of -1": _npy_claim("(-1,)"),
    "a zip": _zip_bomb(),
    "a png of 1 x 80,000,000": png(1, 80_000_000, 20),
    "a png of 80,000,000 x 1": png(80_000_000, 1, 20),
    "a png of 60,000 x 60,000": png(60_000, 60_000),
    "a png of 0 x 0": png(0, 0),
    "half a png": png(64, 64, 12),
    "half the rows of a png": png(64, 64, rows=32),
    "few rows of a long png": png(1, 80_000_000, rows=4),
    "a png without its end": png(64, 64, end=False),
    "tensors of 2**60 bytes": safetensors(b"{}", 2**60),
    "tensors without a tree": safetensors(b"{}"),
    "tensors of no file": _tensors([2**40], 2**42),
    "tensors, negative": _tensors([-1], 4),
    "deep tensors": safetensors(b'{"__metadata__":' + b"[" * 50_000 + b"}"),
    "a script": b"#!/bin/sh\ntouch ran\n",
}

# --- other things that may stand where a file is expected ---


def _socket(path: Path) -> None:
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(path.parent)  # the name of a socket may be short only
        try:
            listening.bind(path.name)
        finally:
            os.chdir(here)


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def _below(path: Path) -> None:
    path.mkdir()
    with suppress(OSError):
        (path / "below").mkdir()


OTHERS: dict[str, Callable[[Path], Any]] = {
    "a folder": _below,
    "a fifo": os.mkfifo,
    "a socket": _socket,
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to /dev/full": lambda path: path.symlink_to("/dev/full"),
    "a link to /proc/self/mem": lambda path: path.symlink_to("/proc/self/mem"),
    "a terabyte of nothing": _sparse,
    "no leave to read": lambda path: (path.touch(), path.chmod(0)),
}


def _writer(content: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content)


PUT: dict[str, Callable[[Path], Any]] = {name: _writer(c) for name, c in CONTENTS.items()} | OTHERS
"""Put the hostile file of a name in a place where there is nothing."""
