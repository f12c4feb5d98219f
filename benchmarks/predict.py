"""How fast files are answered: `jioc predict` beside a plain torch loop over the same weights.

python benchmarks/predict.py [--images 2000] [--backbone resnet32] [--size 32] [--device cpu]

Prints images a second of (a) a plain loop: open each JPEG with Pillow, square, normalise, batches of 128,
forward, argmax; (b) ours, decoding in worker processes while the network answers; (c) the same weights on
pixels that are there already, which neither can exceed; and the growth of the largest memory while ours goes
through the files once more. The answers must be the same. Other work on the machine spoils the figures.
"""

import io
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import printing
import torch
from PIL import Image

import jioc
from jioc.cli.predict import answers
from jioc.training.learner import Learner

BATCH = 128


def make(folder: Path, images: int, side: int) -> list[str]:
    """Noisy gradients as JPEGs, a little larger than the canvas."""
    draw = np.random.RandomState(0)
    rows, cols = np.mgrid[0:side, 0:side] / (side - 1)
    found = []
    for i in range(images):
        where = folder / f"class{i % 4}" / f"{i}.jpg"
        where.parent.mkdir(exist_ok=True)
        smooth = np.stack([rows, cols, (rows + cols) / 2], 2) * draw.rand(3)
        noisy = 255 * (0.2 + 0.6 * smooth) + draw.randint(0, 40, (side, side, 3))
        buffer = io.BytesIO()
        Image.fromarray(noisy.astype(np.uint8)).save(buffer, "JPEG")
        where.write_bytes(buffer.getvalue())
        found.append(str(where))
    return found


def plain(learner: Learner, paths: list[str]) -> list[str]:
    """What a person would write."""
    net, w, found = learner.method.net.eval(), learner.preprocessing.shape[-1], []
    mean, std = (
        torch.tensor(v, device=learner.device).view(1, -1, 1, 1)
        for v in (learner.preprocessing.mean, learner.preprocessing.std)
    )
    for i in range(0, len(paths), BATCH):
        pixels = []
        for path in paths[i : i + BATCH]:
            image = Image.open(path).convert("RGB")
            image = image.resize((w, w), Image.Resampling.BILINEAR)
            pixels.append(torch.from_numpy(np.array(image)).permute(2, 0, 1))
        x = (torch.stack(pixels).to(learner.device).float() / 255 - mean) / std
        size = learner.preprocessing.size or w
        start = (w - size) // 2
        with torch.no_grad():
            best = net(x[..., start : start + size, start : start + size]).logits.argmax(1)
        found += [learner.classes[k] for k in best.tolist()]
    return found


def ours(learner: Learner, paths: Iterator[str]) -> list[str]:
    return [
        answer[0][0] if not isinstance(answer, str) else answer
        for _, answer in answers(learner, paths, 1, None)
    ]


def alone(learner: Learner, pixels: np.ndarray, times: int) -> int:
    for _ in range(times):
        learner.readouts(pixels)
    return times * len(pixels)


def timed(work: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    found = work()
    return found, time.perf_counter() - started


def main() -> None:
    parser = printing.parser(__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--backbone", default="resnet32")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        (where / "data").mkdir()
        few = make(where / "data", 40, options.size + 16)
        jioc.run(
            method="replay", data=str(where / "data"), tasks=1, first={"epochs": 1}, memory=20,
            device=options.device, backbone=options.backbone, image_size=options.size,
            data_cache=where / "cache", out=where / "run",
        )  # fmt: skip
        learner = jioc.load(where / "run", device=options.device)
        (where / "more").mkdir()
        paths = make(where / "more", options.images, options.size + 16)
        plain(learner, few), ours(learner, iter(few))  # the first calls are slow

        theirs, seconds_plain = timed(lambda: plain(learner, paths))
        mine, seconds = timed(lambda: ours(learner, iter(paths)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ours(learner, iter(paths))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        pixels = np.zeros((BATCH, *learner.preprocessing.shape), np.uint8)
        answered, seconds_alone = timed(lambda: alone(learner, pixels, max(1, len(paths) // BATCH)))
        same = sum(a == b for a, b in zip(mine, theirs, strict=True))
    rates = [len(paths) / seconds_plain, len(paths) / seconds, answered / seconds_alone]
    side = options.size + 16
    print(f"{len(paths):,} JPEGs of {side}x{side}, {options.backbone}, {options.device}")
    for name, rate in zip(["a plain loop", "jioc predict", "the network alone"], rates, strict=True):
        print(f"{name:18} {rate:8,.0f} images/s   {rate / rates[0]:.2f} of the plain loop")
    print(f"the same answer for {same:,} of {len(paths):,}; memory grew by {grown:.1f} MiB on a second pass")


if __name__ == "__main__":
    main()
