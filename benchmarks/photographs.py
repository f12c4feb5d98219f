"""Images a second on photographs: decoding, training resident and streamed, beside a good usual loop.

    python benchmarks/photographs.py --images 20000 --backbone resnet18 [--folder DIR] [--json FILE]

Makes a folder of JPEGs like photographs (about 500 x 375 pixels, 80 to 130 KB on average: smooth shapes, and
texture at every scale) in half of which classes are new and of half there are exemplars and a teacher
(iCaRL's second of two tasks). Times our first start, which decodes every file once; then epochs of ours, with
all images on the device and streamed from the disk; then the loop that a good engineer writes today:
torchvision's transforms on every file in every epoch, in workers that stay alive, pinned memory,
channels-last, bf16 autocast, nothing read back. On a CPU give small numbers.
"""

import argparse
import io
import json
import math
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import kernel_time
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFilter
from speed import train_second_task

from jioc.config import Config
from jioc.config import values as settings
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset
from jioc.device.pick import cores
from jioc.errors import Refused, exit_status
from jioc.events import Epoch, Event
from jioc.nets.catalogue import shape
from jioc.nets.incremental import build
from jioc.resolve.derive import resolve
from jioc.training.execution import commit
from jioc.training.preflight import preflight
from jioc.training.runner import Run

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
QUALITY = 94  # of JPEG
CHUNK = 50  # images that a process makes at a time


# --- photographs ---


def photograph(seed: int) -> bytes:
    """Draw an image like a photograph: texture that is stronger at larger scales, and shapes on it."""
    draw = np.random.default_rng(seed)
    wide, high = (500, 375) if draw.random() < 0.75 else (375, 500)
    levels = np.full((high, wide, 3), 110.0, np.float32)
    levels += draw.normal(0, 25, 3)
    rough = draw.uniform(0.6, 1.5)  # some are of sky, some of grass
    for step in (160, 80, 40, 20, 10, 5, 3, 2):
        planes = 3 if step >= 40 else 1  # colours change slowly
        for c in range(planes):
            small = draw.normal(0, 1, (high // step + 2, wide // step + 2)).astype(np.float32)
            plane = np.asarray(Image.fromarray(small).resize((wide, high), Image.Resampling.BICUBIC))
            strength = 9.0 * step**0.3 * (rough if step < 40 else 1.0)
            levels[:, :, c : c + 1 if planes == 3 else 3] += strength * plane[:, :, None]
    grain = draw.normal(0, 7.0, (high, wide, 1)).astype(np.float32)
    image = Image.fromarray(np.clip(levels + rough * grain, 0, 255).astype(np.uint8))
    for _ in range(draw.integers(4, 10)):
        _add_shape(image, draw)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


def _add_shape(image: Image.Image, draw: np.random.Generator) -> None:
    """Tint a soft-edged polygon of the image, which keeps its texture."""
    x, y = draw.uniform(0, image.width), draw.uniform(0, image.height)
    size, corners = draw.uniform(30, 160), int(draw.integers(3, 9))
    turns = np.sort(draw.uniform(0, 2 * math.pi, corners))
    points = [(x + size * math.cos(turn), y + size * math.sin(turn)) for turn in turns]
    mask = Image.new("L", image.size)
    ImageDraw.Draw(mask).polygon(points, fill=int(draw.integers(90, 200)))
    colour = tuple(int(level) for level in draw.integers(0, 256, 3))
    image.paste(Image.new("RGB", image.size, colour), mask=mask.filter(ImageFilter.GaussianBlur(1.5)))


def _write(folder: str, classes: int, first: int, last: int) -> list[int]:
    sizes = []
    for i in range(first, last):
        content = photograph(i)
        (Path(folder) / f"class{i % classes:03d}" / f"{i}.jpg").write_bytes(content)
        sizes.append(len(content))
    return sizes


def make(folder: Path, images: int, classes: int, processes: int) -> dict[str, float]:
    """Write the folder by many processes; sizes of the files, and the seconds a thousand of them took."""
    for c in range(classes):
        (folder / f"class{c:03d}").mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    firsts = range(0, images, CHUNK)
    with ProcessPoolExecutor(processes) as pool:
        parts = [pool.submit(_write, str(folder), classes, i, min(i + CHUNK, images)) for i in firsts]
        sizes = [size for part in parts for size in part.result()]
    seconds = time.perf_counter() - started
    kilo = [size / 1000 for size in sizes]
    return {
        "images": images, "seconds_per_thousand": 1000 * seconds / images, "mean_kb": statistics.fmean(kilo),
        "least_kb": min(kilo), "most_kb": max(kilo),
    }  # fmt: skip


# --- ours ---


def chosen(args: argparse.Namespace, cache: Path, **values: Any) -> Config:
    return resolve(
        settings.make(
            method="icarl",
            data=str(args.folder),
            data_cache=cache,
            image_size=args.image_size,
            task_sizes=(args.classes // 2, args.classes - args.classes // 2),
            backbone=args.backbone,
            stem="imagenet",
            device=args.device,
            batch_size=args.batch_size,
            later={"epochs": args.epochs},
            memory=args.exemplars * (args.classes // 2),
            **values,
        )
    )


def ours(args: argparse.Namespace, cache: Path, dataset: Dataset, **values: Any) -> dict[str, Any]:
    """The second task's fit: images a second from the second epoch on, the first epoch, kernels' share."""
    epochs, watch, found = list[Epoch](), kernel_time.KernelTime(), dict[str, Any]()
    cuda = args.device.startswith("cuda")

    def tell(event: Event) -> None:
        if isinstance(event, Epoch):
            epochs.append(event)
            if cuda and len(epochs) == args.epochs - 1:
                watch.start()
            elif cuda and len(epochs) == args.epochs:
                found.update(watch.stop())

    run = Run(preflight(chosen(args, cache, **values), dataset), callback=tell)
    train_second_task(run, args.exemplars, args.classes // 2)
    timed = epochs[1:-1] if cuda and len(epochs) > 2 else epochs[1:]  # the last one was watched
    return {
        "images_per_second": statistics.median(epoch.images_per_second for epoch in timed),
        "first_epoch_seconds": epochs[0].seconds,
        "images": epochs[0].images,
        "device": found,
    }


# --- the usual loop, as a good engineer writes it ---


class Files(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """Files of images, each decoded, cropped, resized, flipped and normalised when it is asked for."""

    def __init__(self, paths: list[tuple[str, int]], size: int):
        self.paths, self.size = paths, size
        self.transform = torchvision_transform(size)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        path, label = self.paths[i]
        with Image.open(path) as file:
            image = file.convert("RGB")
        return (self.transform or self.by_pillow)(image), label

    def by_pillow(self, image: Image.Image) -> torch.Tensor:
        area, ratio = random.uniform(0.08, 1.0), math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w = min(image.width, round(math.sqrt(image.width * image.height * area * ratio)))
        h = min(image.height, round(math.sqrt(image.width * image.height * area / ratio)))
        x, y = random.randint(0, image.width - w), random.randint(0, image.height - h)
        side = (self.size, self.size)
        image = image.resize(side, Image.Resampling.BILINEAR, box=(x, y, x + w, y + h))
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        levels = (np.asarray(image, np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)
        return torch.from_numpy(levels.transpose(2, 0, 1).copy())


def torchvision_transform(size: int) -> Any:
    try:
        from torchvision import transforms
    except (ImportError, RuntimeError):
        return None
    steps = [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    return transforms.Compose([*steps, transforms.Normalize(MEAN, STD)])


def usual(args: argparse.Namespace) -> dict[str, Any]:
    device, cuda = torch.device(args.device), args.device.startswith("cuda")
    g = torch.Generator().manual_seed(0)
    plan = {"backbone": args.backbone, "stem": "imagenet", "channels": 3, "cosine": False, "maps": False}
    net = build(plan | {"head": "linear", "sizes": []}, g).to(device)
    half = args.classes // 2
    net.grow(half, g)
    teacher = net.frozen_copy()
    net.grow(args.classes - half, g)
    for one in (net, teacher):
        one.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    net.train()
    paths = []
    for c in range(args.classes):
        files = sorted((args.folder / f"class{c:03d}").iterdir())
        paths += [(str(f), c) for f in (files[: args.exemplars] if c < half else files[: args.new])]
    loader = torch.utils.data.DataLoader(
        Files(paths, args.image_size), args.batch_size, shuffle=True, num_workers=args.workers,
        pin_memory=cuda, persistent_workers=True, prefetch_factor=4,
    )  # fmt: skip
    optimiser = torch.optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=2e-4, fused=cuda)
    torch.backends.cudnn.benchmark = True
    watch, speeds, found = kernel_time.KernelTime(), list[float](), dict[str, Any]()
    for epoch in range(args.epochs):
        if cuda and epoch == args.epochs - 1:
            watch.start()
        started = time.perf_counter()
        for x, y in loader:
            x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
            y = y.to(device, non_blocking=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
                with torch.no_grad():
                    old = teacher(x).logits
                out = net(x).logits
            kd = -(F.softmax(old / 2, 1) * F.log_softmax(out[:, :half] / 2, 1)).sum(1).mean()
            loss = F.cross_entropy(out, y) + kd
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        if cuda:
            torch.cuda.synchronize()
        speeds.append(len(paths) / (time.perf_counter() - started))
        if cuda and epoch == args.epochs - 1:
            found = watch.stop()
    timed = speeds[1:-1] if cuda and len(speeds) > 2 else speeds[1:]
    return {
        "images_per_second": statistics.median(timed), "first_epoch_seconds": len(paths) / speeds[0],
        "images": len(paths), "device": found, "torchvision": torchvision_transform(8) is not None,
    }  # fmt: skip


def measure(args: argparse.Namespace) -> None:
    shape(args.backbone)
    if args.epochs < 2:
        raise Refused(f"--epochs: {args.epochs} is refused: the first is not timed, so it takes two")
    if args.json and not args.json.parent.is_dir():
        raise Refused(f"--json: there is no folder {str(args.json.parent)!r}")
    if args.classes < 4 or args.images < 10 * args.classes:
        raise Refused("--images, --classes: at least four classes of ten images each")
    with tempfile.TemporaryDirectory() as scratch:
        args.folder, cache = args.folder or Path(scratch) / "photographs", Path(scratch) / "cache"
        found: dict[str, Any] = {}
        if not args.folder.is_dir():
            found["files"] = make(args.folder, args.images, args.classes, args.workers)
            print("files: " + ", ".join(f"{name} {value:,.1f}" for name, value in found["files"].items()))
        if not args.only_files:
            compare(args, cache, found)
    if args.json:
        about = {"commit": commit(), "torch": torch.__version__, "backbone": args.backbone}
        name = torch.cuda.get_device_name() if args.device.startswith("cuda") else platform.machine()
        about |= {"device": name, "cores": cores(), "image_size": args.image_size, "workers": args.workers}
        args.json.write_text(json.dumps(about | found, indent=1) + "\n")


def compare(args: argparse.Namespace, cache: Path, found: dict[str, Any]) -> None:
    started = time.perf_counter()
    dataset = load_dataset(chosen(args, cache))
    seconds = time.perf_counter() - started
    count = len(dataset.train_y) + len(dataset.test_y)
    found["decoding"] = {"images": count, "seconds": seconds, "images_per_second": count / seconds}
    print(f"{'decoding, once':30} {count / seconds:10,.0f} images/s", flush=True)
    half = args.classes // 2
    args.new = int(np.bincount(dataset.train_y)[half:].mean())  # as many files a class as ours trains on
    variants: dict[str, Any] = {"ours, resident": {"stream": "no"}, "ours, streamed": {"stream": "yes"}}
    if args.compiler and args.device.startswith("cuda"):
        variants |= {f"{name}, by the compiler": values for name, values in variants.items()}
    found["the usual loop"] = usual(args)
    _show("the usual loop", found, args)
    for name, values in variants.items():
        from jioc.nets import fused

        fused.POOLING = "compiler" not in name
        found[name] = ours(args, cache, dataset, **values)
        _show(name, found, args)
    first = found["decoding"]["seconds"] + found["ours, resident"]["first_epoch_seconds"]
    first_usual = found["the usual loop"]["first_epoch_seconds"]
    print(f"first epoch with decoding and compilation: {first:.1f} s; the usual loop's: {first_usual:.1f} s")


def _show(name: str, found: dict[str, Any], args: argparse.Namespace) -> None:
    one, usual_one = found[name], found["the usual loop"]
    one["ratio"] = one["images_per_second"] / usual_one["images_per_second"]
    print(f"{name:30} {one['images_per_second']:10,.0f} images/s   {one['ratio']:6.2f}x", flush=True)
    if one["device"]:
        kernel_time.show(one["device"], -(-one["images"] // args.batch_size))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cuda = torch.cuda.is_available()
    parser.add_argument("--images", type=int, default=20_000 if cuda else 200)
    parser.add_argument("--classes", type=int, default=20 if cuda else 4)
    parser.add_argument("--exemplars", type=int, default=200 if cuda else 4, help="of each old class")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=128 if cuda else 16)
    parser.add_argument("--backbone", default="resnet18")
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--epochs", type=int, default=4 if cuda else 2)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--compiler", action="store_true", help="without our kernels too, where they serve the network"
    )
    parser.add_argument("--folder", type=Path, help="photographs of an earlier run; made there if not there")
    parser.add_argument("--only-files", action="store_true", help="make the photographs, and stop")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(words)
    return exit_status(lambda: measure(args))


if __name__ == "__main__":
    sys.exit(main())
