"""How fast images become data: JPEGs of 64x64, decoded by every core, beside a plain loader in the same run.

python benchmarks/data.py [--images 100000] [--folder DIR]

Prints images a second of (a) one process that opens one image at a time with Pillow, as a plain folder loader
does, before and after the rest, (b) our decoding, (c) our first start as a whole: listing, decoding, split,
checksum, a cache flushed to the disk; and (d) the seconds of a second start until the data is there. Starts
are fresh processes. Other work on the machine spoils the figures.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

PLAIN = 5000  # images that the plain loader reads; its rate does not depend on how many there are

START = """
import json, os, resource, sys, time
from jioc.config import values as settings
from jioc.resolve.derive import resolve
import jioc.training.runner
from jioc.data.load import load_dataset
imported = time.perf_counter()
marks = [0.0]
def tell(event):
    marks.append(time.perf_counter())
d = load_dataset(resolve(settings.make(method="finetune", data=sys.argv[1], data_cache=sys.argv[2])), tell)
done = time.perf_counter()
workers = resource.getrusage(resource.RUSAGE_CHILDREN)
busy = workers.ru_utime + workers.ru_stime
images = len(d.train_y) + len(d.test_y)
decoding = marks[-1] - marks[min(1, len(marks) - 1)]
print(json.dumps({"decoding": decoding, "data": done - imported, "busy": busy, "images": images}))
"""


def make(folder: Path, images: int) -> None:
    """200 classes of noisy gradients, quality 75: about the size of TinyImageNet's files."""
    draw = np.random.RandomState(0)
    rows, cols = np.mgrid[0:64, 0:64] / 63
    for i in range(images):
        where = folder / f"{i % 200:03d}"
        where.mkdir(exist_ok=True)
        a, b, c = draw.rand(3)
        smooth = np.stack([a * rows, b * cols, c * (rows + cols) / 2], 2)
        noisy = 255 * (0.2 + 0.6 * smooth) + draw.randint(0, 40, (64, 64, 3))
        buffer = io.BytesIO()
        Image.fromarray(noisy.astype(np.uint8)).save(buffer, "JPEG")
        (where / f"{i}.jpg").write_bytes(buffer.getvalue())


def plain(folder: Path) -> float:
    """Images a second, one at a time."""
    paths = [path for name in sorted(os.listdir(folder)) for path in sorted((folder / name).iterdir())][
        :PLAIN
    ]
    started = time.perf_counter()
    for path in paths:
        with open(path, "rb") as file:
            np.asarray(Image.open(file).convert("RGB"))
    return len(paths) / (time.perf_counter() - started)


def start(folder: Path, cache: Path) -> dict[str, float]:
    """A process that wants its data."""
    env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    told = subprocess.run(
        [sys.executable, "-c", START, str(folder), str(cache)], env=env, capture_output=True, text=True
    )
    if told.returncode:
        sys.exit(told.stderr)
    return json.loads(told.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument(
        "--folder", type=Path, help="images made by an earlier run; made there if it is not there"
    )
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = words.folder or Path(scratch) / "images", Path(scratch) / "cache"
        if not folder.is_dir():
            folder.mkdir(parents=True)
            make(folder, words.images)
        cores = len(os.sched_getaffinity(0))
        before = plain(folder)
        first = start(folder, cache)
        alone = (
            before + plain(folder)
        ) / 2  # on both sides of the first start: other work on the machine counts alike
        seconds = min(start(folder, cache)["data"] for _ in range(3))
        size = sum(f.stat().st_size for f in cache.rglob("*.npy")) / 2**30
    rate, decoding = (first["images"] / first[kind] for kind in ("data", "decoding"))
    print(f"{first['images']:,.0f} JPEGs of 64x64, {cores} cores, {size:.2f} GiB decoded")
    print(f"one image at a time      {alone:10,.0f} images/s")
    busy = f"{first['busy'] / first['decoding']:.2f} cores busy"
    print(f"our decoding             {decoding:10,.0f} images/s  ({decoding / alone:.2f} times; {busy})")
    print(f"first start as a whole   {rate:10,.0f} images/s  ({rate / alone:.2f} times)")
    print(f"second start has data in {seconds:10.2f} s  (best of three fresh processes)")


if __name__ == "__main__":
    main()
