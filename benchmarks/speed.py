"""Images a second of a training step with a teacher: the usual loop, and ours in several ways, in one run.

    python benchmarks/speed.py --backbone resnet32 --pack 6 [--json FILE]
    python benchmarks/speed.py --backbone resnet18 --stem imagenet --only compiled --pack 6 --profile
    python benchmarks/speed.py --second-start

The usual loop is written here as toolboxes write it: PIL transforms per image in a loader whose workers start
anew every epoch, fp32 launched op by op, the loss and the hits read back every step. All variants train the
second task of ten (20 classes, 5,000 new images, 2,000 exemplars, batch 128) of iCaRL on random images of
CIFAR's size; ours through the product's own `fit`. On a CPU everything is smaller and there is no graph.
A network whose stem pools is trained twice: by torch's compiler, and by the kernels of `nets/fused`.
"""

import argparse
import json
import platform
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kernel_time
import numpy as np
import starts
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance, ImageOps

from jioc.config import Config
from jioc.config import values as settings
from jioc.data.dataset import Dataset
from jioc.data.sources.cifar import CROP_FLIP_BRIGHTNESS, STATISTICS
from jioc.device.streams import own_stream
from jioc.errors import Refused, exit_status
from jioc.events import Epoch, Event
from jioc.nets import fused
from jioc.nets.incremental import build
from jioc.resolve.derive import resolve
from jioc.training.execution import commit
from jioc.training.preflight import preflight
from jioc.training.runner import Run

BATCH = 128
MEAN, STD = (np.array(v, np.float32) for v in STATISTICS["cifar100"])


def made(each: int) -> Dataset:
    """Random images of CIFAR-100's shape."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(100), each)
    x = rng.integers(0, 256, (len(y), 3, 32, 32), np.uint8)
    names = [str(c) for c in range(100)]
    return Dataset(
        "cifar100", names, x, y, x[:100], np.arange(100), *STATISTICS["cifar100"], CROP_FLIP_BRIGHTNESS
    )


# --- the usual loop ---


class PilImages(torch.utils.data.Dataset):
    """One image at a time: crop, flip, brightness, normalised; by torchvision if there is one."""

    def __init__(self, x: np.ndarray, y: np.ndarray):
        self.x, self.y = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), y
        self.transform = torchvision_transform() or pil_transform

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[int, torch.Tensor, int]:
        return i, self.transform(Image.fromarray(self.x[i])), int(self.y[i])


def torchvision_transform() -> Any:
    try:
        from torchvision import transforms
    except (ImportError, RuntimeError):
        return None
    return transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(brightness=63 / 255),
            transforms.ToTensor(),
            transforms.Normalize(MEAN.tolist(), STD.tolist()),
        ]
    )


def pil_transform(image: Image.Image) -> torch.Tensor:
    image = ImageOps.expand(image, 4)
    left, top = random.randint(0, 8), random.randint(0, 8)
    image = image.crop((left, top, left + 32, top + 32))
    if random.random() < 0.5:
        image = ImageOps.mirror(image)
    image = ImageEnhance.Brightness(image).enhance(random.uniform(1 - 63 / 255, 1 + 63 / 255))
    levels = (np.asarray(image, np.float32) / 255 - MEAN) / STD
    return torch.from_numpy(levels.transpose(2, 0, 1).copy())


def usual(data: Dataset, args: argparse.Namespace, device: torch.device) -> float:
    g = torch.Generator().manual_seed(0)
    plan = {
        "backbone": args.backbone,
        "stem": args.stem,
        "channels": 3,
        "cosine": False,
        "maps": False,
        "head": "linear",
    }
    net = build(plan | {"sizes": []}, g).to(device)
    net.grow(10, g)
    teacher = net.frozen_copy()
    net.grow(10, g)
    images = PilImages(data.train_x[: args.images], data.train_y[: args.images] % 20)
    loader = torch.utils.data.DataLoader(images, BATCH, shuffle=True, num_workers=args.workers)
    optimiser = torch.optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=2e-4)
    net.train()
    speeds = []
    for _ in range(args.epochs):
        started, right = time.perf_counter(), 0
        for _, x, y in loader:
            x, y = x.to(device), y.to(device)
            out = net(x)
            with torch.no_grad():
                old = teacher(x).logits
            kd = -(F.softmax(old / 2, 1) * F.log_softmax(out.logits[:, :10] / 2, 1)).sum(1).mean()
            loss = F.cross_entropy(out.logits, y) + kd
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            loss.item()
            right += out.logits.argmax(1).eq(y).cpu().sum().item()
        speeds.append(len(images) / (time.perf_counter() - started))
    return statistics.median(speeds[1:])


# --- ours ---


def ours(
    data: Dataset,
    args: argparse.Namespace,
    epochs: list[tuple[float, Epoch]],
    first: Callable[[], object] = lambda: None,
    **values: Any,
) -> None:
    """The second task's fit; `epochs` gets each epoch and its time, `first` is called after the first one."""

    def tell(event: Event) -> None:
        if isinstance(event, Epoch):
            if not epochs:
                first()
            epochs.append((time.perf_counter(), event))

    train_second_task(Run(preflight(chosen(args, **values), data), callback=tell), args.old // 10)


def chosen(args: argparse.Namespace, **values: Any) -> Config:
    """iCaRL on ten tasks, as every variant trains it."""
    return resolve(
        settings.make(
            method="icarl",
            data="cifar100",
            tasks=10,
            backbone=args.backbone,
            stem=args.stem,
            device=args.device,
            later={"epochs": args.epochs},
            memory=2000,
            **values,
        )
    )


def train_second_task(run: Run, exemplars: int, old: int = 10) -> None:
    """The second task's fit, with so many exemplars of each class of a first task that was not learnt."""
    method = run.method
    method.net.grow(old, method.generator)
    method.memory.classes = [torch.from_numpy(index[:exemplars]) for index in run.scenario.train[:old]]
    method.keep_teacher()
    task, arrived = run.arrival(1)
    method.net.grow(task.n_new, method.generator)
    run.engine.fit(method, task, arrived.with_memory(method.memory))


def alone(data: Dataset, args: argparse.Namespace, **values: Any) -> tuple[float, float]:
    """Images a second, and the seconds of the first epoch beyond a usual one: capture, compilation."""
    timed: list[tuple[float, Epoch]] = []
    ours(data, args, timed, **values)
    epochs = [epoch for _, epoch in timed]
    speed = statistics.median(epoch.images_per_second for epoch in epochs[1:])
    return speed, epochs[0].seconds - epochs[0].images / speed


def profiled(data: Dataset, args: argparse.Namespace, **values: Any) -> dict[str, Any]:
    """Where the device's time goes in the third epoch, and print it per step."""
    watch, found = kernel_time.KernelTime(), dict[str, Any]()

    class Watched(list[tuple[float, Epoch]]):
        def append(self, item: tuple[float, Epoch]) -> None:
            super().append(item)
            if len(self) == 2:
                watch.start()
            elif len(self) == 3:
                found.update(watch.stop())

    timed = Watched()
    ours(data, argparse.Namespace(**vars(args) | {"epochs": 3}), timed, **values)
    kernel_time.show(found, -(-timed[-1][1].images // BATCH))
    return found


def packed(data: Dataset, args: argparse.Namespace, n: int, **values: Any) -> float:
    """All runs' images a second while all train: each waits after its first epoch until all have begun."""
    together = threading.Barrier(n)
    every: list[list[tuple[float, Epoch]]] = [[] for _ in range(n)]
    args = argparse.Namespace(**vars(args) | {"epochs": 40})

    def one(i: int) -> None:
        with own_stream(torch.device(args.device)):
            ours(data, args, every[i], first=together.wait, seed=i, **values)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    begin, end = max(epochs[0][0] for epochs in every), min(epochs[-1][0] for epochs in every)
    images = sum(epoch.images for epochs in every for when, epoch in epochs if begin < when <= end)
    return images / (end - begin)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default=None)
    parser.add_argument("--stem", default="cifar")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--pack", type=int, nargs="*", default=[3, 6])
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument(
        "--only", nargs="*", default=None, help="variants whose names contain one of these words"
    )
    parser.add_argument(
        "--positions", type=int, nargs="*", default=[2], help="sides of maps to try layers.POSITIONS with"
    )
    parser.add_argument("--profile", action="store_true", help="show the kernels of a step, on a GPU")
    parser.add_argument("--second-start", action="store_true", help="time the set-up of two fresh processes")
    parser.add_argument("--one-start", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(words)
    return exit_status(lambda: measure(args))


def by_kernels(args: argparse.Namespace) -> dict[str, int | None]:
    """Who runs the backbone: our kernels, and then the compiler, for a stem that pools."""
    if args.stem == "cifar":
        return {"": None}
    usual, *others = args.positions
    return {"": usual} | {f", positions {side}": side for side in others} | {", by the compiler": 0}


def choose_kernels(side: int | None) -> None:
    if side is None:
        return
    fused.POOLING = side > 0
    if side:
        from jioc.nets.fused import layers

        layers.POSITIONS = side


def measure(args: argparse.Namespace) -> None:
    cuda = args.device.startswith("cuda")
    args.backbone = args.backbone or "resnet32"
    args.epochs = (12 if cuda else 3) if args.epochs is None else args.epochs
    if args.epochs < 2:
        raise Refused(f"--epochs: {args.epochs} is refused: the first is not timed, so it takes two")
    if args.json and not args.json.parent.is_dir():
        raise Refused(f"--json: there is no folder {str(args.json.parent)!r}")
    args.workers = args.workers or (8 if cuda else 2)
    each = 500 if cuda else 20 if args.one_start else 100
    args.old = 2000 if cuda else 400
    args.images = 10 * each + args.old
    data, device = made(each), torch.device(args.device)
    if args.one_start:
        choose_kernels(max(args.positions) if cuda and args.stem != "cifar" else None)
        return starts.one_start(alone, args, data)
    if args.second_start:
        words = ["--backbone", args.backbone, "--stem", args.stem, "--device", args.device, "--epochs", "3"]
        found = starts.both_starts([*words, "--positions", *map(str, args.positions)])
        if args.json:
            args.json.write_text(json.dumps(about(args) | found, indent=1) + "\n")
        return None
    jioc = {"coordination": {"coordinate": "jioc"}}
    if cuda:
        variants = {
            "ours, eager fp32": {"engine": "eager", "precision": "fp32"},
            "ours, graph fp32": {"precision": "fp32", "compile": False},
            "ours, graph bf16": {"precision": "bf16", "compile": False},
            "ours, graph bf16 compiled": {"precision": "bf16"},
            "ours, graph bf16 compiled, JIOC": {"precision": "bf16", **jioc},
        }
    else:
        variants = {"ours": {}, "ours, JIOC": jioc, "ours, compiled": {"compile": True}}
    rows: list[tuple[str, float, float]] = [("the usual loop", usual(data, args, device), 0.0)]
    _show(rows)
    profiles = {}
    for who, side in by_kernels(args).items() if cuda else [("", None)]:
        choose_kernels(side)
        for name, values in variants.items():
            if args.only is None or any(word in name for word in args.only):
                rows.append((name + who, *alone(data, args, **values)))
                _show(rows)
        if cuda and args.profile:
            profiles[f"bf16 compiled{who}"] = profiled(data, args, precision="bf16")
        for n in args.pack if cuda else []:
            rows.append((f"ours, {n} packed{who}", packed(data, args, n, precision="bf16"), 0.0))
            _show(rows)
            together = packed(data, args, n, precision="bf16", **jioc)
            rows.append((f"ours, {n} packed, JIOC{who}", together, 0.0))
            _show(rows)
        if args.json:
            args.json.write_text(json.dumps(about(args) | kept(rows, profiles), indent=1) + "\n")


def about(args: argparse.Namespace) -> dict[str, Any]:
    """What was measured, and where."""
    cuda = args.device.startswith("cuda")
    threads = f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
    return {
        "commit": commit(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if cuda else threads,
        "backbone": args.backbone,
        "stem": args.stem,
    }


def kept(rows: list[tuple[str, float, float]], profiles: dict[str, Any]) -> dict[str, Any]:
    table = [
        {"variant": n, "images_per_second": s, "ratio": s / rows[0][1], "set_up_seconds": u}
        for n, s, u in rows
    ]
    return {"rows": table} | ({"profiles": profiles} if profiles else {})


def _show(rows: list[tuple[str, float, float]]) -> None:
    name, speed, up = rows[-1]
    print(f"{name:36} {speed:10,.0f} images/s   {speed / rows[0][1]:6.2f}x   set-up {up:5.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
