"""Images a second of one run on one process and on two, on this machine, and what the communication costs.

    python benchmarks/scale.py [--backbone resnet18] [--device cpu] [--json FILE]

Every variant trains the second task of ten (20 classes, iCaRL with its teacher) on random images of CIFAR's
size by the product's own `fit`, with the same global batch; the processes are started by torchrun. `nothing
exchanged` are two processes that each train on their share alone, which is no run at all, but what two
processes could do if talking were free: the difference to it is the cost of communication. On a CPU each
process has one thread. The fastest epoch counts, because two processes wait for whoever is disturbed.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from speed import chosen, made, train_second_task

from jioc.device.distributed import World, process_group
from jioc.events import Epoch, Event
from jioc.training.execution import commit
from jioc.training.preflight import preflight
from jioc.training.runner import Run

VARIANTS = {  # processes, threads of each on a CPU, what BN sees
    "one process": (1, 1, "per-process"),
    "one process, two threads": (1, 2, "per-process"),
    "two processes, nothing exchanged": (2, 1, "per-process"),
    "two processes": (2, 1, "per-process"),
    "two processes, BN synchronised": (2, 1, "synchronised"),
}
FREE = "two processes, nothing exchanged"


def work(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """In one of the processes: the second task's fit."""
    _, threads, bn = VARIANTS[name]
    torch.set_num_threads(threads)
    config = chosen(args, batch_size=args.batch_size, engine="eager", bn=bn)
    events: list[Event] = []
    with process_group(bn) as world:
        if name == FREE:
            silence(world)
        run = Run(preflight(config, made(args.each), world), callback=events.append)
        train_second_task(run, args.each // 5)
    epochs = [event for event in events if isinstance(event, Epoch)]
    speed = max(epoch.images_per_second for epoch in epochs[1:])
    trained = sum(p.numel() * p.element_size() for p in run.method.net.parameters() if p.requires_grad)
    kept = sum(b.numel() * b.element_size() for b in run.method.net.buffers())
    return {"images_per_second": speed, "gradient_bytes": trained, "statistics_bytes": kept}


def silence(world: World) -> None:
    """Nothing passes between the processes within a step."""
    for name, instead in (
        ("wrap", lambda net, trained: net),
        ("average_statistics", lambda net, n: None),
        ("any", lambda asked: asked),
    ):
        setattr(world, name, instead)


def measured(name: str, words: list[str]) -> dict[str, Any]:
    """A variant in processes of its own."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(VARIANTS[name][0])]
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(
            [sys.executable, *launch, __file__, *words, "--variant", name, "--json", file.name],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": str(VARIANTS[name][1])},
        )
        return json.loads(Path(file.name).read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="resnet32")
    parser.add_argument("--stem", default="cifar")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument(
        "--each", type=int, default=None, help="images of each class (500 on CUDA, 20 on a CPU)"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.each = args.each or (500 if args.device == "cuda" else 20)
    if args.variant:
        found = work(args.variant, args)
        if os.environ["RANK"] == "0":
            args.json.write_text(json.dumps(found))
        os._exit(0)  # as jioc/__main__.py does
    words = [f"--{k.replace('_', '-')}={v}" for k, v in vars(args).items() if k not in ("json", "variant")]
    rows = {}
    for name in VARIANTS:
        rows[name] = measured(name, words)
        speed = rows[name]["images_per_second"]
        text = f"{name:34} {speed:10,.1f} images/s   {speed / rows['one process']['images_per_second']:5.2f}x"
        if FREE in rows and name != FREE:
            step = args.batch_size / speed - args.batch_size / rows[FREE]["images_per_second"]
            share = 100 * step * speed / args.batch_size
            text += f"   communication {1000 * step:7.1f} ms a step, {share:3.0f} % of it"
        print(text, flush=True)
    sent = rows["two processes"]
    print(
        f"a step of {args.batch_size} images sums {sent['gradient_bytes'] / 1e6:.2f} MB of gradients and "
        f"{sent['statistics_bytes'] / 1e6:.3f} MB of BN statistics over the processes"
    )
    if args.json:
        device = torch.cuda.get_device_name() if args.device == "cuda" else f"{platform.machine()} CPU"
        about = {"commit": commit(), "torch": torch.__version__, "device": device, "backbone": args.backbone}
        args.json.write_text(
            json.dumps({**about, "batch_size": args.batch_size, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
